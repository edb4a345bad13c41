// compute.c - what backends and their callers share.
#include "runtime/compute.h"

#include <unistd.h>

#include "runtime/stage.h"

int64_t zb_compute_peak(const struct zb_compute_setup *setup) {
  const struct zb_program *program = setup->program;
  int64_t kept = 0, peak = 0;
  for (size_t k = program ? program->first[setup->device] : 0;
       program && k < program->first[setup->device + 1]; k++) {
    const struct zb_instruction *i = &program->instructions[k];
    if (zb_instruction_acts(i->kind) != ZB_ACTS_OP) continue;
    int64_t f, b, w;
    zb_stage_memory(setup->training->gpt, setup->training->dtype, setup->first_unit[i->stage],
                    setup->first_unit[i->stage + 1], &f, &b, &w);
    kept += i->kind == ZB_DO_F ? f : i->kind == ZB_DO_B ? b : i->kind == ZB_DO_W ? w : b + w;
    if (kept > peak) peak = kept;
  }
  return peak;
}

int zb_compute_cores(void) { return (int)sysconf(_SC_NPROCESSORS_ONLN); }

enum zb_status zb_compute_finish(const struct zb_compute *compute, void *state, int64_t deadline_ns,
                                 struct zb_error *error) {
  bool done = false;
  enum zb_status status = compute->finish(state, deadline_ns, &done, error);
  if (status != ZB_OK || done) return status;
  return zb_fail(error, ZB_FAILED, "--backend %s: nothing ended in time", compute->name);
}

enum zb_status zb_compute_look_at_host(const struct zb_training *training, const struct zb_demand *need,
                                       int count, struct zb_error *error) {
  if (training->dtype != ZB_FP32 || training->tf32)
    return zb_fail(error, ZB_BAD_INPUT, "--%s: only --backend cuda has it",
                   training->tf32 ? "tf32" : "dtype bf16");
  int64_t machine = (int64_t)sysconf(_SC_PHYS_PAGES) * (int64_t)sysconf(_SC_PAGESIZE), bytes = 0;
  for (int k = 0; k < count; k++) bytes += need[k].bytes;
  if (machine <= 0 || bytes <= machine) return ZB_OK;
  return zb_fail(error, ZB_BAD_INPUT, "the model %s needs %.1f GiB, this machine has %.1f GiB",
                 training->gpt->name, (double)bytes / (1 << 30), (double)machine / (1 << 30));
}
