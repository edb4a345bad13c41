/* zbcheck: what the parts of window propagation share, see zbcheck_window.c.
 *
 *   zbcheck_window.c   the windows; what travels between devices; down and up a proof tree
 *   zbcheck_chain.c    the sweep of a device with one stage
 *   zbcheck_sweep.c    the sweep of a device with several
 *   zbcheck_pour.c     the same where W is poured and not counted: the relaxation `fluid-w`
 *   zbcheck_nodes.c    the sparse sets of states of the last two
 *   zbcheck_front.c    a search over all devices at once, from what propagation found: `fronts`
 *   zbcheck_fluid.c    another, in which W is poured: `fluid-fronts`
 *
 * Times in ns, on the clock of the device that is spoken about. */
#ifndef ZBCHECK_WINDOW_H
#define ZBCHECK_WINDOW_H

#include "zbcheck.h"

enum {
  ZC_MOST_CLASSES = 3 * ZC_MOST_CHUNKS, /* F, B and W of each */
  ZC_MOST_STEPS = 4 * ZC_MOST_CHUNKS,   /* and BW */
  ZC_MOST_STATES = 1 << 28              /* that a sweep holds at once */
};

static const int64_t zc_never = INT64_MAX / 4; /* later than any time, with room to add to it */

/* One stage: what is known of its ops, number k being the k-th of its kind on the device. */
struct zc_stage {
  int32_t device, chunk;          /* chunk: its position there */
  int64_t f, b, w, bw;            /* times */
  int64_t gradient, full;         /* the least of B or BW, and of a whole backward */
  int64_t keep_f, keep_b, keep_w; /* memory */
  bool fusing;                    /* BW is an op */
  int64_t forward, backward;      /* delays against the stage before; 0 on one device */
  int64_t *f_start, *f_end;       /* [m] earliest start, latest end */
  int64_t *b_start, *b_end, *b_first_end, *b_last_start, *b_least; /* of B or BW; the least time it takes */
  int64_t *fused_low, *fused_high;                                 /* 0 or 1: is B number k a BW */
};

/* One device. Its classes of ops: F of each chunk, B of each (a BW counts), then W of each (a BW counts) or,
 * where `merged`, all W. */
struct zc_device {
  int32_t chunks;
  const int32_t *stages; /* [chunks] */
  bool limited;
  int64_t room; /* the limit less what is always there */
  bool merged;
  int32_t classes;
  int32_t count[ZC_MOST_CLASSES]; /* ops of a class */
  int64_t **low, **high;          /* [counted * classes + starting][index] */
  bool weights_split;             /* the proof restricts what is done when some W starts */
  bool dirty;                     /* its windows have moved since it was swept */
  int32_t feeder, parent, depth;  /* stage before its first, that one's device (-1: none), devices above it */
  int64_t offset_low, offset_high; /* start of its clock on the parent's */
  bool open;                       /* .. is not known from the start */
};

/* The extremes over the possible steps that do one op. */
struct zc_found {
  int64_t first_start, last_start, first_end, last_end, least_time;
};

struct zc_change {
  int64_t *cell;
  int64_t old;
};

struct zc_nodes;

/* One stage a device: the states (i, j, low..high) of one pair (F done, B done); l is at times[base + l]. */
struct zc_row {
  int64_t base;
  int32_t low, high;
};

struct zc_windows {
  struct zc_run *run;
  enum zc_objective objective;
  int32_t devices, stages, m;
  int64_t target;
  int64_t tick; /* offsets are multiples of it */
  bool empty;   /* target below 0: nothing costs that little */
  bool poured;  /* relaxation fluid-w */
  bool moved;   /* something was narrowed since this was last cleared */
  struct zc_stage *stage;
  struct zc_device *device;
  int32_t *order;      /* [devices] by their first stage */
  struct zc_row *rows; /* one stage a device: [(m + 1) * (m + 1)] */
  int64_t *times;      /* of states: E while sweeping forwards, L from behind */
  size_t times_room;
  struct zc_nodes *nodes;     /* several stages a device */
  struct zc_found *found_ops; /* [2 * chunks * m] of the device being swept: by class, F then B */
  int64_t *found_counts;      /* [2 * chunks * m * classes * 2] least and most done when that op starts */
  int64_t *leave;             /* scratch of a sweep: L of one row */
  int64_t *way_down, *way_up; /* [stages] scratch of the lags */
  struct zc_change *changes;  /* what to put back on the way up the tree */
  size_t changes_count, changes_room;
  size_t *levels;
  size_t levels_count, levels_room;
  int64_t sweeps, states;
  bool out_of_memory, too_large;
};

static inline int64_t zc_least(int64_t a, int64_t b) { return a < b ? a : b; }

static inline int64_t zc_most(int64_t a, int64_t b) { return a > b ? a : b; }

static inline bool zc_within(int64_t value, const int64_t *low, const int64_t *high, int64_t index) {
  return low[index] <= value && value <= high[index];
}

/* Narrow what is kept, on the record of the tree. Both say whether anything moved. */
bool zc_at_least(struct zc_windows *windows, int64_t *cell, int64_t value);
bool zc_at_most(struct zc_windows *windows, int64_t *cell, int64_t value);

/* Takes a sweep's result for one stage, and says whether anything moved. */
bool zc_take_found(struct zc_windows *windows, struct zc_stage *stage, const struct zc_found *f_found,
                   const struct zc_found *b_found);

static inline void zc_clear_found(struct zc_found *found, int64_t count) {
  for (int64_t k = 0; k < count; k++) found[k] = (struct zc_found){zc_never, -1, zc_never, -1, zc_never};
}

