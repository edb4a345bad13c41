// Files of other programs: what export writes comes back and is written again with the same bytes, and a file
// in which one cell has been changed is refused, or is a schedule that a second, plainer reading agrees to.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "solver/io/export.h"
#include "solver/io/import.h"
#include "solver/io/torch_csv.h"
#include "solver/model/check.h"
#include "tests/instances.h"
#include "tests/unit/torch_naive.h"
#include "tests/unit/unit.h"

enum { SEED = 6, INSTANCES = 150, MUTATIONS = 1500, LONG_MUTATIONS = 10000, LONG_FACTOR = 10 };

static bool is_long(void) { return getenv("ZB_LONG") != NULL; }

static const struct zb_export_format *format_out(const char *name) {
  for (int k = 0; k < zb_export_format_count(); k++)
    if (strcmp(zb_export_format_at(k)->name, name) == 0) return zb_export_format_at(k);
  fail_msg("no export format %s", name);
  return NULL;
}

static const struct zb_import_format *format_in(const char *name) {
  for (int k = 0; k < zb_import_format_count(); k++)
    if (strcmp(zb_import_format_at(k)->name, name) == 0) return zb_import_format_at(k);
  fail_msg("no import format %s", name);
  return NULL;
}

// A random schedule, each device's limit its own peak.
struct instance {
  struct zb_profile *profile;
  struct zb_answer answer; // borrows profile and owns the schedule
  struct zb_timeline timeline;
};

static struct instance make_instance(struct generate_random *random) {
  static const enum zb_placement placements[] = {ZB_CHAIN, ZB_LOOP, ZB_V};
  const enum zb_placement placement = placements[generate_between(random, 0, 2)];
  struct instance made = {.profile = instance_profile(random, placement, 4, 5)};
  assert_non_null(made.profile);
  for (int d = 0; d < made.profile->devices; d++) made.profile->limit_bytes[d] = ZB_NO_LIMIT;
  const enum instance_backward backward =
      (enum instance_backward)generate_between(random, 0, INSTANCE_BACKWARDS - 1);
  struct zb_schedule *schedule = instance_order(made.profile, backward, random);
  assert_non_null(schedule);
  assert_int_equal(zb_check_schedule(made.profile, schedule, &made.timeline, NULL), ZB_OK);
  for (int d = 0; d < made.profile->devices; d++) made.profile->limit_bytes[d] = made.timeline.peak_bytes[d];
  made.answer = (struct zb_answer){.profile = made.profile,
                                   .schedule = schedule,
                                   .objective = (enum zb_objective)generate_between(random, 0, 2)};
  return made;
}

static void free_instance(struct instance *made) {
  zb_schedule_free(made->answer.schedule);
  zb_timeline_free(&made->timeline);
  zb_profile_free(made->profile);
}

static enum zb_status write(const struct instance *made, const struct zb_schedule *schedule,
                            const struct zb_timeline *timeline, const char *format, int minor,
                            struct zb_export_output *output, struct zb_error *error) {
  struct zb_answer answer = made->answer;
  answer.schedule = (struct zb_schedule *)(uintptr_t)schedule;
  const struct zb_export_input input = {.answer = &answer, .timeline = timeline, .torch_minor = minor};
  return format_out(format)->write(&input, output, error);
}

static enum zb_status read(const struct instance *made, const char *format, const char *text, size_t size,
                           struct zb_imported *imported, struct zb_error *error) {
  return zb_import_read_text(format_in(format), text, size, made->profile, ZB_CHANNELS_RANK, imported, error);
}

static const struct {
  const char *name;
  int minor;
} carriers[] = {{"torch-csv", 15},
                {"torch-comms-csv", 6},
                {"torch-comms-csv", 10},
                {"torch-comms-csv", 15},
                {"node-list", 15}};
enum { CARRIERS = sizeof carriers / sizeof *carriers };

