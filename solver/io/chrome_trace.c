// chrome_trace.c - events rank after rank: its names, its ops with their arrows, its messages, its memory.
//
// A thread of a trace holds spans that do not overlap, but messages do where a transfer takes longer than an
// op. So each of the four classes of messages has as many threads as it needs: a message goes to the first
// one that is free. An arrow leaves from inside the span that made the message, 1 ns before its end, because
// at the end itself a viewer would take the next one.
#include "solver/io/chrome_trace.h"

#include <stdio.h>
#include <stdlib.h>

#include "solver/io/json.h"
#include "solver/io/units.h"
#include "solver/model/links.h"
#include "solver/model/number.h"

enum { COMPUTE = 0, SEND_F, RECV_F, SEND_B, RECV_B, CLASSES = RECV_B };

static const char *const class_words[CLASSES + 1] = {"", "SEND_F", "RECV_F", "SEND_B", "RECV_B"};
static const char *const thread_names[CLASSES + 1] = {"compute", "send activations", "receive activations",
                                                      "send gradients", "receive gradients"};

// torch's letters: its B is the whole backward.
static const char *const torch_letter[4] = {[ZB_F] = "F", [ZB_B] = "I", [ZB_W] = "W", [ZB_BW] = "B"};

struct message {
  int64_t start_ns, end_ns;
  struct zb_op op; // at this end of it
  int kind;        // SEND_F .. RECV_B
};

struct writer {
  const struct zb_profile *profile;
  const struct zb_schedule *schedule;
  const struct zb_timeline *timeline;
  struct zb_links links;
  struct message *messages; // [count] sorted by device, class and start
  size_t *first_message;    // [devices + 1]
  struct zb_text *text;
};

static void put_us(struct zb_text *text, int64_t ns) {
  int digits = 3;
  int64_t part = ns % 1000;
  zb_text_integer(text, ns / 1000);
  if (part == 0) return;
  for (; part % 10 == 0; part /= 10) digits--;
  zb_text_print(text, ".%0*d", digits, (int)part);
}

static void put_int(struct zb_text *text, const char *before, int64_t value) {
  zb_text_put(text, before);
  zb_text_integer(text, value);
}

// A span up to its args: {"name":"PP:1RECV_F3",..,"tid":2
static void open_span(const struct writer *w, struct zb_op op, const char *word, const char *category,
                      int64_t start_ns, int64_t end_ns, int device, int64_t thread) {
  put_int(w->text, ",\n{\"name\":\"PP:", op.stage);
  zb_text_put(w->text, word);
  zb_text_integer(w->text, op.microbatch);
  zb_text_put(w->text, "\",\"cat\":\"");
  zb_text_put(w->text, category);
  zb_text_put(w->text, "\",\"ph\":\"X\",\"ts\":");
  put_us(w->text, start_ns);
  zb_text_put(w->text, ",\"dur\":");
  put_us(w->text, end_ns - start_ns);
  put_int(w->text, ",\"pid\":", device);
  put_int(w->text, ",\"tid\":", thread);
}

static void put_op_name(struct zb_text *text, const char *key, struct zb_op op) {
  char name[ZB_OP_TEXT];
  zb_op_print(op, name);
  zb_text_put(text, key);
  zb_text_put(text, name);
  zb_text_put(text, "\"");
}

static void put_arrow(const struct writer *w, bool finish, size_t id, int64_t at_ns, int device) {
  zb_text_put(w->text, finish
                           ? ",\n{\"name\":\"message\",\"cat\":\"message\",\"ph\":\"f\",\"bp\":\"e\",\"id\":"
                           : ",\n{\"name\":\"message\",\"cat\":\"message\",\"ph\":\"s\",\"id\":");
  zb_text_integer(w->text, (int64_t)id);
  zb_text_put(w->text, ",\"ts\":");
  put_us(w->text, at_ns);
  put_int(w->text, ",\"pid\":", device);
  zb_text_put(w->text, ",\"tid\":0}");
}

static int64_t end_of(const struct writer *w, size_t op) {
  return w->timeline->start_ns[op] + zb_op_time(w->profile, w->schedule->ops[op]);
}

