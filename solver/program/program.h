// program.h - what each device of a pipeline does, one instruction after another: ops, messages, the
// optimizer.
//
// How a device runs its list (what the runtime does and what the simulation assumes):
//   - Instructions are taken in order. An op runs to its end before the next instruction is taken.
//   - SEND and RECV are posted and the device goes on. A message leaves once both ends have posted it and
//   every
//     earlier message of its channels has left (rendezvous: no buffer in between takes it sooner), or, where
//     channels are serial, has arrived. An op waits for the message that it reads, NORM for RECV_NORM's, what
//     comes after a RECV_STATE and needs the state for that.
//   - WAIT_SEND waits until the message of its stage and microbatch, which the device has sent, is done; then
//   the
//     slot it was sent from is free.
//   - In one iteration every instruction runs once. Iterations follow each other without a barrier of their
//   own.
//
// Slots. A buffer is slot `index` of one kind at one stage, and lives on the stage's device. An op of stage s
// uses up to three: it keeps (F takes the slot, B reads and changes it, W or BW reads it and gives it back),
// it reads (free when the op ends) and it writes (its output, for a SEND or for the next op on the same
// device). Where two neighbouring stages share a device there is no message: F of s writes an INPUT slot of s
// + 1, B of s a GRADIENT_IN slot of s - 1. The first stage reads no input slot (the data), the last no
// gradient (the loss).
//
//   slot         written by              read by                 free after
//   KEPT         F                       B, W, BW                W or BW
//   INPUT        RECV_F, or F of s - 1   F                       F
//   OUTPUT       F                       SEND_F                  WAIT_SEND_F
//   GRADIENT_IN  RECV_B, or B of s + 1   B, BW (W has its own copy, or the kept slot)      B, BW
//   GRADIENT_OUT B, BW                   SEND_B                  WAIT_SEND_B
//
// The optimizer. Devices form a line by the first stage that each holds. Each has partial norms, one a block
// of its stages, which are added in model order, so that the sum has the same bits wherever it is formed.
// What travels down the line are the partials known so far; the full state (all partials) travels back up.
//   RECV_NORM  (not the first of the line) partials of the devices before
//   NORM       adds this device's own, which are final: it comes after its last W and BW
//   SEND_NORM  (not the last) passes them on
//   RECV_STATE (not the last) the full state; SEND_STATE (not the first) passes it on. The last device's full
//              state is what its NORM made
//              (what SEND_NORM and SEND_STATE send is a few numbers, copied when it is posted: no slot, no
//              wait)
//   STEP       the optimizer step of all the device's parameters
//   VALIDATE   holds the full state against what STEP assumed
// ZB_OPTIMIZER_BARRIER ends each iteration with RECV_NORM, NORM, SEND_NORM, RECV_STATE, SEND_STATE, STEP: the
// step knows everything. ZB_OPTIMIZER_POST_VALIDATION (arXiv 2401.10241, section 4 and Appendix C) ends it
// with RECV_NORM, NORM, SEND_NORM, STEP: the step assumes that the devices behind add nothing that matters
// (it is left out where what is known already says NaN or above the clipping norm), and the full state
// follows in the next iteration's RECV_STATE, SEND_STATE, VALIDATE. These three are skipped in the first
// iteration and run alone once after the last. Where the state says that a step must be undone, redone or
// made late, it says so on every device: each puts its parameters right and takes its list from the beginning
// again, without these three, all gradients zero and all slots free. Nothing is under way then, because a
// message's SEND comes before its device's VALIDATE exactly where its RECV does; and VALIDATE comes before
// the iteration's NORM.
#ifndef ZB_PROGRAM_H
#define ZB_PROGRAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "solver/model/profile.h"
#include "solver/model/schedule.h"
#include "solver/model/status.h"

