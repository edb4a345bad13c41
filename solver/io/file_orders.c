// file_orders.c - is what a file says a whole schedule, and does it belong to the profile?
//
// The file is walked once in its own order with a table of what has been seen of each (stage, microbatch), so
// that the first bad op is found as a person would find it. Nothing is sized by a number in the file before
// the count of ops has shown that the number can be meant.
#include "solver/io/file_orders.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "solver/model/number.h"

enum zb_status zb_file_orders_create(int devices, size_t ops, struct zb_file_orders *orders,
                                     struct zb_error *error) {
  struct zb_schedule *schedule = calloc(1, sizeof *schedule);
  orders->schedule = schedule;
  orders->place = calloc(ops ? ops : 1, sizeof *orders->place);
  if (schedule) {
    schedule->devices = devices;
    schedule->first = calloc((size_t)devices + 1, sizeof *schedule->first);
    schedule->ops = calloc(ops ? ops : 1, sizeof *schedule->ops);
  }
  if (schedule && schedule->first && schedule->ops && orders->place) return ZB_OK;
  zb_file_orders_free(orders);
  return zb_fail_memory(error);
}

void zb_file_orders_free(struct zb_file_orders *orders) {
  zb_schedule_free(orders->schedule);
  free(orders->place);
  free(orders->device_of);
  *orders = (struct zb_file_orders){0};
}

