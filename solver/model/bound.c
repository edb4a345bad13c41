// bound.c - what filling and draining the pipe force, whatever the order.
//
// Let device d's lowest stage be a, and device e's lowest be z >= a. Everything on d starts with an F of
// stage a, and everything on e waits for one: e's first op comes at least fill(a, z) after d's first.
// From there e runs all its F and B; the last of these that any stage above z or on e can force is a B
// of stage z, whose gradient then has to drain down to stage a, where its W is still to be done. All of
// that lies between d's first op and d's last. It holds for the span; for the period, since a cycle
// through d's own wrap-around is never shorter than this; and for the makespan with the fill from stage 0
// in front. A stage may run its backward fused, so each step counts the cheaper way.
#include "solver/model/bound.h"

#include "solver/model/number.h"

// Work of device e that must be over before its lowest stage's last gradient exists: all of it but W.
static int64_t gradient_work(const struct zb_profile *p, int device) {
  int64_t work = 0;
  for (int k = 0; k < p->chunks; k++) {
    int s = p->stage_at[device * p->chunks + k];
    work += p->microbatches * (p->f_ns[s] + zb_profile_gradient_ns(p, s));
  }
  return work;
}

int64_t zb_bound_closed_form(const struct zb_profile *p, enum zb_objective objective) {
  int64_t bound = 0, lead = 0; // lead: from the start of stage 0's first F to that of stage a's
  int64_t loop = 0; // F and gradient of all stages above a, and both ways between: for one microbatch
  for (int s = 0; s < p->stages - 1; s++)
    loop +=
        p->comm_forward_ns[s] + p->comm_backward_ns[s] + p->f_ns[s + 1] + zb_profile_gradient_ns(p, s + 1);
  for (int a = 0; a < p->stages; a++) {
    if (p->chunk_of[a] == 0) {
      int64_t shift = objective == ZB_MAKESPAN ? lead : 0;
      int64_t last_step = zb_profile_backward_ns(p, a);
      int64_t own = zb_max(zb_profile_least_work(p, p->device_of[a]), p->f_ns[a] + loop + last_step);
      bound = zb_max(bound, shift + own);
      int64_t fill = 0, drain = last_step; // between stage a and stage z
      for (int z = a + 1; z < p->stages; z++) {
        fill += p->f_ns[z - 1] + p->comm_forward_ns[z - 1];
        drain += p->comm_backward_ns[z - 1] + (z - 1 > a ? zb_profile_gradient_ns(p, z - 1) : 0);
        if (p->chunk_of[z] == 0)
          bound = zb_max(bound, shift + fill + gradient_work(p, p->device_of[z]) + drain);
      }
    }
    if (a + 1 < p->stages) {
      lead += p->f_ns[a] + p->comm_forward_ns[a];
      loop -=
          p->comm_forward_ns[a] + p->comm_backward_ns[a] + p->f_ns[a + 1] + zb_profile_gradient_ns(p, a + 1);
    }
  }
  return bound;
}
