/*
 * derive.h - inputs that differ from recorded ones in a few places: lengths, counts and kinds that
 * no recorded input has. The replayers run them by day. The same number always gives the same
 * input, on every machine.
 */
#ifndef PERSEAS_TESTS_DERIVE_H
#define PERSEAS_TESTS_DERIVE_H

#include <stddef.h>
#include <stdint.h>

enum { DERIVED_GROWTH = 512 }; /* bytes by which a derived input may be longer than its parent */

/*
 * Changes the `size` bytes at `bytes`, which has room for DERIVED_GROWTH more, in one to four
 * places that `number` determines. Returns the new size.
 */
size_t derive(uint8_t *bytes, size_t size, uint64_t number);

#endif
