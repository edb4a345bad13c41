// schedule_json.c - reading a schedule file back as an answer full of claims.
//
// Form is checked here, numbers are not: whether a claim is true is zb_answer_verify's to say. Only what
// could not even be held against the profile (a device, stage or microbatch that it does not have) is
// WRONG already here.
#include "solver/io/schedule_json.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "solver/io/file.h"
#include "solver/io/json_read.h"
#include "solver/io/profile_json.h"
#include "solver/model/number.h"

static const char *const schedule_keys[] = {
    "zbsolve_schedule", "profile", "method",      "objective", "status",    "cost_ns",
    "bound_ns",         "gap",     "bubble_rate", "span_ns",   "period_ns", "makespan_ns",
    "relaxation",       "reason",  "devices",     "proof",     NULL};
static const char *const device_keys[] = {"device",     "stages",  "ops",     "start_ns",
                                          "peak_bytes", "busy_ns", "idle_ns", NULL};
static const char *const reason_keys[] = {"device", "limit_bytes", "least_peak_bytes", NULL};
static const char *const proof_file_keys[] = {"file", "sha256", NULL};

static const enum zb_status written_statuses[] = {ZB_OPTIMAL, ZB_FEASIBLE, ZB_INFEASIBLE, ZB_UNKNOWN};
enum { WRITTEN_STATUSES = sizeof written_statuses / sizeof *written_statuses };

static enum zb_status read_claim(const struct zb_json *object, const char *key,
                                 const struct zb_json_place *place, int64_t *value, struct zb_error *error) {
  const struct zb_json *member = NULL;
  struct zb_json_place here = {place, key, 0};
  enum zb_status status = zb_json_require(object, key, place, "a whole number", &member, error);
  if (status != ZB_OK) return status;
  return zb_json_read_integer(member, &here, -ZB_NUMBER_MAX, ZB_NUMBER_MAX, value, error);
}

static enum zb_status read_ratio(const struct zb_json *root, const char *key, double *value,
                                 struct zb_error *error) {
  const struct zb_json *member = NULL;
  struct zb_json_place here = {NULL, key, 0};
  enum zb_status status = zb_json_require(root, key, NULL, "a ratio", &member, error);
  if (status != ZB_OK) return status;
  if (zb_json_type(member) != ZB_JSON_NUMBER) return zb_json_fail_type(member, &here, "a ratio", error);
  *value = zb_json_number(member);
  return ZB_OK;
}

// A required string, not copied.
static enum zb_status read_word(const struct zb_json *object, const char *key,
                                const struct zb_json_place *place, const char *expected, const char **word,
                                struct zb_error *error) {
  const struct zb_json *member = NULL;
  struct zb_json_place here = {place, key, 0};
  enum zb_status status = zb_json_require(object, key, place, expected, &member, error);
  return status == ZB_OK ? zb_json_read_string(member, &here, word, error) : status;
}

static enum zb_status fail_word(const char *key, const char *word, const char *expected,
                                struct zb_error *error) {
  struct zb_json_place here = {NULL, key, 0};
  char shown[ZB_SHOWN];
  return zb_json_fail(error, ZB_BAD_INPUT, &here, "\"%s\" is unknown, expected %s",
                      zb_json_shown(word, shown), expected);
}

static enum zb_status read_words(const struct zb_json *root, struct zb_answer *answer,
                                 struct zb_error *error) {
  const char *method = NULL, *objective = NULL, *state = NULL;
  static const char objectives[] = "span, makespan or period";
  static const char statuses[] = "optimal, feasible, infeasible or unknown";
  enum zb_status status = read_word(root, "method", NULL, "the method's name", &method, error);
  if (status == ZB_OK) status = read_word(root, "objective", NULL, objectives, &objective, error);
  if (status == ZB_OK) status = read_word(root, "status", NULL, statuses, &state, error);
  if (status != ZB_OK) return status;
  int found = 0;
  while (found < ZB_OBJECTIVE_COUNT && strcmp(objective, zb_objective_word((enum zb_objective)found)) != 0)
    found++;
  if (found == ZB_OBJECTIVE_COUNT) return fail_word("objective", objective, objectives, error);
  answer->objective = (enum zb_objective)found;
  found = 0;
  while (found < WRITTEN_STATUSES && strcmp(state, zb_status_word(written_statuses[found])) != 0) found++;
  if (found == WRITTEN_STATUSES) return fail_word("status", state, statuses, error);
  answer->status = written_statuses[found];
  answer->method = strdup(method);
  return answer->method ? ZB_OK : zb_fail_memory(error);
}

