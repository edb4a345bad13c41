// fiber.c - stacks with a guard page below, and the switch: callee-saved registers go onto the old stack, the
// stack pointer changes, and the same come off the new one.
//
// AddressSanitizer is told about every switch: it keeps track of the stack it is on.
#define _GNU_SOURCE
#include "tests/standin/fiber.h"

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define ASAN 1
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define ASAN 1
#endif
#ifdef ASAN
#include <sanitizer/common_interface_defs.h>
#define STACK_BYTES ((size_t)256 << 10)
#else
#define STACK_BYTES ((size_t)32 << 10)
#endif

#if (defined(__x86_64__) || defined(__aarch64__)) && !defined(ZB_FIBER_UCONTEXT)
#define WRITTEN 1
#else
#include <ucontext.h>
#endif

struct zb_fiber {
  void *map; // the guard page, and the stack behind it; NULL: the host's
  size_t mapped;
  void (*body)(void *argument);
  void *argument;
#ifdef ASAN
  const void *low; // the stack, as AddressSanitizer knows it
  size_t bytes;
  void *fake;
#endif
#ifdef WRITTEN
  void *stack; // where the registers lie
#else
  ucontext_t context;
#endif
};

#ifdef ASAN
static struct zb_fiber *last; // which was left

static void leave(struct zb_fiber *from, struct zb_fiber *to) {
  last = from;
  __sanitizer_start_switch_fiber(&from->fake, to->low, to->bytes);
}

static void enter(struct zb_fiber *fiber) {
  __sanitizer_finish_switch_fiber(fiber->fake, &last->low, &last->bytes);
}
#else
static void leave(struct zb_fiber *from, struct zb_fiber *to) { (void)from, (void)to; }
static void enter(struct zb_fiber *fiber) { (void)fiber; }
#endif

// Runs on the new fiber's stack.
__attribute__((noreturn, used)) void zb_fiber_start(struct zb_fiber *fiber);
void zb_fiber_start(struct zb_fiber *fiber) {
  enter(fiber);
  fiber->body(fiber->argument);
  abort();
}

#ifdef WRITTEN
// zb_fiber_jump(where the old stack pointer goes, the new stack pointer). zb_fiber_first is where a new fiber
// comes out of it, with itself in a register that was saved.
void zb_fiber_jump(void **from, void *to);
void zb_fiber_first(void);

#ifdef __x86_64__
#define SAVED 6
#define SELF 3 // r12
__asm__(".text\n"
        ".globl zb_fiber_jump\n.type zb_fiber_jump,@function\n"
        "zb_fiber_jump:\n"
        "  pushq %rbp\n  pushq %rbx\n  pushq %r12\n  pushq %r13\n  pushq %r14\n  pushq %r15\n"
        "  movq %rsp, (%rdi)\n"
        "  movq %rsi, %rsp\n"
        "  popq %r15\n  popq %r14\n  popq %r13\n  popq %r12\n  popq %rbx\n  popq %rbp\n"
        "  ret\n"
        ".size zb_fiber_jump,.-zb_fiber_jump\n"
        ".globl zb_fiber_first\n.type zb_fiber_first,@function\n"
        "zb_fiber_first:\n"
        "  movq %r12, %rdi\n"
        "  call zb_fiber_start\n"
        ".size zb_fiber_first,.-zb_fiber_first\n");
