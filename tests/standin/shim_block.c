// shim_block.c - the threads of a block, on fibers, in a random order.
//
// A thread runs until it waits or ends. Then, on the same stack, the next is drawn among those that may run:
// if that one waits on a fiber of its own, there is one switch to it; if it has not started and the stack is
// free, it starts right here. So a kernel whose threads never wait costs a function call a thread.
//
// Two ways to draw, chosen block by block: any thread that may run, or the one that became ready last, which
// lets one warp run far ahead of the others.
#include "tests/standin/shim_block.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/standin/fiber.h"
#include "tests/standin/standin.h"

#define THREADS 1024
#define WARPS (THREADS / ZB_SHIM_WARP)
#define SHARED_BYTES 49152 // of a block, without asking for more
#define SITES 32

struct thread {
  struct zb_shim_thread self;
  struct zb_fiber *fiber; // NULL: not started, or ended
  unsigned meetings;      // of its warp, that it came to
};

struct warp {
  int lanes, waiting;
  uint64_t left[2]
               [ZB_SHIM_WARP]; // by turns, so that a fast lane does not overwrite what a slow one still reads
};

static struct {
  struct zb_fiber *host, *stacks[THREADS], *idle[THREADS]; // idle: those of `stacks` that no thread is on
  int stack_count, idles;

  void (*body)(void *argument);
  void *argument;
  const char *name;
  bool failed;

  struct thread threads[THREADS];
  struct warp warps[WARPS];
  int count, ended, at_barrier;
  int ready[THREADS];
  int readies;
  struct thread *now; // who runs
  int next;           // who starts on the idle stack that is switched to
  bool newest_first;
  uint64_t random;

  struct {
    const void *site;
    size_t offset, bytes;
  } sites[SITES];
  int site_count;
  size_t shared_used;
  _Alignas(16) unsigned char shared[SHARED_BYTES];
} run;

static uint64_t draw(uint64_t below) {
  run.random = run.random * 6364136223846793005u + 1442695040888963407u; // Knuth's MMIX, 1999
  return ((run.random >> 32) * below) >> 32;
}

const struct zb_shim_thread *zb_shim_self(void) { return &run.now->self; }

// Whether a device would take it.
static bool fits(dim3 grid, dim3 block) {
  return grid.x >= 1 && grid.x <= INT32_MAX && grid.y >= 1 && grid.y <= 65535 && grid.z >= 1 &&
         grid.z <= 65535 && block.x >= 1 && block.y >= 1 && block.z >= 1 && block.z <= 64 &&
         block.x <= THREADS && block.y <= THREADS && block.x * block.y * block.z <= THREADS;
}

static void complain(const char *what) {
  char text[400];
  const struct zb_shim_thread *self = &run.now->self;
  snprintf(text, sizeof text, "kernel %s, block %u %u %u, thread %u %u %u: %s", run.name, self->block.x,
           self->block.y, self->block.z, self->thread.x, self->thread.y, self->thread.z, what);
  if (!run.failed) zb_standin_misuse(text);
  run.failed = true;
}

// A thread that may run, taken off the list; -1: none.
static int pick(void) {
  if (run.readies == 0) return -1;
  int at = run.newest_first ? run.readies - 1 : (int)draw((uint64_t)run.readies);
  int thread = run.ready[at];
  run.ready[at] = run.ready[--run.readies];
  return thread;
}

static void shuffle(int *list, int count) {
  for (int k = count - 1; k > 0; k--) {
    int other = (int)draw((uint64_t)k + 1), kept = list[k];
    list[k] = list[other];
    list[other] = kept;
  }
}

// Threads from `first` on may run. Warp by warp, so that where the newest goes first, a whole warp does;
// which one, and in what order its lanes, is drawn.
static void release(int first, int count) {
  int warps[WARPS], parts = (count + ZB_SHIM_WARP - 1) / ZB_SHIM_WARP;
  for (int k = 0; k < parts; k++) warps[k] = k;
  if (run.newest_first) shuffle(warps, parts);
  for (int k = 0; k < parts; k++) {
    int from = warps[k] * ZB_SHIM_WARP, to = from + ZB_SHIM_WARP < count ? from + ZB_SHIM_WARP : count;
    for (int thread = from; thread < to; thread++) run.ready[run.readies + thread - from] = first + thread;
    if (run.newest_first) shuffle(run.ready + run.readies, to - from);
    run.readies += to - from;
  }
}

static void work(void *argument);

// Goes on with thread `next`. `from` is the stack of a thread that waits, or of none. -1: the block is over,
// or stuck.
static void go_on(struct zb_fiber *from, int next) {
  struct zb_fiber *to = run.host;
  if (next >= 0) to = run.threads[next].fiber;
  if (!to) {
    if (run.idles == 0) {
      struct zb_fiber **made = &run.stacks[run.stack_count++];
      *made = zb_fiber_create(work, made);
      if (!*made) abort(); // nobody is there to be told: the kernel has been launched
      run.idle[run.idles++] = *made;
    }
    to = run.idle[--run.idles];
    run.next = next;
  }
  zb_fiber_switch(from, to);
}

// One stack's life: thread after thread.
static void work(void *argument) {
  struct zb_fiber *mine = *(struct zb_fiber **)argument;
  for (;;) {
    int next = run.next >= 0 ? run.next : pick();
    run.next = -1;
    if (next >= 0 && !run.threads[next].fiber) {
      run.now = &run.threads[next];
      run.now->fiber = mine;
      run.body(run.argument);
      run.now->fiber = NULL;
      run.ended++;
    } else {
      run.idle[run.idles++] = mine;
      go_on(mine, next);
    }
  }
}

