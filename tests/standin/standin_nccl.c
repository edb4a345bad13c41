// standin_nccl.c - NCCL's communicators: how ranks come together, and how that ends.
//
// Opening never blocks by itself: zb_standin_nccl_try_open takes one look, and a blocking call looks until it
// is done. A communicator that does not block says ncclInProgress meanwhile, and now and then queues what it
// was given only when it is asked for its state, as NCCL may.
#include "tests/standin/standin_nccl.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct ncclComm *zb_standin_communicators;
static struct clique *cliques;
static char last_words[512];
static int64_t ids_given;

// How long other ranks of this process may take before other processes are looked for.
static const int64_t grace_ns = 2000000;

static bool look(void) {
  static int64_t looked_ns;
  bool apart = false;
  for (struct ncclComm *c = zb_standin_communicators; c && !apart; c = c->next)
    apart = c->alive && (c->opening || c->linked);
  int64_t now_ns = apart ? zb_standin_now() : 0;
  // A look is a system call or two for each link: not at every call.
  if (!apart || now_ns < looked_ns + 20000) return apart;
  looked_ns = now_ns;
  for (struct ncclComm *c = zb_standin_communicators; c; c = c->next)
    if (c->alive && c->linked) zb_standin_link_progress(c);
  return apart;
}

static void reset(bool report) {
  for (struct ncclComm *c = zb_standin_communicators, *next; c; c = next) {
    next = c->next;
    if (c->alive) {
      if (report)
        zb_standin_report("not destroyed: rank %d of a communicator of %d, device %d", c->rank,
                          c->clique->ranks, c->device);
      zb_standin_link_close(c, false);
    }
    free(c->sent);
    free(c->received);
    free(c->link);
    free(c);
  }
  zb_standin_communicators = NULL;
  for (struct clique *c = cliques, *next; c; c = next) {
    next = c->next;
    free(c->member);
    free(c);
  }
  cliques = NULL;
  last_words[0] = 0;
}

static struct standin_part messages = {.reset = reset, .look = look};

ncclResult_t zb_standin_nccl_enter(int entry) {
  cudaError_t status = zb_standin_enter(entry);
  zb_standin_register(&messages);
  if (!status) return ncclSuccess;
  return zb_standin_nccl_fail(status == cudaErrorUnknown ? ncclInternalError : ncclUnhandledCudaError, "%s",
                              cudaGetErrorString(status));
}

ncclResult_t zb_standin_nccl_leave(ncclResult_t result) {
  zb_standin_leave(cudaSuccess);
  return result;
}

ncclResult_t zb_standin_nccl_fail(ncclResult_t result, const char *format, ...) {
  va_list list;
  va_start(list, format);
  vsnprintf(last_words, sizeof last_words, format, list);
  va_end(list);
  return result;
}

ncclResult_t zb_standin_nccl_usable(const char *call, ncclComm_t communicator) {
  if (!communicator || !communicator->alive) {
    zb_standin_report("%s: %s", call, communicator ? "a communicator that was destroyed" : "no communicator");
    return zb_standin_nccl_fail(ncclInvalidArgument, "%s: not a communicator", call);
  }
  if (communicator->opening || communicator->deferred) {
    zb_standin_report("%s: the call before on this communicator is still in progress", call);
    return zb_standin_nccl_fail(ncclInvalidArgument, "%s: the call before is still in progress", call);
  }
  if (communicator->closing) {
    zb_standin_report("%s: a communicator that was finalized", call);
    return zb_standin_nccl_fail(ncclInvalidArgument, "%s: finalized", call);
  }
  return communicator->error;
}

// Coming together

static struct clique *clique_of(const ncclUniqueId *id, int ranks) {
  for (struct clique *c = cliques; c; c = c->next)
    if (!memcmp(&c->id, id, sizeof *id)) return c;
  struct clique *made = zb_standin_new(sizeof *made);
  *made = (struct clique){cliques, *id, ranks, zb_standin_new((size_t)ranks * sizeof(struct ncclComm *))};
  cliques = made;
  return made;
}

static void where(const struct ncclComm *c, int rank, int64_t *host, int *device) {
  const struct ncclComm *here = c->clique->member[rank];
  if (!here) {
    zb_standin_link_where(c, rank, host, device);
    return;
  }
  *host = here->host;
  *device = zb_standin_gpu(here->device);
}

static ncclResult_t look_for_duplicates(struct ncclComm *c) {
  for (int a = 0; a < c->clique->ranks; a++)
    for (int b = a + 1; b < c->clique->ranks; b++) {
      int64_t host_a, host_b;
      int device_a, device_b;
      where(c, a, &host_a, &device_a);
      where(c, b, &host_b, &device_b);
      if (host_a == host_b && device_a == device_b)
        return zb_standin_nccl_fail(ncclInvalidUsage,
                                    "Duplicate GPU detected : rank %d and rank %d both on CUDA device %d000",
                                    a, b, device_a + 1);
    }
  return ncclSuccess;
}

