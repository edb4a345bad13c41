// v_block.c - the turns of a block from its shape.
//
// A flight takes at least its passes and its communication, so that a walk which meets no other microbatch
// runs every pass in its turn.
#include "heuristic/v_block.h"

#include "solver/model/number.h"

// Turns are only compared, so those beyond this, which only times near 2^53 ns can reach, may be equal.
static const int64_t farthest_ns = (int64_t)1 << 60;

static int64_t within_reach(int64_t ns) { return zb_max(-farthest_ns, zb_min(ns, farthest_ns)); }

int64_t zb_v_block_periods(int64_t count, int64_t period_ns) {
  return period_ns > 0 && count > farthest_ns / period_ns ? farthest_ns : count * period_ns;
}

int64_t zb_v_block_least_period(const struct zb_v_pipe *pipe) {
  int64_t most_ns = 0;
  for (int i = 0; i < pipe->devices; i++) {
    const struct zb_v_stage *low = &pipe->stage[i], *high = &pipe->stage[zb_v_stage_of(pipe, i, 1)];
    most_ns = zb_max(most_ns, low->f_ns + low->b_ns + low->w_ns + high->f_ns + high->b_ns + high->w_ns);
  }
  return most_ns;
}

int64_t zb_v_block_share(int64_t ns, int64_t eighths) { return ns / 8 * eighths + ns % 8 * eighths / 8; }

void zb_v_block_lay(const struct zb_v_pipe *pipe, const struct zb_v_shape *shape, struct zb_v_block *block) {
  const int p = pipe->devices;
  int64_t now_ns = 0;
  block->period_ns = zb_v_block_least_period(pipe);
  zb_v_block_advance(block, p, 0);
  for (int k = 0; k < ZB_V_CLASSES; k++) {
    const bool forward = k == ZB_V_F0 || k == ZB_V_F1, down = k == ZB_V_F0 || k == ZB_V_B1;
    const int chunk = k == ZB_V_F1 || k == ZB_V_B1;
    if (k > 0) now_ns += shape->pause_ns[k];
    for (int hop = 0; hop < p; hop++) {
      const int i = down ? hop : p - 1 - hop;
      const struct zb_v_stage *stage = &pipe->stage[zb_v_stage_of(pipe, i, chunk)];
      if (hop > 0) {
        now_ns += forward ? stage->forward_comm_ns : stage->backward_comm_ns;
        now_ns = within_reach(now_ns + shape->rest_ns[k][hop >= shape->bend[k]]);
      }
      block->device[i].turn_ns[k] = now_ns;
      now_ns += forward ? stage->f_ns : stage->b_ns;
    }
  }
}

void zb_v_block_advance(struct zb_v_block *block, int devices, int eighths) {
  const int64_t period_ns = zb_max(block->period_ns, 1);
  for (int i = 0; i < devices; i++) {
    struct zb_v_turns *d = &block->device[i];
    const int64_t before_ns = d->turn_ns[ZB_V_B0] - d->turn_ns[ZB_V_F0];
    const int64_t wait_ns = d->turn_ns[ZB_V_B0] - d->turn_ns[ZB_V_B1];
    d->early = eighths ? (int)((before_ns + period_ns - 1) / period_ns) : 0;
    d->early_ns = zb_v_block_share(wait_ns / period_ns * period_ns, eighths);
  }
}

void zb_v_block_lay_zb_v(const struct zb_v_pipe *pipe, struct zb_v_block *block) {
  const int64_t p = pipe->devices, period_ns = zb_v_block_least_period(pipe), fourth_ns = period_ns / 4;
  block->period_ns = period_ns;
  for (int64_t i = 0; i < p; i++) {
    struct zb_v_turns *d = &block->device[i];
    d->turn_ns[ZB_V_F0] = zb_v_block_periods(i, period_ns) + 3 * fourth_ns;
    d->turn_ns[ZB_V_F1] = zb_v_block_periods(p, period_ns);
    d->turn_ns[ZB_V_B1] = zb_v_block_periods(p + i, period_ns) + fourth_ns;
    d->turn_ns[ZB_V_B0] = zb_v_block_periods(2 * p - 1, period_ns) + 2 * fourth_ns;
  }
  zb_v_block_advance(block, pipe->devices, 8);
}
