// greedy_rounds.c - the paper's heuristic (arXiv 2401.10241, section 3.1): warm up, then one F and one B
// a device and round, W where it costs least.
//
// Round r runs every device's B of microbatch r, last device first, so that the B it waits for has been
// timed; each device may run one F before it. What the paper leaves open is settled like this:
//   - a device may warm up with an F as long as that F ends before the first B arrives, and in any case
//     until it is one F ahead of the next device. The first choice adds one F that ends later; the delay
//     counts when the devices before it warm up.
//   - the second choice skips a round's F where the device is two or more F ahead of the next one and
//     its B is already there: no idle time comes of that, since the F can still be run later.
//   - a gap before an F or a B takes every open W that fits. One more W, which delays that op, goes in where
//     leaving the rest of the gap would give this device more idle time than any device has had.
//   - an F that does not fit runs open W first; if it does not fit even then it waits for a B.
// No device dead-ends: round r starts with the F of microbatch r wherever that has not been run, and a
// device that keeps nothing has room for it.
#include "heuristic/greedy.h"
#include "solver/model/number.h"

// Runs open W in the gap before an op that arrives at `arrival_ns`; returns when that op can start.
static int64_t fill_gap(struct zb_pipe *pipe, int i, int64_t arrival_ns) {
  const struct zb_pipe_device *d = &pipe->device[i];
  while (zb_pipe_weight_open(d) && d->end_ns + d->w_ns <= arrival_ns) zb_pipe_weight(pipe, i, d->end_ns);
  if (zb_pipe_weight_open(d) && d->end_ns < arrival_ns &&
      d->idle_ns + (arrival_ns - d->end_ns) > pipe->largest_idle_ns) {
    zb_pipe_weight(pipe, i, d->end_ns);
  }
  return zb_max(d->end_ns, arrival_ns);
}

// Runs the next F, and first the W that make room for it; does nothing where there is no room.
static void run_forward(struct zb_pipe *pipe, int i) {
  const struct zb_pipe_device *d = &pipe->device[i];
  while (!zb_pipe_forward_fits(d) && zb_pipe_weight_open(d)) zb_pipe_weight(pipe, i, d->end_ns);
  if (d->forwards - d->backwards >= d->most_kept) return;
  const int64_t arrival_ns = zb_pipe_forward_arrival(pipe, i);
  zb_pipe_forward(pipe, i, fill_gap(pipe, i, arrival_ns));
}

static void run_backward(struct zb_pipe *pipe, int i) {
  const struct zb_pipe_device *d = &pipe->device[i];
  while (!zb_pipe_backward_fits(d)) zb_pipe_weight(pipe, i, d->end_ns);
  zb_pipe_backward(pipe, i, fill_gap(pipe, i, zb_pipe_backward_arrival(pipe, i)));
}

static void warm_up(struct zb_pipe *pipe, bool extra_forward) {
  const int p = pipe->devices, m = pipe->microbatches;
  // When the first B reaches each device if nothing delays it: `first_ns` going down, then back up.
  int64_t first_ns = 0;
  for (int i = 0; i < p; i++) first_ns += pipe->device[i].from_previous_ns + pipe->device[i].f_ns;
  for (int i = p - 1; i > 0; i--) first_ns += pipe->device[i].b_ns + pipe->device[i - 1].from_next_ns;
  for (int i = 0; i < p; i++) {
    struct zb_pipe_device *d = &pipe->device[i];
    if (i > 0) first_ns -= d->b_ns + d[-1].from_next_ns;
    while (d->forwards < d->most_kept) {
      const int64_t arrival_ns = zb_pipe_forward_arrival(pipe, i);
      const bool ahead =
          i == 0 || d->forwards == 0 || d->forwards + 1 < d[-1].forwards || d[-1].forwards == m;
      if (!ahead || arrival_ns == ZB_NEVER) break;
      const int64_t start_ns = zb_max(d->end_ns, arrival_ns);
      if (d->forwards >= p - i && start_ns + d->f_ns > first_ns) break;
      zb_pipe_forward(pipe, i, start_ns);
    }
  }
  if (!extra_forward) return;
  for (int i = p - 1; i >= 0; i--) {
    struct zb_pipe_device *d = &pipe->device[i];
    bool late = false;
    while (d->forwards < d->most_kept && !late) {
      const int64_t arrival_ns = zb_pipe_forward_arrival(pipe, i);
      if (arrival_ns == ZB_NEVER) break;
      const int64_t start_ns = zb_max(d->end_ns, arrival_ns);
      late = start_ns + d->f_ns > first_ns;
      if (start_ns >= first_ns) break;
      zb_pipe_forward(pipe, i, start_ns);
    }
    if (i > 0) first_ns = zb_max(first_ns, d->end_ns) + d->b_ns + d[-1].from_next_ns;
  }
}

static bool skips_forward(const struct zb_pipe *pipe, int i) {
  const struct zb_pipe_device *d = &pipe->device[i];
  const int next = i + 1 < pipe->devices ? d[1].forwards : d->backwards;
  return d->forwards - next >= 2 && zb_pipe_backward_arrival(pipe, i) <= d->end_ns;
}

void zb_greedy_rounds(struct zb_pipe *pipe, bool extra_forward, bool skip_forward) {
  const int p = pipe->devices, m = pipe->microbatches;
  warm_up(pipe, extra_forward);
  for (int round = 0; round < m; round++) {
    for (int i = 0; i < p - 1; i++) {
      if (pipe->device[i].forwards == round) run_forward(pipe, i);
    }
    for (int i = p - 1; i >= 0; i--) {
      const bool known = zb_pipe_forward_arrival(pipe, i) != ZB_NEVER;
      if (round > 0 && known && !(skip_forward && skips_forward(pipe, i))) run_forward(pipe, i);
      run_backward(pipe, i);
    }
  }
  for (int i = 0; i < p; i++) {
    const struct zb_pipe_device *d = &pipe->device[i];
    while (zb_pipe_weight_open(d)) zb_pipe_weight(pipe, i, d->end_ns);
  }
}
