// standin_nccl_message.c - NCCL's sends, receives and groups.
//
// The calls of a group on one communicator become one operation, which is over when all its messages are:
// it stands at the head of its stream until the other end of each one does the same. Nothing is kept in
// between, so a program that leans on NCCL's buffers stands still here.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/standin/standin_nccl.h"

enum { GROUP_CALLS = 1024 };

// What one thread has called since ncclGroupStart.
struct call {
  struct ncclComm *communicator;
  ncclComm_t *opened; // where the caller has it
  cudaStream_t stream;
  bool sends, opens;
  int peer;
  unsigned char *at;
  int64_t bytes;
};
static _Thread_local struct call calls[GROUP_CALLS];
static _Thread_local int call_count, depth;

// Nothing of it is seen by its peers any more.
static bool is_still(const struct ncclComm *c) {
  return c->still || zb_standin_device[c->device].gone || zb_standin_device[c->device].broken;
}

bool zb_standin_group_open(void) { return depth > 0; }

void zb_standin_group_opens(ncclComm_t *opened) {
  if (call_count < GROUP_CALLS)
    calls[call_count++] = (struct call){.communicator = *opened, .opened = opened, .opens = true};
}

static int64_t bytes_of(ncclDataType_t type) {
  switch (type) {
  case ncclInt8:
  case ncclUint8:
    return 1;
  case ncclFloat16:
  case ncclBfloat16:
    return 2;
  case ncclInt32:
  case ncclUint32:
  case ncclFloat32:
    return 4;
  case ncclInt64:
  case ncclUint64:
  case ncclFloat64:
    return 8;
  default:
    return 0;
  }
}

// Meeting

struct message *zb_standin_message_waiting(struct ncclComm *c, bool sends, int peer, int64_t ticket) {
  for (struct message *m = c->waiting; m; m = m->next)
    if (m->sends == sends && m->peer == peer && m->ticket == ticket) return m;
  return NULL;
}

static void stop_waiting(struct message *message) {
  struct message **place = &message->group->communicator->waiting;
  while (*place && *place != message) place = &(*place)->next;
  if (*place) *place = message->next;
}

void zb_standin_message_meet(struct message *message) {
  stop_waiting(message);
  message->met = true;
  struct message_group *group = message->group;
  if (!--group->missing && group->armed) zb_standin_ready(group->op);
}

// Over a link the data goes as soon as both are there: the other end, whose group this may belong to, waits.
void zb_standin_message_to_link(struct message *message) {
  if (zb_standin_range("ncclSend", message->at, message->bytes, PLACE_DEVICE))
    zb_standin_link_send(message->group->communicator, message);
  message->moved = true;
  zb_standin_message_meet(message);
}

static void look_for_mate(struct message *message) {
  struct ncclComm *mine = message->group->communicator, *theirs = mine->clique->member[message->peer];
  message->next = mine->waiting;
  mine->waiting = message;
  if (!theirs) {
    if (!message->sends)
      zb_standin_link_ready(mine, message);
    else if (zb_standin_link_says_ready(mine, message->peer, message->ticket))
      zb_standin_message_to_link(message);
    return;
  }
  if (is_still(theirs)) return;
  struct message *mate = zb_standin_message_waiting(theirs, !message->sends, mine->rank, message->ticket);
  if (!mate) return;
  message->mate = mate;
  mate->mate = message;
  zb_standin_message_meet(mate);
  zb_standin_message_meet(message);
}

static bool group_arm(struct op *op) {
  struct message_group *group = op->group;
  struct ncclComm *c = group->communicator;
  if (group->ended) return true;
  if (is_still(c)) return false;
  // Its own messages may meet each other: it is armed, and may become ready, only when all have looked.
  for (int k = 0; k < group->count; k++) look_for_mate(&group->message[k]);
  group->armed = true;
  return !group->missing;
}

static void move(struct message *message) {
  struct message *mate = message->mate, *from = message->sends ? message : mate,
                 *to = message->sends ? mate : message;
  if (!mate) {
    if (message->content && zb_standin_range("ncclRecv", message->at, message->bytes, PLACE_DEVICE))
      memcpy(message->at, message->content, (size_t)message->bytes);
    return;
  }
  message->moved = mate->moved = true;
  if (from->bytes != to->bytes) {
    zb_standin_report("ncclSend of rank %d sends %lld bytes, ncclRecv of rank %d takes %lld", to->peer,
                      (long long)from->bytes, from->peer, (long long)to->bytes);
    return;
  }
  if (zb_standin_range("ncclSend", from->at, from->bytes, PLACE_DEVICE) &&
      zb_standin_range("ncclRecv", to->at, to->bytes, PLACE_DEVICE))
    memmove(to->at, from->at, (size_t)from->bytes);
}

