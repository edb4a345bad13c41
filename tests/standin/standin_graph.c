// standin_graph.c - captured streams and graphs.
//
// A captured operation becomes a node, behind the nodes that its stream has come to. A wait for an event that
// was recorded in the capture brings those nodes into the stream that waits, and the stream into the capture.
// A launch copies the nodes and arms each one when those before it are over, so a graph runs in any order
// that its edges allow, and each time in another.
#include <stdlib.h>
#include <string.h>

#include "tests/standin/standin_parts.h"

struct graph_node {
  struct op *op; // never queued itself
  int *before, before_count, *after, after_count;
};

struct CUgraph_st {
  struct CUgraph_st *next; // of all that ever were
  bool alive;
  struct graph_node *node;
  int count, room;
};

struct CUgraphExec_st {
  struct CUgraphExec_st *next;
  bool alive;
  struct CUgraph_st *graph;
  struct mark *last; // behind its latest launch
};

struct capture {
  struct capture *next;
  struct CUgraph_st *graph;
  struct CUstream_st *origin;
  enum cudaStreamCaptureMode mode;
  pthread_t thread;
  bool under_way, broken;
};

struct graph_run {
  struct op *launch;
  struct CUgraph_st *graph;
  struct op **node; // NULL when over
  int *waits;       // for how many
  int left;         // not yet over, and one more while the first are armed
};

static struct capture *captures;
static struct CUgraph_st *graphs;
static struct CUgraphExec_st *executables;
static int captures_under_way;

static bool holds(const int *set, int count, int member) {
  for (int k = 0; k < count; k++)
    if (set[k] == member) return true;
  return false;
}

static void join(int **set, int *count, const int *more, int more_count) {
  *set = realloc(*set, (size_t)(*count + more_count + 1) * sizeof **set);
  if (!*set) abort();
  for (int k = 0; k < more_count; k++)
    if (!holds(*set, *count, more[k])) (*set)[(*count)++] = more[k];
}

// Capture

cudaError_t zb_standin_capture_unsafe(void) {
  if (!captures_under_way) return cudaSuccess;
  for (struct capture *c = captures; c; c = c->next) {
    bool watched = c->mode == cudaStreamCaptureModeGlobal ||
                   (c->mode == cudaStreamCaptureModeThreadLocal && pthread_equal(c->thread, pthread_self()));
    if (!c->under_way || !watched) continue;
    c->broken = true;
    return cudaErrorStreamCaptureUnsupported;
  }
  return cudaSuccess;
}

struct op *zb_standin_capture_op(struct CUstream_st *stream, struct op *op) {
  struct CUgraph_st *graph = stream->capture->graph;
  if (graph->count == graph->room) {
    graph->room = graph->room ? 2 * graph->room : 64;
    graph->node = realloc(graph->node, (size_t)graph->room * sizeof *graph->node);
    if (!graph->node) abort();
  }
  int number = graph->count++;
  graph->node[number] =
      (struct graph_node){.op = op, .before = stream->nodes, .before_count = stream->node_count};
  for (int k = 0; k < stream->node_count; k++) {
    struct graph_node *before = &graph->node[stream->nodes[k]];
    join(&before->after, &before->after_count, &number, 1);
  }
  stream->nodes = NULL;
  stream->node_count = 0;
  join(&stream->nodes, &stream->node_count, &number, 1);
  return op;
}

cudaError_t zb_standin_capture_record(struct CUstream_st *stream, struct CUevent_st *event, bool external) {
  if (external) {
    struct op *op = zb_standin_op(&zb_standin_record, "cudaEventRecord");
    op->event = event;
    zb_standin_queue(stream, op);
    return cudaSuccess;
  }
  struct mark *mark = zb_standin_mark(stream);
  mark->capture = stream->capture;
  join(&mark->nodes, &mark->node_count, stream->nodes, stream->node_count);
  zb_standin_mark_release(event->mark);
  event->mark = mark;
  return cudaSuccess;
}

cudaError_t zb_standin_capture_await(struct CUstream_st *stream, struct CUevent_st *event, bool external) {
  struct mark *mark = event->mark;
  struct capture *theirs = mark ? mark->capture : NULL;
  if (external && stream->capture) {
    struct op *op = zb_standin_op(&zb_standin_await, "cudaStreamWaitEvent");
    op->event = event;
    zb_standin_queue(stream, op);
    return cudaSuccess;
  }
  if (!theirs) {
    if (!mark) return cudaSuccess;
    stream->capture->broken = true;
    zb_standin_report("cudaStreamWaitEvent: event %d was recorded outside of the capture", event->number);
    return cudaErrorStreamCaptureIsolation;
  }
  if (!theirs->under_way) {
    zb_standin_report("cudaStreamWaitEvent: event %d was recorded in a capture that has ended",
                      event->number);
    return cudaErrorCapturedEvent;
  }
  if (stream->capture && stream->capture != theirs) {
    theirs->broken = stream->capture->broken = true;
    return cudaErrorStreamCaptureMerge;
  }
  stream->capture = theirs;
  join(&stream->nodes, &stream->node_count, mark->nodes, mark->node_count);
  return cudaSuccess;
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, enum cudaStreamCaptureMode mode) {
  cudaError_t status = zb_standin_enter(ENTER_FAILS);
  if (!status) status = zb_standin_usable("cudaStreamBeginCapture", stream);
  if (!status && stream->capture) status = cudaErrorIllegalState;
  if (status) return zb_standin_leave(status);
  struct CUgraph_st *graph = zb_standin_new(sizeof *graph);
  graph->next = graphs;
  graphs = graph;
  struct capture *capture = zb_standin_new(sizeof *capture);
  *capture = (struct capture){captures, graph, stream, mode, pthread_self(), true, false};
  captures = capture;
  captures_under_way++;
  stream->capture = capture;
  return zb_standin_leave(cudaSuccess);
}

