// standin_parts.h - what the files of the stand-in share.
//
// An operation is queued on a stream. At the head of its stream it is armed: it then is ready, or waits for
// something else (a mark, its peer), which makes it ready later. Which ready operation runs next is the
// scheduler's draw. All that is declared here is read and written under the one lock, which
// zb_standin_enter takes and zb_standin_leave gives back.
#ifndef ZB_STANDIN_PARTS_H
#define ZB_STANDIN_PARTS_H

#include <pthread.h>

#include "tests/standin/standin.h"

enum { ZB_STANDIN_DEVICES = 64, ZB_STANDIN_ALL_STREAMS = -1 };

// A moment in a stream: reached when all that was queued before it has run. Of a captured one, `capture` and
// the nodes that stand for it. Counted by those that hold it.
struct mark {
  int holders;
  bool reached;
  int64_t reached_ns;
  struct CUstream_st *stream;
  struct op *waiting; // ops to arm again, by next_waiting
  struct capture *capture;
  int *nodes, node_count;
};

struct op_kind {
  // True: ready now. False: zb_standin_ready is called later. NULL: always ready.
  bool (*arm)(struct op *);
  void (*run)(struct op *);                     // NULL: nothing to do
  void (*drop)(struct op *);                    // frees what hangs on it, run or not; NULL: nothing does
  void (*copy)(const struct op *, struct op *); // for another launch of a graph: what must not be shared
  struct CUstream_st *(*behind)(struct op *);   // the stream it waits for, NULL if it cannot say
  void (*describe)(struct op *, char *text, size_t size); // what it waits for
  bool passes; // over as soon as it is armed and ready: no turn of its own
  bool kernel;
};

struct op {
  const struct op_kind *kind;
  const char *name;
  struct op *next; // in its stream
  struct CUstream_st *stream;
  int ready_at;                // place among the ready ones, or -1
  struct op *next_waiting;     // for the same mark
  struct graph_run *graph_run; // it is one of its nodes,
  int node;                    // this one
  struct graph_run *launch;    // it is the launch of a graph
  bool borrowed;               // `drop` is another's duty
  void (*call)(void *);        // kernels, copies, products
  void (*discard)(void *);     //
  void *argument;              //
  struct mark *mark;           // record, wait
  struct CUevent_st *event;    // record in a graph
  struct message_group *group; // send, receive
};

struct CUstream_st {
  struct CUstream_st *next; // of all that ever were
  int number, device;
  bool alive, blocking;
  uint64_t priority;
  struct op *first, *last;
  int64_t queued, finished;
  struct capture *capture;
  int *nodes, node_count; // what the next captured operation comes behind
};

struct CUevent_st {
  struct CUevent_st *next;
  int number, device;
  bool alive, timed;
  struct mark *mark; // its latest record; NULL: none
};

struct device_state {
  cudaError_t broken; // every call fails with it
  int64_t used_bytes;
  uint64_t peers; // that it may reach
  bool gone;      // its messages are not seen any more
};

extern struct zb_standin zb_standin_setup;
extern struct zb_standin_counts zb_standin_count;
extern struct device_state zb_standin_device[ZB_STANDIN_DEVICES];
extern struct CUstream_st *zb_standin_streams;
extern struct CUevent_st *zb_standin_events;

// standin.c: calls, faults, reports.

enum entry {
  ENTER_SAFE = 0,    // cannot fail, or only by its arguments: releases, queries of errors
  ENTER_FAILS = 1,   // fail_call counts it
  ENTER_CAPTURED = 2 // may not be made while a stream is captured
};
// Takes the lock. Whatever it returns, zb_standin_leave must follow.
cudaError_t zb_standin_enter(int entry);
cudaError_t zb_standin_leave(cudaError_t status); // lets the device work, gives the lock back
int zb_standin_current(void);                     // this thread's device
int zb_standin_gpu(int device);                   // which of the machine's it is, from 0
void zb_standin_report(const char *format, ...) __attribute__((format(printf, 1, 2))); // misuse
bool zb_standin_fault(int64_t wanted, int64_t counter); // the setup asks for it now
uint64_t zb_standin_below(uint64_t bound);
int64_t zb_standin_now(void);       // ns, the host's monotonic clock
void *zb_standin_new(size_t bytes); // zeroed; the end of the process where there is no memory

