// profile_json.c - contract.md section 2 as code.
//
// Reading checks form and units, place by place; what values mean together (memory that sums to zero,
// a horizon within 2^53) is zb_profile_finish's. Printing writes ns and B, one number where a
// list would say the same, so that reading it again gives the same profile.
#include "solver/io/profile_json.h"

#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "solver/io/file.h"
#include "solver/io/units.h"

enum { PROFILE_BYTES_MOST = 64 << 20 };

static const char *const profile_keys[] = {"zbsolve_profile", "name",         "source",  "note",
                                           "devices",         "microbatches", "samples", "chunks",
                                           "placement",       "time",         "memory",  NULL};
static const char *const time_keys[] = {"unit", "f", "b", "w", "bw", "comm", NULL};
static const char *const comm_keys[] = {"forward", "backward", NULL};
static const char *const memory_keys[] = {"unit", "f", "b", "w", "limit", "static", NULL};

// What a number stands for: its unit, and what it may be.
struct quantity {
  const struct zb_unit *unit;
  const char *base; // "ns" or "B": what the profile keeps
  enum { ANY_SIGN, NOT_NEGATIVE, NOT_POSITIVE } sign;
  bool none; // null is ZB_NO_LIMIT
};

// How many numbers a list has, and what each belongs to.
struct extent {
  int count;
  const char *each; // "stage", "boundary", "device"
};

static enum zb_status read_quantity(const struct zb_json *node, const struct zb_json_place *place,
                                    const struct quantity *quantity, int64_t *value, struct zb_error *error) {
  enum zb_json_type type = zb_json_type(node);
  if (type == ZB_JSON_NULL && quantity->none) {
    *value = ZB_NO_LIMIT;
    return ZB_OK;
  }
  if (type != ZB_JSON_NUMBER) return zb_json_fail_type(node, place, "a number", error);
  double shown = zb_json_number(node);
  const char *unit = quantity->unit->word;
  if (quantity->sign == NOT_NEGATIVE && shown < 0)
    return zb_json_fail(error, ZB_BAD_INPUT, place, "%.15g %s is negative, expected 0 or more", shown, unit);
  if (quantity->sign == NOT_POSITIVE && shown > 0)
    return zb_json_fail(error, ZB_BAD_INPUT, place, "%.15g %s is positive, expected 0 or less", shown, unit);
  int64_t read = 0;
  enum zb_decimal decimal = zb_json_scaled(node, quantity->unit->scale, &read);
  if (decimal == ZB_DECIMAL_FRACTION)
    return zb_json_fail(error, ZB_BAD_INPUT, place,
                        "%.15g %s is finer than 1 %s, expected a whole number of %s", shown, unit,
                        quantity->base, quantity->base);
  if (decimal != ZB_DECIMAL_OK)
    return zb_json_fail(error, ZB_BAD_INPUT, place, "%.15g %s is out of range, expected at most 2^53 %s",
                        shown, unit, quantity->base);
  *value = read;
  return ZB_OK;
}

// A number for all, or a list with one each.
static enum zb_status read_quantities(const struct zb_json *node, const struct zb_json_place *place,
                                      const struct quantity *quantity, struct extent extent, int64_t *values,
                                      struct zb_error *error) {
  char expected[64];
  snprintf(expected, sizeof expected, "a number or a list of %d numbers, one a %s", extent.count,
           extent.each);
  enum zb_json_type type = zb_json_type(node);
  if (type == ZB_JSON_NUMBER || (type == ZB_JSON_NULL && quantity->none)) {
    int64_t value = 0;
    enum zb_status status = read_quantity(node, place, quantity, &value, error);
    if (status != ZB_OK) return status;
    for (int i = 0; i < extent.count; i++) values[i] = value;
    return ZB_OK;
  }
  if (type != ZB_JSON_LIST) return zb_json_fail_type(node, place, expected, error);
  size_t length = zb_json_count(node);
  if (length != (size_t)extent.count)
    return zb_json_fail(error, ZB_BAD_INPUT, place, "a list of %zu, expected %s", length, expected);
  struct zb_json_place entry = {place, NULL, 0};
  for (const struct zb_json *child = zb_json_first(node); child; child = zb_json_next(child)) {
    enum zb_status status = read_quantity(child, &entry, quantity, &values[entry.index], error);
    if (status != ZB_OK) return status;
    entry.index++;
  }
  return ZB_OK;
}

