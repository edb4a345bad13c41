/* zbcheck: what the parts of the search of `fluid-fronts` share, see zbcheck_fluid.c.
 *
 *   zbcheck_fluid.c         nodes: what they imply, what has to run, their children
 *   zbcheck_fluid_ahead.c   one device of a node: which op can be its next
 *   zbcheck_fluid_table.c   one device alone: what its memory and its ends ask of it
 *   zbcheck_fluid_store.c   the nodes that are kept
 *
 * A microbatch goes through the F of all stages, then through their B from the last stage up: through lanes
 * 0, 1, .., a lane being the F or the B of a stage. Those of a device are numbered along the way, too.
 *
 * Times in ns, on the clock of the device that is spoken about. A device that is free at `clock` and has
 * `poured` of W done has the lag clock - poured: the time it has not spent on W. */
#ifndef ZBCHECK_FLUID_H
#define ZBCHECK_FLUID_H

#include "zbcheck_window.h"

/* A way to the end that a state still has, if its clock and its lag are at most these. */
struct fluid_point {
  int64_t clock, lag;
};

/* One device with some F and some B of each stage done. */
struct fluid_state {
  int64_t poured;  /* all W of the B done */
  int64_t kept;    /* memory of all F and B done, less what there is room for */
  int64_t enough;  /* W poured that no F to come asks for more than */
  int64_t late;    /* the most lag that meets the horizon, if nothing but ops adds to it */
  int32_t weights; /* how many W: B done */
  int32_t points;
  const struct fluid_point *point; /* [points] none: it leads nowhere */
};

/* The next op of a lane in a state. */
struct fluid_step {
  int64_t ready;     /* of F: W to be poured before it starts, if it is next; of B below all times */
  int64_t wait;      /* of F: it starts at lag + wait or later, whatever comes before it */
  int64_t after;     /* of F: it starts this long, or longer, after the last of the B that it waits for */
  int32_t more;      /* of F: how many B it waits for, at least */
  int32_t displaced; /* the most W done that an F asks for that comes before this op, once this has run */
  int32_t to;        /* the state behind it, -1 where that cannot be next */
};

struct fluid_lane {
  int32_t device, place; /* place: its number there */
  int64_t takes;
  int64_t delay;      /* from an end in the lane before to the input here */
  bool crosses;       /* that lane is another device's */
  const int64_t *end; /* [m] latest ends */
};

struct fluid_device {
  int32_t lanes;
  int32_t lane[ZC_MOST_CLASSES];   /* [lanes] */
  bool limited;                    /* then all W are alike: */
  int64_t w, gives;                /* what one takes, and gives back */
  int64_t keep[ZC_MOST_CLASSES];   /* [lanes] what an op adds to memory */
  int64_t longest;                 /* sum over the stages of times of F, B and W */
  int64_t offset;                  /* of its clock on the first device's */
  const struct fluid_state *state; /* the first has nothing done */
  const struct fluid_step *step;   /* [lanes] of each state */
  const uint16_t *count;           /* likewise: done in each lane */
};

/* Behind it the times: each device's clock, each one's lag, then the queues of the lanes that cross. */
struct fluid_node {
  struct fluid_node *next; /* of what is free */
  int32_t device;          /* whose choice it waits for */
  uint32_t run, hold;      /* its lanes to choose from: those that run, those that are waited for */
};

struct fluid_entry {
  uint64_t sketch; /* lane by lane, no more than that of a node that it covers */
  int64_t total;   /* sum of times */
  struct fluid_node *node;
};

/* Nodes with the same F and B done, and the same waited for, on every device. */
struct fluid_group {
  struct fluid_group *next;  /* of the layer */
  struct fluid_group *chain; /* of the slot */
  struct fluid_entry *entry; /* [entries] those that no other covers */
  int32_t entries, room;
  struct fluid_node *spare; /* room of nodes that were dropped */
  uint64_t hash;
  int32_t times;     /* of a node */
  int64_t middle[8]; /* of its sketches' lanes */
  int32_t key[];     /* [devices] zc_fluid_key */
};

struct fluid_block;