static bool crosses(const struct writer *w, size_t consumer) {
  const uint32_t maker = w->links.input[consumer];
  const int *device_of = w->profile->device_of;
  return maker != ZB_NO_OP &&
         device_of[w->schedule->ops[maker].stage] != device_of[w->schedule->ops[consumer].stage];
}

static void put_op(const struct writer *w, size_t place, int device) {
  const struct zb_op op = w->schedule->ops[place];
  const int64_t start_ns = w->timeline->start_ns[place];
  open_span(w, op, torch_letter[op.kind], "compute", start_ns, end_of(w, place), device, COMPUTE);
  put_op_name(w->text, ",\"args\":{\"op\":\"", op);
  const uint32_t waited_for = w->links.waited_for[place];
  if (waited_for != ZB_NO_OP) put_op_name(w->text, ",\"waited_for\":\"", w->schedule->ops[waited_for]);
  zb_text_put(w->text, "}}");
  if (!crosses(w, place)) return;
  const uint32_t maker = w->links.input[place];
  const int64_t leaves_ns = zb_max(w->timeline->start_ns[maker], end_of(w, maker) - 1);
  put_arrow(w, false, place, leaves_ns, w->profile->device_of[w->schedule->ops[maker].stage]);
  put_arrow(w, true, place, start_ns, device);
}

// Messages.

static int compare_messages(const void *a, const void *b) {
  const struct message *x = a, *y = b;
  if (x->kind != y->kind) return x->kind < y->kind ? -1 : 1;
  if (x->start_ns != y->start_ns) return x->start_ns < y->start_ns ? -1 : 1;
  if (x->op.stage != y->op.stage) return x->op.stage < y->op.stage ? -1 : 1;
  return (x->op.microbatch > y->op.microbatch) - (x->op.microbatch < y->op.microbatch);
}

// A message has an end on each of its devices; what takes no time is only an arrow.
static enum zb_status collect_messages(struct writer *w, struct zb_error *error) {
  const size_t ops = w->links.ops, devices = (size_t)w->profile->devices;
  w->messages = malloc((2 * ops + 1) * sizeof *w->messages);
  w->first_message = calloc(devices + 2, sizeof *w->first_message);
  if (!w->messages || !w->first_message) return zb_fail_memory(error);
  size_t *next = w->first_message + 1; // counts, then places, then the starts of what follows
  for (int pass = 0; pass < 2; pass++) {
    for (size_t i = 0; i < ops; i++) {
      if (!crosses(w, i)) continue;
      const size_t maker = w->links.input[i];
      const struct zb_op to = w->schedule->ops[i], from = w->schedule->ops[maker];
      const int64_t comm_ns = zb_links_comm_ns(w->profile, from, to);
      if (comm_ns == 0) continue;
      const struct zb_op ends[2] = {from, to};
      for (int end = 0; end < 2; end++) {
        const int device = w->profile->device_of[ends[end].stage];
        if (pass == 0) {
          next[device + 1]++;
          continue;
        }
        const int64_t start_ns = end_of(w, maker);
        w->messages[next[device]++] = (struct message){start_ns, start_ns + comm_ns, ends[end],
                                                       (to.kind == ZB_F ? SEND_F : SEND_B) + end};
      }
    }
    for (size_t d = 0; pass == 0 && d < devices; d++) next[d + 1] += next[d];
  }
  for (size_t d = 0; d < devices; d++)
    qsort(w->messages + w->first_message[d], w->first_message[d + 1] - w->first_message[d],
          sizeof *w->messages, compare_messages);
  return ZB_OK;
}

