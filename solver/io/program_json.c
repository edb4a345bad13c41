// program_json.c - reading a program back: form here, truth in zb_program_check.
#include "solver/io/program_json.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "solver/io/file.h"
#include "solver/io/json_read.h"
#include "solver/io/profile_json.h"
#include "solver/model/number.h"

static const char *const program_keys[] = {"zbsolve_program", "profile",     "method",   "span_ns",
                                           "period_ns",       "makespan_ns", "channels", "optimizer",
                                           "slots",           "devices",     NULL};
static const char *const device_keys[] = {"device", "stages", "peak_bytes", "instructions", NULL};
static const char *const slot_keys[] = {"stage",
#define X(name, word) word,
                                        ZB_SLOT_TABLE(X)
#undef X
                                            NULL};
static const char *const channels_words[] = {
#define X(name, word) word,
    ZB_CHANNELS_TABLE(X)
#undef X
        NULL};
static const char *const optimizer_words[] = {
#define X(name, word) word,
    ZB_OPTIMIZER_TABLE(X)
#undef X
        NULL};

static enum zb_status read_number(const struct zb_json *object, const char *key,
                                  const struct zb_json_place *place, int64_t least, int64_t most,
                                  int64_t *value, struct zb_error *error) {
  const struct zb_json *member = NULL;
  struct zb_json_place here = {place, key, 0};
  enum zb_status status = zb_json_require(object, key, place, "a whole number", &member, error);
  return status == ZB_OK ? zb_json_read_integer(member, &here, least, most, value, error) : status;
}

static enum zb_status read_word(const struct zb_json *root, const char *key, const char *expected,
                                const char **word, struct zb_error *error) {
  const struct zb_json *member = NULL;
  struct zb_json_place here = {NULL, key, 0};
  enum zb_status status = zb_json_require(root, key, NULL, expected, &member, error);
  return status == ZB_OK ? zb_json_read_string(member, &here, word, error) : status;
}

// One of `words`, by its place among them.
static enum zb_status read_choice(const struct zb_json *root, const char *key, const char *const *words,
                                  const char *expected, int *choice, struct zb_error *error) {
  const char *word = NULL;
  char shown[ZB_SHOWN];
  struct zb_json_place here = {NULL, key, 0};
  enum zb_status status = read_word(root, key, expected, &word, error);
  if (status != ZB_OK) return status;
  for (int k = 0; words[k]; k++)
    if (strcmp(word, words[k]) == 0) {
      *choice = k;
      return ZB_OK;
    }
  return zb_json_fail(error, ZB_BAD_INPUT, &here, "\"%s\" is unknown, expected %s",
                      zb_json_shown(word, shown), expected);
}

// Instructions.

// The entry after *node, which it moves to: a number, or null for none (-1).
static enum zb_status read_field(const struct zb_json **node, struct zb_json_place *entry, int32_t *value,
                                 struct zb_error *error) {
  int64_t number = -1;
  *node = zb_json_next(*node);
  entry->index++;
  if (zb_json_type(*node) != ZB_JSON_NULL) {
    enum zb_status status = zb_json_read_integer(*node, entry, 0, INT32_MAX, &number, error);
    if (status != ZB_OK) return status;
  }
  *value = (int32_t)number;
  return ZB_OK;
}

static enum zb_status read_instruction(const struct zb_json *node, const struct zb_json_place *place,
                                       struct zb_instruction *i, struct zb_error *error) {
  static const struct {
    size_t entries;
    const char *expected;
  } shapes[] = {[ZB_ACTS_OP] = {4, "4: its name, and the slots that it keeps, reads and writes"},
                [ZB_ACTS_MESSAGE] = {3, "3: its name, its peer and its slot"},
                [ZB_ACTS_LINE] = {2, "2: its name and its peer"},
                [ZB_ACTS_DEVICE] = {1, "1: its name"}};
  struct zb_json_place entry = {place, NULL, 0};
  const char *word = NULL;
  char shown[ZB_SHOWN];
  static const char expected[] = "a list that starts with the instruction's name";
  if (zb_json_type(node) != ZB_JSON_LIST) return zb_json_fail_type(node, place, expected, error);
  if (!zb_json_first(node))
    return zb_json_fail(error, ZB_BAD_INPUT, place, "an empty list, expected %s", expected);
  const struct zb_json *at = zb_json_first(node);
  enum zb_status status = zb_json_read_string(at, &entry, &word, error);
  if (status != ZB_OK) return status;
  const size_t length = zb_instruction_parse(word, i);
  if (length == 0 || word[length] != '\0')
    return zb_json_fail(error, ZB_BAD_INPUT, &entry,
                        "\"%s\" is no instruction, expected one like 0F3, 1SEND_F3 or STEP",
                        zb_json_shown(word, shown));
  const enum zb_acts acts = zb_instruction_acts(i->kind);
  if (zb_json_count(node) != shapes[acts].entries)
    return zb_json_fail(error, ZB_BAD_INPUT, place, "%s has %zu entries, expected %s",
                        zb_instruction_word(i->kind), zb_json_count(node), shapes[acts].expected);
  int32_t *const op[] = {&i->keeps, &i->reads, &i->writes};
  int32_t *const message[] = {&i->peer, zb_instruction_is_receive(i->kind) ? &i->writes : &i->reads};
  int32_t *const *fields = acts == ZB_ACTS_OP ? op : message;
  for (size_t k = 1; k < shapes[acts].entries && status == ZB_OK; k++)
    status = read_field(&at, &entry, fields[k - 1], error);
  return status;
}