// What a program may be linked without registers itself at its first call (again and again is no harm).
struct standin_part {
  void (*reset)(bool report); // frees what it has; report: what the program left is misuse
  bool (*look)(void);         // takes in what came from other processes; true: there are some. May be NULL
  struct standin_part *next;
  bool registered;
};
void zb_standin_register(struct standin_part *part);

// standin_schedule.c

extern const char *zb_standin_running;           // the operation that runs now, NULL: none
void zb_standin_progress(void);                  // what a call allows
void zb_standin_poll(struct CUstream_st *asked); // what a query allows; at least one if any can
bool zb_standin_run_some(int64_t count);         // for the idle thread
struct op *zb_standin_op(const struct op_kind *kind, const char *name);
void zb_standin_queue(struct CUstream_st *stream, struct op *op); // or to the stream's capture
void zb_standin_ready(struct op *op);                             // what it waited for is there
void zb_standin_finish(struct op *op);                            // over: what comes behind it is armed
void zb_standin_arm(struct op *op);
void zb_standin_drop(struct op *op);
void zb_standin_changed(void); // wakes those who wait
// Runs operations until `over` says so. False: patience ended first, and what is stuck has been reported.
bool zb_standin_wait(const char *call, bool (*over)(void *), void *argument, struct CUstream_st *asked);

void zb_standin_schedule_reset(void);

struct mark *zb_standin_mark(struct CUstream_st *stream);
void zb_standin_mark_reach(struct mark *mark);
struct mark *zb_standin_mark_hold(struct mark *mark);
void zb_standin_mark_release(struct mark *mark); // NULL is nothing
extern const struct op_kind zb_standin_record, zb_standin_await, zb_standin_call, zb_standin_kernel;

// standin_stream.c

// An error where nothing can be queued on it from this thread, with its device for a kernel's launch.
cudaError_t zb_standin_usable(const char *call, cudaStream_t stream);
void zb_standin_streams_reset(bool report);        // report: what is left is misuse
void zb_standin_describe(char *text, size_t size); // what is queued

// standin_memory.c

struct block {
  unsigned char *at;
  int64_t bytes;
  int device; // -1: the host's, pinned
  bool alive;
  unsigned char *map;
  size_t map_bytes;
};
enum place { PLACE_ANY, PLACE_DEVICE, PLACE_HOST };
struct block *zb_standin_block(const void *at); // that holds the address, freed or not; NULL: ordinary memory
// False, and a report: where the range leaves its block, is freed, or not where it should be.
bool zb_standin_range(const char *what, const void *at, int64_t bytes, enum place place);
void zb_standin_memory_watch(void); // from now on a fault in a block is named before the process ends of it
void zb_standin_memory_reset(bool report); // report: what is left is misuse

// standin_graph.c

struct op *zb_standin_capture_op(struct CUstream_st *stream, struct op *op);
cudaError_t zb_standin_capture_unsafe(void); // while this thread's calls are watched
cudaError_t zb_standin_capture_record(struct CUstream_st *stream, struct CUevent_st *event, bool external);
cudaError_t zb_standin_capture_await(struct CUstream_st *stream, struct CUevent_st *event, bool external);
void zb_standin_graph_node_over(struct op *op);
struct op *zb_standin_graph_needed(struct op *op, struct op **ready, int count);
bool zb_standin_in_a_graph(bool (*is)(const struct op *op, const void *what), const void *what);
void zb_standin_graphs_reset(bool report); // report: what is left is misuse

#endif
