// standin_stream.c - streams and events.
//
// An event is a name for a mark. Recording it makes a new mark and queues what reaches it; waiting for it is
// waiting for the mark that it has now, whatever is recorded later; one that was never recorded is no wait.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/standin/standin_parts.h"

struct CUstream_st *zb_standin_streams;
struct CUevent_st *zb_standin_events;
static int stream_number, event_number;

static bool is_default(cudaStream_t stream) {
  return !stream || stream == cudaStreamLegacy || stream == cudaStreamPerThread;
}

cudaError_t zb_standin_usable(const char *call, cudaStream_t stream) {
  if (is_default(stream)) {
    zb_standin_report("%s: the default stream", call);
    return cudaErrorInvalidResourceHandle;
  }
  if (!stream->alive) {
    zb_standin_report("%s: a stream that was destroyed", call);
    return cudaErrorInvalidResourceHandle;
  }
  return zb_standin_device[stream->device].broken;
}

static cudaError_t event_usable(const char *call, cudaEvent_t event) {
  if (event && event->alive) return cudaSuccess;
  zb_standin_report("%s: %s", call, event ? "an event that was destroyed" : "no event");
  return cudaErrorInvalidResourceHandle;
}

// Streams

static cudaError_t create_stream(cudaStream_t *stream, unsigned flags) {
  cudaError_t status = zb_standin_enter(ENTER_FAILS);
  if (!status && flags & ~(unsigned)cudaStreamNonBlocking) status = cudaErrorInvalidValue;
  if (status) return zb_standin_leave(status);
  struct CUstream_st *made = zb_standin_new(sizeof *made);
  *made = (struct CUstream_st){.next = zb_standin_streams,
                               .number = stream_number++,
                               .device = zb_standin_current(),
                               .alive = true,
                               .blocking = !(flags & cudaStreamNonBlocking),
                               .priority = zb_standin_random()};
  zb_standin_streams = *stream = made;
  return zb_standin_leave(cudaSuccess);
}

cudaError_t cudaStreamCreate(cudaStream_t *stream) { return create_stream(stream, 0); }
cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags) {
  return create_stream(stream, flags);
}
cudaError_t cudaStreamCreateWithPriority(cudaStream_t *stream, unsigned flags, int priority) {
  (void)priority;
  return create_stream(stream, flags);
}
cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest) {
  cudaError_t status = zb_standin_enter(ENTER_FAILS);
  if (!status) *least = 0, *greatest = -5;
  return zb_standin_leave(status);
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  zb_standin_enter(ENTER_SAFE);
  cudaError_t status = zb_standin_usable("cudaStreamDestroy", stream);
  if (is_default(stream) || !stream->alive) return zb_standin_leave(status);
  // Nothing more ends on a broken device.
  if (stream->queued && !zb_standin_device[stream->device].broken)
    zb_standin_report("cudaStreamDestroy: stream %d of device %d still has %lld operations queued, %s first",
                      stream->number, stream->device, (long long)stream->queued, stream->first->name);
  if (stream->capture) zb_standin_report("cudaStreamDestroy: stream %d is being captured", stream->number);
  stream->alive = false;
  return zb_standin_leave(status);
}

struct until {
  struct CUstream_st *stream;
  int64_t finished;
};

static bool stream_is_over(void *argument) {
  struct until *until = argument;
  return until->stream->finished >= until->finished || zb_standin_device[until->stream->device].broken;
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  cudaError_t status = zb_standin_enter(ENTER_FAILS | ENTER_CAPTURED);
  if (!status) status = zb_standin_usable("cudaStreamSynchronize", stream);
  if (!status && stream->capture) status = cudaErrorStreamCaptureUnsupported;
  if (status) return zb_standin_leave(status);
  struct until until = {stream, stream->finished + stream->queued};
  if (!zb_standin_wait("cudaStreamSynchronize", stream_is_over, &until, stream))
    status = cudaErrorLaunchTimeout;
  if (!status) status = zb_standin_device[stream->device].broken;
  return zb_standin_leave(status);
}

cudaError_t cudaStreamQuery(cudaStream_t stream) {
  cudaError_t status = zb_standin_enter(ENTER_FAILS | ENTER_CAPTURED);
  if (!status) status = zb_standin_usable("cudaStreamQuery", stream);
  if (!status && stream->capture) status = cudaErrorStreamCaptureUnsupported;
  if (status) return zb_standin_leave(status);
  zb_standin_poll(stream);
  status = zb_standin_device[stream->device].broken;
  if (!status && stream->queued) status = cudaErrorNotReady;
  return zb_standin_leave(status);
}