static void test_round_trip(void **state) {
  (void)state;
  struct generate_random random = {SEED};
  const int count = INSTANCES * (is_long() ? LONG_FACTOR : 1);
  int refused = 0;
  for (int n = 0; n < count; n++) {
    struct instance made = make_instance(&random);
    for (int k = 0; k < CARRIERS; k++) {
      struct zb_export_output out = {0}, again = {0};
      struct zb_imported imported = {0};
      struct zb_timeline timeline = {0};
      struct zb_error error = {0};
      enum zb_status status = write(&made, made.answer.schedule, &made.timeline, carriers[k].name,
                                    carriers[k].minor, &out, &error);
      if (status == ZB_BAD_INPUT && strcmp(carriers[k].name, "node-list") == 0) {
        refused++;
        zb_export_output_free(&out);
        continue;
      }
      expect(status == ZB_OK, "seed %d, number %d, %s: %s", SEED, n, carriers[k].name, error.text);
      status = read(&made, carriers[k].name, out.text.data, out.text.size, &imported, &error);
      expect(status == ZB_OK, "seed %d, number %d, %s: %d:%d: %s\n%s", SEED, n, carriers[k].name, error.line,
             error.column, error.text, out.text.data);
      // Within the limits that the schedule itself needed.
      status = zb_check_schedule(imported.placed, imported.schedule, &timeline, &error);
      expect(status == ZB_OK, "seed %d, number %d, %s: %s", SEED, n, carriers[k].name, error.text);
      if (strcmp(carriers[k].name, "node-list") != 0)
        expect(torch_naive_runs(out.text.data), "seed %d, number %d, %s 2.%d:\n%s", SEED, n, carriers[k].name,
               carriers[k].minor, out.text.data);
      status =
          write(&made, imported.schedule, &timeline, carriers[k].name, carriers[k].minor, &again, &error);
      expect(status == ZB_OK && strcmp(out.text.data, again.text.data) == 0,
             "seed %d, number %d, %s 2.%d: not the same again:\n%s%s", SEED, n, carriers[k].name,
             carriers[k].minor, out.text.data, again.text.data);
      zb_timeline_free(&timeline);
      zb_imported_free(&imported);
      zb_export_output_free(&out);
      zb_export_output_free(&again);
    }
    free_instance(&made);
  }
  assert_true(refused > 0 && refused < count);
}

// The schedule with each split backward of stage 0 whole where its `kind` was.
static struct zb_schedule *whole_first_stage(const struct zb_profile *p, const struct zb_schedule *schedule,
                                             enum zb_kind kind) {
  struct zb_schedule_builder builder = {0};
  struct zb_schedule *whole = NULL;
  assert_int_equal(zb_builder_create(p, &builder, NULL), ZB_OK);
  for (size_t i = 0; i < schedule->first[schedule->devices]; i++) {
    const struct zb_op op = schedule->ops[i];
    const bool split = op.stage == 0 && (op.kind == ZB_B || op.kind == ZB_W);
    if (!split || op.kind == kind)
      zb_builder_append(&builder, op.stage, split ? ZB_BW : op.kind, op.microbatch);
  }
  assert_int_equal(zb_builder_finish(&builder, &whole, NULL), ZB_OK);
  zb_builder_free(&builder);
  return whole;
}

