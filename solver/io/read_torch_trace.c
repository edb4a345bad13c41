// read_torch_trace.c - spans `PP:<stage><op><microbatch>` of a torch profiler trace, or of our own.
//
// A trace of a GPU run has every span twice or more: on the host, where it only says when kernels were
// launched (user_annotation), and on every stream with kernels of it (gpu_user_annotation). Where there are
// any of the second kind, only they count, and of a stage's computing only those of the stream that computes
// longest. A receive's span holds the wait for its sender, so that comm is the shortest of a boundary.
#include <stdlib.h>
#include <string.h>

#include "solver/io/json_scan.h"
#include "solver/io/measured_formats.h"
#include "solver/model/number.h"

enum { US_TO_NS = 3, NOWHERE = -1 };

struct slice { // of the text; NULL: not seen
  const char *text;
  size_t size;
};

// What is kept of one event while the walk is inside it.
struct event {
  struct slice name, category, phase, duration, start, process, thread, process_name;
};

struct span {
  struct zb_sample sample;
  int64_t process, thread;
  bool on_gpu;
};

struct process { // of the trace's own, by `process_name`
  int64_t id;
  int rank;
};

struct trace {
  struct event event;
  int events_depth; // of the list of events, NOWHERE before it
  int rank;         // of the whole file, NOWHERE: not said
  bool in_distributed, in_args;
  struct span *spans;
  size_t span_count, span_capacity;
  struct process *processes;
  size_t process_count, process_capacity;
  bool any_on_gpu;
};

static bool is(struct slice slice, const char *word) {
  return slice.text && slice.size == strlen(word) && memcmp(slice.text, word, slice.size) == 0;
}

static bool is_key(const struct zb_json_visit *visit, const char *word) {
  return is((struct slice){visit->key, visit->key_size}, word);
}

// A whole number at the start of text[0 .. size-1]; its length, 0 if there is none or it has many digits.
static size_t read_count(const char *text, size_t size, int *value) {
  size_t length = 0;
  int64_t number = 0;
  while (length < size && length < 8 && text[length] >= '0' && text[length] <= '9')
    number = number * 10 + (text[length++] - '0');
  *value = (int)number;
  return length;
}

static const struct {
  const char *word;
  enum zb_measure measure;
  int boundary; // of a message: its boundary minus the stage that receives
} words[] = {
    {"F", ZB_MEASURE_F, 0},
    {"I", ZB_MEASURE_B, 0}, // torch's B is the whole backward
    {"W", ZB_MEASURE_W, 0},
    {"B", ZB_MEASURE_BW, 0},
    {"RECV_F", ZB_MEASURE_COMM_FORWARD, -1},
    {"RECV_B", ZB_MEASURE_COMM_BACKWARD, 0},
};

// Fills stage, measure and microbatch from a span's name; false where it is none of ours.
static bool read_name(struct slice name, struct zb_sample *sample, int *stage) {
  static const char prefix[] = "PP:";
  enum { PREFIX = sizeof prefix - 1 };
  if (name.size < PREFIX || memcmp(name.text, prefix, PREFIX) != 0) return false;
  size_t at = PREFIX, length = read_count(name.text + at, name.size - at, stage);
  if (length == 0) return false;
  at += length;
  for (size_t k = 0; k < sizeof words / sizeof *words; k++) {
    const size_t word = strlen(words[k].word);
    if (name.size - at <= word || memcmp(name.text + at, words[k].word, word) != 0) continue;
    length = read_count(name.text + at + word, name.size - at - word, &sample->microbatch);
    if (length == 0 || at + word + length != name.size) continue;
    sample->measure = words[k].measure;
    sample->stage = *stage + words[k].boundary;
    return sample->stage >= 0;
  }
  return false;
}

static enum zb_status fail_number(const char *what, struct slice slice, const char *expected,
                                  struct zb_error *error) {
  return zb_fail(error, ZB_BAD_INPUT, "%s of a PP: span is %.*s, expected %s", what,
                 (int)(slice.size < 40 ? slice.size : 40), slice.text ? slice.text : "", expected);
}

