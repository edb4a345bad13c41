// chunked.h - any placement in the units the exact engine computes in: several stages a device.
//
// This comment is also the specification of a leaf: what propagation may use to refute that a schedule of
// cost at most S exists, exactly enough that a second program can be written from it. All rules only narrow
// what is known and are monotone, so their fixpoint does not depend on the order in which they run, and a
// program that does more still refutes whatever these do.
//
// Conventions. Stages are numbered 0 .. n-1 along the pipe; a device's stages are its chunks 0 .. v-1 in that
// order; k counts microbatches from 0. On every stage the k-th F is microbatch k's, and so is the k-th B
// (design.md section 2). A stage's backward may be fused (one op BW in place of B and W) where bw < b + w, or
// where b_bytes > 0 and the device has a limit; elsewhere BW is not an op. gradient = min(b, bw) where it may
// be fused, else b; backward = min(b + w, bw) where it may be fused, else b + w. fc(s), bc(s): forward and
// backward comm between stages s - 1 and s, 0 on one device. "B" below is B or BW. Times that are written to
// a file are ns; S is bound_ns - 1. For span and makespan it may be rounded down to a multiple of the common
// divisor of all times (f, b, w, bw, comm of every stage), since every cost is one. Where S is such a
// multiple, so are the offsets that matter, and a split of one at a value between two multiples tells those
// two apart.
//
// What is known, for every stage and k: of F the earliest start and the latest end; of B the earliest start,
// the earliest end, the latest start, the latest end, and the range of `fused` in 0..1. For every device, for
// pairs of its classes (A, B): the least and most number of A done when op k of B starts. A class is the F of
// one chunk, the B of one chunk (BW counts), or the W of one chunk; where w, w_bytes and
// backward - gradient are equal on all chunks of the device, W is instead one class for all of them ("W"
// without a position in a proof; a BW counts in it, too), since then it does not matter which of them runs.
// Times are on the device's own clock.
//
// Clocks. makespan: one clock for all; offset 0 between any two devices. span and period: a device's clock is
// zero at the start of its first op, which is F of microbatch 0 on its chunk 0. For a device e let q be the
// stage before its chunk 0 (none: e holds stage 0), and d the device of q, which feeds e. offset(e), the
// start of e on d's clock, is
//   span, q is d's chunk 0:   exactly f(q) + fc(q+1) (e starts as the first microbatch arrives);
//   span, otherwise:          an interval, first [f(q) + fc(q+1), max(that, S)];
//   period:                   an interval, likewise.
// The offset between any two devices is the sum along the feeding devices, subtracted where the way goes
// towards stage 0: an interval [lo, hi] of sums of ends.
//
// At first every start is at least 0, every end and latest start at most S, `fused` is 0 where BW is no op,
// else 0..1, counts are anything from 0 to all. Besides: F of microbatch 0 on chunk 0 of a device ends at f
// at the latest (span, period). makespan: it starts at lead = the sum of f(s) + fc(s+1) over the stages
// before, at the earliest, and ends at lead + f at the latest if every stage that feeds this device or one
// that feeds it, down to stage 0, is chunk 0 of its device.
//
// Rules.
//  sweep    One device. A state is how many ops of each class are done. F0 >= F1 >= .. >=
//           F(v-1) >= B(v-1) >= .. >= B0 of its chunks and Wc <= Bc hold in every state (W as one class: at
//           most the sum of all B); so does sum of count * bytes over all classes <= limit - static. A step
//           does one op: F or B of a chunk, W of a class, or, where allowed, BW of a chunk (B and W of it at
//           once). A step of F or B number k must start no earlier than the op's earliest start, end no later
//           than its latest end, find counts within the pairs known for it, and be split or fused as `fused`
//           allows. W starts whenever it can. E(state): earliest time at which it can be reached from (0, ..,
//           0) at time 0, one op after another. L(state): latest time at which it can be left so that the
//           state of all ops done is reached by S. A step from u to t survives if max(E(u), release) + time
//           <= min(L(t), latest end). If (0, .., 0) has no way to the end, S is refuted. Otherwise for each F
//           and B number k, over the surviving steps that do it: earliest start = least max(E(u), release);
//           earliest end likewise plus time; latest end = greatest min(L(t), latest end); latest start
//           likewise less time; `fused` and the counts of the other classes in u: least and greatest. (Pairs
//           are kept once: where A comes before B in the list B0, .., B(v-1), F(v-1), .., F0, W.., for A
//           starting and B counted. The other way round says the same: at most x of A are done when op k of B
//           starts iff at least k + 1 of B are done when op x of A starts; for A = B of a chunk and B its W,
//           where the chunk may be fused, at least k of B, for they may be one op.)
//  link     Stages s and s+1 on different devices, [lo, hi] the offset of that of s+1 against that of s:
//             earliest start F(s+1,k) >= earliest start F(s,k) + f(s) + fc(s+1) - hi
//             latest end     F(s,k)   <= latest end F(s+1,k) - f(s+1) - fc(s+1) + hi
//             earliest start B(s,k)   >= earliest end B(s+1,k) + bc(s+1) + lo
//             latest end     B(s+1,k) <= latest start B(s,k) - bc(s+1) - lo
//  lag      Chunks s and t of one device, t the next after s; down = fc of all stages from s+1 to t plus f of
//           those strictly between, up = bc and gradient likewise:
//             earliest start F(t,k) >= earliest start F(s,k) + f(s) + down
//             latest end     F(s,k) <= latest end F(t,k) - f(t) - down
//             earliest start B(s,k) >= earliest end B(t,k) + up
//             latest end     B(t,k) <= latest start B(s,k) - up
//           And for its last chunk t, around = fc, f, gradient and bc of all stages behind t:
//             earliest start B(t,k) >= earliest start F(t,k) + f(t) + around
//             latest end     F(t,k) <= latest start B(t,k) - around
//  offset   Where offset(e) is an interval [lo, hi], q and d as above:
//             lo >= earliest start F(q,0) + f(q) + fc(q+1)
//             latest end F(q,0) <= hi - fc(q+1)
//             hi <= latest start B(q,0) - bc(q+1) - earliest end B(q+1,0)
//             span only: hi <= latest end F(q,0) + fc(q+1)
//                        earliest start F(q,0) >= lo - fc(q+1) - f(q)
//           An empty interval refutes S.
//
// Relaxation `fluid-w`. The states of a large device do not fit into memory; then W is not counted but poured
// into the time left. All devices are swept so; the other rules stay. Let n be the counts of F and B alone,
//   w'       of a chunk: backward - gradient where it may be fused, else w
//   base(n)  sum of F * f + B * gradient; rest(n) = base(all) - base(n)
//   total    sum of m * w' over the chunks
//   most(n)  sum of B * w': as much W as can be done
//   least(n) so much W as must be done for n to fit. over = sum of F * f_bytes + B * b_bytes less
//            (limit - static).
//            If over <= 0: 0. If it is more than the sum of B * -w_bytes, n does not fit. With W as one class
//            ceil(over / -w_bytes) * w'. With W apart the sum over chunks of ceil(lack / -w_bytes) * w',
//            where lack = over less what all W of the other chunks' B give back, and only where lack > 0.
//   slack    S - base(all) - total; below 0 refutes S
// A step goes from n to n' by F or B number k of a chunk; r and e are the op's earliest start and latest end,
// time is f or gradient, and
//   need     least(n'), for a B that may be fused less its w', at least 0
// For each n two numbers forward: T, the earliest time it can be entered, and I, the least time until then
// that is not spent on work. At n = 0 both are 0. Over all steps into n', each number on its own,
//   I' = max(I(n), r - base(n) - most(n))      start = max(T(n), r, base(n) + need + I')
//   I(n') = least I'                           T(n') = max(least start + time, base(n') + least(n') + I(n'))
// without steps with start + time > e or I' > slack. A state is dead, and has no steps, if
// T(n) + rest(n) + total - most(n) > S or T(n) is above the latest start of an op that comes next in its
// class. Backward: L, the latest time n can be entered, and J, the least time after it not spent on work. At
// the end L = S, J = 0. Over all surviving steps out of n, each number on its own,
//   J' = max(J(n'), S - e - rest(n') - total + least(n'))
//   last = min(min(L(n'), e) - time, base(n) + most(n) + slack - J')
//   L(n) = greatest last, J(n) = least J'
// A step survives if it is one forward, n' is not dead, start <= last and I' + J' <= slack. A state is dead
// from then on if T(n) > L(n) or I(n) + J(n) > slack, or no step leaves it. If n = 0 is dead, S is refuted.
// Windows and pairs among F and B follow from the surviving steps as in the sweep: earliest start = least
// start, earliest end = least start + time, latest start = greatest last, latest end = greatest last + time,
// for a B that may be fused greatest min(L(n'), e, base(n') + most(n') + slack - J'). Nothing is learned of W
// and `fused`.
#ifndef ZB_CHUNKED_H
#define ZB_CHUNKED_H

