/* zbcheck: a second opinion on a schedule file.
 *
 * It trusts nothing: not the program that wrote the file, not a number in it, not its own reading of a
 * decimal as a double (there is none). From the embedded profile and the order of the ops it recomputes every
 * number, and from the profile alone it redoes the proof of the lower bound. It shares no code with the
 * solver.
 *
 * Order of the checks, each relying only on those before it; the first that fails is reported:
 *   1. the text is JSON, every key is known and there once;
 *   2. the profile is a profile;
 *   3. every op is there once, on the device that holds its stage;
 *   4. the orders can finish, and every op starts as early as it can;
 *   5. busy and idle times, memory peaks and limits, device by device;
 *   6. span, makespan, period; cost, bound, status and ratios agree;
 *   7. nothing costs less than the bound (for an infeasible profile: no order fits into the limit). */
#include "zbcheck.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The word, the JSON field and the exit code of every verdict. */
static const struct {
  const char *word;
  int code;
} verdicts[] = {
    [ZC_HOLDS] = {"holds", 0},         [ZC_NOT_REDONE] = {"not redone", 10}, [ZC_WRONG] = {"wrong", 4},
    [ZC_BAD_INPUT] = {"bad input", 2}, [ZC_FAILED] = {"failed", 1},
};

struct zc_block {
  struct zc_block *next;
  max_align_t bytes[];
};

bool zc_stop(struct zc_run *run, enum zc_verdict verdict, const char *format, ...) {
  va_list list;

  run->finding.verdict = verdict;
  va_start(list, format);
  vsnprintf(run->finding.text, sizeof run->finding.text, format, list);
  va_end(list);
  return false;
}

void *zc_alloc(struct zc_run *run, size_t count, size_t size) {
  struct zc_block *block = NULL;

  if (count <= (SIZE_MAX - sizeof *block) / size) block = calloc(1, sizeof *block + count * size);
  if (!block) {
    zc_stop(run, ZC_FAILED, "out of memory");
    return NULL;
  }
  block->next = run->blocks;
  run->blocks = block;
  return block->bytes;
}

bool zc_grow(struct zc_run *run, void **table, size_t *room, size_t need, size_t size) {
  size_t wanted = *room + *room / 2;

  if (need <= *room) return true;
  if (wanted < need) wanted = need;
  void *grown = wanted <= SIZE_MAX / size ? realloc(*table, wanted * size) : NULL;
  if (!grown) return zc_stop(run, ZC_FAILED, "out of memory");
  *table = grown;
  *room = wanted;
  return true;
}

void zc_note(const struct zc_run *run, const char *format, ...) {
  va_list list;

  if (!run->verbose) return;
  va_start(list, format);
  fputs("zbcheck: ", stderr);
  vfprintf(stderr, format, list);
  fputc('\n', stderr);
  va_end(list);
}

/* ---- the command line ---- */

struct options {
  const char *schedule, *proof;
  bool no_bound, json, quiet, verbose, help;
};

enum option_type { FLAG, TEXT };

static const struct option {
  const char *name;
  enum option_type type;
  size_t at; /* in struct options */
  const char *value, *help;
} option_table[] = {
    {"--proof", TEXT, offsetof(struct options, proof), " FILE", "read the proof tree from FILE"},
    {"--no-bound", FLAG, offsetof(struct options, no_bound), "",
     "do not redo the bound (exit code 10 if the rest holds)"},
    {"--json", FLAG, offsetof(struct options, json), "", "print one JSON object"},
    {"-q", FLAG, offsetof(struct options, quiet), "", "print errors only"},
    {"-v", FLAG, offsetof(struct options, verbose), "", "say on stderr what is checked"},
    {"--help", FLAG, offsetof(struct options, help), "", "print this and stop"},
};

enum { OPTIONS = sizeof option_table / sizeof option_table[0] };

static bool print_help(void) {
  puts("usage: zbcheck SCHEDULE [--proof FILE] [--no-bound] [--json] [-q] [-v]\n"
       "Recomputes every number in a schedule file and redoes the proof of its bound.\n");
  for (int i = 0; i < OPTIONS; i++)
    printf("  %s%-*s %s\n", option_table[i].name, 16 - (int)strlen(option_table[i].name),
           option_table[i].value, option_table[i].help);
  puts("\nexit codes: 0 holds, 10 holds but the bound was not redone, 4 wrong, 2 bad usage or input, 1 "
       "failure");
  return fflush(stdout) == 0;
}