static void let_go(struct message *message) {
  if (message->mate) message->mate->mate = NULL;
  message->mate = NULL;
}

static void group_run(struct op *op) {
  struct message_group *group = op->group;
  for (int k = 0; k < group->count && !group->ended; k++) {
    if (!group->message[k].moved) move(&group->message[k]);
    let_go(&group->message[k]);
  }
}

static void enlist(struct message_group *group) {
  struct ncclComm *c = group->communicator;
  group->next = c->groups;
  if (c->groups) c->groups->before = group;
  c->groups = group;
}

static void delist(struct message_group *group) {
  struct ncclComm *c = group->communicator;
  if (group->before)
    group->before->next = group->next;
  else if (c->groups == group)
    c->groups = group->next;
  if (group->next) group->next->before = group->before;
}

static void group_drop(struct op *op) {
  struct message_group *group = op->group;
  delist(group);
  for (int k = 0; k < group->count; k++) {
    if (group->armed && !group->message[k].met) stop_waiting(&group->message[k]);
    let_go(&group->message[k]);
    free(group->message[k].content);
  }
  free(group);
}

// Tickets are drawn when it is queued, which for a graph is its launch.
static void number(struct message_group *group) {
  struct ncclComm *c = group->communicator;
  for (int k = 0; k < group->count; k++) {
    struct message *message = &group->message[k];
    message->ticket = message->sends ? c->sent[message->peer]++ : c->received[message->peer]++;
    zb_standin_count.messages++;
    if (zb_standin_fault(zb_standin_setup.fail_communicator, zb_standin_count.messages)) {
      c->error = zb_standin_nccl_fail(ncclSystemError, "rank %d: connection closed by rank %d", c->rank,
                                      message->peer);
      c->still = true;
    }
    if (zb_standin_fault(zb_standin_setup.vanish, zb_standin_count.messages))
      zb_standin_device[c->device].gone = true;
  }
  enlist(group);
}

static void group_copy(const struct op *from, struct op *to) {
  size_t bytes = sizeof(struct message_group) + (size_t)from->group->count * sizeof(struct message);
  struct message_group *group = memcpy(zb_standin_new(bytes), from->group, bytes);
  group->op = to;
  group->next = group->before = NULL;
  for (int k = 0; k < group->count; k++) group->message[k].group = group;
  to->group = group;
  group->ended = !group->communicator->alive;
  if (group->ended)
    zb_standin_report("cudaGraphLaunch: a message of a communicator that was destroyed");
  else
    number(group);
}

static struct message *first_missing(struct op *op) {
  for (int k = 0; k < op->group->count; k++)
    if (!op->group->message[k].met) return &op->group->message[k];
  return NULL;
}

static struct CUstream_st *group_behind(struct op *op) {
  struct message *message = first_missing(op);
  struct ncclComm *peer = message ? op->group->communicator->clique->member[message->peer] : NULL;
  return peer && peer->groups ? peer->stream : NULL;
}

static void group_describe(struct op *op, char *text, size_t size) {
  struct message *message = first_missing(op);
  const struct ncclComm *c = op->group->communicator;
  if (message)
    snprintf(text, size, "number %lld of rank %d %s rank %d, %lld bytes", (long long)message->ticket, c->rank,
             message->sends ? "to" : "from", message->peer, (long long)message->bytes);
}

static const struct op_kind group_kind = {.arm = group_arm,
                                          .run = group_run,
                                          .drop = group_drop,
                                          .copy = group_copy,
                                          .behind = group_behind,
                                          .describe = group_describe};

void zb_standin_messages_end(struct ncclComm *c) {
  for (struct op *op = c->deferred, *next; op; op = next) {
    next = op->next;
    zb_standin_drop(op);
  }
  c->deferred = NULL;
  for (struct message_group *group = c->groups; group; group = group->next) {
    group->ended = true;
    for (int k = 0; k < group->count; k++) {
      struct message *message = &group->message[k];
      // Of two that have met, the other has its part: the data may have been on its way.
      if (message->mate && !message->moved) move(message);
      let_go(message);
      if (group->armed && !message->met) stop_waiting(message);
    }
    // Only what stands at the head of its stream, or is its turn in a graph, can be made ready here.
    bool heads = group->op->graph_run ? group->armed : group->op->stream->first == group->op;
    if (heads && group->op->ready_at < 0) zb_standin_ready(group->op);
  }
}

// Calls

void zb_standin_messages_issue(struct ncclComm *c) {
  for (struct op *op = c->deferred, *next; op; op = next) {
    next = op->next;
    op->next = NULL;
    if (!c->deferred_stream->capture) number(op->group);
    zb_standin_queue(c->deferred_stream, op);
  }
  c->deferred = NULL;
}