void zb_standin_nccl_try_open(struct ncclComm *c) {
  if (!c->opening) return;
  bool all = true;
  for (int r = 0; r < c->clique->ranks; r++) all = all && c->clique->member[r];
  if (!all && zb_standin_now() > c->opened_ns + grace_ns) all = zb_standin_link_open(c);
  if (!all) return;
  c->opening = false;
  c->error = look_for_duplicates(c);
  zb_standin_changed();
}

static bool is_open(void *argument) {
  zb_standin_nccl_try_open(argument);
  return !((struct ncclComm *)argument)->opening;
}

ncclResult_t zb_standin_nccl_opened(ncclComm_t *opened) {
  struct ncclComm *c = *opened;
  if (!zb_standin_wait("ncclCommInitRank", is_open, c, NULL))
    c->error =
        zb_standin_nccl_fail(ncclSystemError, "rank %d of %d: not all ranks came", c->rank, c->clique->ranks);
  if (!c->error) return ncclSuccess;
  c->alive = c->opening = false;
  zb_standin_link_close(c, false);
  *opened = NULL;
  return c->error;
}

static ncclResult_t open_rank(ncclComm_t *communicator, int ranks, const ncclUniqueId *id, int rank,
                              bool blocking) {
  *communicator = NULL;
  ncclResult_t result = zb_standin_nccl_enter(ENTER_FAILS | ENTER_CAPTURED);
  if (result) return zb_standin_nccl_leave(result);
  if (ranks < 1 || rank < 0 || rank >= ranks)
    return zb_standin_nccl_leave(zb_standin_nccl_fail(ncclInvalidArgument, "rank %d of %d", rank, ranks));
  struct clique *clique = clique_of(id, ranks);
  if (clique->ranks != ranks || clique->member[rank])
    return zb_standin_nccl_leave(zb_standin_nccl_fail(
        ncclInvalidUsage, "rank %d of %d: another came so, or of another number", rank, ranks));
  struct ncclComm *c = zb_standin_new(sizeof *c);
  *c = (struct ncclComm){.next = zb_standin_communicators,
                         .alive = true,
                         .opening = true,
                         .blocking = blocking,
                         .clique = clique,
                         .rank = rank,
                         .device = zb_standin_current(),
                         .host = zb_standin_setup.host,
                         .opened_ns = zb_standin_now(),
                         .sent = zb_standin_new((size_t)ranks * sizeof(int64_t)),
                         .received = zb_standin_new((size_t)ranks * sizeof(int64_t)),
                         .listener = -1,
                         .link = zb_standin_new((size_t)ranks * sizeof(struct link *))};
  zb_standin_communicators = clique->member[rank] = *communicator = c;
  zb_standin_changed();
  if (zb_standin_group_open()) {
    zb_standin_group_opens(communicator);
    return zb_standin_nccl_leave(ncclSuccess);
  }
  if (!blocking) return zb_standin_nccl_leave(ncclInProgress);
  return zb_standin_nccl_leave(zb_standin_nccl_opened(communicator));
}

ncclResult_t ncclGetUniqueId(ncclUniqueId *id) {
  ncclResult_t result = zb_standin_nccl_enter(ENTER_FAILS);
  if (!result) {
    memset(id, 0, sizeof *id);
    snprintf(id->internal, sizeof id->internal, "zb-%ld-%llx-%lld", (long)getpid(),
             (unsigned long long)zb_standin_now(), (long long)ids_given++);
  }
  return zb_standin_nccl_leave(result);
}

ncclResult_t ncclCommInitRank(ncclComm_t *communicator, int ranks, ncclUniqueId id, int rank) {
  return open_rank(communicator, ranks, &id, rank, true);
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t *communicator, int ranks, ncclUniqueId id, int rank,
                                    ncclConfig_t *config) {
  const ncclConfig_t usual = NCCL_CONFIG_INITIALIZER;
  if (config && config->magic != usual.magic) return ncclInvalidArgument;
  return open_rank(communicator, ranks, &id, rank, !config || config->blocking != 0);
}

// Its end

static bool nothing_queued(void *argument) { return !((struct ncclComm *)argument)->groups; }

