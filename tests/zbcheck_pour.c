/* zbcheck: the relaxation `fluid-w`, a sweep in which W is not counted but poured into the time left.
 *
 * A state is the F and B done of each chunk. Of every schedule it is said what holds whatever W has been
 * done: between `least`, what memory forces, and `most`, all W of the backwards done. Work is counted at its
 * least: f for an F, `gradient` for a B or BW and `full - gradient` for the W of either; an op that takes
 * longer spends the rest idle. What is then left of S for idling is the slack. Four numbers a state, each
 * an extreme over all paths on its own:
 * - early: the earliest time at which it can be entered; late: the latest;
 * - idle: the least time until then that is not spent on work; spare: the least after it.
 *
 * Where an op cannot start before r, all that can have been done by then takes less than r, and the rest is
 * idle; where it has to end by e, at most what is left to do fits behind e, and the rest is idle. And a
 * time is what has been done by then and idle: `early` is at least the work that must have been done and
 * `idle`, `late` at most what can have been done and the slack without `spare`. Windows follow from the
 * steps that are possible; of W and of what is fused nothing is learned. */
#include "zbcheck_window.h"

struct pool {
  int64_t early, idle, late, spare;
  int64_t base, most, least; /* work done: F and B; W at most; W at least */
  bool dead;
};

struct pour {
  struct zc_windows *w;
  const struct zc_device *d;
  int64_t base, total; /* of the whole device: F and B; W */
  int64_t slack;
};

/* A step out of a state: what it is bound by, and the least idle time and the earliest start. */
struct move {
  int64_t release, deadline, own_w; /* own_w: W that it can do itself, as a BW */
  int64_t idle, start;
};

static struct pool *pool_of(const struct pour *x, int32_t node) {
  return (struct pool *)x->w->nodes->data + node;
}

/* W that memory forces. False where no W would be enough. */
static bool forced(const struct pour *x, const int32_t *n, int64_t *least) {
  const struct zc_device *d = x->d;
  int32_t v = d->chunks;
  int64_t over = -d->room, given = 0;

  *least = 0;
  if (!d->limited) return true;
  for (int32_t c = 0; c < v; c++) {
    const struct zc_stage *s = &x->w->stage[d->stages[c]];
    over += n[c] * s->keep_f + n[v + c] * s->keep_b;
    given -= n[v + c] * s->keep_w;
  }
  if (over <= 0) return true;
  if (over > given) return false;
  for (int32_t c = 0; c < v; c++) {
    const struct zc_stage *s = &x->w->stage[d->stages[c]];
    /* All alike: as many as it takes. Else what the other chunks could not give. */
    int64_t lack = d->merged ? over : over - given - n[v + c] * s->keep_w;
    if (lack > 0) *least += (lack - s->keep_w - 1) / -s->keep_w * (s->full - s->gradient);
    if (d->merged) break;
  }
  return true;
}

/* A new node. -1 where its F and B do not fit into memory, or there is no room. */
static int32_t add_pool(struct pour *x, const int32_t *n) {
  struct zc_windows *w = x->w;
  int32_t v = x->d->chunks;
  struct pool pool = {.early = zc_never, .idle = zc_never, .late = -1, .spare = zc_never};

  if (!forced(x, n, &pool.least)) return -1;
  for (int32_t c = 0; c < v; c++) {
    const struct zc_stage *s = &w->stage[x->d->stages[c]];
    pool.base += n[c] * s->f + n[v + c] * s->gradient;
    pool.most += n[v + c] * (s->full - s->gradient);
  }
  int32_t node = zc_nodes_add(w, n);
  if (node >= 0) *pool_of(x, node) = pool;
  return node;
}

static struct move step_bounds(const struct zc_step *step, const int32_t *n) {
  const struct zc_stage *s = step->stage;
  int32_t k = n[step->first];

  if (step->kind == ZC_F) return (struct move){.release = s->f_start[k], .deadline = s->f_end[k]};
  return (struct move){
      .release = s->b_start[k], .deadline = s->b_end[k], .own_w = s->fusing ? s->full - s->gradient : 0};
}

/* The earliest start from a state, into one where `least` is forced. False where there is none. */
static bool plan_move(const struct pour *x, const struct zc_step *step, const struct pool *from,
                      int64_t least, struct move *move) {
  int64_t need = zc_most(least - move->own_w, 0);

  move->idle = zc_most(from->idle, move->release - from->base - from->most);
  move->start = zc_most(zc_most(from->early, move->release), from->base + need + move->idle);
  return move->start + step->time <= move->deadline && move->idle <= x->slack;
}

/* Settles what has been pushed into a node. */
static bool dead_early(const struct pour *x, const int32_t *n, struct pool *pool) {
  const struct zc_windows *w = x->w;
  int32_t v = x->d->chunks;

  pool->early = zc_most(pool->early, pool->base + pool->least + pool->idle);
  if (pool->early + x->base - pool->base + x->total - pool->most > w->target) return true;
  for (int32_t c = 0; c < v; c++) {
    const struct zc_stage *s = &w->stage[x->d->stages[c]];
    if (n[c] < w->m && pool->early > s->f_end[n[c]] - s->f) return true;
    if (n[v + c] < w->m && pool->early > s->b_last_start[n[v + c]]) return true;
  }
  return false;
}