static enum zb_status read_costs(const struct zb_json *root, struct zb_answer *answer,
                                 struct zb_error *error) {
  const struct {
    const char *key;
    int64_t *value;
  } claims[] = {{"cost_ns", &answer->cost_ns},
                {"bound_ns", &answer->bound_ns},
                {"span_ns", &answer->timeline.span_ns},
                {"period_ns", &answer->timeline.period_ns},
                {"makespan_ns", &answer->timeline.makespan_ns}};
  enum zb_status status = ZB_OK;
  for (size_t i = 0; i < sizeof claims / sizeof *claims && status == ZB_OK; i++)
    status = read_claim(root, claims[i].key, NULL, claims[i].value, error);
  if (status == ZB_OK) status = read_ratio(root, "gap", &answer->gap, error);
  if (status == ZB_OK) status = read_ratio(root, "bubble_rate", &answer->bubble_rate, error);
  return status;
}

// Without a schedule only the bound of an unknown answer may be there.
static enum zb_status read_no_costs(const struct zb_json *root, struct zb_answer *answer,
                                    struct zb_error *error) {
  static const char *const absent[] = {"cost_ns",   "bound_ns",    "gap",     "bubble_rate", "span_ns",
                                       "period_ns", "makespan_ns", "devices", "proof",       NULL};
  for (size_t i = 0; absent[i]; i++) {
    const struct zb_json *member = zb_json_member(root, absent[i]);
    if (!member) continue;
    if (answer->status == ZB_UNKNOWN &&
        (strcmp(absent[i], "bound_ns") == 0 || strcmp(absent[i], "proof") == 0))
      continue;
    if (zb_json_type(member) == ZB_JSON_LIST && !zb_json_first(member)) continue;
    struct zb_json_place here = {NULL, absent[i], 0};
    return zb_json_fail(error, ZB_BAD_INPUT, &here, "an %s answer has no schedule, expected no such key",
                        zb_status_word(answer->status));
  }
  if (!zb_json_member(root, "bound_ns")) return ZB_OK;
  return read_claim(root, "bound_ns", NULL, &answer->bound_ns, error);
}

static enum zb_status read_reason(const struct zb_json *root, struct zb_answer *answer,
                                  struct zb_error *error) {
  const struct zb_json *reason = NULL;
  struct zb_json_place place = {NULL, "reason", 0}, device_place = {&place, "device", 0};
  if (answer->status != ZB_INFEASIBLE) {
    if (!zb_json_member(root, "reason")) return ZB_OK;
    return zb_json_fail(error, ZB_BAD_INPUT, &place, "expected only in an infeasible answer");
  }
  enum zb_status status = zb_json_require(
      root, "reason", NULL, "an object with device, limit_bytes, least_peak_bytes", &reason, error);
  if (status == ZB_OK) status = zb_json_expect_object(reason, &place, reason_keys, error);
  int64_t device = 0;
  if (status == ZB_OK) status = read_claim(reason, "device", &place, &device, error);
  if (status == ZB_OK) status = read_claim(reason, "limit_bytes", &place, &answer->reason.limit_bytes, error);
  if (status == ZB_OK)
    status = read_claim(reason, "least_peak_bytes", &place, &answer->reason.least_peak_bytes, error);
  if (status == ZB_OK && (device < 0 || device >= answer->profile->devices))
    status =
        zb_json_fail(error, ZB_WRONG, &device_place, "there is no device %" PRId64 ", the profile has %d",
                     device, answer->profile->devices);
  answer->reason.device = (int)device;
  return status;
}