ncclResult_t ncclCommFinalize(ncclComm_t c) {
  ncclResult_t result = zb_standin_nccl_enter(ENTER_FAILS);
  if (!result) result = zb_standin_nccl_usable("ncclCommFinalize", c);
  if (result) return zb_standin_nccl_leave(result);
  c->closing = true;
  if (!c->blocking) return zb_standin_nccl_leave(ncclInProgress);
  if (!zb_standin_wait("ncclCommFinalize", nothing_queued, c, c->stream)) result = ncclSystemError;
  return zb_standin_nccl_leave(result);
}

static bool is_message_of(const struct op *op, const void *communicator) {
  return op->group && op->group->communicator == communicator;
}

static ncclResult_t close_rank(ncclComm_t c, const char *call, bool abort) {
  zb_standin_nccl_enter(ENTER_SAFE);
  if (!c || !c->alive) {
    zb_standin_report("%s: %s", call, c ? "a communicator that was destroyed" : "no communicator");
    return zb_standin_nccl_leave(ncclInvalidArgument);
  }
  if (!abort && (c->groups || c->deferred))
    zb_standin_report("%s: rank %d of device %d still has messages queued", call, c->rank, c->device);
  if (!abort && c->opening)
    zb_standin_report("%s: rank %d of device %d is not open yet", call, c->rank, c->device);
  // NCCL waits for them, whatever becomes of the communicator.
  if (zb_standin_in_a_graph(is_message_of, c))
    zb_standin_report("%s: rank %d of device %d has messages in a graph that was not destroyed", call,
                      c->rank, c->device);
  c->alive = c->opening = false;
  zb_standin_messages_end(c);
  zb_standin_link_close(c, !abort);
  return zb_standin_nccl_leave(ncclSuccess);
}

ncclResult_t ncclCommDestroy(ncclComm_t c) { return close_rank(c, "ncclCommDestroy", false); }
ncclResult_t ncclCommAbort(ncclComm_t c) { return close_rank(c, "ncclCommAbort", true); }

// Questions

ncclResult_t ncclCommGetAsyncError(ncclComm_t c, ncclResult_t *error) {
  ncclResult_t result = zb_standin_nccl_enter(ENTER_FAILS);
  if (result) return zb_standin_nccl_leave(result);
  if (!c || !c->alive) {
    zb_standin_report("ncclCommGetAsyncError: a communicator that was destroyed");
    return zb_standin_nccl_leave(ncclInvalidArgument);
  }
  zb_standin_poll(c->stream);
  zb_standin_nccl_try_open(c);
  if (c->deferred && zb_standin_random() & 1) zb_standin_messages_issue(c);
  *error = c->error;
  if (!c->error && (c->opening || c->deferred || (c->closing && c->groups))) *error = ncclInProgress;
  return zb_standin_nccl_leave(ncclSuccess);
}

ncclResult_t ncclCommCount(const ncclComm_t c, int *count) {
  ncclResult_t result = zb_standin_nccl_enter(ENTER_FAILS);
  if (!result) result = zb_standin_nccl_usable("ncclCommCount", c);
  if (!result) *count = c->clique->ranks;
  return zb_standin_nccl_leave(result);
}

ncclResult_t ncclCommUserRank(const ncclComm_t c, int *rank) {
  ncclResult_t result = zb_standin_nccl_enter(ENTER_FAILS);
  if (!result) result = zb_standin_nccl_usable("ncclCommUserRank", c);
  if (!result) *rank = c->rank;
  return zb_standin_nccl_leave(result);
}

ncclResult_t ncclCommCuDevice(const ncclComm_t c, int *device) {
  ncclResult_t result = zb_standin_nccl_enter(ENTER_FAILS);
  if (!result) result = zb_standin_nccl_usable("ncclCommCuDevice", c);
  if (!result) *device = c->device;
  return zb_standin_nccl_leave(result);
}

ncclResult_t ncclGetVersion(int *version) {
  ncclResult_t result = zb_standin_nccl_enter(ENTER_FAILS);
  if (!result)
    *version = zb_standin_setup.nccl_version ? (int)zb_standin_setup.nccl_version : NCCL_VERSION_CODE;
  return zb_standin_nccl_leave(result);
}

const char *ncclGetErrorString(ncclResult_t result) {
  static const char *const words[] = {[ncclSuccess] = "no error",
                                      [ncclUnhandledCudaError] = "unhandled cuda error",
                                      [ncclSystemError] = "unhandled system error",
                                      [ncclInternalError] = "internal error",
                                      [ncclInvalidArgument] = "invalid argument",
                                      [ncclInvalidUsage] = "invalid usage",
                                      [ncclRemoteError] =
                                          "remote process exited or there was a network error",
                                      [ncclInProgress] = "NCCL operation in progress"};
  return (int)result >= 0 && result < ncclNumResults ? words[result] : "unknown result code";
}

const char *ncclGetLastError(ncclComm_t communicator) {
  (void)communicator;
  return last_words;
}
