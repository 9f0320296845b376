/*
 * crc32c.h - the CRC-32C (Castagnoli) checksum, by the processor's instruction if it has one.
 */
#ifndef PERSEAS_PROTO_CRC32C_H
#define PERSEAS_PROTO_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/* Extends the checksum `crc` (0 at the beginning) by `len` bytes: crc32c(crc32c(0, a), b) is the
 * checksum of a followed by b. crc32c(0, "123456789", 9) is 0xe3069283. */
uint32_t ps_crc32c(uint32_t crc, const void *data, size_t len);

/* Computes the checksum by table, for processors without the instruction and for tests. */
uint32_t ps_crc32c_table(uint32_t crc, const void *data, size_t len);

#endif
