// standin.h - a device for tests that is not there: the calls of CUDA's runtime, cuBLAS and NCCL that this
// tree uses, behind the same symbols, on the CPU.
//
// Streams are queues of operations, and each run takes them off in some order that streams, events and
// synchronisation allow; which one depends on the seed. What a program may rely on with a device, it may rely
// on here; what it may not, goes wrong here sooner or later: memory starts as NaN, a copy reads its source
// when it happens and not when it was asked for, a send waits for its receive. Where CUDA is lenient and the
// program should not lean on it, this is strict, and says so in a report:
//
//   cudaFree and cudaStreamDestroy wait for nothing; whatever still uses what they took is misuse;
//   the default stream is misuse, apart from cudaMemcpy, which is over when it returns and orders nothing;
//   the calls of one group on one communicator go to one stream;
//   what is not success stays for cudaGetLastError, cudaErrorNotReady too;
//   memory that has been given back cannot be touched any more, nor the page behind an allocation.
//
// One lock is held by whoever calls and while an operation runs. A thread with no other duty runs operations
// when nobody has called for some milliseconds: a device works whether or not its host looks.
#ifndef ZB_STANDIN_H
#define ZB_STANDIN_H

#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// When operations are taken off.
//   EAGER   all that can be, at every call;
//   LATE    none before somebody waits or asks, then one at a time, and seldom the one that is asked for
//   first; RANDOM  a few at every call.
enum zb_standin_when { ZB_STANDIN_RANDOM, ZB_STANDIN_EAGER, ZB_STANDIN_LATE };

// Zero is the default everywhere. The names in ZB_STANDIN are these, as in
// ZB_STANDIN="seed=7,when=late,devices=2,memory_bytes=1000000".
struct zb_standin {
  uint64_t seed;
  enum zb_standin_when when; // in ZB_STANDIN: random, eager, late
  int64_t devices;           // 0: 8
  int64_t visible;      // which of the machine's GPUs, from 1, this process sees, a digit each, in its order:
                        // CUDA_VISIBLE_DEVICES. One that is there twice: none at all. 0: the first `devices`
  int64_t nccl_version; // of the library that is loaded, as NCCL_VERSION_CODE; 0: the header's
  int64_t memory_bytes; // of each device; 0: 4 GiB
  int64_t patience_ms;  // a wait that takes longer ends with an error and a report of what is stuck; 0: 20000
  int64_t idle_ms;      // how long nothing runs before the device goes on by itself; 0: 5
  int64_t host;         // machines in one communicator count as different where this differs
  int64_t unchecked;    // 1: a process that was set up by ZB_STANDIN ends well in spite of leaks and misuse

  // What goes wrong. A number n: the n-th time, counted from 1; 0: never.
  int64_t no_driver;       // 1: there is none
  int64_t no_device;       // 1: the driver finds none
  int64_t fail_allocation; // n-th cudaMalloc, cudaMallocHost or cudaHostAlloc: out of memory
  int64_t fail_call;       // n-th call that can fail, releases and queries of errors aside: an internal error
  int64_t fail_kernel;     // n-th kernel that runs touches an illegal address: its device fails from then on
  int64_t fail_communicator; // n-th send or receive that is queued: its communicator has an error from then
                             // on (ncclCommGetAsyncError), and all that is queued on it stands still
  int64_t vanish;      // n-th send or receive that is queued, and all later ones of the same device, are
                       // never seen by their peers, and no error is told: a hang
  int64_t hang_kernel; // n-th kernel never ends
};

// Starts anew, with nothing allocated. Only where no thread uses the device. A program that never calls it is
// set up by ZB_STANDIN at its first call, and its report is written to stderr at exit: a leak or misuse then
// is exit code 99.
void zb_standin_begin(const struct zb_standin *setup);

// True: all that was made has been released, nothing is queued, nothing was misused. Otherwise `report`
// (NULL: not wanted) says what was, a line each. Releases all that is left, and a next call starts anew.
bool zb_standin_end(char *report, size_t size);

// What is queued, a line a stream: what it waits for. For a test's own message when something hangs.
void zb_standin_stuck(char *text, size_t size);

// What was called since begin.
struct zb_standin_counts {
  int64_t calls;       // that can fail: fail_call's count
  int64_t allocations; // of device and pinned host memory
  int64_t waits;       // calls that made the host wait: synchronisations, copies that are not asynchronous
  int64_t operations;  // that have run
  int64_t kernels;     // that have run
  int64_t messages;    // sends and receives that were queued
  int64_t misuses;
  int64_t faults; // of those asked for in the setup, that happened
};
struct zb_standin_counts zb_standin_counts(void);

// How a kernel is launched: run(argument) happens when its turn comes, under the device's lock; more than
// once where it was captured in a graph that is launched again. discard(argument) comes once, behind the last
// run, or at once where the launch is refused: see cudaGetLastError. `name` must stay.
void zb_standin_enqueue(cudaStream_t stream, const char *name, void (*run)(void *), void *argument,
                        void (*discard)(void *));

// Drawn from the seed; any thread, also inside a kernel.
uint64_t zb_standin_random(void);

// From inside a kernel: something wrong that only it can see (a barrier that not all threads meet).
void zb_standin_misuse(const char *text);

#ifdef __cplusplus
}
#endif

#endif