#include <stdbool.h>
#include <stdint.h>

#include "solver/model/profile.h"
#include "solver/model/schedule.h"
#include "solver/model/status.h"

// Most classes of ops a device may have.
enum { ZB_MOST_CLASSES = 24 };

struct zb_stage {
  int device, chunk; // chunk: position among the device's stages, ascending
  int64_t f, b, w, bw;
  int64_t f_bytes, b_bytes, w_bytes;
  bool fused;       // a fused BW can pay: it is faster than B and W, or fits where B alone would not
  int64_t backward; // least ticks that B and W of one microbatch take, split or fused
  int64_t gradient; // least ticks from the start of B or BW to its input gradient
  int64_t forward_comm, backward_comm; // between this stage and the one before it; 0 on one device
  // Least ticks from the end of F here to the start of the same microbatch's next op on the device: F of the
  // device's next stage, or B here where this is its last. And from the gradient of the device's next stage
  // to B here.
  int64_t lag_forward, lag_backward;
};

// Ops that are counted together: all F or all B of a stage (BW is a B and a W), W of a stage, or, where they
// are alike on all stages of the device, all its W.
struct zb_op_class {
  enum zb_kind kind; // F, B or W
  int chunk;         // -1: all W of the device
  int stage;         // of chunk; where chunk is -1 the device's first
  int count;
  int64_t time, bytes;
};