// The member `key` of an object through read_quantities. Missing: an error that says `expected`, or
// nothing happens where that is NULL.
static enum zb_status read_member(const struct zb_json *object, const char *key,
                                  const struct zb_json_place *place, const char *expected,
                                  const struct quantity *quantity, struct extent extent, int64_t *values,
                                  struct zb_error *error) {
  const struct zb_json *member = zb_json_member(object, key);
  if (!member && !expected) return ZB_OK;
  enum zb_status status = zb_json_require(object, key, place, expected, &member, error);
  if (status != ZB_OK) return status;
  struct zb_json_place here = {place, key, 0};
  return read_quantities(member, &here, quantity, extent, values, error);
}

static enum zb_status read_unit(const struct zb_json *node, const struct zb_json_place *place,
                                const struct zb_unit *units, const struct zb_unit **unit,
                                struct zb_error *error) {
  struct zb_json_place here = {place, "unit", 0};
  const char *word = NULL;
  enum zb_status status = zb_json_read_string(node, &here, &word, error);
  if (status != ZB_OK) return status;
  const struct zb_unit *found = zb_unit_find(units, word);
  char list[ZB_UNIT_LIST], shown[ZB_SHOWN];
  if (!found)
    return zb_json_fail(error, ZB_BAD_INPUT, &here, "\"%s\" is no unit, expected %s",
                        zb_json_shown(word, shown), zb_unit_list(units, list));
  *unit = found;
  return ZB_OK;
}

static enum zb_status read_comm(const struct zb_json *time, const struct zb_json_place *place,
                                const struct quantity *quantity, struct zb_profile *profile,
                                struct zb_error *error) {
  const struct zb_json *comm = NULL;
  enum zb_status status =
      zb_json_require(time, "comm", place, "a number (0 where sending is free)", &comm, error);
  if (status != ZB_OK) return status;
  struct extent boundaries = {profile->stages - 1, "boundary"};
  struct zb_json_place here = {place, "comm", 0};
  if (zb_json_type(comm) != ZB_JSON_OBJECT) {
    status = read_quantities(comm, &here, quantity, boundaries, profile->comm_forward_ns, error);
    if (status == ZB_OK)
      memcpy(profile->comm_backward_ns, profile->comm_forward_ns, (size_t)profile->stages * sizeof(int64_t));
    return status;
  }
  status = zb_json_expect_object(comm, &here, comm_keys, error);
  if (status == ZB_OK)
    status = read_member(comm, "forward", &here, "a number or a list", quantity, boundaries,
                         profile->comm_forward_ns, error);
  if (status == ZB_OK)
    status = read_member(comm, "backward", &here, "a number or a list", quantity, boundaries,
                         profile->comm_backward_ns, error);
  return status;
}

static enum zb_status read_time(const struct zb_json *time, const struct zb_json_place *place,
                                struct zb_profile *profile, struct zb_error *error) {
  enum zb_status status = zb_json_expect_object(time, place, time_keys, error);
  if (status != ZB_OK) return status;
  char list[ZB_UNIT_LIST];
  const struct zb_json *unit = NULL;
  status = zb_json_require(time, "unit", place, zb_unit_list(zb_time_units, list), &unit, error);
  struct quantity quantity = {NULL, "ns", NOT_NEGATIVE, false};
  if (status == ZB_OK) status = read_unit(unit, place, zb_time_units, &quantity.unit, error);
  struct extent stages = {profile->stages, "stage"};
  profile->has_bw = zb_json_member(time, "bw") != NULL;
  const struct {
    const char *key, *expected;
    int64_t *values;
  } passes[] = {{"f", "the time of a forward pass", profile->f_ns},
                {"b", "the time of a backward pass for the input", profile->b_ns},
                {"w", "the time of a backward pass for the weights", profile->w_ns},
                {"bw", NULL, profile->bw_ns}};
  for (size_t i = 0; i < sizeof passes / sizeof *passes && status == ZB_OK; i++)
    status = read_member(time, passes[i].key, place, passes[i].expected, &quantity, stages, passes[i].values,
                         error);
  return status == ZB_OK ? read_comm(time, place, &quantity, profile, error) : status;
}

