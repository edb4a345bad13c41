/* zbcheck: what the parts of the search of `fluid-fronts` share, see zbcheck_fluid.c.
 *
 *   zbcheck_fluid.c         nodes: what they imply, what has to run, their children
 *   zbcheck_fluid_table.c   one device alone: what its memory and its ends ask of it
 *   zbcheck_fluid_store.c   the nodes that are kept
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

/* One device with some F and some B done. */
struct fluid_state {
  int64_t ready;  /* W to be poured before the next F can start, zc_never where a B comes first */
  int64_t wait;   /* the next F starts at lag + wait or later, whatever comes before it */
  int64_t enough; /* W poured that no F to come asks for more than */
  int64_t late;   /* the most lag that meets the horizon, if nothing but ops adds to it */
  int32_t first_b, points;
  const struct fluid_point *point; /* [points] none: it leads nowhere */
};

struct fluid_device {
  int64_t f, b, w;
  int64_t offset;   /* of its clock on the first device's */
  int64_t down, up; /* from an end here to the input there, on the clock there: of F, of B */
  const int64_t *f_end, *b_end;
  const struct fluid_state *state; /* [(m + 1) * (m + 1)] by F done, then B done */
  const int64_t *after_b;   /* [m + 1] by F done: the next F starts this long after the B that it waits for */
  const int64_t *displaced; /* [m + 1] by B done: W to be poured once a B more is done, for every F that could
                               come before that B */
};

/* Behind it the times: each device's clock, each one's lag, then the queues of F on device 1, 2, .. and of B
 * on the last device but one, the one before, .. */
struct fluid_node {
  struct fluid_node *next; /* of what is free */
  int32_t device;          /* whose choice it waits for */
  bool holding;            /* the choice is to run its B, or to hold it */
};

struct fluid_entry {
  uint64_t sketch; /* lane by lane, no more than that of a node that it covers */
  int64_t total;   /* sum of times */
  struct fluid_node *node;
};

/* Nodes with the same F and B done, and B held, on every device. */
struct fluid_group {
  struct fluid_group *next;  /* of the layer */
  struct fluid_group *chain; /* of the slot */
  struct fluid_entry *entry; /* [entries] those that no other covers */
  int32_t entries, room;
  struct fluid_node *spare; /* room of nodes that were dropped */
  uint64_t hash;
  int32_t times;     /* of a node */
  int64_t middle[8]; /* of its sketches' lanes */
  uint16_t count[];  /* [3 * devices] F done, B done, B held */
};

struct fluid_block;

struct fluid_layer {
  struct fluid_group *groups;
  struct fluid_block *blocks; /* the first is being filled */
};

/* One device of the node at work. */
struct fluid_at {
  int64_t clock, lag;
  int64_t f_next, b_next; /* the next op starts no earlier; zc_never if there is none */
  int32_t f, b;           /* done */
  bool held;              /* the next F is to run before the next B */
  const struct fluid_state *state;
  int64_t *f_in, *b_in; /* [m] inputs of ops that are not done and whose senders are */
};

/* The search. */
struct fluid {
  struct zc_run *run;
  int32_t devices, m;
  struct fluid_device *device;

  /* The node at work. */
  struct fluid_at *at;
  uint64_t *mark; /* [3 * devices] a count's share in the hash */
  uint64_t hash;  /* of counts */
  int32_t done;   /* sum of F and B done */

  /* As a node keeps it. */
  uint16_t *count; /* [3 * devices] F done, B done, B held */
  int64_t *times;
  int32_t length, holds; /* how many times; sum of B held */

  /* The nodes that are kept. */
  struct fluid_layer *layer; /* [2 * devices * m + 1][devices + 1] by F and B done, then B held */
  struct fluid_group **slot; /* [slots] by hash */
  size_t slots, groups;
  struct fluid_block *free_blocks;
  int32_t lane_shift;
  int64_t bytes, most_held; /* held now; the most */
  int64_t nodes, expanded;
  bool out_of_memory, too_large;
};

/* Makes the tables of device number i, whose times, ends and memory are the windows'. */
enum zc_outcome zc_fluid_device(struct fluid *search, const struct zc_windows *windows, int32_t i);

static inline int64_t *zc_fluid_times(struct fluid_node *node) { return (int64_t *)(void *)(node + 1); }

/* Counts bytes that are about to be taken. False, with too_large, beyond what a search may hold. */
bool zc_fluid_hold(struct fluid *search, size_t bytes);

/* Keeps the packed node, of which `node` has the choice, unless one that is kept covers it. */
void zc_fluid_keep(struct fluid *search, const struct fluid_node *node);

/* The layer leaves the store with all of its nodes. */
void zc_fluid_forget(struct fluid *search, struct fluid_layer *layer);

void zc_fluid_free(struct fluid *search);

#endif