// All that was captured must have come back to the stream where it began.
static bool joined(const struct capture *capture) {
  const struct CUgraph_st *graph = capture->graph;
  for (int n = 0; n < graph->count; n++)
    if (!graph->node[n].after_count && !holds(capture->origin->nodes, capture->origin->node_count, n))
      return false;
  return true;
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *graph) {
  cudaError_t status = zb_standin_enter(ENTER_FAILS);
  if (!status) status = zb_standin_usable("cudaStreamEndCapture", stream);
  if (!status && !stream->capture) status = cudaErrorIllegalState;
  if (status) return zb_standin_leave(status);
  struct capture *capture = stream->capture;
  *graph = NULL;
  if (capture->mode != cudaStreamCaptureModeRelaxed && !pthread_equal(capture->thread, pthread_self()))
    return zb_standin_leave(cudaErrorStreamCaptureWrongThread);
  if (capture->origin != stream) return zb_standin_leave(cudaErrorStreamCaptureUnmatched);
  if (capture->broken)
    status = cudaErrorStreamCaptureInvalidated;
  else if (!joined(capture))
    status = cudaErrorStreamCaptureUnjoined;
  for (struct CUstream_st *s = zb_standin_streams; s; s = s->next)
    if (s->capture == capture) {
      s->capture = NULL;
      free(s->nodes);
      s->nodes = NULL;
      s->node_count = 0;
    }
  capture->under_way = false;
  captures_under_way--;
  if (!status) {
    capture->graph->alive = true;
    *graph = capture->graph;
  }
  return zb_standin_leave(status);
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, enum cudaStreamCaptureStatus *is) {
  cudaError_t status = zb_standin_enter(ENTER_FAILS);
  if (!status) status = zb_standin_usable("cudaStreamIsCapturing", stream);
  if (!status)
    *is = !stream->capture          ? cudaStreamCaptureStatusNone
          : stream->capture->broken ? cudaStreamCaptureStatusInvalidated
                                    : cudaStreamCaptureStatusActive;
  return zb_standin_leave(status);
}

cudaError_t cudaThreadExchangeStreamCaptureMode(enum cudaStreamCaptureMode *mode) {
  zb_standin_enter(ENTER_SAFE);
  *mode = cudaStreamCaptureModeGlobal;
  return zb_standin_leave(cudaErrorNotSupported);
}

// Launch

static bool launch_arm(struct op *op) {
  struct graph_run *run = op->launch;
  for (int n = 0; n < run->graph->count; n++)
    if (!run->graph->node[n].before_count) zb_standin_arm(run->node[n]);
  return !--run->left;
}

static void launch_drop(struct op *op) {
  struct graph_run *run = op->launch;
  for (int n = 0; n < run->graph->count; n++)
    if (run->node[n]) zb_standin_drop(run->node[n]);
  free(run->node);
  free(run->waits);
  free(run);
}

static const struct op_kind launch_kind = {.arm = launch_arm, .drop = launch_drop, .passes = true};

void zb_standin_graph_node_over(struct op *op) {
  struct graph_run *run = op->graph_run;
  const struct graph_node *node = &run->graph->node[op->node];
  run->node[op->node] = NULL;
  zb_standin_drop(op);
  // It counts until all behind it are armed: one of those may be over at once, and the run with it.
  for (int k = 0; k < node->after_count; k++)
    if (!--run->waits[node->after[k]]) zb_standin_arm(run->node[node->after[k]]);
  if (!--run->left) zb_standin_ready(run->launch);
}

struct op *zb_standin_graph_needed(struct op *op, struct op **ready, int count) {
  for (int k = 0; k < count; k++)
    if (ready[k]->graph_run == op->launch) return ready[k];
  return NULL;
}