static void put_name(const struct writer *w, int device, int64_t thread, int kind, int64_t level) {
  put_int(w->text, ",\n{\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":", device);
  put_int(w->text, ",\"tid\":", thread);
  zb_text_print(w->text, ",\"args\":{\"name\":\"%s", thread_names[kind]);
  if (level > 0) put_int(w->text, " ", level + 1);
  zb_text_put(w->text, "\"}}");
}

static enum zb_status put_messages(const struct writer *w, int device, struct zb_error *error) {
  const size_t first = w->first_message[device], end = w->first_message[device + 1];
  int64_t *free_ns = malloc((end - first + 1) * sizeof *free_ns); // [threads of this class]
  if (!free_ns) return zb_fail_memory(error);
  size_t threads = 0;
  for (size_t i = first; i < end; i++) {
    const struct message *message = &w->messages[i];
    if (i == first || message->kind != message[-1].kind) threads = 0;
    size_t level = 0;
    while (level < threads && free_ns[level] > message->start_ns) level++;
    const int64_t thread = message->kind + (int64_t)level * CLASSES;
    if (level == threads) {
      put_name(w, device, thread, message->kind, (int64_t)level);
      threads++;
    }
    free_ns[level] = message->end_ns;
    open_span(w, message->op, class_words[message->kind], "communication", message->start_ns, message->end_ns,
              device, thread);
    zb_text_put(w->text, "}");
  }
  free(free_ns);
  return ZB_OK;
}

// Growth counts from an op's start, release from its end.
static void put_memory(const struct writer *w, int device) {
  int64_t kept = 0;
  for (size_t i = w->schedule->first[device]; i < w->schedule->first[device + 1]; i++) {
    const int64_t change = zb_op_memory(w->profile, w->schedule->ops[i]);
    if (change == 0) continue;
    kept += change;
    zb_text_put(w->text, ",\n{\"name\":\"activation memory\",\"ph\":\"C\",\"ts\":");
    put_us(w->text, change > 0 ? w->timeline->start_ns[i] : end_of(w, i));
    put_int(w->text, ",\"pid\":", device);
    put_int(w->text, ",\"args\":{\"bytes\":", kept);
    zb_text_put(w->text, "}}");
  }
}

static enum zb_status put_device(const struct writer *w, int d, struct zb_error *error) {
  char peak[ZB_QUANTITY_TEXT];
  zb_text_print(w->text,
                "%s\n{\"name\":\"process_name\",\"ph\":\"M\",\"pid\":%d,\"args\":{\"name\":\"rank %d\"}}",
                d ? "," : "", d, d);
  zb_text_print(w->text,
                ",\n{\"name\":\"process_sort_index\",\"ph\":\"M\",\"pid\":%d,\"args\":{\"sort_index\":%d}}",
                d, d);
  if (w->profile->has_memory)
    zb_text_print(
        w->text, ",\n{\"name\":\"process_labels\",\"ph\":\"M\",\"pid\":%d,\"args\":{\"labels\":\"peak %s\"}}",
        d, zb_bytes_text(w->timeline->peak_bytes[d], peak));
  put_name(w, d, COMPUTE, COMPUTE, 0);
  for (size_t i = w->schedule->first[d]; i < w->schedule->first[d + 1]; i++) put_op(w, i, d);
  enum zb_status status = put_messages(w, d, error);
  if (status == ZB_OK && w->profile->has_memory) put_memory(w, d);
  return status;
}

enum zb_status zb_export_chrome_trace(const struct zb_export_input *input, struct zb_export_output *output,
                                      struct zb_error *error) {
  const struct zb_answer *answer = input->answer;
  struct writer w = {answer->profile, answer->schedule, input->timeline, {0}, NULL, NULL, &output->text};
  enum zb_status status = zb_links_create(w.profile, w.schedule, w.timeline, &w.links, error);
  if (status == ZB_OK) status = collect_messages(&w, error);
  if (status == ZB_OK) {
    zb_text_put(w.text, "{\"displayTimeUnit\": \"ms\", \"otherData\": {\"name\": ");
    zb_json_print_string(w.profile->name ? w.profile->name : "schedule", w.text);
    zb_text_put(w.text, ", \"method\": ");
    zb_json_print_string(answer->method, w.text);
    zb_text_put(w.text, "}, \"traceEvents\": [");
  }
  for (int d = 0; d < w.profile->devices && status == ZB_OK; d++) status = put_device(&w, d, error);
  zb_text_put(w.text, "\n]}\n");
  if (status == ZB_OK) status = zb_text_status(w.text, error);
  free(w.messages);
  free(w.first_message);
  zb_links_free(&w.links);
  return status;
}
