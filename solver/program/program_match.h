// program_match.h - the messages of a program, both ends of each found and put into channels. Private to the
// simulation.
#ifndef ZB_PROGRAM_MATCH_H
#define ZB_PROGRAM_MATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "solver/model/status.h"
#include "solver/program/program.h"

#define ZB_NOWHERE SIZE_MAX
enum { ZB_SENT, ZB_RECEIVED }; // the two ends of a message

struct zb_message {
  size_t end[2]; // positions of SEND and RECV, ZB_NOWHERE: there is no such message
  int device[2];
  size_t before[2], after[2]; // number of the message next to it in the channel of that end, ZB_NOWHERE
  int64_t comm_ns;
  int64_t posted_ns[2], left_ns, done_ns; // the simulation's, -1: not yet
};

struct zb_match {
  const struct zb_program *program; // borrowed
  size_t passes, count;
  struct zb_message *message; // [count] numbered by what is sent: zb_message_number
  size_t *norm_in, *state_in; // [devices] the message that its RECV_NORM, RECV_STATE is, ZB_NOWHERE
};

// Finds all messages. WRONG as zb_program_simulate says, but for programs that do not finish; whatever the
// status, zb_match_free frees what there is.
enum zb_status zb_match_create(const struct zb_program *program, enum zb_channels channels,
                               struct zb_match *match, struct zb_error *error);
void zb_match_free(struct zb_match *match); // the fields, not the struct

// The message of a SEND, RECV or WAIT_SEND of that device; ZB_NOWHERE for other instructions.
size_t zb_message_number(const struct zb_match *match, int device, const struct zb_instruction *i);

// The message that an op reads; ZB_NOWHERE where its input is made on the same device or there is none.
size_t zb_message_input(const struct zb_match *match, int device, const struct zb_instruction *i);

#endif
