// lower.c - from a schedule to what each device does: sends early, receives at need.
//
// One linear order of everything decides. Ops are sorted by when they end in the predicted times; a message
// follows the op that makes it at once. A device's list is what concerns it, in that order: the sender's end
// of a message directly behind the op that makes it, the receiver's end behind every op that is over by then.
//
// It finishes. Both ends of a message stand at the message's one place in the order, so whatever an
// instruction waits for (earlier ones of its device, the op that makes a message, earlier messages of a
// channel whatever the channels are, the other end) comes before it in the order, and the first element that
// is not done can always run. That holds even where each SEND and RECV blocks its device until the message is
// done, and over many iterations one after another.
//
// It costs nothing. A receive is posted at the end of an op that is over when the message is made, so the
// message leaves at once; earlier messages of any channel were made earlier, so none holds it up; waits for
// sends stand before an op that starts after the message arrived. So every op starts when the schedule says.
// A receive is as late as that allows: behind the next op the message would leave late, since that op is
// still running when it is made.
//
// Ties in time are settled by the timeline's order, in which each op follows its predecessors.
#include "solver/program/lower.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "solver/model/check.h"
#include "solver/model/number.h"
#include "solver/model/timeline.h"

struct element {
  int64_t end_ns;
  uint32_t rank; // place in the timeline's order, which settles ties
  uint32_t op;   // position in the schedule
};

// Lists under construction: one piece of `room` instructions a device.
struct lists {
  const struct zb_profile *profile;
  const struct zb_schedule *schedule;
  const struct zb_timeline *timeline;
  const int *line;
  struct element *order; // [ops] by end
  uint32_t *place;       // [ops] of each op in `order`
  size_t ops, room;
  size_t *count;                       // [devices]
  struct zb_instruction *instructions; // [devices * room]
};

static int compare_elements(const void *a, const void *b) {
  const struct element *x = a, *y = b;
  if (x->end_ns != y->end_ns) return x->end_ns < y->end_ns ? -1 : 1;
  return x->rank < y->rank ? -1 : x->rank > y->rank;
}

static struct zb_instruction make(enum zb_instruction_kind kind, int stage, int microbatch, int peer) {
  return (struct zb_instruction){kind, stage, microbatch, peer, -1, -1, -1};
}

static void append(struct lists *lists, int device, struct zb_instruction instruction) {
  assert(lists->count[device] < lists->room);
  lists->instructions[(size_t)device * lists->room + lists->count[device]++] = instruction;
}

// Both ends of one message, at its one place in the order.
static void append_message(struct lists *lists, enum zb_instruction_kind send, int stage, int microbatch,
                           int from, int to) {
  const struct zb_instruction sent = make(send, stage, microbatch, to);
  struct zb_instruction received = zb_instruction_other_end(sent);
  received.peer = from;
  append(lists, from, sent);
  append(lists, to, received);
}

// The stage that the op's output goes to, -1 if none.
static int next_stage(const struct zb_profile *profile, struct zb_op op) {
  if (op.kind == ZB_F) return op.stage + 1 < profile->stages ? op.stage + 1 : -1;
  return op.kind == ZB_W ? -1 : op.stage - 1;
}

static void append_op(struct lists *lists, struct zb_op op) {
  const int device = lists->profile->device_of[op.stage], next = next_stage(lists->profile, op);
  append(lists, device, make((enum zb_instruction_kind)op.kind, op.stage, op.microbatch, -1));
  if (next < 0 || lists->profile->device_of[next] == device) return;
  append_message(lists, op.kind == ZB_F ? ZB_DO_SEND_F : ZB_DO_SEND_B, op.stage, op.microbatch, device,
                 lists->profile->device_of[next]);
}

// The optimizer.

static void append_norms(struct lists *lists) {
  const int devices = lists->profile->devices;
  for (int k = 0; k < devices; k++) {
    append(lists, lists->line[k], make(ZB_DO_NORM, -1, -1, -1));
    if (k + 1 < devices) append_message(lists, ZB_DO_SEND_NORM, -1, -1, lists->line[k], lists->line[k + 1]);
  }
}

static void append_state(struct lists *lists, int k) {
  append_message(lists, ZB_DO_SEND_STATE, -1, -1, lists->line[k], lists->line[k - 1]);
}

static void append_steps(struct lists *lists) {
  for (int d = 0; d < lists->profile->devices; d++) append(lists, d, make(ZB_DO_STEP, -1, -1, -1));
}