// What the normal form costs: nothing where stage 0's backwards are whole already; else no more than they do
// where each B or where each W was.
static void test_normal_cost(void **state) {
  (void)state;
  struct generate_random random = {SEED + 1};
  const int count = INSTANCES * (is_long() ? LONG_FACTOR : 1);
  for (int n = 0; n < count; n++) {
    struct instance made = make_instance(&random);
    struct zb_profile *p = made.profile;
    struct zb_export_output out = {0};
    struct zb_imported imported = {0};
    struct zb_timeline timeline = {0};
    struct zb_error error = {0};
    int64_t least_ns = INT64_MAX;
    for (int d = 0; d < p->devices; d++) p->limit_bytes[d] = ZB_NO_LIMIT;
    for (enum zb_kind kind = ZB_B; kind <= ZB_W; kind++) {
      struct zb_schedule *whole = whole_first_stage(p, made.answer.schedule, kind);
      zb_timeline_free(&made.timeline);
      assert_int_equal(zb_check_schedule(p, whole, &made.timeline, &error), ZB_OK);
      const int64_t cost_ns = zb_timeline_cost(&made.timeline, made.answer.objective);
      if (cost_ns < least_ns) least_ns = cost_ns;
      zb_schedule_free(whole);
    }
    assert_int_equal(write(&made, made.answer.schedule, &made.timeline, "torch-csv", 15, &out, &error),
                     ZB_OK);
    assert_int_equal(read(&made, "torch-csv", out.text.data, out.text.size, &imported, &error), ZB_OK);
    assert_int_equal(zb_check_schedule(p, imported.schedule, &timeline, &error), ZB_OK);
    const enum zb_objective objective = made.answer.objective;
    expect(zb_timeline_cost(&timeline, objective) <= least_ns,
           "seed %d, number %d: %s %lld, expected %lld\n%s", SEED + 1, n, zb_objective_word(objective),
           (long long)zb_timeline_cost(&timeline, objective), (long long)least_ns, out.text.data);
    zb_timeline_free(&timeline);
    zb_imported_free(&imported);
    zb_export_output_free(&out);
    free_instance(&made);
  }
}

// Mutations of one cell of a CSV.

enum { CELLS = 1024, CELL = 48, ROWS = 8 };
struct sheet {
  char cells[CELLS][CELL];
  int row[CELLS], count, rows;
};

static void split(const char *text, struct sheet *sheet) {
  *sheet = (struct sheet){0};
  for (const char *at = text; *at; at++) {
    size_t length = strcspn(at, ",\n");
    assert_true(sheet->count < CELLS && length < CELL);
    memcpy(sheet->cells[sheet->count], at, length);
    sheet->cells[sheet->count][length] = '\0';
    sheet->row[sheet->count++] = sheet->rows;
    at += length;
    sheet->rows += *at == '\n';
  }
}

static void join(const struct sheet *sheet, struct zb_text *text) {
  zb_text_clear(text);
  for (int r = 0, first = 1; r < sheet->rows; r++, first = 1) {
    for (int k = 0; k < sheet->count; k++) {
      if (sheet->row[k] != r) continue;
      zb_text_print(text, "%s%s", first ? "" : ",", sheet->cells[k]);
      first = 0;
    }
    zb_text_put(text, "\n");
  }
}

static int any(struct generate_random *random, int below) {
  return (int)generate_between(random, 0, below - 1);
}

static void insert(struct sheet *sheet, int at, const char *cell, int row) {
  assert_true(sheet->count < CELLS);
  memmove(sheet->cells[at + 1], sheet->cells[at], (size_t)(sheet->count - at) * CELL);
  memmove(&sheet->row[at + 1], &sheet->row[at], (size_t)(sheet->count - at) * sizeof *sheet->row);
  snprintf(sheet->cells[at], CELL, "%s", cell);
  sheet->row[at] = row;
  sheet->count++;
}