struct zb_chunked_device {
  int chunks;
  const int *stage; // [chunks] ascending
  int64_t room_bytes;
  // B of the first stage, .., B of the last, F of the last, .., F of the first, then W: each count is at most
  // that of the next, and the last class is always W.
  int classes;
  struct zb_op_class class[ZB_MOST_CLASSES];
  bool weights_merged;
  int feeder;   // stage before the device's first, -1 on the device of stage 0
  int parent;   // its device
  bool prompt;  // the feeder's first op is its device's first op too: the start offset is known
  bool pinned;  // .. and so up to stage 0: the start in the one frame of a makespan is known
  int64_t lead; // least ticks from the start of stage 0 to the first arrival here
};

struct zb_chunked {
  int devices, stages, microbatches;
  struct zb_stage *stage;           // [stages]
  struct zb_chunked_device *device; // [devices]
  int *stage_at;                    // [stages] what device[].stage points into
  bool fluid;                       // devices are swept under the relaxation `fluid-w`
  bool open_offsets;                // some start offset is not known even for the span
};

// Fails with UNKNOWN where a device has more stages than ZB_MOST_CLASSES allows. Owned by the caller.
enum zb_status zb_chunked_create(const struct zb_profile *profile, int64_t tick_ns,
                                 struct zb_chunked **chunked, struct zb_error *error);
void zb_chunked_free(struct zb_chunked *chunked);

// The word of a bound that was proven under chunked->fluid.
extern const char *const zb_word_fluid;

// Without the dominance rule every backward may be fused.
void zb_chunked_allow_fused(struct zb_chunked *chunked);

// What is known of one device is arrays over microbatches: for each of its stages these, then for each pair
// of classes (counted, starting), starting before counted in the list and not W, the least and most of
// `counted` done when number k of `starting` starts. Even arrays hold lower bounds, odd ones upper.
enum zb_stage_window {
  ZB_STAGE_F_EARLY,      // earliest start
  ZB_STAGE_F_LATE,       // latest end
  ZB_STAGE_B_EARLY,      // earliest start, split or fused
  ZB_STAGE_B_LATE_START, // latest start
  ZB_STAGE_B_EARLY_END,  // earliest end of what hands the gradient on: B, or the whole BW
  ZB_STAGE_B_LATE,       // latest end
  ZB_STAGE_FUSED_LO,
  ZB_STAGE_FUSED_HI, // 1: backward k is fused
  ZB_STAGE_WINDOWS
};

static inline int zb_stage_array(int chunk, enum zb_stage_window window) {
  return chunk * ZB_STAGE_WINDOWS + (int)window;
}
// Lower array of a pair; the upper is the next.
static inline int zb_pair_array(const struct zb_chunked_device *device, int starting, int counted) {
  const int before = starting * (device->classes - 1) - starting * (starting - 1) / 2;
  return device->chunks * ZB_STAGE_WINDOWS + 2 * (before + counted - starting - 1);
}
static inline int zb_device_arrays(const struct zb_chunked_device *device) {
  return zb_pair_array(device, 2 * device->chunks, 2 * device->chunks + 1);
}
static inline int zb_class_of_b(const struct zb_chunked_device *device, int chunk) {
  (void)device;
  return chunk;
}
static inline int zb_class_of_f(const struct zb_chunked_device *device, int chunk) {
  return 2 * device->chunks - 1 - chunk;
}
static inline int zb_class_of_w(const struct zb_chunked_device *device, int chunk) {
  return 2 * device->chunks + (device->weights_merged ? 0 : chunk);
}

#endif
