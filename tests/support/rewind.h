/*
 * rewind.h - takes an owner back in time, as when its machine is reverted to a checkpoint. The unit
 * tests and the simulator call it.
 */
#ifndef PERSEAS_TESTS_REWIND_H
#define PERSEAS_TESTS_REWIND_H

#include "../../client/core/handle.h"

/* Makes the handle and its segments what they were before the last `count` transactions, which its
 * ring must hold. No transaction is open. The caller breaks the connections. Returns how many
 * transactions were taken back: the ring holds no others that can be undone. */
unsigned rewind_owner(struct perseas *p, unsigned count);

#endif