static bool take_option(struct zc_run *run, struct options *options, char **arguments, int count, int *i) {
  const char *argument = arguments[*i], *equals = strchr(argument, '=');
  size_t length = equals ? (size_t)(equals - argument) : strlen(argument);

  for (int o = 0; o < OPTIONS; o++) {
    const struct option *option = &option_table[o];
    if (strlen(option->name) != length || memcmp(option->name, argument, length) != 0) continue;
    if (option->type == FLAG) {
      bool *flag = (bool *)((char *)options + option->at);
      if (equals || *flag)
        return zc_stop(run, ZC_BAD_INPUT, "%s: %s", option->name, equals ? "takes no value" : "given twice");
      *flag = true;
      return true;
    }
    const char **text = (const char **)(void *)((char *)options + option->at);
    const char *value = equals ? equals + 1 : *i + 1 < count ? arguments[++*i] : NULL;
    if (!value || !*value || *text)
      return zc_stop(run, ZC_BAD_INPUT, "%s: %s", option->name, *text ? "given twice" : "expected a value");
    *text = value;
    return true;
  }
  return zc_stop(run, ZC_BAD_INPUT, "%s: unknown option, see --help", argument);
}

static bool read_options(struct zc_run *run, struct options *options, char **arguments, int count) {
  bool only_files = false;

  for (int i = 1; i < count; i++) {
    if (!only_files && strcmp(arguments[i], "--") == 0) {
      only_files = true;
    } else if (!only_files && arguments[i][0] == '-') {
      if (!take_option(run, options, arguments, count, &i)) return false;
    } else if (options->schedule) {
      return zc_stop(run, ZC_BAD_INPUT, "%s: a second file, expected one schedule", arguments[i]);
    } else {
      options->schedule = arguments[i];
    }
  }
  if (!options->schedule && !options->help) return zc_stop(run, ZC_BAD_INPUT, "no schedule file, see --help");
  return true;
}

/* ---- the checks ---- */

/* Infeasible: the named device needs more than its limit in every order. */
static bool check_reason(struct zc_run *run, const struct zc_document *document,
                         const struct zc_profile *profile, const struct zc_schedule *schedule) {
  const struct zc_node *device_node, *limit_node, *peak_node;
  const struct zc_field fields[] = {
      {"device", ZC_NUMBER, true, &device_node},
      {"limit_bytes", ZC_NUMBER, true, &limit_node},
      {"least_peak_bytes", ZC_NUMBER, true, &peak_node},
  };
  int64_t device = 0, limit = 0, peak = 0;

  if (!schedule->reason)
    return zc_bad(run, document, document->root, "reason: missing, an infeasible profile needs one");
  if (!zc_fields(run, document, schedule->reason, "reason", fields, sizeof fields / sizeof fields[0]) ||
      !zc_integer(run, document, device_node, "reason.device", -INT32_MAX, INT32_MAX, &device) ||
      !zc_integer(run, document, limit_node, "reason.limit_bytes", 0, ZC_MOST, &limit) ||
      !zc_integer(run, document, peak_node, "reason.least_peak_bytes", 0, ZC_MOST, &peak))
    return false;
  if (device >= profile->devices)
    return zc_stop(run, ZC_WRONG, "reason.device says %lld, the profile has %d devices", (long long)device,
                   profile->devices);
  int64_t is = profile->limit[device], needs = zc_least_peak(profile, (int32_t)device);
  if (is == ZC_NO_LIMIT)
    return zc_stop(run, ZC_WRONG, "device %d: reason.limit_bytes says %lld, the profile has no limit there",
                   (int)device, (long long)limit);
  if (is != limit)
    return zc_stop(run, ZC_WRONG, "device %d: reason.limit_bytes says %lld, the profile %lld", (int)device,
                   (long long)limit, (long long)is);
  if (peak != needs)
    return zc_stop(run, ZC_WRONG, "device %d: reason.least_peak_bytes says %lld, recomputed %lld",
                   (int)device, (long long)peak, (long long)needs);
  if (needs <= limit)
    return zc_stop(run, ZC_WRONG, "device %d: not infeasible, %lld B are enough and the limit is %lld B",
                   (int)device, (long long)needs, (long long)limit);
  return zc_stop(run, ZC_HOLDS, "infeasible, device %d needs %lld B and its limit is %lld B", (int)device,
                 (long long)needs, (long long)limit);
}