static enum zb_status add_span(struct trace *trace, int stage, struct zb_sample sample,
                               struct zb_error *error) {
  const struct event *event = &trace->event;
  struct span span = {.sample = sample, .on_gpu = is(event->category, "gpu_user_annotation")};
  if (stage >= ZB_MEASURED_STAGES || sample.microbatch >= ZB_MEASURED_MICROBATCHES)
    return zb_fail(error, ZB_BAD_INPUT, "%.*s: expected stages below %d and microbatches below %d",
                   (int)event->name.size, event->name.text, ZB_MEASURED_STAGES, ZB_MEASURED_MICROBATCHES);
  if (!event->duration.text) return zb_fail(error, ZB_BAD_INPUT, "a PP: span without \"dur\"");
  if (!zb_measured_number(event->duration.text, event->duration.size, US_TO_NS, &span.sample.value) ||
      span.sample.value < 0 || span.sample.value > ZB_NUMBER_MAX)
    return fail_number("\"dur\"", event->duration, "microseconds from 0 to 2^53 ns", error);
  if (event->start.text)
    zb_measured_number(event->start.text, event->start.size, US_TO_NS, &span.sample.order);
  // Host and GPU name their processes and threads by numbers and by words; words are all one here.
  if (event->process.text) zb_measured_number(event->process.text, event->process.size, 0, &span.process);
  if (event->thread.text) zb_measured_number(event->thread.text, event->thread.size, 0, &span.thread);
  trace->any_on_gpu = trace->any_on_gpu || span.on_gpu;
  if (trace->span_count == trace->span_capacity) {
    const size_t more = trace->span_capacity ? 2 * trace->span_capacity : 256;
    struct span *moved = realloc(trace->spans, more * sizeof *moved);
    if (!moved) return zb_fail_memory(error);
    trace->spans = moved;
    trace->span_capacity = more;
  }
  trace->spans[trace->span_count++] = span;
  return ZB_OK;
}

// "rank 3" names a process of our own traces.
static enum zb_status add_process(struct trace *trace, struct zb_error *error) {
  static const char prefix[] = "rank ";
  enum { PREFIX = sizeof prefix - 1 };
  const struct slice name = trace->event.process_name, id = trace->event.process;
  struct process process = {0, 0};
  if (!name.text || name.size <= PREFIX || memcmp(name.text, prefix, PREFIX) != 0 || !id.text) return ZB_OK;
  const size_t length = read_count(name.text + PREFIX, name.size - PREFIX, &process.rank);
  if (length == 0 || PREFIX + length != name.size || !zb_measured_number(id.text, id.size, 0, &process.id))
    return ZB_OK;
  if (trace->process_count == trace->process_capacity) {
    const size_t more = trace->process_capacity ? 2 * trace->process_capacity : 64;
    struct process *moved = realloc(trace->processes, more * sizeof *moved);
    if (!moved) return zb_fail_memory(error);
    trace->processes = moved;
    trace->process_capacity = more;
  }
  trace->processes[trace->process_count++] = process;
  return ZB_OK;
}

static enum zb_status end_event(struct trace *trace, struct zb_error *error) {
  const struct event *event = &trace->event;
  struct zb_sample sample = {.microbatch = -1};
  int stage = 0;
  if (is(event->phase, "M") && is(event->name, "process_name")) return add_process(trace, error);
  if (!is(event->phase, "X") || !event->name.text || !read_name(event->name, &sample, &stage)) return ZB_OK;
  return add_span(trace, stage, sample, error);
}

static void keep_field(struct trace *trace, const struct zb_json_visit *visit) {
  struct event *event = &trace->event;
  const struct {
    const char *key;
    struct slice *field;
  } fields[] = {{"name", &event->name},    {"cat", &event->category}, {"ph", &event->phase},
                {"dur", &event->duration}, {"ts", &event->start},     {"pid", &event->process},
                {"tid", &event->thread}};
  for (size_t k = 0; k < sizeof fields / sizeof *fields; k++)
    if (is_key(visit, fields[k].key)) *fields[k].field = (struct slice){visit->text, visit->size};
}

static enum zb_status read_rank(struct trace *trace, const struct zb_json_visit *visit,
                                struct zb_error *error) {
  const size_t length = read_count(visit->text, visit->size, &trace->rank);
  if (length == 0 || length != visit->size)
    return zb_fail(error, ZB_BAD_INPUT, "distributedInfo.rank: expected a whole number");
  return ZB_OK;
}

