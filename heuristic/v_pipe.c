// v_pipe.c - the sweep's bookkeeping: times, memory and words of the devices of a V.
#include "heuristic/v_pipe.h"

#include <assert.h>
#include <stdlib.h>

#include "heuristic/tournament.h"
#include "solver/model/number.h"

enum { CHUNKS = 2, OPS_OF_ONE = 6 };

enum zb_status zb_v_pipe_create(int devices, int microbatches, struct zb_v_pipe *pipe,
                                struct zb_error *error) {
  const size_t p = (size_t)devices, m = (size_t)microbatches;
  struct zb_v_pipe q = {.devices = devices, .microbatches = microbatches};
  q.stage = calloc(CHUNKS * p, sizeof *q.stage);
  q.device = calloc(p, sizeof *q.device);
  q.clock = malloc(zb_tournament_length(devices) * sizeof *q.clock);
  q.ends = malloc(2 * CHUNKS * p * m * sizeof *q.ends);
  q.words = malloc(OPS_OF_ONE * p * m);
  if (!q.stage || !q.device || !q.clock || !q.ends || !q.words) {
    zb_v_pipe_free(&q);
    return zb_fail_memory(error);
  }
  for (size_t s = 0; s < CHUNKS * p; s++) {
    q.stage[s].forward_end_ns = q.ends + 2 * s * m;
    q.stage[s].backward_end_ns = q.ends + (2 * s + 1) * m;
  }
  for (size_t i = 0; i < p; i++) {
    q.device[i].word = q.words + OPS_OF_ONE * i * m;
    q.device[i].stage[0] = &q.stage[i];
    q.device[i].stage[1] = &q.stage[CHUNKS * p - 1 - i];
  }
  *pipe = q;
  return ZB_OK;
}

void zb_v_pipe_free(struct zb_v_pipe *pipe) {
  free(pipe->stage);
  free(pipe->device);
  free(pipe->clock);
  free(pipe->ends);
  free(pipe->words);
  *pipe = (struct zb_v_pipe){0};
}

void zb_v_pipe_clear(struct zb_v_pipe *pipe) {
  pipe->longest_ns = 0;
  for (int s = 0; s < CHUNKS * pipe->devices; s++) {
    struct zb_v_stage *stage = &pipe->stage[s];
    stage->forwards = stage->backwards = stage->weights = 0;
  }
  for (int i = 0; i < pipe->devices; i++) {
    struct zb_v_device *d = &pipe->device[i];
    d->start_ns = d->end_ns = d->idle_ns = d->kept_bytes = d->peak_bytes = 0;
    d->count = 0;
    d->work_ns = 0;
    for (int chunk = 0; chunk < CHUNKS; chunk++) {
      const struct zb_v_stage *stage = &pipe->stage[zb_v_stage_of(pipe, i, chunk)];
      d->work_ns += pipe->microbatches * (stage->f_ns + stage->b_ns + stage->w_ns);
    }
    pipe->longest_ns = zb_max(pipe->longest_ns, d->work_ns);
  }
}

static void fuse(struct zb_v_stage *stage, int64_t bw_ns) {
  stage->fused = true;
  stage->b_ns = bw_ns;
  stage->w_ns = 0;
  stage->b_bytes = -stage->f_bytes;
  stage->w_bytes = 0;
}

// Only the fused backward fits where a B that grows memory does not even for a microbatch that is alone, when
// the device keeps what its other stage has not given back.
static bool must_fuse(const struct zb_v_pipe *pipe, int device, int chunk) {
  int64_t kept = pipe->stage[device].f_bytes;
  const struct zb_v_stage *stage = &pipe->stage[zb_v_stage_of(pipe, device, chunk)];
  if (chunk == 1) kept += stage->f_bytes;
  return kept + zb_max(stage->b_bytes, 0) > pipe->device[device].room_bytes;
}

void zb_v_pipe_take_profile(struct zb_v_pipe *pipe, const struct zb_profile *profile,
                            const int64_t *most_bytes, bool fuse_where_shorter) {
  const int last = profile->stages - 1;
  for (int s = 0; s <= last; s++) {
    struct zb_v_stage *stage = &pipe->stage[s];
    stage->f_ns = profile->f_ns[s];
    stage->b_ns = profile->b_ns[s];
    stage->w_ns = profile->w_ns[s];
    stage->f_bytes = profile->f_bytes[s];
    stage->b_bytes = profile->b_bytes[s];
    stage->w_bytes = profile->w_bytes[s];
    stage->forward_comm_ns = s > 0 ? profile->comm_forward_ns[s - 1] : 0;
    stage->backward_comm_ns = s < last ? profile->comm_backward_ns[s] : 0;
    stage->fused = false;
  }
  for (int i = 0; i < pipe->devices; i++) {
    const int64_t limit = profile->limit_bytes[i];
    int64_t room = limit == ZB_NO_LIMIT ? ZB_NO_LIMIT : limit - profile->static_bytes[i];
    if (most_bytes) room = zb_min(room, most_bytes[i]);
    pipe->device[i].room_bytes = room;
    for (int chunk = 0; chunk < CHUNKS; chunk++) {
      const int s = zb_v_stage_of(pipe, i, chunk);
      const bool shorter = zb_profile_fused_is_shorter(profile, s);
      if (must_fuse(pipe, i, chunk) || (fuse_where_shorter && shorter))
        fuse(&pipe->stage[s], profile->bw_ns[s]);
    }
  }
  zb_v_pipe_clear(pipe);
}