#else
#define SAVED 20
#define SELF 0    // x19
#define RETURN 11 // x30
__asm__(".text\n"
        ".globl zb_fiber_jump\n.type zb_fiber_jump,%function\n"
        "zb_fiber_jump:\n"
        "  sub sp, sp, #160\n"
        "  stp x19, x20, [sp]\n  stp x21, x22, [sp, #16]\n  stp x23, x24, [sp, #32]\n"
        "  stp x25, x26, [sp, #48]\n  stp x27, x28, [sp, #64]\n  stp x29, x30, [sp, #80]\n"
        "  stp d8, d9, [sp, #96]\n  stp d10, d11, [sp, #112]\n  stp d12, d13, [sp, #128]\n"
        "  stp d14, d15, [sp, #144]\n"
        "  mov x2, sp\n  str x2, [x0]\n"
        "  mov sp, x1\n"
        "  ldp x19, x20, [sp]\n  ldp x21, x22, [sp, #16]\n  ldp x23, x24, [sp, #32]\n"
        "  ldp x25, x26, [sp, #48]\n  ldp x27, x28, [sp, #64]\n  ldp x29, x30, [sp, #80]\n"
        "  ldp d8, d9, [sp, #96]\n  ldp d10, d11, [sp, #112]\n  ldp d12, d13, [sp, #128]\n"
        "  ldp d14, d15, [sp, #144]\n"
        "  add sp, sp, #160\n"
        "  ret\n"
        ".size zb_fiber_jump,.-zb_fiber_jump\n"
        ".globl zb_fiber_first\n.type zb_fiber_first,%function\n"
        "zb_fiber_first:\n"
        "  mov x0, x19\n"
        "  bl zb_fiber_start\n"
        ".size zb_fiber_first,.-zb_fiber_first\n");
#endif

static void prepare(struct zb_fiber *fiber) {
  void (*first)(void) = zb_fiber_first;
  uintptr_t *top = (uintptr_t *)(void *)((char *)fiber->map + fiber->mapped);
#ifdef __x86_64__
  uintptr_t *saved = top - 1 - SAVED; // behind the registers: where to return to, and a boundary of 16
  memcpy(saved + SAVED, &first, sizeof first);
#else
  uintptr_t *saved = top - SAVED;
  memcpy(saved + RETURN, &first, sizeof first);
#endif
  saved[SELF] = (uintptr_t)fiber;
  fiber->stack = saved;
}

static void change(struct zb_fiber *from, struct zb_fiber *to) { zb_fiber_jump(&from->stack, to->stack); }
#else
// makecontext passes ints: a pointer goes through in halves.
static void first(unsigned high, unsigned low) {
  zb_fiber_start((struct zb_fiber *)(uintptr_t)(((uint64_t)high << 32) | low));
}

static void prepare(struct zb_fiber *fiber) {
  getcontext(&fiber->context);
  fiber->context.uc_stack.ss_sp = (char *)fiber->map + fiber->mapped - STACK_BYTES;
  fiber->context.uc_stack.ss_size = STACK_BYTES;
  uint64_t self = (uint64_t)(uintptr_t)fiber;
  void (*begin)(void);
  void (*halves)(unsigned, unsigned) = first;
  memcpy(&begin, &halves, sizeof begin);
  makecontext(&fiber->context, begin, 2, (unsigned)(self >> 32), (unsigned)self);
}

static void change(struct zb_fiber *from, struct zb_fiber *to) { swapcontext(&from->context, &to->context); }
#endif

struct zb_fiber *zb_fiber_create_host(void) {
  return calloc(1, sizeof(struct zb_fiber));
}

struct zb_fiber *zb_fiber_create(void (*body)(void *argument), void *argument) {
  struct zb_fiber *fiber = zb_fiber_create_host();
  size_t page = (size_t)sysconf(_SC_PAGESIZE);
  if (!fiber) return NULL;
  fiber->mapped = STACK_BYTES + page;
  fiber->map = mmap(NULL, fiber->mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (fiber->map == MAP_FAILED || mprotect(fiber->map, page, PROT_NONE) != 0) {
    if (fiber->map != MAP_FAILED) munmap(fiber->map, fiber->mapped);
    free(fiber);
    return NULL;
  }
#ifdef ASAN
  fiber->low = (char *)fiber->map + page;
  fiber->bytes = STACK_BYTES;
#endif
  fiber->body = body;
  fiber->argument = argument;
  prepare(fiber);
  return fiber;
}

void zb_fiber_switch(struct zb_fiber *from, struct zb_fiber *to) {
  leave(from, to);
  change(from, to);
  enter(from);
}

void zb_fiber_free(struct zb_fiber *fiber) {
  if (fiber && fiber->map) munmap(fiber->map, fiber->mapped);
  free(fiber);
}
