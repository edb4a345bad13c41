// fiber.h - several stacks on one thread, and switching between them: a few nanoseconds where the switch is
// written for the processor (x86-64, aarch64), ucontext's time elsewhere (or with ZB_FIBER_UCONTEXT).
//
// Signal masks and floating-point modes stay as they are. One fiber runs at a time, and which thread runs it
// may change as long as nobody switches meanwhile: the caller's lock.
#ifndef ZB_FIBER_H
#define ZB_FIBER_H

#include <stdbool.h>

struct zb_fiber;

// A fiber that will start in body(argument), which never returns. NULL: out of memory.
struct zb_fiber *zb_fiber_create(void (*body)(void *argument), void *argument);

// What stands for the caller's own stack.
struct zb_fiber *zb_fiber_create_host(void);

// Suspends `from`, which must be who calls, and goes on with `to`.
void zb_fiber_switch(struct zb_fiber *from, struct zb_fiber *to);

// Not the fiber that calls. Whatever was on its stack is gone. NULL is fine.
void zb_fiber_free(struct zb_fiber *fiber);

#endif
