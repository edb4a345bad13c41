// file_orders.h - what a file of another program says about a schedule, before it is held against a profile.
//
// Devices, stages and microbatches are whatever the file's ops use. zb_file_orders_check says whether that is
// a whole schedule at all; every complaint names the place of the op that it is about.
#ifndef ZB_FILE_ORDERS_H
#define ZB_FILE_ORDERS_H

#include <stdbool.h>
#include <stdint.h>

#include "solver/io/text.h"
#include "solver/model/profile.h"
#include "solver/model/schedule.h"
#include "solver/model/status.h"
#include "solver/program/program.h"

// How a file names places: a row and a cell (from 1; line and column of the error), or a list in a list
// (from 0; before the text).
enum zb_file_orders_places { ZB_PLACES_ROWS, ZB_PLACES_LISTS };

// Everything is owned.
struct zb_file_orders {
  enum zb_channels channels; // set before reading: how messages wait for each other, where a file has any
  enum zb_file_orders_places places;
  bool torch; // the rules of torch's runtime hold: words in messages, the last stage's order
  struct zb_schedule *schedule; // the ops of every device
  uint32_t *place;              // [ops] the op's cell in its row, or its position in its list
  int stages, microbatches;     // filled by zb_file_orders_check, like device_of
  int *device_of;               // [stages]
};

// Room for the ops of `devices` devices, all of `schedule` but first[0] = 0 left to the caller.
enum zb_status zb_file_orders_create(int devices, size_t ops, struct zb_file_orders *orders,
                                     struct zb_error *error);
void zb_file_orders_free(struct zb_file_orders *orders); // the fields, not the struct

// Fills the error with the place of op `index` (of the schedule's ops) before the formatted line.
enum zb_status zb_file_orders_fail(const struct zb_file_orders *orders, size_t index, struct zb_error *error,
                                   const char *format, ...) ZB_PRINTF(4, 5);

// WRONG, at the first op in the file's order that a whole schedule cannot have: a stage on two devices, an op
// that comes twice, a backward that is both whole and split, B before F, W before B; or at an op that shows
// what is missing. `torch`: also a last stage whose forwards are not in the order 0, 1, 2.
enum zb_status zb_file_orders_check(struct zb_file_orders *orders, struct zb_error *error);

// The profile that the orders are held against: `profile` where it has as many stages, or one that is derived
// from it where either has one stage a device (*derived says so). WRONG where devices, stages or microbatches
// do not agree, at the first op on another device than the profile's. *placed is the caller's.
enum zb_status zb_file_orders_place(const struct zb_file_orders *orders, const struct zb_profile *profile,
                                    bool *derived, struct zb_profile **placed, struct zb_error *error);

// WRONG with the cycle, op by op, where the orders wait for each other for ever; else ZB_OK. `profile` is the
// placed one.
enum zb_status zb_file_orders_finish(const struct zb_file_orders *orders, const struct zb_profile *profile,
                                     struct zb_error *error);

#endif
