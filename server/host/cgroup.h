/*
 * cgroup.h - how much memory the kernel's control groups leave to this process. The pages
 * of a tmpfs count for the group of the process that first writes to them, and the kernel kills a
 * process of a group beyond its limit, with all that it serves. So this is asked before memory is
 * taken.
 */
#ifndef PERSEAS_SERVER_CGROUP_H
#define PERSEAS_SERVER_CGROUP_H

#include <stdint.h>

/* Bytes that this process can still take under the limits of its group and of those above it, less
 * a little that it needs for itself. UINT64_MAX: there is no limit, or it cannot be read. */
uint64_t cgroup_room(void);

/* Bytes of tmpfs that the groups with a limit are charged for: of the one that is charged for the
 * least. What this process has in a tmpfs beyond that counts for other groups, as of a daemon
 * before it, and no limit here holds it. UINT64_MAX: there is no limit, or it cannot be read. */
uint64_t cgroup_charged(void);

/* For tests: where the groups of this process, and the tree of all groups, are. NULL: where the
 * kernel has them. */
void cgroup_set_place(const char *self, const char *root);

#endif