// How many elements are over by then.
static size_t count_over(const struct lists *lists, int64_t time_ns) {
  size_t low = 0, high = lists->ops;
  while (low < high) {
    const size_t middle = low + (high - low) / 2;
    if (lists->order[middle].end_ns <= time_ns)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

// Where in the order a device can take the state that is there at arrival_ns, at `least` or later, without
// making one of its ops wait: behind its last op that starts before that, and behind everything that is over
// by then, so that the message holds up no other.
static size_t find_gap(const struct lists *lists, int device, int64_t arrival_ns, size_t least) {
  const size_t first = lists->schedule->first[device], end = lists->schedule->first[device + 1];
  size_t next = first, gap = count_over(lists, arrival_ns);
  while (next < end && lists->timeline->start_ns[next] < arrival_ns) next++;
  if (next > first && lists->place[next - 1] + 1 > gap) gap = lists->place[next - 1] + 1;
  return gap > least ? gap : least;
}

// Gaps of the order in which the state goes up the line: gaps[k] for the message from line[k] (k > 0), and
// gaps[0] for VALIDATE, on every device the same: what is sent before it is received before it. The state
// counts as arriving as late as any activation would; the last device has it when it starts the iteration.
static void find_gaps(const struct lists *lists, size_t *gaps) {
  const struct zb_profile *profile = lists->profile;
  int64_t latency_ns = 0;
  for (int b = 0; b + 1 < profile->stages; b++)
    latency_ns = zb_max(latency_ns, zb_max(profile->comm_forward_ns[b], profile->comm_backward_ns[b]));
  int64_t arrival_ns = lists->timeline->first_start_ns[lists->line[profile->devices - 1]];
  size_t gap = 0;
  for (int k = profile->devices - 1; k >= 0; k--) {
    gap = gaps[k] = find_gap(lists, lists->line[k], arrival_ns, gap);
    if (gap > 0) arrival_ns = zb_max(arrival_ns, lists->order[gap - 1].end_ns);
    arrival_ns = zb_min(arrival_ns + latency_ns, lists->timeline->makespan_ns); // later is all the same
  }
}

static void append_all(struct lists *lists, enum zb_optimizer optimizer, const size_t *gaps) {
  const int devices = lists->profile->devices;
  int state = devices - 1; // next to go up the line; -1: all did, and VALIDATE too
  for (size_t i = 0; i <= lists->ops; i++) {
    for (; optimizer == ZB_OPTIMIZER_POST_VALIDATION && state > 0 && gaps[state] == i; state--)
      append_state(lists, state);
    if (optimizer == ZB_OPTIMIZER_POST_VALIDATION && state == 0 && gaps[0] == i) {
      for (int d = 0; d < devices; d++) append(lists, d, make(ZB_DO_VALIDATE, -1, -1, -1));
      state = -1;
    }
    if (i < lists->ops) append_op(lists, lists->schedule->ops[lists->order[i].op]);
  }
  if (optimizer == ZB_OPTIMIZER_NONE) return;
  append_norms(lists);
  for (int k = devices - 1; k > 0 && optimizer == ZB_OPTIMIZER_BARRIER; k--) append_state(lists, k);
  append_steps(lists);
}

// Waits for sends.

struct wait {
  int64_t done_ns;
  size_t sent; // place of its SEND in the list, which settles ties
  struct zb_instruction instruction;
};

static int compare_waits(const void *a, const void *b) {
  const struct wait *x = a, *y = b;
  if (x->done_ns != y->done_ns) return x->done_ns < y->done_ns ? -1 : 1;
  return x->sent < y->sent ? -1 : x->sent > y->sent;
}

// When the op of this position ends, and how long its message takes.
static int64_t done_ns(const struct lists *lists, size_t op, enum zb_instruction_kind send) {
  const struct zb_profile *profile = lists->profile;
  const struct zb_op made = lists->schedule->ops[op];
  const int64_t comm_ns =
      send == ZB_DO_SEND_F ? profile->comm_forward_ns[made.stage] : profile->comm_backward_ns[made.stage - 1];
  return lists->timeline->start_ns[op] + zb_op_time(profile, made) + comm_ns;
}

static size_t collect_waits(const struct lists *lists, int device, struct wait *waits) {
  const struct zb_instruction *list = lists->instructions + (size_t)device * lists->room;
  size_t op = lists->schedule->first[device], count = 0;
  for (size_t i = 0; i < lists->count[device]; i++) {
    if (zb_instruction_acts(list[i].kind) == ZB_ACTS_OP) op++;
    if (list[i].kind != ZB_DO_SEND_F && list[i].kind != ZB_DO_SEND_B) continue;
    struct zb_instruction wait = list[i]; // the op before it made it
    wait.kind = list[i].kind == ZB_DO_SEND_F ? ZB_DO_WAIT_SEND_F : ZB_DO_WAIT_SEND_B;
    waits[count++] = (struct wait){done_ns(lists, op - 1, list[i].kind), i, wait};
  }
  qsort(waits, count, sizeof *waits, compare_waits);
  return count;
}

// Copies the device's list into the program, each wait before the first op that starts when its message has
// arrived, the rest at the end.
static void copy_list(const struct lists *lists, int device, struct wait *waits, struct zb_program *program) {
  const struct zb_instruction *list = lists->instructions + (size_t)device * lists->room;
  const size_t count = collect_waits(lists, device, waits);
  struct zb_instruction *out = program->instructions + program->first[device];
  size_t op = lists->schedule->first[device], next = 0;
  for (size_t i = 0; i < lists->count[device]; i++) {
    const bool is_op = zb_instruction_acts(list[i].kind) == ZB_ACTS_OP;
    // Ops may take no time: then the op that makes a message starts when the message has arrived.
    while (is_op && next < count && waits[next].sent < i &&
           waits[next].done_ns <= lists->timeline->start_ns[op])
      *out++ = waits[next++].instruction;
    *out++ = list[i];
    op += is_op;
  }
  while (next < count) *out++ = waits[next++].instruction;
  program->first[device + 1] = (size_t)(out - program->instructions);
}

static enum zb_status build(struct lists *lists, enum zb_optimizer optimizer, struct zb_program **program,
                            struct zb_error *error) {
  const size_t devices = (size_t)lists->profile->devices;
  struct zb_program *p = NULL;
  size_t total = 0;
  size_t *gaps = calloc(devices, sizeof *gaps);
  struct wait *waits = malloc(lists->room * sizeof *waits);
  enum zb_status status = gaps && waits ? ZB_OK : zb_fail_memory(error);
  if (status != ZB_OK) goto done;
  if (optimizer == ZB_OPTIMIZER_POST_VALIDATION) find_gaps(lists, gaps);
  append_all(lists, optimizer, gaps);
  for (size_t d = 0; d < devices; d++) total += 2 * lists->count[d]; // a wait for each send
  status = zb_program_create(lists->profile, total, &p, error);
  if (status != ZB_OK) goto done;
  p->optimizer = optimizer;
  p->channels = ZB_CHANNELS_RANK;
  for (size_t d = 0; d < devices; d++) copy_list(lists, (int)d, waits, p);
  status = zb_program_assign_slots(p, error);
  if (status == ZB_OK) *program = p;
done:
  if (status != ZB_OK) zb_program_free(p);
  free(gaps);
  free(waits);
  return status;
}

static void sort_ops(struct lists *lists) {
  const struct zb_timeline *t = lists->timeline;
  for (size_t k = 0; k < lists->ops; k++) {
    const uint32_t op = t->order[k];
    const int64_t end_ns = t->start_ns[op] + zb_op_time(lists->profile, lists->schedule->ops[op]);
    lists->order[k] = (struct element){end_ns, (uint32_t)k, op};
  }
  qsort(lists->order, lists->ops, sizeof *lists->order, compare_elements);
  for (size_t k = 0; k < lists->ops; k++) lists->place[lists->order[k].op] = (uint32_t)k;
}

static enum zb_status lower(const struct zb_profile *profile, const struct zb_schedule *schedule,
                            const struct zb_timeline *timeline, enum zb_optimizer optimizer,
                            struct zb_program **program, struct zb_error *error) {
  enum { OPTIMIZER_MOST = 8 };
  const size_t devices = (size_t)profile->devices, ops = schedule->first[devices];
  int *line = malloc(devices * sizeof *line);
  struct lists lists = {.profile = profile,
                        .schedule = schedule,
                        .timeline = timeline,
                        .line = line,
                        .ops = ops,
                        // Three ops and two messages each way a stage and microbatch.
                        .room = (size_t)profile->chunks * (size_t)profile->microbatches * 7 + OPTIMIZER_MOST};
  lists.order = malloc((ops + 1) * sizeof *lists.order);
  lists.place = malloc((ops + 1) * sizeof *lists.place);
  lists.count = calloc(devices, sizeof *lists.count);
  lists.instructions = malloc(devices * lists.room * sizeof *lists.instructions);
  enum zb_status status = ZB_OK;
  if (line && lists.order && lists.place && lists.count && lists.instructions) {
    zb_program_line(profile, line);
    sort_ops(&lists);
    status = build(&lists, optimizer, program, error);
  } else {
    status = zb_fail_memory(error);
  }
  free(line);
  free(lists.order);
  free(lists.place);
  free(lists.count);
  free(lists.instructions);
  return status;
}

enum zb_status zb_program_lower(const struct zb_profile *profile, const struct zb_schedule *schedule,
                                const char *method, enum zb_optimizer optimizer, struct zb_program **program,
                                struct zb_error *error) {
  struct zb_timeline timeline = {0};
  struct zb_program *p = NULL;
  enum zb_status status = zb_check_schedule(profile, schedule, &timeline, error);
  if (status == ZB_OK) status = lower(profile, schedule, &timeline, optimizer, &p, error);
  if (status == ZB_OK) {
    p->method = strdup(method);
    p->span_ns = timeline.span_ns;
    p->period_ns = timeline.period_ns;
    p->makespan_ns = timeline.makespan_ns;
    memcpy(p->peak_bytes, timeline.peak_bytes, (size_t)profile->devices * sizeof *p->peak_bytes);
    if (!p->method) status = zb_fail_memory(error);
  }
  if (status == ZB_OK)
    *program = p;
  else
    zb_program_free(p);
  zb_timeline_free(&timeline);
  return status;
}