static enum zb_status visit(void *context, const struct zb_json_visit *visit, struct zb_error *error) {
  struct trace *trace = context;
  const int in_event = trace->events_depth + 2; // depth of an event's members
  if (visit->what == ZB_JSON_OPEN) {
    const bool list = *visit->text == '[';
    if (trace->events_depth == NOWHERE && list &&
        (visit->depth == 0 || (visit->depth == 1 && is_key(visit, "traceEvents")))) {
      trace->events_depth = visit->depth;
    } else if (visit->depth == 1 && is_key(visit, "distributedInfo")) {
      trace->in_distributed = true;
    } else if (trace->events_depth != NOWHERE && visit->depth == in_event - 1 && !list) {
      trace->event = (struct event){0};
    } else if (trace->events_depth != NOWHERE && visit->depth == in_event) {
      trace->in_args = is_key(visit, "args");
    }
    return ZB_OK;
  }
  if (visit->what == ZB_JSON_CLOSE) {
    if (visit->depth == 1) trace->in_distributed = false;
    if (trace->events_depth == NOWHERE) return ZB_OK;
    if (visit->depth == in_event) trace->in_args = false;
    if (visit->depth == in_event - 1 && *visit->text == '}') return end_event(trace, error);
    if (visit->depth == trace->events_depth) trace->events_depth = NOWHERE;
    return ZB_OK;
  }
  if (trace->in_distributed && visit->depth == 2 && is_key(visit, "rank"))
    return read_rank(trace, visit, error);
  if (trace->events_depth == NOWHERE) return ZB_OK;
  if (visit->depth == in_event) keep_field(trace, visit);
  if (visit->depth == in_event + 1 && trace->in_args && is_key(visit, "name"))
    trace->event.process_name = (struct slice){visit->text, visit->size};
  return ZB_OK;
}

// After the walk: which spans count, and whose they are.

static bool counts(const struct trace *trace, const struct span *span) {
  return span->on_gpu || !trace->any_on_gpu;
}

static bool computes(const struct span *span) { return span->sample.measure <= ZB_MEASURE_BW; }

static int compare_spans(const void *a, const void *b) {
  const struct span *x = a, *y = b;
  if (x->sample.stage != y->sample.stage) return x->sample.stage < y->sample.stage ? -1 : 1;
  if (x->process != y->process) return x->process < y->process ? -1 : 1;
  return (x->thread > y->thread) - (x->thread < y->thread);
}

static bool same_stream(const struct span *a, const struct span *b) {
  return a->sample.stage == b->sample.stage && a->process == b->process && a->thread == b->thread;
}

static int rank_of(const struct trace *trace, const struct span *span) {
  if (trace->rank != NOWHERE) return trace->rank;
  for (size_t k = 0; k < trace->process_count; k++)
    if (trace->processes[k].id == span->process) return trace->processes[k].rank;
  return NOWHERE;
}

static enum zb_status take(const struct trace *trace, const struct span *span,
                           struct zb_measurements *measurements, struct zb_error *error) {
  enum zb_status status = zb_measurements_add(measurements, span->sample, error);
  if (status != ZB_OK || !computes(span)) return status;
  const int rank = rank_of(trace, span);
  if (rank == NOWHERE)
    return zb_fail(error, ZB_BAD_INPUT, "no rank: expected distributedInfo.rank in the trace");
  return zb_measurements_home(measurements, span->sample.stage, rank, error);
}

// The spans are sorted by stage and stream: of each stage the longest stream is taken.
static enum zb_status take_computing(const struct trace *trace, size_t first, size_t end,
                                     struct zb_measurements *measurements, struct zb_error *error) {
  size_t best = first;
  int64_t most = -1;
  for (size_t stream = first; stream < end;) {
    size_t next = stream;
    int64_t sum = -1; // of a stream that computes nothing
    for (; next < end && same_stream(&trace->spans[next], &trace->spans[stream]); next++)
      if (computes(&trace->spans[next]) && counts(trace, &trace->spans[next]))
        sum = zb_min(zb_max(sum, 0) + trace->spans[next].sample.value, INT64_MAX / 2);
    if (sum > most) {
      most = sum;
      best = stream;
    }
    stream = next;
  }
  enum zb_status status = ZB_OK;
  for (size_t k = first; k < end && status == ZB_OK; k++) {
    const struct span *span = &trace->spans[k];
    if (!counts(trace, span)) continue;
    if (!computes(span) || same_stream(span, &trace->spans[best]))
      status = take(trace, span, measurements, error);
  }
  return status;
}

enum zb_status zb_read_torch_trace(const char *text, size_t size, const struct zb_measured_hints *hints,
                                   struct zb_measurements *measurements, struct zb_error *error) {
  (void)hints;
  struct trace trace = {.events_depth = NOWHERE, .rank = NOWHERE};
  enum zb_status status = zb_json_walk(text, size, ZB_JSON_MEASURED, visit, &trace, error);
  if (status == ZB_OK && trace.span_count == 0)
    status = zb_fail(error, ZB_BAD_INPUT, "no span like PP:0F3 in this trace");
  if (status == ZB_OK) qsort(trace.spans, trace.span_count, sizeof *trace.spans, compare_spans);
  for (size_t first = 0; first < trace.span_count && status == ZB_OK;) {
    size_t end = first;
    while (end < trace.span_count && trace.spans[end].sample.stage == trace.spans[first].sample.stage) end++;
    status = take_computing(&trace, first, end, measurements, error);
    first = end;
  }
  measurements->shortest_comm = true;
  free(trace.spans);
  free(trace.processes);
  return status;
}