static struct op *copy_node(const struct op *op, struct graph_run *run) {
  struct op *copy = zb_standin_new(sizeof *copy);
  *copy = *op;
  copy->graph_run = run;
  if (op->kind->copy)
    op->kind->copy(op, copy);
  else
    copy->borrowed = true;
  return copy;
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t *executable, cudaGraph_t graph, unsigned long long flags) {
  cudaError_t status = zb_standin_enter(ENTER_FAILS);
  if (!status && (!graph || !graph->alive || flags)) status = cudaErrorInvalidValue;
  if (status) return zb_standin_leave(status);
  struct CUgraphExec_st *made = zb_standin_new(sizeof *made);
  *made = (struct CUgraphExec_st){.next = executables, .alive = true, .graph = graph};
  executables = *executable = made;
  return zb_standin_leave(cudaSuccess);
}

static void queue_await(struct CUstream_st *stream, struct mark *mark) {
  struct op *op = zb_standin_op(&zb_standin_await, "cudaGraphLaunch");
  op->mark = zb_standin_mark_hold(mark);
  zb_standin_queue(stream, op);
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t stream) {
  cudaError_t status = zb_standin_enter(ENTER_FAILS);
  if (!status) status = zb_standin_usable("cudaGraphLaunch", stream);
  if (!status && (!executable || !executable->alive)) {
    zb_standin_report("cudaGraphLaunch: a graph that was destroyed");
    status = cudaErrorInvalidValue;
  }
  if (!status && stream->capture) status = cudaErrorStreamCaptureUnsupported;
  if (status) return zb_standin_leave(status);
  // Two launches of one do not overlap.
  if (executable->last && !executable->last->reached) queue_await(stream, executable->last);
  struct CUgraph_st *graph = executable->graph;
  struct graph_run *run = zb_standin_new(sizeof *run);
  *run = (struct graph_run){.launch = zb_standin_op(&launch_kind, "cudaGraphLaunch"),
                            .graph = graph,
                            .node = zb_standin_new((size_t)graph->count * sizeof(struct op *)),
                            .waits = zb_standin_new((size_t)graph->count * sizeof(int)),
                            .left = graph->count + 1};
  run->launch->launch = run;
  for (int n = 0; n < graph->count; n++) {
    run->node[n] = copy_node(graph->node[n].op, run);
    run->node[n]->node = n;
    run->waits[n] = graph->node[n].before_count;
  }
  zb_standin_queue(stream, run->launch);
  struct op *behind = zb_standin_op(&zb_standin_record, "cudaGraphLaunch");
  behind->mark = zb_standin_mark(stream);
  zb_standin_mark_release(executable->last);
  executable->last = zb_standin_mark_hold(behind->mark);
  zb_standin_queue(stream, behind);
  return zb_standin_leave(cudaSuccess);
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  zb_standin_enter(ENTER_SAFE);
  if (!graph || !graph->alive) {
    zb_standin_report("cudaGraphDestroy: a graph that was destroyed");
    return zb_standin_leave(cudaErrorInvalidValue);
  }
  graph->alive = false;
  return zb_standin_leave(cudaSuccess);
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable) {
  zb_standin_enter(ENTER_SAFE);
  if (!executable || !executable->alive) {
    zb_standin_report("cudaGraphExecDestroy: a graph that was destroyed");
    return zb_standin_leave(cudaErrorInvalidValue);
  }
  if (executable->last && !executable->last->reached)
    zb_standin_report("cudaGraphExecDestroy: a launch of it is still queued");
  executable->alive = false;
  return zb_standin_leave(cudaSuccess);
}

cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t *nodes, size_t *count) {
  cudaError_t status = zb_standin_enter(ENTER_FAILS);
  if (!status && (!graph || !graph->alive || nodes)) status = cudaErrorInvalidValue;
  if (!status) *count = (size_t)graph->count;
  return zb_standin_leave(status);
}

// Whether one that can be launched has such an operation.
bool zb_standin_in_a_graph(bool (*is)(const struct op *op, const void *what), const void *what) {
  for (const struct CUgraphExec_st *e = executables; e; e = e->next)
    for (int k = 0; e->alive && k < e->graph->count; k++)
      if (is(e->graph->node[k].op, what)) return true;
  return false;
}

void zb_standin_graphs_reset(bool report) {
  for (struct CUstream_st *stream = zb_standin_streams, *next; stream; stream = next) {
    next = stream->next;
    free(stream->nodes);
    free(stream);
  }
  zb_standin_streams = NULL;
  for (struct capture *c = captures, *next; c; c = next) {
    next = c->next;
    if (report && c->under_way) zb_standin_report("a capture was not ended");
    free(c);
  }
  for (struct CUgraphExec_st *e = executables, *next; e; e = next) {
    next = e->next;
    if (report && e->alive) zb_standin_report("not destroyed: an instantiated graph");
    zb_standin_mark_release(e->last);
    free(e);
  }
  for (struct CUgraph_st *g = graphs, *next; g; g = next) {
    next = g->next;
    if (report && g->alive) zb_standin_report("not destroyed: a graph");
    for (int n = 0; n < g->count; n++) {
      zb_standin_drop(g->node[n].op);
      free(g->node[n].before);
      free(g->node[n].after);
    }
    free(g->node);
    free(g);
  }
  captures = NULL;
  executables = NULL;
  graphs = NULL;
  captures_under_way = 0;
}
