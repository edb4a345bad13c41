// greedy_events.c - list scheduling on the chain: every device decides when it is free.
//
// The rounds of the paper's heuristic tie all devices to one count of microbatches. That costs where a
// device cannot keep the p microbatches that fill the pipe, or where the devices are not alike: they
// then wait for the round, not for work. Here the device that is free first decides next, in the order of
// time, and knows what is on its way to it: an op's output is announced when the op starts.
//   - of an F and a B that are both there, a device takes the kind it did not run last, or, by the first
//     choice, always the B.
//   - an F that would delay an announced B runs all the same, or, by the second choice, waits for it.
//   - a device keeps at most p-i microbatches (what 1F1B keeps) or 2(p-i)-1 (what fills the pipe until the
//     first B is back): the third choice. Beyond that it runs an F only where nothing else could be run.
//   - an F that is there but does not fit makes room with W.
//   - a gap takes a W that fits it, and one that does not where the paper's heuristic would put one, or,
//     by the fourth choice, always.
// Greedy answers alike for all devices; tuned.c gives each its own answers, and finer ones: how soon the B
// must be due for an F to wait, whether a B waits for an F whose turn it is, how long a gap must be for a W,
// and another number of microbatches to keep until the first B is back. Nothing dead-ends. Say every device
// waits and nothing is announced; then all W that can run have run. Let j be the least number of B that a
// device has run, and d the last such device. If d has run F j, its B j has its input, for the device after
// it has run that. If not, the first device without F j keeps no microbatch, so it has room for one, and the
// device before it has run F j. Either way somebody need not wait.
//
// The device that decides next is found in O(log p) (tournament.h).
#include <assert.h>

#include "heuristic/greedy.h"
#include "heuristic/tournament.h"
#include "solver/model/number.h"

// A neighbour has learnt of an arrival: it may decide anew, but not before it is free.
static void announce(struct zb_tournament *t, const struct zb_pipe *pipe, int device, int64_t now_ns) {
  if (device < 0 || device >= pipe->devices) return;
  const int64_t at_ns = zb_max(now_ns, pipe->device[device].end_ns);
  if (at_ns < t->clock[device]) zb_tournament_set(t, device, at_ns);
}

enum choice { RUN_F, RUN_B, RUN_W, WAIT };

// What device i does at now_ns; where it waits, *until_ns is when it looks again unless something is
// announced.
static enum choice decide(const struct zb_pipe *pipe, const struct zb_greedy_plan *plan, int i,
                          int64_t now_ns, int64_t *until_ns) {
  const struct zb_pipe_device *d = &pipe->device[i];
  const struct zb_greedy_choices *choices = &plan->choices[(size_t)i * (size_t)plan->parts];
  if (plan->part) choices += plan->part[d->backwards];
  const int kept = d->forwards - d->backwards;
  const int asked = d->backwards > 0 ? choices->most_wanted : choices->most_wanted_first;
  const int wanted = (int)zb_min(asked, d->most_kept);
  const int64_t forward_ns = zb_pipe_forward_arrival(pipe, i),
                backward_ns = zb_pipe_backward_arrival(pipe, i);
  const bool open = zb_pipe_weight_open(d), fits = zb_pipe_forward_fits(d);
  const bool forward = forward_ns <= now_ns && kept < wanted, backward = backward_ns <= now_ns;

  const bool forward_turn = !d->forward_last && !choices->backward_first;
  if (backward && forward_turn && kept < wanted && fits && forward_ns > now_ns &&
      forward_ns - now_ns < choices->hold_backward_ns) {
    *until_ns = forward_ns;
    return WAIT;
  }
  if (backward && !(forward && fits && forward_turn)) return zb_pipe_backward_fits(d) ? RUN_B : RUN_W;
  const bool held = backward_ns > now_ns && backward_ns - now_ns < choices->hold_forward_ns;
  if (forward && fits && !held) return RUN_F;
  if (forward && !fits && open) return RUN_W;
  int64_t next_ns = backward_ns;
  if (forward_ns > now_ns && kept < wanted && (fits || open)) next_ns = zb_min(next_ns, forward_ns);
  if (open) {
    const int64_t gap_ns = next_ns - now_ns;
    if (gap_ns >= choices->least_gap_ns || d->idle_ns + gap_ns > pipe->largest_idle_ns) return RUN_W;
  } else if (forward_ns <= now_ns && kept < d->most_kept && fits && d->f_ns <= backward_ns - now_ns) {
    return RUN_F;
  }
  *until_ns = next_ns;
  return WAIT;
}

void zb_greedy_choose_alike(const struct zb_pipe *pipe, unsigned choice, struct zb_greedy_choices *choices) {
  for (int i = 0; i < pipe->devices; i++) {
    const int below = pipe->devices - i, wanted = choice & 4 ? 2 * below - 1 : below;
    const struct zb_pipe_device *d = &pipe->device[i];
    choices[i] = (struct zb_greedy_choices){.most_wanted = wanted,
                                            .most_wanted_first = wanted,
                                            .backward_first = choice & 1,
                                            .hold_forward_ns = choice & 2 ? d->f_ns : 0,
                                            .least_gap_ns = choice & 8 ? 0 : d->w_ns};
  }
}

void zb_greedy_events(struct zb_pipe *pipe, const struct zb_greedy_plan *plan, int64_t *clock) {
  struct zb_tournament t;
  zb_tournament_begin(&t, clock, pipe->devices);
  zb_tournament_set(&t, 0, 0);
  int unfinished = pipe->devices;
  while (unfinished > 0) {
    const int i = zb_tournament_first(&t);
    const int64_t now_ns = clock[i];
    const struct zb_pipe_device *d = &pipe->device[i];
    int64_t next_ns = ZB_NEVER;
    assert(now_ns != ZB_NEVER);
    switch (decide(pipe, plan, i, now_ns, &next_ns)) {
    case RUN_F:
      zb_pipe_forward(pipe, i, now_ns);
      announce(&t, pipe, i + 1, now_ns);
      next_ns = d->end_ns;
      break;
    case RUN_B:
      zb_pipe_backward(pipe, i, now_ns);
      announce(&t, pipe, i - 1, now_ns);
      next_ns = d->end_ns;
      break;
    case RUN_W:
      zb_pipe_weight(pipe, i, now_ns);
      next_ns = d->end_ns;
      break;
    case WAIT:
      break;
    }
    if (d->weights == pipe->microbatches) {
      unfinished--;
      next_ns = ZB_NEVER;
    }
    zb_tournament_set(&t, i, next_ns);
  }
}