// Name, word in files, what it acts on. The first four are enum zb_kind, in its order.
#define ZB_INSTRUCTION_TABLE(X)                                                                              \
  X(ZB_DO_F, "F", ZB_ACTS_OP)                                                                                \
  X(ZB_DO_B, "B", ZB_ACTS_OP)                                                                                \
  X(ZB_DO_W, "W", ZB_ACTS_OP)                                                                                \
  X(ZB_DO_BW, "BW", ZB_ACTS_OP)                                                                              \
  X(ZB_DO_SEND_F, "SEND_F", ZB_ACTS_MESSAGE) /* output of F, to the device of stage + 1 */                   \
  X(ZB_DO_RECV_F, "RECV_F", ZB_ACTS_MESSAGE) /* input of F, from the device of stage - 1 */                  \
  X(ZB_DO_SEND_B, "SEND_B", ZB_ACTS_MESSAGE) /* input gradient, to the device of stage - 1 */                \
  X(ZB_DO_RECV_B, "RECV_B", ZB_ACTS_MESSAGE) /* output gradient, from the device of stage + 1 */             \
  X(ZB_DO_WAIT_SEND_F, "WAIT_SEND_F", ZB_ACTS_MESSAGE)                                                       \
  X(ZB_DO_WAIT_SEND_B, "WAIT_SEND_B", ZB_ACTS_MESSAGE)                                                       \
  X(ZB_DO_RECV_NORM, "RECV_NORM", ZB_ACTS_LINE)                                                              \
  X(ZB_DO_SEND_NORM, "SEND_NORM", ZB_ACTS_LINE)                                                              \
  X(ZB_DO_RECV_STATE, "RECV_STATE", ZB_ACTS_LINE)                                                            \
  X(ZB_DO_SEND_STATE, "SEND_STATE", ZB_ACTS_LINE)                                                            \
  X(ZB_DO_NORM, "NORM", ZB_ACTS_DEVICE)                                                                      \
  X(ZB_DO_STEP, "STEP", ZB_ACTS_DEVICE)                                                                      \
  X(ZB_DO_VALIDATE, "VALIDATE", ZB_ACTS_DEVICE)

enum zb_instruction_kind {
#define X(name, word, acts) name,
  ZB_INSTRUCTION_TABLE(X)
#undef X
      ZB_INSTRUCTION_KINDS
};

enum zb_acts {
  ZB_ACTS_OP,      // has stage and microbatch, and the three slots
  ZB_ACTS_MESSAGE, // has stage, microbatch, peer, and one slot: the one sent from (SEND reads, WAIT_SEND
                   // frees it) or received into (RECV writes it)
  ZB_ACTS_LINE,    // has a peer, its neighbour in the line
  ZB_ACTS_DEVICE,  // has nothing more
};

// What an instruction does not have is -1. A message is named as its end is: 0SEND_F3 arrives as 1RECV_F3.
struct zb_instruction {
  enum zb_instruction_kind kind;
  int32_t stage, microbatch;
  int32_t peer;   // device at the other end
  int32_t keeps;  // KEPT slot of the stage
  int32_t reads;  // F: INPUT of the stage; B, BW: GRADIENT_IN of it; SEND_F, WAIT_SEND_F: OUTPUT; SEND_B,
                  // WAIT_SEND_B: GRADIENT_OUT
  int32_t writes; // F: OUTPUT, or INPUT of stage + 1 on the same device; B, BW: GRADIENT_OUT, or GRADIENT_IN
                  // of stage - 1 on the same device; RECV_F: INPUT; RECV_B: GRADIENT_IN
};

#define ZB_SLOT_TABLE(X)                                                                                     \
  X(ZB_SLOT_KEPT, "kept")                                                                                    \
  X(ZB_SLOT_INPUT, "input")                                                                                  \
  X(ZB_SLOT_OUTPUT, "output")                                                                                \
  X(ZB_SLOT_GRADIENT_IN, "gradient_in")                                                                      \
  X(ZB_SLOT_GRADIENT_OUT, "gradient_out")

