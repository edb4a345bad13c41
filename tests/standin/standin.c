// standin.c - the stand-in's setup, its lock, its errors and its report.
//
// Every call of the stand-in is between enter and leave. enter decides what goes wrong (the setup's faults),
// and leave lets the device work a little, as the setup's `when` says.
#include "tests/standin/standin.h"

#include <errno.h>
#include <sched.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tests/standin/standin_parts.h"

enum { REPORT_BYTES = 16384, BAD_END = 99 };

struct zb_standin zb_standin_setup;
struct zb_standin_counts zb_standin_count;
struct device_state zb_standin_device[ZB_STANDIN_DEVICES];

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed; // something has run, for those who wait
static pthread_cond_t ending;  // for the idle thread, which would be woken for nothing by the other
static int sleepers;
static bool started, by_environment;
static char report[REPORT_BYTES];
static size_t report_length;
static _Atomic uint64_t drawn;
static pthread_t idle_thread;
static bool idle_ends;
static struct standin_part *parts;

static _Thread_local cudaError_t last_error;
static _Thread_local int current_device;

void *zb_standin_new(size_t bytes) {
  void *made = calloc(1, bytes ? bytes : 1);
  if (!made) {
    fputs("standin: out of memory\n", stderr);
    abort();
  }
  return made;
}

