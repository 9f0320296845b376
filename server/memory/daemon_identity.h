/*
 * daemon_identity.h - the identity of a daemon: 16 random bytes, kept in a file of its memory
 * directory. Owners count daemons by it, whatever addresses lead to them.
 */
#ifndef PERSEAS_SERVER_DAEMON_IDENTITY_H
#define PERSEAS_SERVER_DAEMON_IDENTITY_H

#include <stddef.h>
#include <stdint.h>

/*
 * Fills in the identity of the daemon whose memory directory this is. The file counts only if it
 * names its own inode, its own birth time and this boot; else `draw` draws another identity, which
 * is written to a new file. boot: 16 bytes; NULL if the boot is not known. An identity that cannot
 * be kept holds until the daemon ends.
 */
void daemon_identity_get(int directory, const uint8_t *boot, void (*draw)(void *bytes, size_t len),
                         uint8_t id[16]);

#endif