static void mutate(struct sheet *sheet, struct generate_random *random) {
  char text[CELL], word[CELL];
  int k = any(random, sheet->count), other = any(random, sheet->count), stage = 0, microbatch = -1;
  snprintf(text, sizeof text, "%s", sheet->cells[k]);
  switch (any(random, 6)) {
  case 0: // drop
    sheet->row[k] = -1;
    break;
  case 1: // duplicate, anywhere
    insert(sheet, other, text, sheet->row[other]);
    break;
  case 2: // swap
    memcpy(sheet->cells[k], sheet->cells[other], CELL);
    memcpy(sheet->cells[other], text, CELL);
    break;
  case 3: // move
    insert(sheet, other, text, sheet->row[other]);
    sheet->row[k >= other ? k + 1 : k] = -1;
    break;
  case 4: // another stage, microbatch or word
    sscanf(text, "%d%40[A-Z_]%d", &stage, word, &microbatch);
    if (any(random, 2) == 0) stage = any(random, 9);
    if (any(random, 2) == 0) microbatch = any(random, 7) - 1;
    if (any(random, 3) == 0)
      snprintf(word, sizeof word, "%s", zb_torch_word_text((enum zb_torch_word)any(random, ZB_TORCH_WORDS)));
    if (microbatch >= 0)
      snprintf(sheet->cells[k], CELL, "%d%.30s%d", stage, word, microbatch);
    else
      snprintf(sheet->cells[k], CELL, "%d%.30s", stage, word);
    break;
  default: // any byte
    if (*text) sheet->cells[k][any(random, (int)strlen(text))] = (char)generate_between(random, 1, 255);
    break;
  }
}

static void check_mutant(const struct instance *made, const char *format, const struct zb_text *text, int n,
                         int *accepted) {
  struct zb_imported imported = {0};
  struct zb_error error = {0};
  enum zb_status status = read(made, format, text->data, text->size, &imported, &error);
  if (status != ZB_OK) {
    expect((status == ZB_BAD_INPUT || status == ZB_WRONG) && error.text[0] && !strchr(error.text, '\n'),
           "seed %d, number %d: %s: \"%s\"\n%s", SEED, n, zb_status_word(status), error.text, text->data);
    return;
  }
  struct zb_timeline timeline = {0};
  status = zb_check_schedule(imported.placed, imported.schedule, &timeline, &error);
  expect((status == ZB_OK || status == ZB_OVER_LIMIT) && torch_naive_runs(text->data),
         "seed %d, number %d, %s accepted, but it does not run: %s\n%s", SEED, n, format, error.text,
         text->data);
  (*accepted)++;
  zb_timeline_free(&timeline);
  zb_imported_free(&imported);
}

static void test_mutations(void **state) {
  (void)state;
  struct generate_random random = {SEED + 2};
  const int count = is_long() ? LONG_MUTATIONS : MUTATIONS;
  struct sheet *sheet = malloc(sizeof *sheet);
  struct zb_text text = {0};
  int accepted = 0;
  assert_non_null(sheet);
  for (int n = 0; n < count;) {
    struct instance made = make_instance(&random);
    for (int k = 0; k < 4; k++) {
      struct zb_export_output out = {0};
      assert_int_equal(
          write(&made, made.answer.schedule, &made.timeline, carriers[k].name, carriers[k].minor, &out, NULL),
          ZB_OK);
      for (int times = 0; times < 10; times++, n++) {
        split(out.text.data, sheet);
        mutate(sheet, &random);
        join(sheet, &text);
        if (strcmp(text.data, out.text.data) != 0) check_mutant(&made, carriers[k].name, &text, n, &accepted);
      }
      zb_export_output_free(&out);
    }
    free_instance(&made);
  }
  print_message("%d mutants, %d of them schedules\n", count, accepted);
  assert_true(accepted > 0 && accepted < count / 2);
  zb_text_free(&text);
  free(sheet);
}

// Mutations of one node of a list.

enum { STAGE, MICROBATCH, CHUNK, GROUP, NUMBERS };
struct node {
  char type[8];
  int rank, numbers[NUMBERS];
};
struct nodes {
  struct node node[CELLS];
  int count, ranks;
};