static enum zb_status read_memory(const struct zb_json *memory, const struct zb_json_place *place,
                                  struct zb_profile *profile, struct zb_error *error) {
  enum zb_status status = zb_json_expect_object(memory, place, memory_keys, error);
  if (status != ZB_OK) return status;
  const struct zb_unit *scale = zb_unit_find(zb_memory_units, "unit");
  const struct zb_json *unit = zb_json_member(memory, "unit");
  if (unit) status = read_unit(unit, place, zb_memory_units, &scale, error);
  struct extent stages = {profile->stages, "stage"}, devices = {profile->devices, "device"};
  const struct {
    const char *key, *expected;
    struct quantity quantity;
    struct extent extent;
    int64_t *values;
  } fields[] = {
      {"f", "what a forward pass keeps", {scale, "B", NOT_NEGATIVE, false}, stages, profile->f_bytes},
      {"b",
       "what a backward pass for the input gives back, below 0",
       {scale, "B", ANY_SIGN, false},
       stages,
       profile->b_bytes},
      {"w",
       "what a backward pass for the weights gives back, below 0",
       {scale, "B", NOT_POSITIVE, false},
       stages,
       profile->w_bytes},
      {"limit", NULL, {scale, "B", NOT_NEGATIVE, true}, devices, profile->limit_bytes},
      {"static", NULL, {scale, "B", NOT_NEGATIVE, false}, devices, profile->static_bytes},
  };
  for (size_t i = 0; i < sizeof fields / sizeof *fields && status == ZB_OK; i++)
    status = read_member(memory, fields[i].key, place, fields[i].expected, &fields[i].quantity,
                         fields[i].extent, fields[i].values, error);
  profile->has_memory = true;
  return status;
}

static enum zb_status read_count(const struct zb_json *node, const char *key,
                                 const struct zb_json_place *place, bool required, int *count,
                                 struct zb_error *error) {
  const struct zb_json *member = zb_json_member(node, key);
  if (!member && !required) return ZB_OK;
  enum zb_status status = zb_json_require(node, key, place, "a whole number from 1", &member, error);
  struct zb_json_place here = {place, key, 0};
  int64_t value = 0;
  if (status == ZB_OK) status = zb_json_read_integer(member, &here, 1, INT_MAX, &value, error);
  if (status == ZB_OK) *count = (int)value;
  return status;
}

static enum zb_status fail_placement(const struct zb_json *node, const struct zb_json_place *place,
                                     int64_t stages, struct zb_error *error) {
  char expected[96], shown[ZB_SHOWN];
  snprintf(expected, sizeof expected,
           "\"chain\", \"loop\", \"v\" or a list of %" PRId64 " devices, one a stage", stages);
  if (zb_json_type(node) == ZB_JSON_STRING)
    return zb_json_fail(error, ZB_BAD_INPUT, place, "\"%s\" is no placement, expected %s",
                        zb_json_shown(zb_json_string(node), shown), expected);
  if (zb_json_type(node) == ZB_JSON_LIST)
    return zb_json_fail(error, ZB_BAD_INPUT, place, "a list of %zu, expected %s", zb_json_count(node),
                        expected);
  return zb_json_fail_type(node, place, expected, error);
}

