/*
 * daemon_identity.h - the identity of a daemon: 16 random bytes in a file of its memory directory.
 * Owners recognize a daemon by it, whatever address they use.
 */
#ifndef PERSEAS_SERVER_DAEMON_IDENTITY_H
#define PERSEAS_SERVER_DAEMON_IDENTITY_H

#include <stddef.h>
#include <stdint.h>

/* Returns the identity of the daemon with this memory directory. The file is accepted only if it
 * names its own inode, its own birth time and this boot. Otherwise `draw` makes a new identity,
 * which is written to a new file. `boot` has 16 bytes, or is NULL if the boot is unknown. An
 * identity that cannot be written lasts until the daemon exits. */
void daemon_identity_get(int directory, const uint8_t *boot, void (*draw)(void *bytes, size_t len),
                         uint8_t id[16]);

#endif