enum zb_slot_kind {
#define X(name, word) name,
  ZB_SLOT_TABLE(X)
#undef X
      ZB_SLOT_KINDS
};

// Which messages wait for each other: those of one channel are transferred in the order in which each end
// posts them. Strictest first: what finishes under one finishes under those after it.
#define ZB_CHANNELS_TABLE(X)                                                                                 \
  X(ZB_CHANNELS_RANK, "rank") /* all messages of a device */                                                 \
  X(ZB_CHANNELS_PAIR, "pair") /* all between two devices, both ways */                                       \
  X(ZB_CHANNELS_EDGE, "edge") /* all from one device to another */

enum zb_channels {
#define X(name, word) name,
  ZB_CHANNELS_TABLE(X)
#undef X
      ZB_CHANNELS_COUNT
};

#define ZB_OPTIMIZER_TABLE(X)                                                                                \
  X(ZB_OPTIMIZER_NONE, "none") /* the program ends with the last op: whoever runs it steps */                \
  X(ZB_OPTIMIZER_BARRIER, "barrier")                                                                         \
  X(ZB_OPTIMIZER_POST_VALIDATION, "post-validation")

enum zb_optimizer {
#define X(name, word) name,
  ZB_OPTIMIZER_TABLE(X)
#undef X
      ZB_OPTIMIZER_COUNT
};

// Everything in it is owned.
struct zb_program {
  struct zb_profile *profile;
  char *method;                            // of the schedule it was made from
  int64_t span_ns, period_ns, makespan_ns; // of that schedule
  int64_t *peak_bytes;                     // [devices] of that schedule
  enum zb_channels channels;               // the strictest model under which it is known to finish
  enum zb_optimizer optimizer;
  int devices;
  size_t *first; // [devices + 1] device d's list is instructions[first[d]] .. [first[d + 1] - 1]
  struct zb_instruction *instructions;
  int32_t *slots; // [stages * ZB_SLOT_KINDS] how many there are: zb_program_slots
};

// An empty program with its own copy of the profile, room for `instructions`, no method and no slots.
enum zb_status zb_program_create(const struct zb_profile *profile, size_t instructions,
                                 struct zb_program **program, struct zb_error *error);
void zb_program_free(struct zb_program *program); // takes NULL

static inline int32_t zb_program_slots(const struct zb_program *program, int stage, enum zb_slot_kind kind) {
  return program->slots[stage * ZB_SLOT_KINDS + (int)kind];
}

// The device whose list the instruction at this position is in.
int zb_program_device(const struct zb_program *program, size_t instruction);

// The line of the optimizer: devices by the first stage that each holds. `line` has room for the devices.
void zb_program_line(const struct zb_profile *profile, int *line);

const char *zb_instruction_word(enum zb_instruction_kind kind);
enum zb_acts zb_instruction_acts(enum zb_instruction_kind kind);
bool zb_instruction_is_send(enum zb_instruction_kind kind); // of any kind
bool zb_instruction_is_receive(enum zb_instruction_kind kind);
bool zb_instruction_is_end(enum zb_instruction_kind kind); // of a message: a send or a receive
const char *zb_slot_word(enum zb_slot_kind kind);
const char *zb_channels_word(enum zb_channels channels);
const char *zb_optimizer_word(enum zb_optimizer optimizer);

// The message's name at the other end: 0SEND_F3 and 1RECV_F3, SEND_NORM and RECV_NORM. Peer and slots are
// left as they are; `kind` must be a send or a receive.
struct zb_instruction zb_instruction_other_end(struct zb_instruction instruction);

// "3B12", "0SEND_F3", "STEP"; buffer of at least ZB_INSTRUCTION_TEXT bytes. Parsing fills kind, stage and
// microbatch, the rest with -1, and returns the length read, 0 if there is no instruction.
#define ZB_INSTRUCTION_TEXT 48
void zb_instruction_print(struct zb_instruction instruction, char *text);
size_t zb_instruction_parse(const char *text, struct zb_instruction *instruction);

#endif