static enum zb_status read_extras(const struct zb_json *root, struct zb_answer *answer,
                                  struct zb_error *error) {
  const struct zb_json *relaxation = zb_json_member(root, "relaxation"),
                       *proof = zb_json_member(root, "proof");
  struct zb_json_place proof_place = {NULL, "proof", 0};
  const char *word = NULL;
  if (relaxation) {
    enum zb_status status = read_word(root, "relaxation", NULL, "a word", &word, error);
    if (status != ZB_OK) return status;
    answer->relaxation = strdup(word);
    if (!answer->relaxation) return zb_fail_memory(error);
  }
  if (!proof) return ZB_OK;
  if (zb_json_type(proof) != ZB_JSON_LIST) {
    if (zb_json_type(proof) != ZB_JSON_OBJECT)
      return zb_json_fail_type(proof, &proof_place, "a list or an object with file and sha256", error);
    enum zb_status status = zb_json_expect_object(proof, &proof_place, proof_file_keys, error);
    for (size_t i = 0; proof_file_keys[i] && status == ZB_OK; i++)
      status = read_word(proof, proof_file_keys[i], &proof_place, "a string", &word, error);
    if (status != ZB_OK) return status;
  }
  struct zb_text text = {0};
  zb_json_print(proof, &text);
  answer->proof = text.data;
  return zb_text_status(&text, error);
}

// Member `key` of a device, which must be a list.
// The number of ops of every device becomes schedule->first; their total is the size of everything else.
static enum zb_status count_ops(const struct zb_json *devices, const struct zb_profile *profile,
                                size_t *first, struct zb_error *error) {
  struct zb_json_place list_place = {NULL, "devices", 0}, place = {&list_place, NULL, 0};
  size_t count = zb_json_count(devices);
  if (count != (size_t)profile->devices)
    return zb_json_fail(error, ZB_WRONG, &list_place, "a list of %zu, but the profile has %d devices", count,
                        profile->devices);
  for (const struct zb_json *device = zb_json_first(devices); device; device = zb_json_next(device)) {
    const struct zb_json *ops = NULL, *starts = NULL;
    enum zb_status status = zb_json_expect_object(device, &place, device_keys, error);
    if (status == ZB_OK) status = zb_json_require_list(device, "ops", &place, &ops, error);
    if (status == ZB_OK) status = zb_json_require_list(device, "start_ns", &place, &starts, error);
    if (status != ZB_OK) return status;
    size_t length = zb_json_count(ops), start_length = zb_json_count(starts);
    if (length != start_length) {
      struct zb_json_place here = {&place, "start_ns", 0};
      return zb_json_fail(error, ZB_BAD_INPUT, &here, "a list of %zu, expected %zu, one an op", start_length,
                          length);
    }
    first[place.index + 1] = first[place.index] + length;
    place.index++;
  }
  return ZB_OK;
}

static enum zb_status read_op(const struct zb_json *node, const struct zb_json_place *place,
                              const struct zb_profile *profile, size_t device, struct zb_op *op,
                              struct zb_error *error) {
  const char *word = NULL;
  enum zb_status status = zb_json_read_string(node, place, &word, error);
  if (status != ZB_OK) return status;
  char shown[ZB_SHOWN];
  size_t length = zb_op_parse(word, op);
  if (length == 0 || word[length] != '\0')
    return zb_json_fail(error, ZB_BAD_INPUT, place,
                        "\"%s\" is no op, expected one like 0F3, 2B12, 2W12 or 0BW5",
                        zb_json_shown(word, shown));
  if (op->stage >= profile->stages)
    return zb_fail(error, ZB_WRONG, "device %zu, position %zu, %s: there is no stage %d, the profile has %d",
                   device, place->index, word, (int)op->stage, profile->stages);
  if (op->microbatch >= profile->microbatches)
    return zb_fail(error, ZB_WRONG,
                   "device %zu, position %zu, %s: there is no microbatch %d, the profile has %d", device,
                   place->index, word, (int)op->microbatch, profile->microbatches);
  return ZB_OK;
}