static enum zb_status read_placement(const struct zb_json *node, const struct zb_json_place *place,
                                     int64_t stages, enum zb_placement *placement, struct zb_error *error) {
  if (!node) {
    *placement = ZB_CHAIN;
    return ZB_OK;
  }
  if (zb_json_type(node) == ZB_JSON_LIST && zb_json_count(node) == (size_t)stages) {
    *placement = ZB_LIST;
    return ZB_OK;
  }
  for (int i = 0; i < ZB_PLACEMENT_COUNT && zb_json_type(node) == ZB_JSON_STRING; i++)
    if (i != ZB_LIST && strcmp(zb_json_string(node), zb_placement_word((enum zb_placement)i)) == 0) {
      *placement = (enum zb_placement)i;
      return ZB_OK;
    }
  return fail_placement(node, place, stages, error);
}

static enum zb_status read_device_list(const struct zb_json *list, const struct zb_json_place *place,
                                       struct zb_profile *profile, struct zb_error *error) {
  struct zb_json_place entry = {place, NULL, 0};
  for (const struct zb_json *child = zb_json_first(list); child; child = zb_json_next(child)) {
    int64_t device = 0;
    enum zb_status status = zb_json_read_integer(child, &entry, 0, profile->devices - 1, &device, error);
    if (status != ZB_OK) return status;
    profile->device_of[entry.index++] = (int)device;
  }
  return ZB_OK;
}

// Sizes and placement: an empty profile of the right shape.
static enum zb_status read_shape(const struct zb_json *node, const struct zb_json_place *place,
                                 struct zb_profile **profile, struct zb_error *error) {
  int devices = 0, chunks = 1, microbatches = 0;
  enum zb_status status = read_count(node, "devices", place, true, &devices, error);
  if (status == ZB_OK) status = read_count(node, "microbatches", place, true, &microbatches, error);
  if (status == ZB_OK) status = read_count(node, "chunks", place, false, &chunks, error);
  if (status != ZB_OK) return status;
  const struct zb_json *list = zb_json_member(node, "placement");
  struct zb_json_place here = {place, "placement", 0};
  enum zb_placement placement = ZB_CHAIN;
  status = read_placement(list, &here, (int64_t)devices * chunks, &placement, error);
  if (status != ZB_OK) return status;
  struct zb_profile *created = NULL;
  struct zb_error found = {0};
  status = zb_profile_create(devices, chunks, microbatches, placement, &created, &found);
  if (status != ZB_OK) {
    if (status == ZB_BAD_INPUT) zb_json_fail_within(&found, place);
    return zb_fail(error, status, "%s", found.text);
  }
  if (placement == ZB_LIST) status = read_device_list(list, &here, created, error);
  if (status != ZB_OK) {
    zb_profile_free(created);
    return status;
  }
  *profile = created;
  return ZB_OK;
}

static enum zb_status read_text(const struct zb_json *node, const char *key,
                                const struct zb_json_place *place, char **copy, struct zb_error *error) {
  const struct zb_json *member = zb_json_member(node, key);
  if (!member) return ZB_OK;
  struct zb_json_place here = {place, key, 0};
  const char *string = NULL;
  enum zb_status status = zb_json_read_string(member, &here, &string, error);
  if (status != ZB_OK) return status;
  *copy = strdup(string);
  return *copy ? ZB_OK : zb_fail_memory(error);
}

static enum zb_status read_version(const struct zb_json *node, const struct zb_json_place *place,
                                   struct zb_error *error) {
  if (zb_json_type(node) == ZB_JSON_OBJECT && !place && zb_json_member(node, "zbsolve_schedule"))
    return zb_json_fail(error, ZB_BAD_INPUT, place, "this is a schedule, expected a profile");
  enum zb_status status = zb_json_expect_object(node, place, profile_keys, error);
  const struct zb_json *version = NULL;
  if (status == ZB_OK)
    status = zb_json_require(node, "zbsolve_profile", place, "1, the version", &version, error);
  if (status != ZB_OK) return status;
  struct zb_json_place here = {place, "zbsolve_profile", 0};
  int64_t number = 0;
  status = zb_json_read_integer(version, &here, 0, ZB_NUMBER_MAX, &number, error);
  if (status == ZB_OK && number != 1)
    status = zb_json_fail(error, ZB_BAD_INPUT, &here, "version %" PRId64 " is unknown, expected 1", number);
  return status;
}

