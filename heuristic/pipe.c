// pipe.c - appending ops to a chain of devices and knowing when their outputs arrive.
#include "heuristic/pipe.h"

#include <assert.h>
#include <stdlib.h>

#include "solver/model/number.h"

enum zb_status zb_pipe_create(const struct zb_profile *profile, int64_t most_bytes, struct zb_pipe *pipe,
                              struct zb_error *error) {
  const size_t devices = (size_t)profile->devices, microbatches = (size_t)profile->microbatches;
  struct zb_pipe q = {.profile = profile, .devices = profile->devices, .microbatches = profile->microbatches};
  q.device = calloc(devices, sizeof *q.device);
  q.ends = malloc(2 * devices * microbatches * sizeof *q.ends);
  q.words = malloc(3 * devices * microbatches);
  if (!q.device || !q.ends || !q.words) {
    zb_pipe_free(&q);
    return zb_fail_memory(error);
  }
  for (size_t i = 0; i < devices; i++) {
    struct zb_pipe_device *d = &q.device[i];
    const int64_t limit = profile->limit_bytes[i];
    d->room_bytes = limit == ZB_NO_LIMIT ? ZB_NO_LIMIT : limit - profile->static_bytes[i];
    d->room_bytes = zb_min(d->room_bytes, most_bytes);
    d->from_previous_ns = i > 0 ? profile->comm_forward_ns[i - 1] : 0;
    d->from_next_ns = i + 1 < devices ? profile->comm_backward_ns[i] : 0;
    d->f_ns = profile->f_ns[i];
    d->f_bytes = profile->f_bytes[i];
    d->forward_end_ns = q.ends + 2 * i * microbatches;
    d->backward_end_ns = d->forward_end_ns + microbatches;
    d->word = q.words + 3 * i * microbatches;
  }
  *pipe = q;
  return ZB_OK;
}

void zb_pipe_free(struct zb_pipe *pipe) {
  free(pipe->device);
  free(pipe->ends);
  free(pipe->words);
  pipe->device = NULL;
  pipe->ends = NULL;
  pipe->words = NULL;
}

void zb_pipe_clear(struct zb_pipe *pipe, bool fuse_where_shorter) {
  const struct zb_profile *profile = pipe->profile;
  pipe->largest_idle_ns = 0;
  for (int i = 0; i < pipe->devices; i++) {
    struct zb_pipe_device *d = &pipe->device[i];
    const int64_t growth = zb_max(profile->b_bytes[i], 0);
    const bool shorter = zb_profile_fused_is_shorter(profile, i);
    d->fused = growth > d->room_bytes - d->f_bytes || (fuse_where_shorter && shorter);
    d->b_ns = d->fused ? profile->bw_ns[i] : profile->b_ns[i];
    d->w_ns = d->fused ? 0 : profile->w_ns[i];
    d->b_bytes = d->fused ? -d->f_bytes : profile->b_bytes[i];
    d->w_bytes = d->fused ? 0 : profile->w_bytes[i];
    const int64_t fit =
        d->f_bytes > 0 ? (d->room_bytes - zb_max(d->b_bytes, 0)) / d->f_bytes : pipe->microbatches;
    assert(fit >= 1);
    d->most_kept = (int)zb_min(fit, pipe->microbatches);
    d->forwards = d->backwards = d->weights = 0;
    d->forward_last = false;
    d->start_ns = d->end_ns = d->idle_ns = d->kept_bytes = 0;
  }
}

// Accounts for the op's place on its device and writes its letter.
static void pipe_append(struct zb_pipe *pipe, struct zb_pipe_device *d, enum zb_kind kind, int64_t start_ns,
                        int64_t time_ns) {
  const int count = d->forwards + d->backwards + (d->fused ? 0 : d->weights);
  if (count == 0) {
    d->start_ns = start_ns;
  } else {
    assert(start_ns >= d->end_ns);
    d->idle_ns += start_ns - d->end_ns;
    pipe->largest_idle_ns = zb_max(pipe->largest_idle_ns, d->idle_ns);
  }
  d->end_ns = start_ns + time_ns;
  d->word[count] = (unsigned char)kind;
}

void zb_pipe_forward(struct zb_pipe *pipe, int device, int64_t start_ns) {
  struct zb_pipe_device *d = &pipe->device[device];
  pipe_append(pipe, d, ZB_F, start_ns, d->f_ns);
  d->kept_bytes += d->f_bytes;
  d->forward_end_ns[d->forwards++] = d->end_ns;
  d->forward_last = true;
}

void zb_pipe_backward(struct zb_pipe *pipe, int device, int64_t start_ns) {
  struct zb_pipe_device *d = &pipe->device[device];
  assert(d->backwards < d->forwards);
  pipe_append(pipe, d, d->fused ? ZB_BW : ZB_B, start_ns, d->b_ns);
  d->kept_bytes += d->b_bytes;
  d->backward_end_ns[d->backwards++] = d->end_ns;
  d->forward_last = false;
  if (d->fused) d->weights++;
}

void zb_pipe_weight(struct zb_pipe *pipe, int device, int64_t start_ns) {
  struct zb_pipe_device *d = &pipe->device[device];
  assert(d->weights < d->backwards);
  pipe_append(pipe, d, ZB_W, start_ns, d->w_ns);
  d->kept_bytes += d->w_bytes;
  d->weights++;
}

int64_t zb_pipe_forward_arrival(const struct zb_pipe *pipe, int device) {
  const struct zb_pipe_device *d = &pipe->device[device];
  if (d->forwards == pipe->microbatches) return ZB_NEVER;
  if (device == 0) return 0;
  if (d->forwards == d[-1].forwards) return ZB_NEVER;
  return d[-1].forward_end_ns[d->forwards] + d->from_previous_ns;
}

int64_t zb_pipe_backward_arrival(const struct zb_pipe *pipe, int device) {
  const struct zb_pipe_device *d = &pipe->device[device];
  if (d->backwards == d->forwards) return ZB_NEVER;
  if (device == pipe->devices - 1) return d->forward_end_ns[d->backwards];
  if (d->backwards == d[1].backwards) return ZB_NEVER;
  return d[1].backward_end_ns[d->backwards] + d->from_next_ns;
}

int64_t zb_pipe_cost(const struct zb_pipe *pipe, enum zb_objective objective) {
  int64_t cost_ns = 0;
  for (int i = 0; i < pipe->devices; i++) {
    const struct zb_pipe_device *d = &pipe->device[i];
    cost_ns = zb_max(cost_ns, d->end_ns - (objective == ZB_SPAN ? d->start_ns : 0));
  }
  return cost_ns;
}

void zb_pipe_write(const struct zb_pipe *pipe, struct zb_schedule_builder *builder) {
  zb_builder_clear(builder);
  for (int i = 0; i < pipe->devices; i++) {
    const struct zb_pipe_device *d = &pipe->device[i];
    const int count = d->forwards + d->backwards + (d->fused ? 0 : d->weights);
    int next[4] = {0};
    for (int k = 0; k < count; k++)
      zb_builder_append(builder, i, (enum zb_kind)d->word[k], next[d->word[k]]++);
  }
}
