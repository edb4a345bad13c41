// replay_trace.c - a run as a Chrome trace, for Perfetto and chrome://tracing.
//
// The format is the trace event format's JSON object form: complete events in microseconds, names as torch's
// profiler names pipeline spans (PP:0F3, PP:2RECV_F0), so that traces of both lie side by side.
#include <inttypes.h>

#include "runtime/replay_report.h"

enum { LINE_OPS, LINE_SENT, LINE_RECEIVED, LINES };

static void print_microseconds(int64_t ns, struct zb_text *out) {
  zb_text_print(out, "%" PRId64 ".%03" PRId64, ns / 1000, ns % 1000);
}

static void print_names(int device, struct zb_text *out) {
  static const char *const names[LINES] = {"compute", "sent", "received"};
  zb_text_print(
      out,
      "{\"name\": \"process_name\", \"ph\": \"M\", \"pid\": %d, \"args\": {\"name\": \"device %d\"}},\n"
      "{\"name\": \"process_sort_index\", \"ph\": \"M\", \"pid\": %d, \"args\": {\"sort_index\": %d}}",
      device, device, device, device);
  for (int line = 0; line < LINES; line++)
    zb_text_print(
        out,
        ",\n{\"name\": \"thread_name\", \"ph\": \"M\", \"pid\": %d, \"tid\": %d, \"args\": {\"name\": "
        "\"%s\"}}",
        device, line, names[line]);
}

static void print_event(const struct zb_program *program, int device, const struct zb_event *event,
                        int64_t begin_ns, struct zb_text *out) {
  const struct zb_instruction *i = &program->instructions[event->instruction];
  enum zb_acts acts = zb_instruction_acts(i->kind);
  bool message = acts == ZB_ACTS_MESSAGE || acts == ZB_ACTS_LINE;
  char name[ZB_INSTRUCTION_TEXT];
  zb_instruction_print(*i, name);
  zb_text_print(out, ",\n{\"name\": \"PP:%s\", \"cat\": \"%s\", \"ph\": \"X\", \"ts\": ", name,
                acts == ZB_ACTS_OP ? "op"
                : message          ? "message"
                                   : "optimizer");
  print_microseconds(event->when.start_ns - begin_ns, out);
  zb_text_put(out, ", \"dur\": ");
  print_microseconds(event->when.end_ns - event->when.start_ns, out);
  zb_text_print(out, ", \"pid\": %d, \"tid\": %d, \"args\": {\"step\": %" PRId32, device,
                !message                          ? LINE_OPS
                : zb_instruction_is_send(i->kind) ? LINE_SENT
                                                  : LINE_RECEIVED,
                event->step);
  if (event->note) zb_text_print(out, ", \"note\": \"%s\"", zb_note_word((enum zb_note)event->note));
  zb_text_put(out, "}}");
}

// What the device keeps by the profile: growth when an op starts, release when it ends.
static void print_counter(int device, int64_t at_ns, int64_t kept, struct zb_text *out) {
  zb_text_put(out, ",\n{\"name\": \"kept\", \"ph\": \"C\", \"ts\": ");
  print_microseconds(at_ns, out);
  zb_text_print(out, ", \"pid\": %d, \"args\": {\"bytes\": %" PRId64 "}}", device, kept);
}

void zb_replay_trace_print(const struct zb_crew *crew, struct zb_text *out) {
  const struct zb_program *program = crew->replay->program;
  int64_t begin_ns = INT64_MAX;
  for (int k = 0; k < program->devices; k++) {
    const struct zb_rank_log *log = crew->log[k];
    for (size_t e = 0; e < log->events; e++)
      if (log->event[e].when.start_ns < begin_ns) begin_ns = log->event[e].when.start_ns;
  }
  zb_text_put(out, "{\"displayTimeUnit\": \"ms\", \"traceEvents\": [\n");
  for (int device = 0; device < program->devices; device++) {
    const struct zb_rank_log *log = crew->log[device];
    int64_t kept = 0;
    if (device) zb_text_put(out, ",\n");
    print_names(device, out);
    for (size_t e = 0; e < log->events; e++) {
      const struct zb_event *event = &log->event[e];
      const struct zb_instruction *i = &program->instructions[event->instruction];
      print_event(program, device, event, begin_ns, out);
      if (zb_instruction_acts(i->kind) != ZB_ACTS_OP) continue;
      struct zb_op op = {i->stage, i->microbatch, (enum zb_kind)i->kind};
      int64_t change = zb_op_memory(program->profile, op);
      kept += change;
      if (change)
        print_counter(device, (change > 0 ? event->when.start_ns : event->when.end_ns) - begin_ns, kept, out);
    }
  }
  zb_text_put(out, "\n]}\n");
}