enum zb_status zb_profile_from_json(const struct zb_json *node, const struct zb_json_place *place,
                                    struct zb_profile **profile, struct zb_error *error) {
  enum zb_status status = read_version(node, place, error);
  struct zb_profile *p = NULL;
  if (status == ZB_OK) status = read_shape(node, place, &p, error);
  if (status != ZB_OK) return status;
  const struct zb_json *samples = zb_json_member(node, "samples"), *time = NULL;
  const struct zb_json *memory = zb_json_member(node, "memory");
  struct zb_json_place samples_place = {place, "samples", 0}, time_place = {place, "time", 0};
  struct zb_json_place memory_place = {place, "memory", 0};
  status = read_text(node, "name", place, &p->name, error);
  if (status == ZB_OK) status = read_text(node, "source", place, &p->source, error);
  if (status == ZB_OK) status = read_text(node, "note", place, &p->note, error);
  if (status == ZB_OK && samples)
    status = zb_json_read_integer(samples, &samples_place, 1, ZB_NUMBER_MAX, &p->samples, error);
  if (status == ZB_OK)
    status = zb_json_require(node, "time", place, "an object with unit, f, b, w, comm", &time, error);
  if (status == ZB_OK) status = read_time(time, &time_place, p, error);
  if (status == ZB_OK && memory) status = read_memory(memory, &memory_place, p, error);
  if (status == ZB_OK) {
    struct zb_error found = {0};
    status = zb_profile_finish(p, &found);
    if (status == ZB_BAD_INPUT) zb_json_fail_within(&found, place);
    if (status != ZB_OK) zb_fail(error, status, "%s", found.text);
  }
  if (status != ZB_OK) {
    zb_profile_free(p);
    return status;
  }
  *profile = p;
  return ZB_OK;
}

enum zb_status zb_profile_read_text(const char *text, size_t size, struct zb_profile **profile,
                                    struct zb_error *error) {
  struct zb_json *root = NULL;
  enum zb_status status = zb_json_parse(text, size, ZB_JSON_DECIMALS, &root, error);
  if (status != ZB_OK) return status;
  status = zb_profile_from_json(root, NULL, profile, error);
  zb_json_free(root);
  return status;
}

enum zb_status zb_profile_read(const char *path, struct zb_profile **profile, struct zb_error *error) {
  struct zb_text text = {0};
  enum zb_status status = zb_file_read(path, PROFILE_BYTES_MOST, &text, error);
  if (status == ZB_OK) status = zb_profile_read_text(text.data ? text.data : "", text.size, profile, error);
  if (status != ZB_OK) zb_error_set_path(error, path);
  zb_text_free(&text);
  return status;
}

enum zb_status zb_profile_check_stages(const struct zb_json *device, const struct zb_json_place *place,
                                       const struct zb_profile *profile, struct zb_error *error) {
  const struct zb_json *stages = NULL;
  enum zb_status status = zb_json_require_list(device, "stages", place, &stages, error);
  if (status != ZB_OK) return status;
  struct zb_json_place here = {place, "stages", 0}, entry = {&here, NULL, 0};
  size_t count = zb_json_count(stages);
  if (count != (size_t)profile->chunks)
    return zb_json_fail(error, ZB_WRONG, &here, "a list of %zu, but the profile has %d stages a device",
                        count, profile->chunks);
  const int *held = profile->stage_at + place->index * (size_t)profile->chunks;
  for (const struct zb_json *node = zb_json_first(stages); node; node = zb_json_next(node), entry.index++) {
    int64_t stage = 0;
    status = zb_json_read_integer(node, &entry, -ZB_NUMBER_MAX, ZB_NUMBER_MAX, &stage, error);
    if (status != ZB_OK) return status;
    if (stage != held[entry.index])
      return zb_json_fail(error, ZB_WRONG, &entry,
                          "stage %" PRId64 ", but by the profile's placement it is %d", stage,
                          held[entry.index]);
  }
  return ZB_OK;
}