int64_t zb_standin_now(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

// The k-th number of the seed is a hash of both, so that threads need no lock to draw.
uint64_t zb_standin_random(void) {
  uint64_t x =
      zb_standin_setup.seed * 0xda942042e4dd58b5u + atomic_fetch_add(&drawn, 1) * 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

uint64_t zb_standin_below(uint64_t bound) { return bound < 2 ? 0 : zb_standin_random() % bound; }

void zb_standin_report(const char *format, ...) {
  zb_standin_count.misuses++;
  if (report_length + 512 > sizeof report) return;
  va_list list;
  va_start(list, format);
  int length = vsnprintf(report + report_length, 510, format, list);
  va_end(list);
  report_length += (size_t)(length < 510 ? length : 509);
  report[report_length++] = '\n';
  report[report_length] = 0;
}

// From inside a kernel, so the lock is held by this thread.
void zb_standin_misuse(const char *text) { zb_standin_report("%s", text); }

bool zb_standin_fault(int64_t wanted, int64_t counter) {
  bool happens = wanted > 0 && wanted == counter;
  if (happens) zb_standin_count.faults++;
  return happens;
}

void zb_standin_register(struct standin_part *part) {
  if (part->registered) return;
  part->registered = true;
  part->next = parts;
  parts = part;
}

// Takes in what other processes sent. True: there are some.
static bool look_outside(void) {
  bool any = false;
  for (struct standin_part *part = parts; part; part = part->next)
    if (part->look) any |= part->look();
  return any;
}

// Setup

static const struct {
  const char *name;
  size_t offset;
} numbers[] = {
    {"devices", offsetof(struct zb_standin, devices)},
    {"visible", offsetof(struct zb_standin, visible)},
    {"nccl_version", offsetof(struct zb_standin, nccl_version)},
    {"memory_bytes", offsetof(struct zb_standin, memory_bytes)},
    {"patience_ms", offsetof(struct zb_standin, patience_ms)},
    {"idle_ms", offsetof(struct zb_standin, idle_ms)},
    {"host", offsetof(struct zb_standin, host)},
    {"unchecked", offsetof(struct zb_standin, unchecked)},
    {"no_driver", offsetof(struct zb_standin, no_driver)},
    {"no_device", offsetof(struct zb_standin, no_device)},
    {"fail_allocation", offsetof(struct zb_standin, fail_allocation)},
    {"fail_call", offsetof(struct zb_standin, fail_call)},
    {"fail_kernel", offsetof(struct zb_standin, fail_kernel)},
    {"fail_communicator", offsetof(struct zb_standin, fail_communicator)},
    {"vanish", offsetof(struct zb_standin, vanish)},
    {"hang_kernel", offsetof(struct zb_standin, hang_kernel)},
};
static const char *const whens[] = {"random", "eager", "late"};

static bool set(struct zb_standin *setup, const char *name, const char *value) {
  if (!strcmp(name, "when")) {
    for (size_t w = 0; w < sizeof whens / sizeof whens[0]; w++)
      if (!strcmp(value, whens[w])) {
        setup->when = (enum zb_standin_when)w;
        return true;
      }
    return false;
  }
  char *end;
  errno = 0;
  long long number = strtoll(value, &end, 10);
  if (errno || end == value || *end || number < 0) return false;
  if (!strcmp(name, "seed")) {
    setup->seed = (uint64_t)number;
    return true;
  }
  for (size_t n = 0; n < sizeof numbers / sizeof numbers[0]; n++)
    if (!strcmp(name, numbers[n].name)) {
      memcpy((char *)setup + numbers[n].offset, &(int64_t){number}, sizeof(int64_t));
      return true;
    }
  return false;
}

static struct zb_standin read_environment(void) {
  struct zb_standin setup = {0};
  const char *given = getenv("ZB_STANDIN");
  char text[512] = "";
  snprintf(text, sizeof text, "%s", given ? given : "");
  char *rest = NULL;
  for (char *word = strtok_r(text, ",", &rest); word; word = strtok_r(NULL, ",", &rest)) {
    char *value = strchr(word, '=');
    if (value) *value++ = 0;
    if (!value || !set(&setup, word, value)) {
      fprintf(stderr, "standin: ZB_STANDIN: %s: not a setting, or not its value\n", word);
      _exit(BAD_END);
    }
  }
  return setup;
}

// A device works whether or not anybody calls: what nobody made run for a while is run here.
static void *idle(void *unused) {
  (void)unused;
  int64_t before = -1;
  pthread_mutex_lock(&lock);
  while (!idle_ends) {
    int64_t until_ns = zb_standin_now() + zb_standin_setup.idle_ms * 1000000;
    struct timespec until = {.tv_sec = (time_t)(until_ns / 1000000000),
                             .tv_nsec = (long)(until_ns % 1000000000)};
    int late = 0;
    while (!idle_ends && !late) late = pthread_cond_timedwait(&ending, &lock, &until);
    if (idle_ends) break;
    look_outside();
    if (zb_standin_count.operations == before) zb_standin_run_some(1 + (int64_t)zb_standin_below(4));
    before = zb_standin_count.operations;
  }
  pthread_mutex_unlock(&lock);
  return NULL;
}

static void count_visible(struct zb_standin *setup) {
  bool seen[10] = {false};
  setup->devices = 0;
  for (int64_t digits = setup->visible; digits; digits /= 10) {
    if (seen[digits % 10]) setup->no_device = 1;
    seen[digits % 10] = true;
    setup->devices++;
  }
}

int zb_standin_gpu(int device) {
  int64_t digits = zb_standin_setup.visible;
  for (int64_t k = zb_standin_setup.devices - 1; k > device; k--) digits /= 10;
  return digits ? (int)(digits % 10) - 1 : device;
}

static void start(const struct zb_standin *setup) {
  zb_standin_setup = *setup;
  struct zb_standin *s = &zb_standin_setup;
  if (s->visible) count_visible(s);
  if (!s->devices) s->devices = 8;
  if (s->devices > ZB_STANDIN_DEVICES) s->devices = ZB_STANDIN_DEVICES;
  if (!s->memory_bytes) s->memory_bytes = (int64_t)4 << 30;
  if (!s->patience_ms) s->patience_ms = 20000;
  if (!s->idle_ms) s->idle_ms = 5;
  memset(&zb_standin_count, 0, sizeof zb_standin_count);
  memset(zb_standin_device, 0, sizeof zb_standin_device);
  report_length = 0;
  report[0] = 0;
  atomic_store(&drawn, 0);
  zb_standin_schedule_reset();
  zb_standin_memory_watch();
  started = true;
  idle_ends = false;
  pthread_condattr_t monotonic;
  pthread_condattr_init(&monotonic);
  pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
  pthread_cond_init(&changed, &monotonic);
  pthread_cond_init(&ending, &monotonic);
  pthread_condattr_destroy(&monotonic);
  if (pthread_create(&idle_thread, NULL, idle, NULL)) {
    fputs("standin: no thread\n", stderr);
    abort();
  }
}

// With the lock held, which it gives up for a moment.
static void stop(bool wanted) {
  idle_ends = true;
  pthread_cond_signal(&ending);
  pthread_mutex_unlock(&lock);
  pthread_join(idle_thread, NULL);
  pthread_mutex_lock(&lock);
  zb_standin_streams_reset(wanted);
  zb_standin_graphs_reset(wanted);
  for (struct standin_part *part = parts; part; part = part->next) {
    part->reset(wanted);
    part->registered = false;
  }
  parts = NULL;
  zb_standin_memory_reset(wanted);
  pthread_cond_destroy(&changed);
  pthread_cond_destroy(&ending);
  started = false;
}

void zb_standin_begin(const struct zb_standin *setup) {
  pthread_mutex_lock(&lock);
  if (started) stop(false);
  by_environment = false;
  start(setup);
  last_error = cudaSuccess;
  current_device = 0;
  pthread_mutex_unlock(&lock);
}

bool zb_standin_end(char *text, size_t size) {
  pthread_mutex_lock(&lock);
  if (started) stop(true);
  bool well = !zb_standin_count.misuses;
  if (text && size) snprintf(text, size, "%s", report);
  pthread_mutex_unlock(&lock);
  return well;
}

static void report_at_exit(void) {
  static char text[REPORT_BYTES];
  if (!by_environment || !started || zb_standin_setup.unchecked) return;
  if (zb_standin_end(text, sizeof text)) return;
  fflush(NULL);
  fprintf(stderr, "standin:\n%s", text);
  _exit(BAD_END);
}

static void start_by_environment(void) {
  static bool registered;
  struct zb_standin setup = read_environment();
  by_environment = getenv("ZB_STANDIN");
  if (!registered) atexit(report_at_exit);
  registered = true;
  start(&setup);
}

// Calls

cudaError_t zb_standin_enter(int entry) {
  // The order in which threads call is a draw as well, as far as it can be.
  if (zb_standin_random() % 64 == 0) sched_yield();
  pthread_mutex_lock(&lock);
  if (!started) start_by_environment();
  cudaError_t status = cudaSuccess;
  if (entry & ENTER_FAILS) {
    const struct zb_standin *s = &zb_standin_setup;
    zb_standin_count.calls++;
    if (s->no_driver)
      status = cudaErrorInsufficientDriver;
    else if (s->no_device)
      status = cudaErrorNoDevice;
    else if (zb_standin_device[current_device].broken)
      status = zb_standin_device[current_device].broken;
    else if (zb_standin_fault(s->fail_call, zb_standin_count.calls))
      status = cudaErrorUnknown;
  }
  if (!status && entry & ENTER_CAPTURED) status = zb_standin_capture_unsafe();
  look_outside();
  return status;
}

cudaError_t zb_standin_leave(cudaError_t status) {
  if (status) last_error = status;
  zb_standin_progress();
  pthread_mutex_unlock(&lock);
  return status;
}

int zb_standin_current(void) { return current_device; }

void zb_standin_changed(void) {
  if (sleepers) pthread_cond_broadcast(&changed);
}

// One sleep of a waiter; false when `until_ns` has come. What other processes send is looked for in between.
static bool sleep_until(int64_t until_ns) {
  int64_t now_ns = zb_standin_now();
  if (now_ns >= until_ns) return false;
  int64_t slice_ns = look_outside() ? 500000 : 100000000;
  int64_t wake_ns = now_ns + slice_ns < until_ns ? now_ns + slice_ns : until_ns;
  struct timespec wake = {.tv_sec = (time_t)(wake_ns / 1000000000), .tv_nsec = (long)(wake_ns % 1000000000)};
  sleepers++;
  pthread_cond_timedwait(&changed, &lock, &wake);
  sleepers--;
  look_outside();
  return true;
}

bool zb_standin_wait(const char *call, bool (*over)(void *), void *argument, struct CUstream_st *asked) {
  zb_standin_count.waits++;
  int64_t until_ns = zb_standin_now() + zb_standin_setup.patience_ms * 1000000;
  while (!over(argument)) {
    int64_t before = zb_standin_count.operations;
    zb_standin_poll(asked);
    if (zb_standin_count.operations != before || over(argument)) continue;
    if (!sleep_until(until_ns)) {
      char text[2048];
      zb_standin_describe(text, sizeof text);
      zb_standin_report("%s waited for %lld ms; queued:\n%s", call, (long long)zb_standin_setup.patience_ms,
                        text);
      return false;
    }
  }
  return true;
}

void zb_standin_stuck(char *text, size_t size) {
  pthread_mutex_lock(&lock);
  zb_standin_describe(text, size);
  pthread_mutex_unlock(&lock);
}

struct zb_standin_counts zb_standin_counts(void) {
  pthread_mutex_lock(&lock);
  struct zb_standin_counts counts = zb_standin_count;
  pthread_mutex_unlock(&lock);
  return counts;
}

cudaError_t cudaGetLastError(void) {
  cudaError_t error = last_error;
  last_error = cudaSuccess;
  return error;
}

cudaError_t cudaPeekAtLastError(void) { return last_error; }

cudaError_t cudaSetDevice(int device) {
  cudaError_t status = zb_standin_enter(ENTER_FAILS);
  if (!status && (device < 0 || device >= zb_standin_setup.devices)) status = cudaErrorInvalidDevice;
  if (!status) current_device = device;
  return zb_standin_leave(status);
}

cudaError_t cudaGetDevice(int *device) {
  cudaError_t status = zb_standin_enter(ENTER_FAILS);
  if (!status) *device = current_device;
  return zb_standin_leave(status);
}