static void read_nodes(const char *text, struct nodes *nodes) {
  nodes->count = nodes->ranks = 0;
  for (const char *line = text; *line; line = strchr(line, '\n') + 1) {
    struct node node = {.rank = nodes->ranks};
    nodes->ranks += strncmp(line, "  ]", 3) == 0;
    if (sscanf(line,
               " {\"type\": \"%7[A-Z]\", \"stage\": %d, \"microbatch\": %d, \"chunk\": %d, "
               "\"layer_group_idx\": %d",
               node.type, &node.numbers[STAGE], &node.numbers[MICROBATCH], &node.numbers[CHUNK],
               &node.numbers[GROUP]) != 1 + NUMBERS)
      continue;
    assert_true(nodes->count < CELLS - 1);
    nodes->node[nodes->count++] = node;
  }
}

// As export writes them.
static void print_nodes(const struct nodes *nodes, struct zb_text *text) {
  zb_text_clear(text);
  zb_text_put(text, "[\n");
  for (int r = 0; r < nodes->ranks; r++) {
    const char *separator = "";
    zb_text_put(text, "  [\n");
    for (int k = 0; k < nodes->count; k++) {
      const struct node *node = &nodes->node[k];
      if (node->rank != r) continue;
      zb_text_print(text,
                    "%s    {\"type\": \"%s\", \"stage\": %d, \"microbatch\": %d, \"chunk\": %d, "
                    "\"layer_group_idx\": %d}",
                    separator, node->type, node->numbers[STAGE], node->numbers[MICROBATCH],
                    node->numbers[CHUNK], node->numbers[GROUP]);
      separator = ",\n";
    }
    zb_text_put(text, r + 1 < nodes->ranks ? "\n  ],\n" : "\n  ]\n");
  }
  zb_text_put(text, "]\n");
}

static void mutate_nodes(struct nodes *nodes, struct generate_random *random) {
  static const char *const types[] = {"F", "B", "W", "BW", "X"};
  const int k = any(random, nodes->count), other = any(random, nodes->count), way = any(random, 6);
  struct node *const at = nodes->node, node = at[k];
  if (way <= 1) { // dropped; put elsewhere, perhaps
    memmove(&at[k], &at[k + 1], (size_t)(--nodes->count - k) * sizeof node);
  }
  if (way == 1 || way == 2) { // moved or doubled
    const int to = way == 1 ? other % nodes->count : other;
    struct node copy = node;
    if (any(random, 2) == 0) copy.rank = copy.numbers[STAGE] = at[to].rank;
    memmove(&at[to + 1], &at[to], (size_t)(nodes->count++ - to) * sizeof node);
    at[to] = copy;
  }
  if (way == 3) { // swapped with its neighbour, or any other
    const int with = any(random, 2) == 0 ? (k + 1) % nodes->count : other;
    const int rank = at[k].rank;
    at[k] = at[with];
    at[with] = node;
    at[with].rank = at[k].rank;
    at[k].rank = rank;
  }
  if (way == 4) at[k].numbers[any(random, NUMBERS)] = any(random, 10) - 1;
  if (way == 5) snprintf(at[k].type, sizeof at[k].type, "%s", types[any(random, 5)]);
}

static int pass_of(const struct node *node) {
  return node->type[0] == 'F' ? 0 : node->type[0] == 'B' ? 1 : 2;
}

static int forward_of(const struct nodes *nodes, const struct node *node) {
  int k = 0;
  while (pass_of(&nodes->node[k]) != 0 || nodes->node[k].numbers[GROUP] != node->numbers[GROUP] ||
         nodes->node[k].numbers[MICROBATCH] != node->numbers[MICROBATCH])
    k++;
  return k;
}

static bool is_first_of_group(const struct nodes *nodes, int k) {
  for (int i = 0; i < k; i++)
    if (nodes->node[i].numbers[GROUP] == nodes->node[k].numbers[GROUP]) return false;
  return true;
}