// Devices.

static enum zb_status read_device(const struct zb_json *device, const struct zb_json_place *place,
                                  struct zb_program *program, struct zb_error *error) {
  const size_t d = place->index;
  struct zb_json_place here = {place, "device", 0}, list_place = {place, "instructions", 0};
  struct zb_json_place entry = {&list_place, NULL, 0};
  const struct zb_json *list = NULL;
  int64_t number = 0;
  enum zb_status status = read_number(device, "device", place, -ZB_NUMBER_MAX, ZB_NUMBER_MAX, &number, error);
  if (status == ZB_OK && number != (int64_t)d)
    status = zb_json_fail(error, ZB_WRONG, &here, "%" PRId64 ", but it is device %zu of the list", number, d);
  if (status == ZB_OK) status = zb_profile_check_stages(device, place, program->profile, error);
  if (status == ZB_OK)
    status = read_number(device, "peak_bytes", place, -ZB_NUMBER_MAX, ZB_NUMBER_MAX, &program->peak_bytes[d],
                         error);
  if (status == ZB_OK) status = zb_json_require_list(device, "instructions", place, &list, error);
  if (status != ZB_OK) return status;
  struct zb_instruction *out = program->instructions + program->first[d];
  for (const struct zb_json *node = zb_json_first(list); node && status == ZB_OK;
       node = zb_json_next(node), entry.index++)
    status = read_instruction(node, &entry, out++, error);
  program->first[d + 1] = (size_t)(out - program->instructions);
  return status;
}

// How many instructions there are, on as many devices as the profile has.
static enum zb_status count_instructions(const struct zb_json *devices, const struct zb_profile *profile,
                                         size_t *total, struct zb_error *error) {
  struct zb_json_place list_place = {NULL, "devices", 0}, place = {&list_place, NULL, 0};
  const size_t count = zb_json_count(devices);
  *total = 0;
  if (count != (size_t)profile->devices)
    return zb_json_fail(error, ZB_WRONG, &list_place, "a list of %zu, but the profile has %d devices", count,
                        profile->devices);
  for (const struct zb_json *device = zb_json_first(devices); device;
       device = zb_json_next(device), place.index++) {
    const struct zb_json *list = NULL;
    enum zb_status status = zb_json_expect_object(device, &place, device_keys, error);
    if (status == ZB_OK) status = zb_json_require_list(device, "instructions", &place, &list, error);
    if (status != ZB_OK) return status;
    *total += zb_json_count(list);
  }
  return ZB_OK;
}

static enum zb_status read_slots(const struct zb_json *root, struct zb_program *program,
                                 struct zb_error *error) {
  const struct zb_json *list = NULL;
  struct zb_json_place list_place = {NULL, "slots", 0}, place = {&list_place, NULL, 0};
  enum zb_status status = zb_json_require_list(root, "slots", NULL, &list, error);
  if (status != ZB_OK) return status;
  const size_t count = zb_json_count(list);
  if (count != (size_t)program->profile->stages)
    return zb_json_fail(error, ZB_WRONG, &list_place, "a list of %zu, but the profile has %d stages", count,
                        program->profile->stages);
  for (const struct zb_json *node = zb_json_first(list); node; node = zb_json_next(node), place.index++) {
    struct zb_json_place here = {&place, "stage", 0};
    int64_t number = 0;
    status = zb_json_expect_object(node, &place, slot_keys, error);
    if (status == ZB_OK) status = read_number(node, "stage", &place, 0, INT32_MAX, &number, error);
    if (status == ZB_OK && number != (int64_t)place.index)
      status = zb_json_fail(error, ZB_WRONG, &here, "%" PRId64 ", but it is stage %zu of the list", number,
                            place.index);
    for (int kind = 0; kind < ZB_SLOT_KINDS && status == ZB_OK; kind++) {
      status = read_number(node, zb_slot_word((enum zb_slot_kind)kind), &place, 0, INT32_MAX, &number, error);
      program->slots[place.index * ZB_SLOT_KINDS + (size_t)kind] = (int32_t)number;
    }
    if (status != ZB_OK) return status;
  }
  return ZB_OK;
}