static bool device_is_over(void *argument) {
  int device = *(int *)argument;
  if (zb_standin_device[device].broken) return true;
  for (struct CUstream_st *stream = zb_standin_streams; stream; stream = stream->next)
    if (stream->device == device && stream->queued) return false;
  return true;
}

cudaError_t cudaDeviceSynchronize(void) {
  cudaError_t status = zb_standin_enter(ENTER_FAILS | ENTER_CAPTURED);
  int device = zb_standin_current();
  if (!status && !zb_standin_wait("cudaDeviceSynchronize", device_is_over, &device, NULL))
    status = cudaErrorLaunchTimeout;
  if (!status) status = zb_standin_device[device].broken;
  return zb_standin_leave(status);
}

void zb_standin_enqueue(cudaStream_t stream, const char *name, void (*run)(void *), void *argument,
                        void (*discard)(void *)) {
  cudaError_t status = zb_standin_enter(ENTER_FAILS);
  if (!status) status = zb_standin_usable(name, stream);
  if (!status && stream->device != zb_standin_current()) {
    zb_standin_report("%s: launched to a stream of device %d from a thread on device %d", name,
                      stream->device, zb_standin_current());
    status = cudaErrorInvalidResourceHandle;
  }
  if (!status) {
    struct op *op = zb_standin_op(&zb_standin_kernel, name);
    op->call = run;
    op->argument = argument;
    op->discard = discard;
    zb_standin_queue(stream, op);
  } else if (discard) {
    discard(argument);
  }
  zb_standin_leave(status);
}

// Events

static cudaError_t create_event(cudaEvent_t *event, unsigned flags) {
  cudaError_t status = zb_standin_enter(ENTER_FAILS);
  if (!status && flags & ~(unsigned)(cudaEventBlockingSync | cudaEventDisableTiming))
    status = cudaErrorInvalidValue;
  if (status) return zb_standin_leave(status);
  struct CUevent_st *made = zb_standin_new(sizeof *made);
  *made = (struct CUevent_st){.next = zb_standin_events,
                              .number = event_number++,
                              .device = zb_standin_current(),
                              .alive = true,
                              .timed = !(flags & cudaEventDisableTiming)};
  zb_standin_events = *event = made;
  return zb_standin_leave(cudaSuccess);
}

cudaError_t cudaEventCreate(cudaEvent_t *event) { return create_event(event, 0); }
cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags) {
  return create_event(event, flags);
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  zb_standin_enter(ENTER_SAFE);
  cudaError_t status = event_usable("cudaEventDestroy", event);
  if (!status) event->alive = false;
  return zb_standin_leave(status);
}

cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned flags) {
  cudaError_t status = zb_standin_enter(ENTER_FAILS);
  if (!status) status = event_usable("cudaEventRecord", event);
  if (!status) status = zb_standin_usable("cudaEventRecord", stream);
  if (!status && event->device != stream->device) {
    zb_standin_report("cudaEventRecord: an event of device %d in a stream of device %d", event->device,
                      stream->device);
    status = cudaErrorInvalidResourceHandle;
  }
  if (!status && flags & cudaEventRecordExternal && !stream->capture) status = cudaErrorInvalidValue;
  if (status) return zb_standin_leave(status);
  if (stream->capture)
    return zb_standin_leave(zb_standin_capture_record(stream, event, flags & cudaEventRecordExternal));
  struct op *op = zb_standin_op(&zb_standin_record, "cudaEventRecord");
  op->mark = zb_standin_mark(stream);
  zb_standin_mark_release(event->mark);
  event->mark = zb_standin_mark_hold(op->mark);
  zb_standin_queue(stream, op);
  return zb_standin_leave(cudaSuccess);
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  return cudaEventRecordWithFlags(event, stream, cudaEventRecordDefault);
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags) {
  cudaError_t status = zb_standin_enter(ENTER_FAILS);
  if (!status) status = event_usable("cudaStreamWaitEvent", event);
  if (!status) status = zb_standin_usable("cudaStreamWaitEvent", stream);
  if (status) return zb_standin_leave(status);
  if (stream->capture || (event->mark && event->mark->capture))
    return zb_standin_leave(zb_standin_capture_await(stream, event, flags & cudaEventWaitExternal));
  if (!event->mark || event->mark->reached) return zb_standin_leave(cudaSuccess);
  struct op *op = zb_standin_op(&zb_standin_await, "cudaStreamWaitEvent");
  op->mark = zb_standin_mark_hold(event->mark);
  zb_standin_queue(stream, op);
  return zb_standin_leave(cudaSuccess);
}

