// schedule.h - an order of ops on every device, and nothing else: times follow from it.
#ifndef ZB_SCHEDULE_H
#define ZB_SCHEDULE_H

#include <stddef.h>
#include <stdint.h>

#include "solver/model/profile.h"
#include "solver/model/status.h"

enum zb_kind { ZB_F, ZB_B, ZB_W, ZB_BW };
extern const char *const zb_kind_word[4]; // "F", "B", "W", "BW"

struct zb_op {
  int32_t stage;
  int32_t microbatch;
  enum zb_kind kind;
};

struct zb_schedule {
  int devices;
  size_t *first;     // [devices + 1] device d's ops are ops[first[d]] .. ops[first[d + 1] - 1]
  struct zb_op *ops; // in the order in which each device runs them
};

// An empty order for up to `capacity` ops on each device of the profile; filled with
// zb_schedule_append, closed with zb_schedule_close.
struct zb_schedule_builder {
  const struct zb_profile *profile; // borrowed
  size_t capacity;                  // ops a device
  size_t *count;                    // [devices]
  struct zb_op *ops;                // [devices * capacity]
};
// Room for 3 ops a stage and microbatch.
enum zb_status zb_builder_create(const struct zb_profile *profile, struct zb_schedule_builder *builder,
                                 struct zb_error *error);
// Appends to the device that holds `stage`. More ops than the profile has is a bug of the caller (assert).
void zb_builder_append(struct zb_schedule_builder *builder, int stage, enum zb_kind kind, int microbatch);
void zb_builder_clear(struct zb_schedule_builder *builder);
// Packs what was appended into a new schedule, owned by the caller. The builder stays usable.
enum zb_status zb_builder_finish(const struct zb_schedule_builder *builder, struct zb_schedule **schedule,
                                 struct zb_error *error);
void zb_builder_free(struct zb_schedule_builder *builder);

enum zb_status zb_schedule_copy(const struct zb_schedule *schedule, struct zb_schedule **copy,
                                struct zb_error *error);
void zb_schedule_free(struct zb_schedule *schedule);

// The order that runs one microbatch after another, each stage's backward fused where only that
// fits the device's limit or is cheaper: the least peak of zb_profile_least_peak on every device.
enum zb_status zb_schedule_sequential(const struct zb_profile *profile, struct zb_schedule **schedule,
                                      struct zb_error *error);

int64_t zb_op_time(const struct zb_profile *profile, struct zb_op op);
int64_t zb_op_memory(const struct zb_profile *profile, struct zb_op op); // change from before it to after it

// "3B12"; buffer of at least ZB_OP_TEXT bytes. Parsing returns the length read, 0 if there is no op.
#define ZB_OP_TEXT 32
void zb_op_print(struct zb_op op, char *text);
size_t zb_op_parse(const char *text, struct zb_op *op);

#endif