static void wait(void) {
  struct thread *me = run.now;
  int next = pick();
  if (next < 0 || &run.threads[next] != me) go_on(me->fiber, next);
  run.now = me;
}

void zb_shim_barrier(void) {
  if (++run.at_barrier == run.count) {
    run.at_barrier = 0;
    release(0, run.count);
  }
  wait();
}

const uint64_t *zb_shim_warp(unsigned mask, uint64_t value) {
  int index = (int)(run.now - run.threads), lane = index % ZB_SHIM_WARP, first = index - lane;
  struct warp *warp = &run.warps[index / ZB_SHIM_WARP];
  uint64_t *left = warp->left[run.now->meetings++ & 1];
  if (mask != ~0u || warp->lanes != ZB_SHIM_WARP) complain("a shuffle of a part of a warp");
  left[lane] = value;
  if (++warp->waiting == warp->lanes) {
    warp->waiting = 0;
    release(first, warp->lanes);
  }
  wait();
  return left;
}

void *zb_shim_shared(const void *site, size_t bytes) {
  int k = 0;
  while (k < run.site_count && run.sites[k].site != site) k++;
  if (k == run.site_count) {
    size_t room = (bytes + 15) & ~(size_t)15;
    if (k == SITES || room > SHARED_BYTES - run.shared_used) {
      complain("more shared memory than a block has");
      return run.shared;
    }
    run.sites[k].site = site;
    run.sites[k].offset = run.shared_used;
    memset(run.shared + run.shared_used, 0xff, room); // NaN, as float and as double
    run.shared_used += room;
    run.site_count++;
  }
  return run.shared + run.sites[k].offset;
}

// False: some threads wait for others that do not come.
static bool run_block(dim3 grid, dim3 block, uint3 index) {
  unsigned count = block.x * block.y * block.z;
  run.count = (int)count;
  run.ended = run.at_barrier = run.readies = 0;
  run.site_count = 0;
  run.shared_used = 0;
  run.newest_first = draw(2) == 1;
  for (unsigned k = 0; k < count; k++) {
    struct thread *thread = &run.threads[k];
    uint3 at = {k % block.x, k / block.x % block.y, k / block.x / block.y};
    thread->self = (struct zb_shim_thread){at, index, block, grid};
    thread->meetings = 0;
  }
  for (unsigned k = 0; k * ZB_SHIM_WARP < count; k++) {
    unsigned lanes = count - k * ZB_SHIM_WARP;
    run.warps[k].lanes = lanes < ZB_SHIM_WARP ? (int)lanes : ZB_SHIM_WARP;
    run.warps[k].waiting = 0;
  }
  release(0, run.count);
  go_on(run.host, pick());
  if (run.ended == run.count) return true;

  int waiting = 0;
  char text[200];
  for (int k = 0; k < run.count; k++) {
    if (!run.threads[k].fiber) continue;
    run.now = &run.threads[k];
    waiting++;
  }
  snprintf(text, sizeof text,
           "waits for ever: %d of %d threads have ended, %d stand at a barrier, %d at a shuffle", run.ended,
           run.count, run.at_barrier, waiting - run.at_barrier);
  complain(text);
  return false;
}

// The stacks of threads that will never go on.
static void drop_stacks(void) {
  for (int k = 0; k < run.stack_count; k++) zb_fiber_free(run.stacks[k]);
  for (int k = 0; k < THREADS; k++) run.threads[k].fiber = NULL;
  run.stack_count = run.idles = 0;
}

struct launch {
  const char *name;
  dim3 grid, block;
  void (*body)(void *argument);
  void *argument;
};

static void run_launch(void *queued) {
  const struct launch *launch = queued;
  dim3 grid = launch->grid;
  uint64_t blocks = (uint64_t)grid.x * grid.y * grid.z;
  uint64_t *order = malloc(blocks * sizeof *order);
  if (!run.host) run.host = zb_fiber_create_host();
  if (!order || !run.host) abort();
  run.name = launch->name;
  run.body = launch->body;
  run.argument = launch->argument;
  run.failed = false;
  run.next = -1;
  run.random = zb_standin_random();
  for (uint64_t k = 0; k < blocks; k++) {
    uint64_t other = draw(k + 1);
    order[k] = order[other];
    order[other] = k;
  }
  for (uint64_t k = 0; k < blocks; k++) {
    uint3 index = {(unsigned)(order[k] % grid.x), (unsigned)(order[k] / grid.x % grid.y),
                   (unsigned)(order[k] / grid.x / grid.y)};
    if (!run_block(grid, launch->block, index)) {
      drop_stacks();
      break;
    }
  }
  free(order);
}

static void discard_launch(void *queued) {
  free(((struct launch *)queued)->argument);
  free(queued);
}

cudaError_t zb_shim_launch(const char *name, dim3 grid, dim3 block, cudaStream_t stream,
                           void (*body)(void *argument), void *argument) {
  struct launch *launch = malloc(sizeof *launch);
  if (!launch || !fits(grid, block)) {
    cudaError_t error = launch ? cudaErrorInvalidConfiguration : cudaErrorMemoryAllocation;
    free(launch);
    free(argument);
    return error;
  }
  *launch = (struct launch){name, grid, block, body, argument};
  zb_standin_enqueue(stream, name, run_launch, launch, discard_launch);
  return cudaGetLastError();
}