// Of a whole schedule, what the fork wants of it, pair by pair: the rank, the chunk, one order of
// microbatches a stage, one kind of backward a microbatch.
static bool fork_runs(const struct nodes *nodes) {
  for (int a = 0; a < nodes->count; a++) {
    const struct node *x = &nodes->node[a];
    int chunk = 0;
    for (int b = 0; b < nodes->count; b++) {
      const struct node *y = &nodes->node[b];
      chunk += y->rank == x->rank && y->numbers[GROUP] < x->numbers[GROUP] && is_first_of_group(nodes, b);
      if (x->numbers[MICROBATCH] == y->numbers[MICROBATCH] && strcmp(x->type, "BW") == 0 &&
          strcmp(y->type, "B") == 0)
        return false;
      if (a < b && x->numbers[GROUP] == y->numbers[GROUP] && pass_of(x) == pass_of(y) &&
          forward_of(nodes, x) > forward_of(nodes, y))
        return false;
    }
    if (x->numbers[STAGE] != x->rank || x->numbers[CHUNK] != chunk) return false;
  }
  return true;
}

// Accepted only if the fork runs it and nothing of it is lost on the way out.
static void check_nodes(const struct instance *made, const struct nodes *nodes, const struct zb_text *text,
                        int n, int *accepted) {
  struct zb_imported imported = {0};
  struct zb_timeline timeline = {0};
  struct zb_export_output again = {0};
  struct zb_error error = {0};
  enum zb_status status = read(made, "node-list", text->data, text->size, &imported, &error);
  if (status != ZB_OK) {
    expect((status == ZB_BAD_INPUT || status == ZB_WRONG) && error.text[0] && !strchr(error.text, '\n'),
           "seed %d, number %d: %s: \"%s\"\n%s", SEED + 3, n, zb_status_word(status), error.text, text->data);
    return;
  }
  status = zb_check_schedule(imported.placed, imported.schedule, &timeline, &error);
  expect((status == ZB_OK || status == ZB_OVER_LIMIT) && fork_runs(nodes),
         "seed %d, number %d accepted, but it does not run: %s\n%s", SEED + 3, n, error.text, text->data);
  status = write(made, imported.schedule, &timeline, "node-list", 15, &again, &error);
  expect(status == ZB_OK && strcmp(again.text.data, text->data) == 0, "seed %d, number %d: %s\n%s%s",
         SEED + 3, n, error.text, text->data, again.text.data ? again.text.data : "");
  (*accepted)++;
  zb_export_output_free(&again);
  zb_timeline_free(&timeline);
  zb_imported_free(&imported);
}

static void test_node_mutations(void **state) {
  (void)state;
  struct generate_random random = {SEED + 3};
  const int count = is_long() ? LONG_MUTATIONS : MUTATIONS;
  struct nodes *nodes = malloc(sizeof *nodes);
  struct zb_text text = {0};
  int accepted = 0;
  assert_non_null(nodes);
  for (int n = 0; n < count;) {
    struct instance made = make_instance(&random);
    struct zb_export_output out = {0};
    const bool carried =
        write(&made, made.answer.schedule, &made.timeline, "node-list", 15, &out, NULL) == ZB_OK;
    for (int times = 0; carried && times < 25; times++, n++) {
      read_nodes(out.text.data, nodes);
      print_nodes(nodes, &text);
      assert_string_equal(text.data, out.text.data);
      mutate_nodes(nodes, &random);
      print_nodes(nodes, &text);
      if (strcmp(text.data, out.text.data) != 0) check_nodes(&made, nodes, &text, n, &accepted);
    }
    zb_export_output_free(&out);
    free_instance(&made);
  }
  print_message("%d mutants, %d of them schedules\n", count, accepted);
  assert_true(accepted > 0 && accepted < count / 2);
  zb_text_free(&text);
  free(nodes);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_round_trip),
      cmocka_unit_test(test_normal_cost),
      cmocka_unit_test(test_mutations),
      cmocka_unit_test(test_node_mutations),
  };
  return cmocka_run_group_tests_name("import", tests, NULL, NULL);
}