static bool step_forward(struct pour *x, int32_t node, const struct zc_step *step, const int32_t *n) {
  struct zc_windows *w = x->w;
  struct zc_nodes *nodes = w->nodes;
  struct pool from = *pool_of(x, node);
  struct move move = step_bounds(step, n);
  int32_t there[ZC_MOST_CLASSES], to;

  /* Without what the next state forces: what is not possible even so needs no node. */
  if (!plan_move(x, step, &from, 0, &move)) return true;
  to = zc_step_to(nodes, step, n, there);
  if (to < 0) to = add_pool(x, there);
  if (to < 0) return !w->out_of_memory && !w->too_large;
  struct pool *pool = pool_of(x, to);
  if (!plan_move(x, step, &from, pool->least, &move)) return true;
  nodes->to[(int64_t)node * nodes->edges + step->edge] = to;
  pool->idle = zc_least(pool->idle, move.idle);
  pool->early = zc_least(pool->early, move.start + step->time);
  return true;
}

static enum zc_outcome pour_forward(struct pour *x) {
  struct zc_windows *w = x->w;
  struct zc_nodes *nodes = w->nodes;
  int32_t counts[ZC_MOST_CLASSES] = {0};
  int32_t root = add_pool(x, counts);

  if (root < 0) return w->out_of_memory ? ZC_NO_MEMORY : ZC_REFUTED;
  pool_of(x, root)->early = pool_of(x, root)->idle = 0;
  for (int64_t level = 0; level < nodes->levels; level++) {
    for (int32_t node = nodes->head[level]; node >= 0; node = nodes->node[node].next) {
      struct pool *pool = pool_of(x, node);
      zc_nodes_counts(nodes, node, counts);
      if ((pool->dead = dead_early(x, counts, pool))) continue;
      for (int32_t i = 0; i < nodes->steps; i++) {
        if (!zc_step_allowed(w, x->d, &nodes->step[i], counts)) continue;
        if (!step_forward(x, node, &nodes->step[i], counts))
          return w->too_large ? ZC_TOO_LARGE : ZC_NO_MEMORY;
      }
    }
  }
  return ZC_OPEN;
}

static void step_back(struct pour *x, struct pool *pool, int32_t to, const struct zc_step *step,
                      const int32_t *n) {
  struct zc_windows *w = x->w;
  const struct pool *next = pool_of(x, to);
  struct move move = step_bounds(step, n);

  if (next->dead || !plan_move(x, step, pool, next->least, &move)) return;
  int64_t spare =
      zc_most(next->spare, w->target - move.deadline - (x->base - next->base) - x->total + next->least);
  int64_t last =
      zc_least(zc_least(next->late, move.deadline) - step->time, pool->base + pool->most + x->slack - spare);
  if (move.start > last || move.idle + spare > x->slack) return;
  pool->late = zc_most(pool->late, last);
  pool->spare = zc_least(pool->spare, spare);

  int32_t k = n[step->first];
  struct zc_found *found = &w->found_ops[step->first * w->m + k];
  zc_find(found, move.start, last, step->time);
  if (step->kind == ZC_B && step->stage->fusing) /* as a BW it can take longer */
    found->last_end = zc_most(found->last_end, zc_least(zc_least(next->late, move.deadline),
                                                        next->base + next->most + x->slack - spare));
  zc_counts_found(w, x->d, step->first, k, n, w->nodes->classes);
}

static void pour_back(struct pour *x) {
  struct zc_windows *w = x->w;
  const struct zc_nodes *nodes = w->nodes;
  int32_t counts[ZC_MOST_CLASSES];

  for (int64_t level = nodes->levels - 1; level >= 0; level--) {
    for (int32_t node = nodes->head[level]; node >= 0; node = nodes->node[node].next) {
      struct pool *pool = pool_of(x, node);
      if (pool->dead) continue;
      if (level == nodes->levels - 1) {
        pool->late = w->target;
        pool->spare = 0;
      }
      zc_nodes_counts(nodes, node, counts);
      for (int32_t i = 0; i < nodes->steps; i++) {
        int32_t to = nodes->to[(int64_t)node * nodes->edges + nodes->step[i].edge];
        if (to >= 0) step_back(x, pool, to, &nodes->step[i], counts);
      }
      pool->dead = pool->early > pool->late || pool->idle + pool->spare > x->slack;
    }
  }
}

enum zc_outcome zc_sweep_poured(struct zc_windows *w, int32_t device) {
  struct zc_device *d = &w->device[device];
  struct pour x = {.w = w, .d = d};
  int32_t classes = 2 * d->chunks;
  enum zc_outcome outcome;

  for (int32_t c = 0; c < d->chunks; c++) {
    const struct zc_stage *s = &w->stage[d->stages[c]];
    x.base += w->m * (s->f + s->gradient);
    x.total += w->m * (s->full - s->gradient);
  }
  x.slack = w->target - x.base - x.total;
  if (x.slack < 0) return ZC_REFUTED;
  w->sweeps++;
  zc_clear_found(w->found_ops, (int64_t)classes * w->m);
  zc_clear_counts(w, d);
  if ((outcome = zc_nodes_begin(w, d, classes, sizeof(struct pool))) != ZC_OPEN) return outcome;
  d->dirty = false;
  outcome = pour_forward(&x);
  w->states += (int64_t)w->nodes->count;
  if (outcome != ZC_OPEN) return outcome;
  pour_back(&x);
  if (pool_of(&x, 0)->dead) return ZC_REFUTED;
  /* What is found of counts rules out steps whose numbers counted here: a second sweep may find more. */
  d->dirty = zc_take_device(w, d, classes);
  return w->out_of_memory ? ZC_NO_MEMORY : ZC_OPEN;
}