static enum zb_status read_ops(const struct zb_json *device, const struct zb_json_place *place,
                               struct zb_answer *answer, struct zb_error *error) {
  size_t first = answer->schedule->first[place->index];
  struct zb_json_place ops_place = {place, "ops", 0}, starts_place = {place, "start_ns", 0};
  struct zb_json_place op_place = {&ops_place, NULL, 0}, start_place = {&starts_place, NULL, 0};
  const struct zb_json *op = zb_json_first(zb_json_member(device, "ops"));
  for (; op; op = zb_json_next(op), op_place.index++) {
    enum zb_status status = read_op(op, &op_place, answer->profile, place->index,
                                    &answer->schedule->ops[first + op_place.index], error);
    if (status != ZB_OK) return status;
  }
  const struct zb_json *start = zb_json_first(zb_json_member(device, "start_ns"));
  for (; start; start = zb_json_next(start), start_place.index++) {
    enum zb_status status =
        zb_json_read_integer(start, &start_place, -ZB_NUMBER_MAX, ZB_NUMBER_MAX,
                             &answer->timeline.start_ns[first + start_place.index], error);
    if (status != ZB_OK) return status;
  }
  return ZB_OK;
}

static enum zb_status read_device(const struct zb_json *device, const struct zb_json_place *place,
                                  struct zb_answer *answer, struct zb_error *error) {
  size_t d = place->index;
  struct zb_timeline *t = &answer->timeline;
  struct zb_json_place here = {place, "device", 0};
  int64_t number = 0;
  enum zb_status status = read_claim(device, "device", place, &number, error);
  if (status == ZB_OK && number != (int64_t)d)
    status = zb_json_fail(error, ZB_WRONG, &here, "%" PRId64 ", but it is device %zu of the list", number, d);
  if (status == ZB_OK) status = zb_profile_check_stages(device, place, answer->profile, error);
  if (status == ZB_OK) status = read_ops(device, place, answer, error);
  if (status == ZB_OK) status = read_claim(device, "peak_bytes", place, &t->peak_bytes[d], error);
  if (status == ZB_OK) status = read_claim(device, "busy_ns", place, &t->busy_ns[d], error);
  if (status == ZB_OK) status = read_claim(device, "idle_ns", place, &answer->idle_ns[d], error);
  if (status != ZB_OK) return status;
  size_t first = answer->schedule->first[d], end = answer->schedule->first[d + 1];
  if (first < end) {
    t->first_start_ns[d] = t->start_ns[first];
    t->last_end_ns[d] = t->start_ns[end - 1] + zb_op_time(answer->profile, answer->schedule->ops[end - 1]);
  }
  t->work_ns = zb_max(t->work_ns, t->busy_ns[d]);
  return ZB_OK;
}

// The arrays for the schedule and its claimed timeline; what a failure leaves is the answer's to free.
static enum zb_status allocate(struct zb_answer *answer, const struct zb_json *devices,
                               struct zb_error *error) {
  size_t count = (size_t)answer->profile->devices;
  struct zb_schedule *schedule = answer->schedule = calloc(1, sizeof *schedule);
  if (!schedule || !(schedule->first = calloc(count + 1, sizeof *schedule->first)))
    return zb_fail_memory(error);
  schedule->devices = answer->profile->devices;
  enum zb_status status = count_ops(devices, answer->profile, schedule->first, error);
  if (status != ZB_OK) return status;
  size_t ops = schedule->first[count];
  struct zb_timeline *t = &answer->timeline;
  t->devices = schedule->devices;
  t->ops = ops;
  bool complete = (schedule->ops = calloc(ops + 1, sizeof *schedule->ops)) != NULL;
  complete = (t->start_ns = calloc(ops + 1, sizeof *t->start_ns)) && complete;
  int64_t **const lists[] = {&t->first_start_ns, &t->last_end_ns, &t->busy_ns, &t->peak_bytes,
                             &answer->idle_ns};
  for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
    complete = (*lists[i] = calloc(count, sizeof **lists[i])) && complete;
  return complete ? ZB_OK : zb_fail_memory(error);
}