static inline void zc_find(struct zc_found *found, int64_t first, int64_t last, int64_t takes) {
  found->first_start = zc_least(found->first_start, first);
  found->last_start = zc_most(found->last_start, last);
  found->first_end = zc_least(found->first_end, first + takes);
  found->last_end = zc_most(found->last_end, last + takes);
  found->least_time = zc_least(found->least_time, takes);
}

static inline int64_t *zc_low(const struct zc_device *d, int32_t counted, int32_t starting) {
  return d->low[counted * d->classes + starting];
}

static inline int64_t *zc_high(const struct zc_device *d, int32_t counted, int32_t starting) {
  return d->high[counted * d->classes + starting];
}

/* Rows for zc_sweep_chain. NULL, with a finding, without memory. */
struct zc_row *zc_chain_rows(struct zc_run *run, int32_t microbatches);

/* The sweeps. `dirty` is cleared where all is narrowed to what a second sweep would find. */
enum zc_outcome zc_sweep_chain(struct zc_windows *windows, int32_t device);
enum zc_outcome zc_sweep_states(struct zc_windows *windows, int32_t device);
enum zc_outcome zc_sweep_poured(struct zc_windows *windows, int32_t device);

/* ---- several stages a device (zbcheck_nodes.c) ---- */

/* Something a device may do next, and the classes that it counts in. */
struct zc_step {
  enum zc_kind kind;
  struct zc_stage *stage;
  int32_t first, second; /* BW: B, W. Others: -1 as the second */
  int32_t edge;          /* number of the node that it leads to; steps that lead to the same one share it */
  int32_t dense;         /* 1: it counts in the class that nodes leave out */
  int64_t time;
};

struct zc_node_at {
  uint64_t key[2]; /* counts, packed */
  int32_t next;    /* of the same level, -1 at the end */
};

enum { ZC_TABLES = 3 }; /* a step adds at most 2 to the level */

/* The nodes of one level by their counts: a hash table with open addressing. */
struct zc_table {
  int32_t *slot; /* [slots] -1: free */
  size_t slots, used;
  int64_t level;
};

/* States without the class that is kept as an interval (or poured), found as the sweep goes. A node's level
 * is the sum of its counts; steps lead to higher levels. */
struct zc_nodes {
  int32_t classes;
  int32_t word[ZC_MOST_CLASSES], shift[ZC_MOST_CLASSES], width[ZC_MOST_CLASSES];
  int32_t edges, steps;
  struct zc_step step[ZC_MOST_STEPS];
  struct zc_node_at *node;
  int32_t *to; /* [count * edges] -1: none */
  void *data;  /* [count] what the sweep keeps of each */
  size_t data_size;
  int32_t *head; /* [levels] */
  int64_t levels;
  size_t node_room, to_room, data_room, head_room, count;
  struct zc_table table[ZC_TABLES];
};

/* Empties the set for a device: nodes count its first `classes` classes, and come with `data_size` bytes.
 * With W classes the steps are F, B, W of counted classes, BW; without, F and B. */
enum zc_outcome zc_nodes_begin(struct zc_windows *windows, const struct zc_device *device, int32_t classes,
                               size_t data_size);

/* Frees what has grown. */
void zc_nodes_free(struct zc_nodes *nodes);

/* Unpacks a node's counts. */
static inline void zc_nodes_counts(const struct zc_nodes *nodes, int32_t node, int32_t *counts) {
  const uint64_t *key = nodes->node[node].key;

  for (int32_t c = 0; c < nodes->classes; c++)
    counts[c] = (int32_t)(key[nodes->word[c]] >> nodes->shift[c] & (((uint64_t)1 << nodes->width[c]) - 1));
}

/* The node with these counts, -1 where there is none. */
int32_t zc_nodes_find(const struct zc_nodes *nodes, const int32_t *counts);

/* Adds a node that is not there yet; its data and edges (-1) are the caller's to fill. -1, with
 * windows->out_of_memory or too_large, where there is no room. */
int32_t zc_nodes_add(struct zc_windows *windows, const int32_t *counts);

/* Whether the order of ops on a device and the restrictions on the classes of nodes allow a step. */
bool zc_step_allowed(const struct zc_windows *windows, const struct zc_device *device,
                     const struct zc_step *step, const int32_t *counts);

/* The node that a step leads to, -1 where it is not there yet, and the counts there. */
int32_t zc_step_to(const struct zc_nodes *nodes, const struct zc_step *step, const int32_t *counts,
                   int32_t *there);

/* found_counts: the least of `counted` done when number `index` of `starting` starts; the most is next. */
static inline int64_t *zc_counts_at(const struct zc_windows *w, const struct zc_device *d, int32_t starting,
                                    int32_t index, int32_t counted) {
  return &w->found_counts[2 * (((int64_t)starting * w->m + index) * d->classes + counted)];
}

/* A possible step of that op from a state with these counts of the first `classes` classes. */
static inline void zc_counts_found(const struct zc_windows *w, const struct zc_device *d, int32_t starting,
                                   int32_t index, const int32_t *counts, int32_t classes) {
  int64_t *at = zc_counts_at(w, d, starting, index, 0);

  for (int32_t c = 0; c < classes; c++, at += 2) {
    at[0] = zc_least(at[0], counts[c]);
    at[1] = zc_most(at[1], counts[c]);
  }
}

void zc_clear_counts(struct zc_windows *windows, const struct zc_device *device);

/* Takes what a sweep found of windows, and of the counts of the first `classes` classes. Says whether
 * anything moved. */
bool zc_take_device(struct zc_windows *windows, const struct zc_device *device, int32_t classes);

#endif