struct fluid_layer {
  struct fluid_group *groups;
  struct fluid_block *blocks; /* the first is being filled */
};

/* One device of the node at work. */
struct fluid_at {
  int64_t clock, lag;
  int32_t state; /* its number in the tables */
  int32_t held;  /* the lane that is waited for, -1 if there is none */
};

/* One lane of the node at work. */
struct fluid_lane_at {
  int32_t done;
  int64_t next; /* its next op starts no earlier; zc_never if there is none */
  int64_t *in;  /* [m] where it crosses: inputs of ops that are not done and whose senders are */
};

/* What a device of the node at work can run next. */
struct fluid_options {
  uint32_t run;  /* lanes whose next op can be next, and can start now */
  uint32_t wait; /* those whose can be next, but not yet */
  int64_t
      start[ZC_MOST_CLASSES]; /* of either: no earlier, as the next op of the device; if it can now, then */
};

/* The search. */
struct fluid {
  struct zc_run *run;
  int32_t devices, lanes, m;
  struct fluid_device *device;
  struct fluid_lane *lane;

  /* The node at work. */
  struct fluid_at *at;           /* [devices] */
  struct fluid_lane_at *lane_at; /* [lanes] */
  int32_t done;                  /* sum of F and B done */

  /* As a node keeps it. */
  int32_t *key; /* [devices] */
  uint64_t hash;
  int64_t *times;
  int32_t length, holds; /* how many times; devices that wait for a lane */

  /* The nodes that are kept. */
  struct fluid_layer *layer; /* [lanes * m + 1][devices + 1] by F and B done, then waits */
  struct fluid_group **slot; /* [slots] by hash */
  size_t slots, groups;
  struct fluid_block *free_blocks;
  int32_t lane_shift;
  int64_t bytes, most_held; /* held now; the most */
  int64_t nodes, expanded;
  bool out_of_memory, too_large;
};

/* Makes the tables of device number i, whose ends and memory are the windows'. */
enum zc_outcome zc_fluid_device(struct fluid *search, struct zc_windows *windows, int32_t i);

static inline const struct fluid_state *zc_fluid_state(const struct fluid *s, int32_t i) {
  return &s->device[i].state[s->at[i].state];
}

static inline const struct fluid_step *zc_fluid_steps(const struct fluid *s, int32_t i) {
  return &s->device[i].step[(int64_t)s->at[i].state * s->device[i].lanes];
}

/* The input of lane l's next op comes no earlier; whether it is there, or on its way. */
static inline int64_t zc_fluid_input(const struct fluid *s, int32_t l) {
  const struct fluid_lane *lane = &s->lane[l];
  const struct fluid_lane_at *at = &s->lane_at[l];

  if (!lane->crosses) return 0;
  return at[-1].done > at->done ? at->in[at->done] : at[-1].next + lane[-1].takes + lane->delay;
}

static inline bool zc_fluid_has_input(const struct fluid *s, int32_t l) {
  return !s->lane[l].crosses || s->lane_at[l - 1].done > s->lane_at[l].done;
}

/* The lag of device i once an op that starts there at `start` and takes `takes` is done. */
static inline int64_t zc_fluid_lag_after(const struct fluid *s, int32_t i, int64_t start, int64_t takes) {
  return zc_most(s->at[i].lag + takes, start + takes - zc_fluid_state(s, i)->poured);
}

/* What device i can run next. What cannot yet comes `soonest` at the earliest. */
void zc_fluid_ahead(const struct fluid *search, int32_t i, int64_t soonest, struct fluid_options *options);

static inline int64_t *zc_fluid_times(struct fluid_node *node) { return (int64_t *)(void *)(node + 1); }

/* Counts bytes that are about to be taken. False, with too_large, beyond what a search may hold. */
bool zc_fluid_hold(struct fluid *search, size_t bytes);

/* Keeps the packed node, of which `node` has the choice, unless one that is kept covers it. */
void zc_fluid_keep(struct fluid *search, const struct fluid_node *node);

/* The layer leaves the store with all of its nodes. */
void zc_fluid_forget(struct fluid *search, struct fluid_layer *layer);

void zc_fluid_free(struct fluid *search);

#endif