static enum zb_status read_header(const struct zb_json *root, struct zb_program *program,
                                  struct zb_error *error) {
  const char *method = NULL;
  int channels = 0, optimizer = 0;
  enum zb_status status = read_word(root, "method", "the method's name", &method, error);
  if (status == ZB_OK)
    status = read_number(root, "span_ns", NULL, 0, ZB_NUMBER_MAX, &program->span_ns, error);
  if (status == ZB_OK)
    status = read_number(root, "period_ns", NULL, 0, ZB_NUMBER_MAX, &program->period_ns, error);
  if (status == ZB_OK)
    status = read_number(root, "makespan_ns", NULL, 0, ZB_NUMBER_MAX, &program->makespan_ns, error);
  if (status == ZB_OK)
    status = read_choice(root, "channels", channels_words, "rank, pair or edge", &channels, error);
  if (status == ZB_OK)
    status = read_choice(root, "optimizer", optimizer_words, "none, barrier or post-validation", &optimizer,
                         error);
  if (status != ZB_OK) return status;
  program->channels = (enum zb_channels)channels;
  program->optimizer = (enum zb_optimizer)optimizer;
  program->method = strdup(method);
  return program->method ? ZB_OK : zb_fail_memory(error);
}

static enum zb_status check_version(const struct zb_json *root, struct zb_error *error) {
  static const char *const others[][2] = {{"zbsolve_profile", "profile"}, {"zbsolve_schedule", "schedule"}};
  for (size_t k = 0; k < sizeof others / sizeof *others && zb_json_type(root) == ZB_JSON_OBJECT; k++)
    if (zb_json_member(root, others[k][0]))
      return zb_json_fail(error, ZB_BAD_INPUT, NULL, "this is a %s, expected a program", others[k][1]);
  int64_t version = 0;
  struct zb_json_place here = {NULL, "zbsolve_program", 0};
  enum zb_status status = zb_json_expect_object(root, NULL, program_keys, error);
  if (status == ZB_OK)
    status = read_number(root, "zbsolve_program", NULL, -ZB_NUMBER_MAX, ZB_NUMBER_MAX, &version, error);
  if (status == ZB_OK && version != 1)
    status = zb_json_fail(error, ZB_BAD_INPUT, &here, "version %" PRId64 " is unknown, expected 1", version);
  return status;
}

static enum zb_status read_program(const struct zb_json *root, struct zb_program **program,
                                   struct zb_error *error) {
  const struct zb_json *node = NULL, *devices = NULL;
  struct zb_json_place profile_place = {NULL, "profile", 0}, list_place = {NULL, "devices", 0};
  struct zb_json_place place = {&list_place, NULL, 0};
  struct zb_profile *profile = NULL;
  struct zb_program *p = NULL;
  size_t total = 0;
  enum zb_status status = check_version(root, error);
  if (status == ZB_OK)
    status = zb_json_require(root, "profile", NULL, "the profile that was solved", &node, error);
  if (status == ZB_OK) status = zb_profile_from_json(node, &profile_place, &profile, error);
  if (status == ZB_OK) status = zb_json_require_list(root, "devices", NULL, &devices, error);
  if (status == ZB_OK) status = count_instructions(devices, profile, &total, error);
  if (status == ZB_OK) status = zb_program_create(profile, total, &p, error);
  if (status == ZB_OK) status = read_header(root, p, error);
  if (status == ZB_OK) status = read_slots(root, p, error);
  const struct zb_json *device = status == ZB_OK ? zb_json_first(devices) : NULL;
  for (; device && status == ZB_OK; device = zb_json_next(device), place.index++)
    status = read_device(device, &place, p, error);
  zb_profile_free(profile);
  if (status == ZB_OK)
    *program = p;
  else
    zb_program_free(p);
  return status;
}

enum zb_status zb_program_read_text(const char *text, size_t size, struct zb_program **program,
                                    struct zb_error *error) {
  struct zb_json *root = NULL;
  enum zb_status status = zb_json_parse(text, size, ZB_JSON_INTEGERS, &root, error);
  if (status != ZB_OK) return status;
  status = read_program(root, program, error);
  zb_json_free(root);
  return status;
}

enum zb_status zb_program_read(const char *path, struct zb_program **program, struct zb_error *error) {
  struct zb_text text = {0};
  enum zb_status status = zb_file_read(path, ZB_RESULT_BYTES_MOST, &text, error);
  if (status == ZB_OK) status = zb_program_read_text(text.data ? text.data : "", text.size, program, error);
  if (status != ZB_OK) zb_error_set_path(error, path);
  zb_text_free(&text);
  return status;
}

bool zb_program_begins(const char *text, size_t size) {
  static const char key[] = "\"zbsolve_program\"";
  size_t at = 0;
  while (at < size && isspace((unsigned char)text[at])) at++;
  if (at == size || text[at] != '{') return false;
  for (at++; at < size && isspace((unsigned char)text[at]);) at++;
  return size - at >= sizeof key - 1 && memcmp(text + at, key, sizeof key - 1) == 0;
}