static bool check(struct zc_run *run, const struct options *options, struct zc_schedule *schedule) {
  struct zc_document document;
  struct zc_profile profile = {0};
  const char *bytes;
  size_t length;

  if (!zc_read_file(run, options->schedule, &bytes, &length, NULL) ||
      !zc_parse(run, options->schedule, bytes, length, &document) ||
      !zc_read_schedule(run, &document, &profile, schedule))
    return false;
  zc_note(run, "%d devices, %d stages, %d microbatches, %d ops", profile.devices, profile.stages,
          profile.microbatches, schedule->op_count);
  if (schedule->status == ZC_INFEASIBLE) return check_reason(run, &document, &profile, schedule);
  if (schedule->status != ZC_UNKNOWN && !zc_check_timeline(run, &document, &profile, schedule)) return false;
  if (schedule->status != ZC_UNKNOWN)
    zc_stop(run, ZC_HOLDS, "%s %lld ns, bound %lld ns, %s", zc_objective_names[schedule->objective],
            (long long)schedule->cost, (long long)schedule->bound, zc_status_names[schedule->status]);
  else if (schedule->has_bound)
    zc_stop(run, ZC_HOLDS, "no schedule, bound %lld ns", (long long)schedule->bound);
  else
    return zc_stop(run, ZC_HOLDS, "no schedule, no bound");

  struct zc_finding plain = run->finding;
  if (options->no_bound) {
    run->finding.verdict = ZC_NOT_REDONE;
    return true;
  }
  if (!zc_check_bound(run, &document, &profile, schedule, options->proof)) {
    if (run->finding.verdict == ZC_NOT_REDONE) {
      char why[sizeof plain.text];
      memcpy(why, run->finding.text, sizeof why);
      zc_stop(run, ZC_NOT_REDONE, "%.200s; bound not redone: %.400s", plain.text, why);
    }
    return false;
  }
  run->finding = plain;
  return true;
}

/* ---- the verdict ---- */

static void print_json_text(const char *text) {
  putchar('"');
  for (; *text; text++) {
    unsigned char c = (unsigned char)*text;
    if (c == '"' || c == '\\')
      printf("\\%c", c);
    else if (c < ' ')
      printf("\\u%04x", c);
    else
      putchar(c);
  }
  putchar('"');
}

/* A holding schedule is a result; anything else is an error, which -q does not hide. */
static bool print_verdict(const struct zc_run *run, const struct options *options) {
  const struct zc_finding *finding = &run->finding;
  const char *word = verdicts[finding->verdict].word;
  bool result = finding->verdict == ZC_HOLDS || finding->verdict == ZC_NOT_REDONE;

  if (options->json) {
    printf("{\"verdict\": \"%s\", \"exit\": %d, \"text\": ", word, verdicts[finding->verdict].code);
    print_json_text(finding->text);
    puts("}");
  } else if (finding->verdict == ZC_BAD_INPUT || finding->verdict == ZC_FAILED) {
    fprintf(stderr, "%s%s\n", finding->verdict == ZC_FAILED ? "zbcheck: " : "", finding->text);
  } else if (!result) {
    fprintf(stderr, "%s: %s: %s\n", options->schedule, word, finding->text);
  } else if (!options->quiet) {
    printf("%s: %s\n", word, finding->text);
  }
  return fflush(stdout) == 0 && !ferror(stdout);
}

int main(int count, char **arguments) {
  struct zc_run run = {0};
  struct options options = {0};
  struct zc_schedule schedule = {0};
  bool printed;

  if (read_options(&run, &options, arguments, count) && !options.help) {
    run.verbose = options.verbose;
    check(&run, &options, &schedule);
  }
  printed = options.help && run.finding.verdict == ZC_HOLDS ? print_help() : print_verdict(&run, &options);
  while (run.blocks) {
    struct zc_block *block = run.blocks;
    run.blocks = block->next;
    free(block);
  }
  if (!printed) {
    fputs("zbcheck: cannot write to stdout\n", stderr);
    return verdicts[ZC_FAILED].code;
  }
  return verdicts[run.finding.verdict].code;
}