void zb_v_pipe_take_units(struct zb_v_pipe *pipe, int most_kept, bool fused) {
  for (int s = 0; s < CHUNKS * pipe->devices; s++) {
    struct zb_v_stage *stage = &pipe->stage[s];
    stage->f_ns = stage->b_ns = stage->w_ns = 1;
    stage->f_bytes = 1;
    stage->b_bytes = 0;
    stage->w_bytes = -1;
    stage->forward_comm_ns = stage->backward_comm_ns = 0;
    stage->fused = false;
    if (fused) fuse(stage, 2);
  }
  for (int i = 0; i < pipe->devices; i++) pipe->device[i].room_bytes = most_kept;
  zb_v_pipe_clear(pipe);
}

void zb_v_pipe_append(struct zb_v_pipe *pipe, int device, int chunk, enum zb_kind kind, int64_t start_ns) {
  struct zb_v_device *d = &pipe->device[device];
  struct zb_v_stage *stage = d->stage[chunk];
  if (d->count == 0) {
    d->start_ns = start_ns;
  } else {
    assert(start_ns >= d->end_ns);
    d->idle_ns += start_ns - d->end_ns;
    pipe->longest_ns = zb_max(pipe->longest_ns, d->work_ns + d->idle_ns);
  }
  d->word[d->count++] = (unsigned char)(4 * chunk + (int)kind);
  switch (kind) {
  case ZB_F:
    d->end_ns = start_ns + stage->f_ns;
    d->kept_bytes += stage->f_bytes;
    d->peak_bytes = zb_max(d->peak_bytes, d->kept_bytes);
    stage->forward_end_ns[stage->forwards++] = d->end_ns;
    break;
  case ZB_B:
  case ZB_BW:
    assert(stage->backwards < stage->forwards);
    d->end_ns = start_ns + stage->b_ns;
    d->kept_bytes += stage->b_bytes;
    d->peak_bytes = zb_max(d->peak_bytes, d->kept_bytes);
    stage->backward_end_ns[stage->backwards++] = d->end_ns;
    if (stage->fused) stage->weights++;
    break;
  case ZB_W:
    assert(stage->weights < stage->backwards);
    d->end_ns = start_ns + stage->w_ns;
    d->kept_bytes += stage->w_bytes;
    stage->weights++;
    break;
  }
}

int64_t zb_v_pipe_arrival(const struct zb_v_pipe *pipe, int device, enum zb_v_class class) {
  const struct zb_v_stage *stage = pipe->device[device].stage[class == ZB_V_F1 || class == ZB_V_B1];
  if (class == ZB_V_F0 || class == ZB_V_F1) {
    const int j = stage->forwards;
    if (j == pipe->microbatches) return ZB_NEVER;
    if (stage == pipe->stage) return 0;
    return stage[-1].forwards > j ? stage[-1].forward_end_ns[j] + stage->forward_comm_ns : ZB_NEVER;
  }
  const int j = stage->backwards;
  if (j == stage->forwards) return ZB_NEVER;
  if (stage == pipe->device[0].stage[1]) return stage->forward_end_ns[j];
  return stage[1].backwards > j ? stage[1].backward_end_ns[j] + stage->backward_comm_ns : ZB_NEVER;
}

int64_t zb_v_pipe_span(const struct zb_v_pipe *pipe) {
  int64_t span_ns = 0;
  for (int i = 0; i < pipe->devices; i++)
    span_ns = zb_max(span_ns, pipe->device[i].end_ns - pipe->device[i].start_ns);
  return span_ns;
}

int64_t zb_v_pipe_makespan(const struct zb_v_pipe *pipe) {
  int64_t end_ns = 0;
  for (int i = 0; i < pipe->devices; i++) end_ns = zb_max(end_ns, pipe->device[i].end_ns);
  return end_ns;
}

void zb_v_pipe_write(const struct zb_v_pipe *pipe, struct zb_schedule_builder *builder) {
  zb_builder_clear(builder);
  for (int i = 0; i < pipe->devices; i++) {
    const struct zb_v_device *d = &pipe->device[i];
    int next[8] = {0};
    for (int k = 0; k < d->count; k++) {
      const int letter = d->word[k];
      zb_builder_append(builder, zb_v_stage_of(pipe, i, letter / 4), (enum zb_kind)(letter % 4),
                        next[letter]++);
    }
  }
}