static cudaError_t look_at(const char *call, cudaEvent_t event) {
  cudaError_t status = event_usable(call, event);
  if (!status && event->mark && event->mark->capture) status = cudaErrorCapturedEvent;
  return status;
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
  cudaError_t status = zb_standin_enter(ENTER_FAILS | ENTER_CAPTURED);
  if (!status) status = look_at("cudaEventQuery", event);
  if (status) return zb_standin_leave(status);
  zb_standin_poll(event->mark ? event->mark->stream : NULL);
  status = zb_standin_device[event->device].broken;
  if (!status && event->mark && !event->mark->reached) status = cudaErrorNotReady;
  return zb_standin_leave(status);
}

static bool mark_is_over(void *argument) {
  struct mark *mark = argument;
  return mark->reached || zb_standin_device[mark->stream->device].broken;
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  cudaError_t status = zb_standin_enter(ENTER_FAILS | ENTER_CAPTURED);
  if (!status) status = look_at("cudaEventSynchronize", event);
  if (status || !event->mark) return zb_standin_leave(status);
  struct mark *mark = zb_standin_mark_hold(event->mark);
  if (!zb_standin_wait("cudaEventSynchronize", mark_is_over, mark, mark->stream))
    status = cudaErrorLaunchTimeout;
  if (!status) status = zb_standin_device[mark->stream->device].broken;
  zb_standin_mark_release(mark);
  return zb_standin_leave(status);
}

cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t start, cudaEvent_t end) {
  cudaError_t status = zb_standin_enter(ENTER_FAILS);
  if (!status) status = look_at("cudaEventElapsedTime", start);
  if (!status) status = look_at("cudaEventElapsedTime", end);
  if (!status && (!start->timed || !end->timed || !start->mark || !end->mark || start->device != end->device))
    status = cudaErrorInvalidResourceHandle;
  if (!status && !(start->mark->reached && end->mark->reached)) status = cudaErrorNotReady;
  if (!status) *ms = (float)((double)(end->mark->reached_ns - start->mark->reached_ns) * 1e-6);
  return zb_standin_leave(status);
}

// What is left

void zb_standin_describe(char *text, size_t size) {
  size_t length = 0;
  if (size) text[0] = 0;
  for (struct CUstream_st *stream = zb_standin_streams; stream; stream = stream->next) {
    struct op *op = stream->first;
    if (!op || length >= size) continue;
    char why[160] = "";
    if (op->ready_at >= 0)
      snprintf(why, sizeof why, "could run");
    else if (op->kind->describe)
      op->kind->describe(op, why, sizeof why);
    else if (op->launch)
      snprintf(why, sizeof why, "is under way");
    else if (op->kind->behind && op->kind->behind(op))
      snprintf(why, sizeof why, "waits for stream %d", op->kind->behind(op)->number);
    else
      snprintf(why, sizeof why, "does not end");
    int more = snprintf(text + length, size - length, "stream %d of device %d: %s %s, %lld queued\n",
                        stream->number, stream->device, op->name, why, (long long)stream->queued);
    length += (size_t)more;
  }
}

void zb_standin_streams_reset(bool report) {
  for (struct CUstream_st *stream = zb_standin_streams; stream; stream = stream->next) {
    if (report && stream->queued && !zb_standin_device[stream->device].broken)
      zb_standin_report("still queued on stream %d of device %d: %lld operations, %s first", stream->number,
                        stream->device, (long long)stream->queued, stream->first->name);
    if (report && stream->alive)
      zb_standin_report("not destroyed: stream %d of device %d", stream->number, stream->device);
    for (struct op *op = stream->first, *next; op; op = next) {
      next = op->next;
      zb_standin_drop(op);
    }
    stream->first = NULL;
  }
  for (struct CUevent_st *event = zb_standin_events, *next; event; event = next) {
    next = event->next;
    if (report && event->alive)
      zb_standin_report("not destroyed: event %d of device %d", event->number, event->device);
    zb_standin_mark_release(event->mark);
    free(event);
  }
  zb_standin_events = NULL;
  stream_number = event_number = 0;
}
