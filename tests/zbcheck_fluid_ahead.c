/* zbcheck: which op of a device can be its next, in the search of `fluid-fronts`; see zbcheck_fluid.c.
 *
 * Let o be an op of device d that can start now and would end at e, u one of another lane that can start no
 * earlier than e, and let a good node go on with u on d. Is it good with o before u, too? Put o in front and
 * leave all else in its place: nothing of any device comes later. What could be late is the W of d, and F
 * that waits for it between u and the old place of o. W that was poured before e is displaced, by what o
 * takes at most, until the old place of o is over, where nothing runs now; from then on as much is poured as
 * was, or more. Without a limit on d, or if no F comes between, that is no harm. Else let D be the most W
 * done that an F between u and o, u with them, can ask for if o has run before (`displaced`: over all that
 * can come between).
 * - At u, and so at each of these F, at least min(all W there are, its start - the lag behind o) is poured.
 * If that is D or more, they all can start.
 * - If that is all W there are, then it is no less than it was, and so it is at all times after. If o is a B,
 *   no F asks for more than it did, for one more B is done: they all can start. (An F does ask for more.) */
#include "zbcheck_fluid.h"

static bool harmless(const struct fluid *s, int32_t i, int32_t o, int32_t u, const struct fluid_options *x) {
  const struct fluid_device *d = &s->device[i];
  const struct fluid_state *state = zc_fluid_state(s, i);
  int64_t takes = s->lane[d->lane[o]].takes;

  if (x->start[u] < x->start[o] + takes) return false;
  if (!d->limited) return true;
  int32_t to = zc_fluid_steps(s, i)[u].to;
  int64_t weights = d->step[(int64_t)to * d->lanes + o].displaced;
  if (u < d->lanes / 2) {
    int64_t excess = state->kept + d->keep[o] + d->keep[u];
    if (excess > 0) weights = zc_most(weights, d->gives > 0 ? (excess + d->gives - 1) / d->gives : zc_never);
  }
  if (weights == 0) return true;
  if (weights > state->weights) {
    if (o < d->lanes / 2) return false;
    weights = state->weights;
  }
  return zc_fluid_lag_after(s, i, x->start[o], takes) + weights * d->w <= x->start[u];
}

/* What no lane keeps from being next is left. Who keeps others away is itself there at the time, so whatever
 * is taken out, something that is as good stays. */
static void sift(const struct fluid *s, int32_t i, struct fluid_options *x) {
  for (uint32_t from = x->run; from; from &= from - 1) {
    int32_t o = __builtin_ctz(from);
    if (!(x->run >> o & 1)) continue;
    for (uint32_t others = (x->run | x->wait) & ~(1u << o); others; others &= others - 1) {
      int32_t u = __builtin_ctz(others);
      if (!harmless(s, i, o, u, x)) continue;
      x->run &= ~(1u << u);
      x->wait &= ~(1u << u);
    }
  }
}

void zc_fluid_ahead(const struct fluid *s, int32_t i, int64_t soonest, struct fluid_options *x) {
  const struct fluid_device *d = &s->device[i];
  const struct fluid_at *at = &s->at[i];
  const struct fluid_step *step = zc_fluid_steps(s, i);

  x->run = x->wait = 0;
  for (int32_t e = 0; e < d->lanes; e++) {
    if (step[e].to < 0 || (at->held >= 0 && at->held != e)) continue;
    int32_t l = d->lane[e];
    x->start[e] = zc_most(zc_most(at->clock, at->lag + step[e].ready), zc_fluid_input(s, l));
    if (zc_fluid_has_input(s, l)) {
      x->run |= 1u << e;
    } else {
      x->start[e] = zc_most(zc_most(x->start[e], s->lane_at[l].next), soonest);
      x->wait |= 1u << e;
    }
  }
  if (x->run && (x->run | x->wait) & ((x->run | x->wait) - 1)) sift(s, i, x);
}