static ncclResult_t check(const struct call *call) {
  struct ncclComm *c = call->communicator;
  const char *name = call->sends ? "ncclSend" : "ncclRecv";
  ncclResult_t result = zb_standin_nccl_usable(name, c);
  if (result) return result;
  if (call->peer < 0 || call->peer >= c->clique->ranks)
    return zb_standin_nccl_fail(ncclInvalidArgument, "%s: no rank %d", name, call->peer);
  if (zb_standin_usable(name, call->stream)) return ncclUnhandledCudaError;
  if (call->stream->device != c->device) {
    zb_standin_report("%s: a communicator of device %d in a stream of device %d", name, c->device,
                      call->stream->device);
    return ncclInvalidUsage;
  }
  if (c->groups && c->stream != call->stream) {
    zb_standin_report("%s: another stream while messages are queued in one", name);
    return ncclInvalidUsage;
  }
  if (!zb_standin_range(name, call->at, call->bytes, PLACE_DEVICE)) return ncclInvalidArgument;
  return ncclSuccess;
}

// All the calls on the communicator of call `first`.
static ncclResult_t issue(int first) {
  struct ncclComm *c = calls[first].communicator;
  cudaStream_t stream = calls[first].stream;
  struct message_group *group =
      zb_standin_new(sizeof *group + (size_t)(call_count - first) * sizeof(struct message));
  group->communicator = c;
  for (int k = first; k < call_count; k++) {
    struct call *call = &calls[k];
    if (call->communicator != c) continue;
    if (call->stream != stream) {
      zb_standin_report("ncclGroupEnd: two streams for one communicator");
      free(group);
      return ncclInvalidUsage;
    }
    group->message[group->count++] = (struct message){
        .group = group, .sends = call->sends, .peer = call->peer, .at = call->at, .bytes = call->bytes};
    call->communicator = NULL;
  }
  group->missing = group->count;
  struct op *op = zb_standin_op(&group_kind, group->message[0].sends ? "ncclSend" : "ncclRecv");
  group->op = op;
  op->group = group;
  op->stream = stream;
  c->stream = c->deferred_stream = stream;
  c->deferred = op;
  if (!c->blocking && !stream->capture && zb_standin_random() & 1) return ncclInProgress;
  zb_standin_messages_issue(c);
  return ncclSuccess;
}

static ncclResult_t end_group(void) {
  ncclResult_t result = ncclSuccess;
  for (int k = 0; k < call_count; k++) {
    struct ncclComm *c = calls[k].communicator;
    ncclResult_t one = ncclSuccess;
    if (!c) continue;
    if (!calls[k].opens)
      one = issue(k);
    else if (!c->blocking)
      one = ncclInProgress;
    else
      one = zb_standin_nccl_opened(calls[k].opened);
    if (!result || (result == ncclInProgress && one)) result = one;
  }
  call_count = 0;
  return result;
}

static ncclResult_t message(void *at, int64_t count, ncclDataType_t type, int peer, ncclComm_t c,
                            cudaStream_t stream, bool sends) {
  ncclResult_t result = zb_standin_nccl_enter(ENTER_FAILS);
  struct call call = {.communicator = c,
                      .stream = stream,
                      .sends = sends,
                      .peer = peer,
                      .at = at,
                      .bytes = count * bytes_of(type)};
  if (!result && !bytes_of(type)) result = ncclInvalidArgument;
  if (!result) result = check(&call);
  if (!result && call_count == GROUP_CALLS)
    result = zb_standin_nccl_fail(ncclInternalError, "too large a group");
  if (!result) calls[call_count++] = call;
  if (!result && !depth) result = end_group();
  return zb_standin_nccl_leave(result);
}

ncclResult_t ncclSend(const void *at, size_t count, ncclDataType_t type, int peer, ncclComm_t c,
                      cudaStream_t stream) {
  union {
    const void *given;
    void *kept;
  } source = {.given = at};
  return message(source.kept, (int64_t)count, type, peer, c, stream, true);
}

ncclResult_t ncclRecv(void *at, size_t count, ncclDataType_t type, int peer, ncclComm_t c,
                      cudaStream_t stream) {
  return message(at, (int64_t)count, type, peer, c, stream, false);
}

ncclResult_t ncclGroupStart(void) {
  ncclResult_t result = zb_standin_nccl_enter(ENTER_FAILS);
  if (!result) depth++;
  return zb_standin_nccl_leave(result);
}

ncclResult_t ncclGroupEnd(void) {
  ncclResult_t result = zb_standin_nccl_enter(ENTER_FAILS);
  if (!depth) {
    zb_standin_report("ncclGroupEnd without ncclGroupStart");
    return zb_standin_nccl_leave(ncclInvalidUsage);
  }
  // A group that fails has ended nevertheless, and nothing of it is queued.
  if (!--depth && result) call_count = 0;
  if (!depth && !result) result = end_group();
  return zb_standin_nccl_leave(result);
}
