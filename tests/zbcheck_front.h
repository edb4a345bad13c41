/* zbcheck: what the two parts of the search of `fronts` share, see zbcheck_front.c.
 *
 *   zbcheck_front.c    nodes: what they imply, their children
 *   zbcheck_layer.c    layers: which nodes are kept, and where
 *
 * Times in ns, on the clock of the device that is spoken about. */
#ifndef ZBCHECK_FRONT_H
#define ZBCHECK_FRONT_H

#include "zbcheck_window.h"

enum { FRONT_LANES = 8 };

/* One device. */
struct front_device {
  int64_t f, b, w;
  int64_t offset; /* of its clock on the first device's */
  int64_t down,
      up; /* from an end here to the input there: of F on the next device's clock, of B on the last's */
  bool limited;
  int64_t room, keep_f, keep_b, keep_w;
  const int64_t *f_end, *b_end; /* [m] latest ends */
  struct zc_row *rows;          /* [(m + 1) * (m + 1)] */
  int64_t *leave;               /* of a state: latest time, -1 where it leads nowhere */
};

/* Behind it: W done [devices], padded to whole int64_t, then the times: each device's clock, then the queues
 * of F on device 1, 2, .. and of B on the last device but one, the one before, .. */
struct front_node {
  struct front_node *next; /* of the same list */
  int64_t total;           /* sum of its times */
  int32_t weights;         /* sum of W done */
  bool dropped;
};

/* Stands for a node where nodes are compared. Lane by lane of `sketch`, 7 bits each, what covers is no more
 * than what it covers. */
struct front_entry {
  uint64_t sketch;
  struct front_node *node;
};

/* Nodes with the same F and B done on every device. */
struct front_group {
  struct front_group *next;  /* of the layer */
  struct front_entry *entry; /* [entries] those that no other covers */
  int32_t entries, room;
  struct front_node *spare; /* room of nodes that were dropped */
  uint64_t hash;
  int32_t queued;
  int32_t middle[FRONT_LANES]; /* of its sketches */
  uint16_t count[];            /* [2 * devices] F done, B done */
};

struct front_block;

struct front_layer {
  struct front_group *groups;
  struct front_block *blocks; /* the first is being filled */
};

/* The search. */
struct fronts {
  struct zc_run *run;
  int32_t devices, m;
  struct front_device *device;
  size_t weights_size;      /* bytes of a node's W done */
  uint16_t *count;          /* [2 * devices] F done, B done: of the node at work, then of its child */
  int32_t *queue;           /* [2 * devices - 1] where its queues begin, see find_queues() */
  int64_t *next_f, *next_b; /* [devices] scratch: earliest starts */
  struct front_node *parent, *child; /* scratch: the node at work, and its child */
  uint64_t *mark;                    /* [2 * devices] a count's share in the hash */
  struct front_layer layer, next;    /* at work, and the one that it leads into */
  struct front_group **slot;         /* [slots] groups of `next` by hash, open addressing */
  size_t slots, used;
  struct front_node **waiting; /* [devices * m + 1] of the group at work: lists by W done in all */
  int32_t waiting_first, waiting_last;
  int32_t lane_shift; /* what a step in a sketch stands for */
  struct front_block *free_blocks;
  int64_t bytes, most_held; /* held now; the most */
  int64_t nodes, expanded;
  bool out_of_memory, too_large;
};

static inline uint16_t *zc_front_weights(struct front_node *node) { return (uint16_t *)(void *)(node + 1); }

static inline int64_t *zc_front_times(const struct fronts *s, struct front_node *node) {
  return (int64_t *)(void *)((char *)(node + 1) + s->weights_size);
}

static inline size_t zc_front_size(const struct fronts *s, int64_t queued) {
  return sizeof(struct front_node) + s->weights_size + (size_t)(s->devices + queued) * sizeof(int64_t);
}

/* Counts bytes that are about to be taken. False, with too_large, beyond what a search may hold. */
bool zc_front_hold(struct fronts *search, size_t bytes);

/* Keeps the child, with `queued` inputs, unless a node of its group covers it. `group`: the one at work, for
 * a child of the same layer; NULL for the one of the next layer with the counts in `count` and this hash. */
void zc_layer_keep(struct fronts *search, struct front_group *group, uint64_t hash, int32_t queued);

/* Goes to work on a group; then copies its nodes to `parent` one by one, the fewest W first, also those that
 * have come since. False where none is left. */
void zc_layer_open(struct fronts *search, struct front_group *group);
bool zc_layer_take(struct fronts *search, struct front_group *group);

/* The next layer is the one at work now, and the next is empty. */
void zc_layer_turn(struct fronts *search);

void zc_layers_free(struct fronts *search);

#endif
