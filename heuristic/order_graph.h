// order_graph.h - a schedule as a graph in which a local search exchanges two ops and undoes it at little
// cost.
//
// A node is an op. It waits for the op before it on its device and for at most one op of another device: an F
// for the F of the stage before, a B for the B of the stage behind. So earliest starts are longest paths in a
// graph of two arcs a node, and an exchange of two neighbours moves only starts behind them.
//
// After every exchange the order keeps each device's limit and, on each device, runs the ops of a stage and
// kind by microbatch and the ops of a microbatch in turn. That it has no cycle shows only when it is timed.
#ifndef ZB_ORDER_GRAPH_H
#define ZB_ORDER_GRAPH_H

#include <stdbool.h>
#include <stdint.h>

#include "solver/model/profile.h"
#include "solver/model/schedule.h"
#include "solver/model/status.h"

enum { ZB_NO_NODE = -1, ZB_NOT_DIRTY = -2 };

struct zb_graph_node {
  int64_t start;         // earliest
  int64_t time;          // of the op
  int64_t lag;           // from the end of `input` to this op's start at least
  int64_t rest;          // work on the device from this op's start on
  int64_t tail;          // longest path from this op's start to an end of a device, less that device's origin
  int64_t kept, delta;   // bytes that the device keeps after this op; what the op adds
  int32_t before, after; // neighbours on the device
  int32_t input, output; // on other devices
  int32_t follows[2];    // ops on the same device that must come later
  int32_t device, class; // class: 3 * stage + 0 for F, 1 for B and BW, 2 for W
  int32_t next_dirty;    // behind it in its bucket, or ZB_NOT_DIRTY
  int32_t stamp;         // of the last timing that collected it
};

// Times are in units of 1/scale ns. A device's origin is where its time counts from: the start of its first
// op (span), or 0.
struct zb_graph {
  const struct zb_profile *profile; // borrowed
  int devices, nodes;
  bool from_first;
  int64_t scale;
  struct zb_graph_node *node; // [nodes]
  struct zb_op *op;           // [nodes]
  int32_t *at;                // [3 * stages * microbatches] node of a class and microbatch, or ZB_NO_NODE
  int32_t *first, *last;      // [devices]
  int64_t *limit;             // [devices] bytes above static
  int64_t work;               // nodes timed so far

  // Private: what an undo needs, and the queue.
  struct zb_graph_swap {
    int32_t left, right;
    int64_t left_tail, right_tail;
  } * swap;
  int swaps, most_swaps;
  struct zb_graph_moved {
    int32_t node;
    int64_t start;
  } * moved;
  int moveds, most_moveds;
  int32_t *sorted;  // [nodes] by start, as of the last zb_graph_tails
  int32_t *bucket;  // [buckets] lists of nodes to time, by the start they had
  uint64_t *filled; // [words] bit sets of buckets
  int buckets, words, lowest;
  int64_t width; // of a bucket
  int32_t stamp;
};

// The graph of a valid order, timed. The k-th op of a stage and kind becomes that of microbatch k, which
// loses nothing. A graph of 0 nodes where numbers or ops are too many for it. Freed by zb_graph_free in all
// cases.
enum zb_status zb_graph_create(const struct zb_profile *profile, const struct zb_schedule *schedule,
                               bool from_first, struct zb_graph *graph, struct zb_error *error);
void zb_graph_free(struct zb_graph *graph);

// Makes `graph` the same order as `other`, a graph of the same schedule; neither has exchanges pending.
void zb_graph_copy(struct zb_graph *graph, const struct zb_graph *other);

// Exchanges `left` with the op behind it. False, and nothing done, where a rule forbids it, too many
// exchanges are pending, or `left` is the first op of its device, which stays, because spans count from its
// start.
bool zb_graph_swap(struct zb_graph *graph, int32_t left);

// Times what the pending exchanges change. False, and the exchanges must be undone, where a device would end
// later than `most` after its origin, a cycle included; and, a guess by the tails as last computed, where
// some path promises to be longer than `ceiling`.
bool zb_graph_time(struct zb_graph *graph, int64_t most, int64_t ceiling);

void zb_graph_commit(struct zb_graph *graph);
void zb_graph_undo(struct zb_graph *graph);

// Computes all tails of a timed graph.
void zb_graph_tails(struct zb_graph *graph);

// The order as a schedule, the caller's.
enum zb_status zb_graph_write(const struct zb_graph *graph, struct zb_schedule **schedule,
                              struct zb_error *error);

static inline int64_t zb_graph_end(const struct zb_graph *graph, int32_t node) {
  return graph->node[node].start + graph->node[node].time;
}

static inline int64_t zb_graph_origin(const struct zb_graph *graph, int device) {
  return graph->from_first ? graph->node[graph->first[device]].start : 0;
}

// From the device's origin to the end of its last op.
static inline int64_t zb_graph_length(const struct zb_graph *graph, int device) {
  return zb_graph_end(graph, graph->last[device]) - zb_graph_origin(graph, device);
}

#endif