static enum zb_status read_devices(const struct zb_json *root, struct zb_answer *answer,
                                   struct zb_error *error) {
  const struct zb_json *devices = NULL;
  enum zb_status status = zb_json_require_list(root, "devices", NULL, &devices, error);
  if (status == ZB_OK) status = allocate(answer, devices, error);
  if (status != ZB_OK) return status;
  struct zb_json_place list_place = {NULL, "devices", 0}, place = {&list_place, NULL, 0};
  const struct zb_json *device = zb_json_first(devices);
  for (; device && status == ZB_OK; device = zb_json_next(device), place.index++)
    status = read_device(device, &place, answer, error);
  return status;
}

static enum zb_status read_version(const struct zb_json *root, struct zb_error *error) {
  if (zb_json_type(root) == ZB_JSON_OBJECT && zb_json_member(root, "zbsolve_profile"))
    return zb_json_fail(error, ZB_BAD_INPUT, NULL, "this is a profile, expected a schedule");
  if (zb_json_type(root) == ZB_JSON_OBJECT && zb_json_member(root, "zbsolve_program"))
    return zb_json_fail(error, ZB_BAD_INPUT, NULL, "this is a program, expected a schedule");
  enum zb_status status = zb_json_expect_object(root, NULL, schedule_keys, error);
  int64_t version = 0;
  if (status == ZB_OK) status = read_claim(root, "zbsolve_schedule", NULL, &version, error);
  struct zb_json_place here = {NULL, "zbsolve_schedule", 0};
  if (status == ZB_OK && version != 1)
    status = zb_json_fail(error, ZB_BAD_INPUT, &here, "version %" PRId64 " is unknown, expected 1", version);
  return status;
}

static enum zb_status read_answer(const struct zb_json *root, struct zb_answer *answer,
                                  struct zb_error *error) {
  const struct zb_json *profile = NULL;
  struct zb_json_place place = {NULL, "profile", 0};
  enum zb_status status = read_version(root, error);
  if (status == ZB_OK)
    status = zb_json_require(root, "profile", NULL, "the profile that was solved", &profile, error);
  if (status == ZB_OK) status = zb_profile_from_json(profile, &place, &answer->profile, error);
  if (status == ZB_OK) status = read_words(root, answer, error);
  if (status == ZB_OK) status = read_reason(root, answer, error);
  if (status == ZB_OK) status = read_extras(root, answer, error);
  if (status != ZB_OK) return status;
  bool solved = answer->status == ZB_OPTIMAL || answer->status == ZB_FEASIBLE;
  status = solved ? read_costs(root, answer, error) : read_no_costs(root, answer, error);
  return status == ZB_OK && solved ? read_devices(root, answer, error) : status;
}

enum zb_status zb_answer_read_text(const char *text, size_t size, struct zb_answer *answer,
                                   struct zb_error *error) {
  struct zb_json *root = NULL;
  enum zb_status status = zb_json_parse(text, size, ZB_JSON_INTEGERS, &root, error);
  if (status != ZB_OK) return status;
  struct zb_answer read = {0};
  status = read_answer(root, &read, error);
  if (status == ZB_OK)
    *answer = read;
  else
    zb_answer_free(&read);
  zb_json_free(root);
  return status;
}

enum zb_status zb_answer_read(const char *path, struct zb_answer *answer, struct zb_error *error) {
  struct zb_text text = {0};
  enum zb_status status = zb_file_read(path, ZB_RESULT_BYTES_MOST, &text, error);
  if (status == ZB_OK) status = zb_answer_read_text(text.data ? text.data : "", text.size, answer, error);
  if (status != ZB_OK) zb_error_set_path(error, path);
  zb_text_free(&text);
  return status;
}
