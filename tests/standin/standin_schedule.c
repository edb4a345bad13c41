// standin_schedule.c - which operation runs next.
//
// Any ready operation may. What finds mistakes is not a fair coin but stubbornness: a stream that stays
// behind while all others run ahead shows a missing wait that a fair order would hide. So each stream has a
// drawn priority, which is drawn anew now and then, and each run draws how often it goes by priority, and
// how often it goes on when nobody waits. A wait or a query in a late run either takes only what it needs, or
// all else first.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/standin/standin_parts.h"

const char *zb_standin_running;
static struct op **ready;
static int ready_count, ready_room;
static uint64_t by_priority; // of 16 draws
static uint64_t pause;       // a random run goes on at one call of so many

void zb_standin_schedule_reset(void) {
  free(ready);
  ready = NULL;
  ready_count = ready_room = 0;
  by_priority = zb_standin_below(17);
  pause = (uint64_t[]){2, 8, 32, 128}[zb_standin_below(4)];
}

// Marks

struct mark *zb_standin_mark(struct CUstream_st *stream) {
  struct mark *mark = zb_standin_new(sizeof *mark);
  mark->holders = 1;
  mark->stream = stream;
  return mark;
}

struct mark *zb_standin_mark_hold(struct mark *mark) {
  if (mark) mark->holders++;
  return mark;
}

void zb_standin_mark_release(struct mark *mark) {
  if (!mark || --mark->holders) return;
  free(mark->nodes);
  free(mark);
}

void zb_standin_mark_reach(struct mark *mark) {
  mark->reached = true;
  mark->reached_ns = zb_standin_now();
  struct op *op = mark->waiting;
  mark->waiting = NULL;
  while (op) {
    struct op *next = op->next_waiting;
    zb_standin_ready(op);
    op = next;
  }
}

// Operations

struct op *zb_standin_op(const struct op_kind *kind, const char *name) {
  struct op *op = zb_standin_new(sizeof *op);
  op->kind = kind;
  op->name = name;
  op->ready_at = -1;
  return op;
}

void zb_standin_drop(struct op *op) {
  if (op->kind->drop && !op->borrowed) op->kind->drop(op);
  free(op);
}

void zb_standin_ready(struct op *op) {
  if (op->kind->passes) {
    zb_standin_finish(op);
    return;
  }
  if (ready_count == ready_room) {
    ready_room = ready_room ? 2 * ready_room : 64;
    ready = realloc(ready, (size_t)ready_room * sizeof *ready);
    if (!ready) abort();
  }
  op->ready_at = ready_count;
  ready[ready_count++] = op;
  zb_standin_changed();
}

static void unready(struct op *op) {
  ready[op->ready_at] = ready[--ready_count];
  ready[op->ready_at]->ready_at = op->ready_at;
  op->ready_at = -1;
}

void zb_standin_arm(struct op *op) {
  if (!op->kind->arm || op->kind->arm(op)) zb_standin_ready(op);
}

// `op` is at the head of its stream, or a node of the graph that is, and over.
void zb_standin_finish(struct op *op) {
  if (op->graph_run) {
    zb_standin_graph_node_over(op);
    return;
  }
  struct CUstream_st *stream = op->stream;
  stream->first = op->next;
  stream->queued--;
  stream->finished++;
  if (!stream->first) stream->last = NULL;
  zb_standin_drop(op);
  zb_standin_changed();
  if (stream->first) zb_standin_arm(stream->first);
}

void zb_standin_queue(struct CUstream_st *stream, struct op *op) {
  op->stream = stream;
  if (stream->capture) {
    zb_standin_capture_op(stream, op);
    return;
  }
  if (stream->last)
    stream->last->next = op;
  else
    stream->first = op;
  stream->last = op;
  stream->queued++;
  if (stream->first == op) zb_standin_arm(op);
}