static int device_at(const struct zb_schedule *schedule, size_t index) {
  int low = 0, high = schedule->devices - 1;
  while (low < high) {
    int middle = low + (high - low) / 2;
    if (schedule->first[middle + 1] <= index)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

enum zb_status zb_file_orders_fail(const struct zb_file_orders *orders, size_t index, struct zb_error *error,
                                   const char *format, ...) {
  if (!error) return ZB_WRONG;
  char line[sizeof error->text];
  int device = device_at(orders->schedule, index), used = 0;
  if (orders->places == ZB_PLACES_LISTS)
    used = snprintf(line, sizeof line, "[%d][%u]: ", device, (unsigned)orders->place[index]);
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(line + used, sizeof line - (size_t)used, format, arguments);
  va_end(arguments);
  zb_fail(error, ZB_WRONG, "%s", line);
  if (orders->places == ZB_PLACES_ROWS) {
    error->line = device + 1;
    error->column = (int)orders->place[index];
  }
  return ZB_WRONG;
}

// An op as the file writes it.
static const char *name(const struct zb_file_orders *orders, struct zb_op op, char *text) {
  static const char *const torch_words[4] = {"F", "I", "W", "B"};
  const char *word = orders->torch ? torch_words[op.kind] : zb_kind_word[op.kind];
  snprintf(text, ZB_OP_TEXT, "%d%s%d", (int)op.stage, word, (int)op.microbatch);
  return text;
}

static size_t count(const struct zb_file_orders *orders) {
  return orders->schedule->first[orders->schedule->devices];
}

// How many stages and microbatches there are, by the largest of each; more than there are ops cannot be
// whole.
static enum zb_status find_shape(struct zb_file_orders *orders, struct zb_error *error) {
  const struct zb_op *ops = orders->schedule->ops;
  size_t last = 0, most = 0, all = count(orders);
  char text[ZB_OP_TEXT];
  if (all == 0) return zb_fail(error, ZB_WRONG, "there is no op");
  for (size_t i = 1; i < all; i++) {
    if (ops[i].stage > ops[last].stage) last = i;
    if (ops[i].microbatch > ops[most].microbatch) most = i;
  }
  if ((size_t)ops[last].stage >= all)
    return zb_file_orders_fail(orders, last, error, "%s: stage %d, but there are only %zu ops",
                               name(orders, ops[last], text), (int)ops[last].stage, all);
  if ((size_t)ops[most].microbatch >= all)
    return zb_file_orders_fail(orders, most, error, "%s: microbatch %d, but there are only %zu ops",
                               name(orders, ops[most], text), (int)ops[most].microbatch, all);
  orders->stages = ops[last].stage + 1;
  orders->microbatches = ops[most].microbatch + 1;
  const size_t passes = (size_t)orders->stages * (size_t)orders->microbatches;
  if (passes > 4 * all)
    return zb_file_orders_fail(
        orders, most, error,
        "%s: %d stages with this many microbatches have at least %zu ops, but there are %zu",
        name(orders, ops[most], text), orders->stages, 2 * passes, all);
  return ZB_OK;
}

// Bits of `seen`, one a kind.
static bool has(unsigned char kinds, enum zb_kind kind) { return kinds >> kind & 1; }

static enum zb_status check_op(const struct zb_file_orders *orders, size_t i, unsigned char kinds,
                               int32_t *next, struct zb_error *error) {
  const struct zb_op op = orders->schedule->ops[i];
  char text[ZB_OP_TEXT], other[ZB_OP_TEXT];
  name(orders, op, text);
  if (has(kinds, op.kind)) return zb_file_orders_fail(orders, i, error, "%s comes twice", text);
  if (op.kind != ZB_F && !has(kinds, ZB_F))
    return zb_file_orders_fail(orders, i, error, "%s without %s before it", text,
                               name(orders, (struct zb_op){op.stage, op.microbatch, ZB_F}, other));
  const bool split = op.kind == ZB_B || op.kind == ZB_W;
  if (op.kind == ZB_BW ? has(kinds, ZB_B) : split && has(kinds, ZB_BW)) {
    const enum zb_kind earlier = op.kind == ZB_BW ? ZB_B : ZB_BW;
    return zb_file_orders_fail(orders, i, error, "%s: its backward is both whole and split, %s came before%s",
                               text, name(orders, (struct zb_op){op.stage, op.microbatch, earlier}, other),
                               orders->torch ? " (before torch 2.6 B was what I is now)" : "");
  }
  if (op.kind == ZB_W && !has(kinds, ZB_B))
    return zb_file_orders_fail(orders, i, error, "%s without %s before it", text,
                               name(orders, (struct zb_op){op.stage, op.microbatch, ZB_B}, other));
  if (orders->torch && op.kind == ZB_F && op.stage == orders->stages - 1 && op.microbatch != (*next)++)
    return zb_file_orders_fail(orders, i, error,
                               "%s: the last stage runs its forwards in the order 0, 1, 2, expected %s", text,
                               name(orders, (struct zb_op){op.stage, *next - 1, ZB_F}, other));
  return ZB_OK;
}

static enum zb_status check_ops(const struct zb_file_orders *orders, unsigned char *seen,
                                struct zb_error *error) {
  const struct zb_schedule *schedule = orders->schedule;
  int32_t next = 0;
  for (int d = 0; d < schedule->devices; d++)
    for (size_t i = schedule->first[d]; i < schedule->first[d + 1]; i++) {
      const struct zb_op op = schedule->ops[i];
      char text[ZB_OP_TEXT];
      int *device = &orders->device_of[op.stage];
      if (*device < 0) *device = d;
      if (*device != d)
        return zb_file_orders_fail(orders, i, error, "%s: stage %d is on %s %d already",
                                   name(orders, op, text), (int)op.stage,
                                   orders->places == ZB_PLACES_ROWS ? "row" : "rank",
                                   orders->places == ZB_PLACES_ROWS ? *device + 1 : *device);
      unsigned char *kinds = &seen[(size_t)op.stage * (size_t)orders->microbatches + (size_t)op.microbatch];
      enum zb_status status = check_op(orders, i, *kinds, &next, error);
      if (status != ZB_OK) return status;
      *kinds |= (unsigned char)(1u << op.kind);
    }
  return ZB_OK;
}

// Which op has not come, told at the first one that is of the same microbatch, or else of the same stage.
static enum zb_status fail_missing(const struct zb_file_orders *orders, struct zb_op missing,
                                   struct zb_error *error) {
  const struct zb_op *ops = orders->schedule->ops;
  const size_t all = count(orders);
  char text[ZB_OP_TEXT], other[ZB_OP_TEXT];
  size_t near = all;
  for (size_t i = 0; i < all && near == all; i++)
    if (ops[i].stage == missing.stage && ops[i].microbatch == missing.microbatch) near = i;
  for (size_t i = 0; i < all && near == all; i++)
    if (ops[i].microbatch == missing.microbatch) near = i;
  for (size_t i = 0; i < all && near == all; i++)
    if (ops[i].microbatch > missing.microbatch) near = i;
  name(orders, missing, text);
  return zb_file_orders_fail(orders, near < all ? near : 0, error, "%s is here, but %s is missing",
                             name(orders, ops[near < all ? near : 0], other), text);
}

static enum zb_status check_complete(const struct zb_file_orders *orders, const unsigned char *seen,
                                     struct zb_error *error) {
  for (int s = 0; s < orders->stages; s++)
    for (int j = 0; j < orders->microbatches; j++) {
      unsigned char kinds = seen[(size_t)s * (size_t)orders->microbatches + (size_t)j];
      if (has(kinds, ZB_F) && (has(kinds, ZB_BW) || has(kinds, ZB_W))) continue;
      enum zb_kind missing = !has(kinds, ZB_F) ? ZB_F : has(kinds, ZB_B) ? ZB_W : ZB_BW;
      return fail_missing(orders, (struct zb_op){s, j, missing}, error);
    }
  return ZB_OK;
}

enum zb_status zb_file_orders_check(struct zb_file_orders *orders, struct zb_error *error) {
  enum zb_status status = find_shape(orders, error);
  if (status != ZB_OK) return status;
  unsigned char *seen = calloc((size_t)orders->stages * (size_t)orders->microbatches, 1);
  free(orders->device_of);
  orders->device_of = malloc((size_t)orders->stages * sizeof *orders->device_of);
  if (!seen || !orders->device_of) status = zb_fail_memory(error);
  if (status == ZB_OK) {
    for (int s = 0; s < orders->stages; s++) orders->device_of[s] = -1;
    status = check_ops(orders, seen, error);
  }
  if (status == ZB_OK) status = check_complete(orders, seen, error);
  free(seen);
  return status;
}

static enum zb_status check_devices(const struct zb_file_orders *orders, const struct zb_profile *profile,
                                    struct zb_error *error) {
  const struct zb_schedule *schedule = orders->schedule;
  for (size_t i = 0; i < count(orders); i++) {
    const int s = schedule->ops[i].stage;
    char text[ZB_OP_TEXT];
    if (orders->device_of[s] != profile->device_of[s])
      return zb_file_orders_fail(
          orders, i, error, "%s: stage %d is on device %d here, on device %d in the profile",
          name(orders, schedule->ops[i], text), s, orders->device_of[s], profile->device_of[s]);
  }
  return ZB_OK;
}

enum zb_status zb_file_orders_place(const struct zb_file_orders *orders, const struct zb_profile *profile,
                                    bool *derived, struct zb_profile **placed, struct zb_error *error) {
  const int devices = orders->schedule->devices;
  if (devices != profile->devices)
    return zb_fail(error, ZB_WRONG, "devices: %d, the profile has %d", devices, profile->devices);
  if (orders->microbatches != profile->microbatches)
    return zb_fail(error, ZB_WRONG, "microbatches: %d, the profile has %d (--microbatches %d)",
                   orders->microbatches, profile->microbatches, orders->microbatches);
  enum zb_status status;
  *derived = orders->stages != profile->stages;
  if (*derived) {
    const enum zb_placement placement = zb_placement_find(orders->device_of, devices, orders->stages);
    const int chunks = orders->stages / devices;
    if (placement == ZB_LIST || orders->stages % devices || (chunks != 1 && profile->chunks != 1))
      return zb_fail(error, ZB_WRONG, "stages: %d, the profile has %d", orders->stages, profile->stages);
    status = zb_profile_derive(profile, placement, chunks, placed, error);
  } else {
    status = check_devices(orders, profile, error);
    if (status == ZB_OK) status = zb_profile_copy(profile, placed, error);
  }
  return status;
}

// How far each device has come when every op runs as soon as it may.
struct sweep {
  const struct zb_file_orders *orders;
  const struct zb_profile *profile;
  unsigned char *done; // [stages * microbatches] bit 0: F, bit 1: its input gradient
  size_t *at;          // [devices] the next op
};

// The op of another stage that `op` reads from; false where it reads from none.
static bool find_input(const struct zb_profile *p, struct zb_op op, struct zb_op *input) {
  if (op.kind == ZB_W) return false;
  *input = (struct zb_op){op.kind == ZB_F ? op.stage - 1 : op.stage + 1, op.microbatch,
                          op.kind == ZB_F ? ZB_F : ZB_B};
  return input->stage >= 0 && input->stage < p->stages;
}

static unsigned char *done_of(const struct sweep *s, struct zb_op op) {
  return &s->done[(size_t)op.stage * (size_t)s->profile->microbatches + (size_t)op.microbatch];
}

static bool run(struct sweep *s, int device) {
  const struct zb_schedule *schedule = s->orders->schedule;
  const size_t before = s->at[device];
  for (; s->at[device] < schedule->first[device + 1]; s->at[device]++) {
    const struct zb_op op = schedule->ops[s->at[device]];
    struct zb_op input;
    if (find_input(s->profile, op, &input) && !(*done_of(s, input) & (input.kind == ZB_F ? 1 : 2))) break;
    if (op.kind != ZB_W) *done_of(s, op) |= op.kind == ZB_F ? 1 : 2;
  }
  return s->at[device] > before;
}

// What a stalled device waits for, as the file has it, and the device that has it.
static int find_next(const struct sweep *s, int device, struct zb_op *op, struct zb_op *input) {
  const struct zb_schedule *schedule = s->orders->schedule;
  *op = schedule->ops[s->at[device]];
  find_input(s->profile, *op, input);
  const int next = s->profile->device_of[input->stage];
  for (size_t i = s->at[next]; i < schedule->first[next + 1]; i++) {
    const struct zb_op later = schedule->ops[i];
    if (input->kind == ZB_B && later.kind == ZB_BW && later.stage == input->stage &&
        later.microbatch == input->microbatch)
      input->kind = ZB_BW;
  }
  return next;
}

// From device to device until one comes again: from there on it is the cycle.
static enum zb_status fail_cycle(const struct sweep *s, int device, struct zb_error *error) {
  struct zb_op op, input;
  char line[400], text[ZB_OP_TEXT], other[ZB_OP_TEXT];
  for (int k = 0; k < s->profile->devices; k++) device = find_next(s, device, &op, &input);
  const int start = device;
  size_t used = 0, more = 0;
  do {
    const int next = find_next(s, device, &op, &input);
    size_t room = sizeof line - used;
    int length =
        snprintf(line + used, room, "%sdevice %d is at %s, which waits for %s of device %d", used ? "; " : "",
                 device, name(s->orders, op, text), name(s->orders, input, other), next);
    if (length >= 0 && (size_t)length < room)
      used += (size_t)length;
    else
      more++;
    line[used] = '\0';
    device = next;
  } while (device != start);
  return zb_file_orders_fail(s->orders, s->at[start], error, "the orders wait for each other: %s%s", line,
                             more ? "; .." : "");
}

enum zb_status zb_file_orders_finish(const struct zb_file_orders *orders, const struct zb_profile *profile,
                                     struct zb_error *error) {
  const struct zb_schedule *schedule = orders->schedule;
  struct sweep s = {orders, profile, NULL, NULL};
  s.done = calloc((size_t)profile->stages * (size_t)profile->microbatches, 1);
  s.at = calloc((size_t)profile->devices, sizeof *s.at);
  enum zb_status status = s.done && s.at ? ZB_OK : zb_fail_memory(error);
  if (status == ZB_OK) {
    for (int d = 0; d < profile->devices; d++) s.at[d] = schedule->first[d];
    bool moved = true;
    while (moved) {
      moved = false;
      for (int d = 0; d < profile->devices; d++) moved = run(&s, d) || moved;
    }
    for (int d = 0; d < profile->devices && status == ZB_OK; d++)
      if (s.at[d] < schedule->first[d + 1]) status = fail_cycle(&s, d, error);
  }
  free(s.done);
  free(s.at);
  return status;
}
