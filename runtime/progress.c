// progress.c - progress in words.
#include "runtime/progress.h"

#include <inttypes.h>

void zb_progress_print_wait(const struct zb_progress *progress, struct zb_text *out) {
  char name[ZB_INSTRUCTION_TEXT];
  zb_instruction_print(progress->awaited, name);
  zb_text_print(out, "waiting for %s %s device %d, %zu bytes", name,
                zb_instruction_is_send(progress->awaited.kind) ? "to" : "from", (int)progress->awaited.peer,
                progress->bytes);
}

void zb_progress_print(const struct zb_progress *progress, bool pending, struct zb_text *out) {
  char last[ZB_INSTRUCTION_TEXT] = "nothing", at[ZB_INSTRUCTION_TEXT];
  if (progress->device < 0) {
    zb_text_put(out, "before the devices met");
    return;
  }
  if (progress->step < 0) {
    zb_text_print(out, "device %d, before its first step", (int)progress->device);
    return;
  }
  if (progress->finished) zb_instruction_print(progress->last, last);
  zb_text_print(out, "device %d, step %" PRId64 ": finished %s", (int)progress->device, progress->step, last);
  if (!pending) return;
  if (progress->through) {
    zb_text_put(out, ", all steps done");
    return;
  }
  zb_instruction_print(progress->at, at);
  zb_text_print(out, ", at %s", at);
  if (!progress->waits) return;
  zb_text_put(out, ", ");
  zb_progress_print_wait(progress, out);
}