static void run(struct op *op) {
  unready(op);
  zb_standin_count.operations++;
  struct device_state *device = &zb_standin_device[op->stream->device];
  if (op->kind->kernel && !device->broken) {
    zb_standin_count.kernels++;
    if (zb_standin_fault(zb_standin_setup.hang_kernel, zb_standin_count.kernels)) return;
    if (zb_standin_fault(zb_standin_setup.fail_kernel, zb_standin_count.kernels))
      device->broken = cudaErrorIllegalAddress;
  }
  // A broken device does nothing more, but its streams come to an end.
  zb_standin_running = op->name;
  if (op->kind->run && !(device->broken && op->call)) op->kind->run(op);
  zb_standin_running = NULL;
  zb_standin_finish(op);
}

// What stands between a stream and its next operation's end; NULL: nothing that could run now.
static struct op *needed(struct CUstream_st *stream) {
  for (int steps = 0; stream && steps < 64; steps++) {
    struct op *op = stream->first;
    if (!op) return NULL;
    if (op->ready_at >= 0) return op;
    if (op->launch) return zb_standin_graph_needed(op, ready, ready_count);
    stream = op->kind->behind ? op->kind->behind(op) : NULL;
  }
  return NULL;
}

static struct op *draw(void) {
  if (zb_standin_below(16) >= by_priority) return ready[zb_standin_below((uint64_t)ready_count)];
  struct op *best = ready[0];
  for (int k = 1; k < ready_count; k++)
    if (ready[k]->stream->priority > best->stream->priority) best = ready[k];
  if (!zb_standin_below(16)) best->stream->priority = zb_standin_random();
  return best;
}

// Anything but what is needed, as long as there is something else.
static struct op *draw_other(struct op *not_this) {
  if (ready_count == 1) return ready[0];
  struct op *op = draw();
  return op == not_this ? ready[(not_this->ready_at + 1) % ready_count] : op;
}

bool zb_standin_run_some(int64_t count) {
  bool any = false;
  for (; count > 0 && ready_count; count--) {
    run(draw());
    any = true;
  }
  return any;
}

void zb_standin_progress(void) {
  if (!ready_count || zb_standin_setup.when == ZB_STANDIN_LATE) return;
  if (zb_standin_setup.when == ZB_STANDIN_EAGER)
    zb_standin_run_some(INT64_MAX);
  else if (!zb_standin_below(pause))
    zb_standin_run_some(1 + (int64_t)zb_standin_below(3));
}

void zb_standin_poll(struct CUstream_st *asked) {
  if (!ready_count) return;
  if (zb_standin_setup.when != ZB_STANDIN_LATE) {
    zb_standin_run_some(1 + (int64_t)zb_standin_below(4));
    return;
  }
  struct op *first = needed(asked);
  if (!first)
    run(draw());
  else if (by_priority & 1)
    run(draw_other(first));
  else
    run(first);
}

// Kinds of operations that are known here.

static void call_run(struct op *op) { op->call(op->argument); }
static void call_drop(struct op *op) {
  if (op->discard) op->discard(op->argument);
}
const struct op_kind zb_standin_call = {.run = call_run, .drop = call_drop};
const struct op_kind zb_standin_kernel = {.run = call_run, .drop = call_drop, .kernel = true};

static void record_run(struct op *op) { zb_standin_mark_reach(op->mark); }
static void mark_drop(struct op *op) { zb_standin_mark_release(op->mark); }
// A record in a graph that is launched again is a record like any other.
static void record_copy(const struct op *from, struct op *to) {
  to->mark = zb_standin_mark(to->stream);
  if (!from->event->alive) zb_standin_report("cudaGraphLaunch: it records an event that was destroyed");
  zb_standin_mark_release(from->event->mark);
  from->event->mark = zb_standin_mark_hold(to->mark);
}
const struct op_kind zb_standin_record = {.run = record_run, .drop = mark_drop, .copy = record_copy};

static bool await_arm(struct op *op) {
  struct mark *mark = op->mark;
  if (!mark || mark->reached) return true;
  op->next_waiting = mark->waiting;
  mark->waiting = op;
  return false;
}
static struct CUstream_st *await_behind(struct op *op) { return op->mark ? op->mark->stream : NULL; }
static void await_copy(const struct op *from, struct op *to) {
  to->mark = zb_standin_mark_hold(from->event->mark);
}
const struct op_kind zb_standin_await = {
    .arm = await_arm, .drop = mark_drop, .copy = await_copy, .behind = await_behind, .passes = true};
