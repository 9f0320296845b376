/*
 * cgroup.h - how much memory the kernel's control groups allow this process. Pages of a tmpfs are
 * charged to the group of the process that first writes to them, and the kernel kills a process in
 * a group above its limit, with everything that it serves. So this is checked before memory is
 * allocated.
 */
#ifndef PERSEAS_SERVER_CGROUP_H
#define PERSEAS_SERVER_CGROUP_H

#include <stdint.h>

/* Returns how many bytes this process can still allocate under the limits of its group and those
 * above it, less a reserve for itself. UINT64_MAX: there is no limit, or it cannot be read. */
uint64_t cgroup_room(void);

/* Returns how many bytes of tmpfs the groups with a limit are charged for: that of the group with
 * the least. What this process has in tmpfs beyond that is charged to other groups, such as that of
 * an earlier daemon, and not limited here. UINT64_MAX: there is no limit, or it cannot be read. */
uint64_t cgroup_charged(void);

/* For tests: sets where this process's groups and the tree of all groups are read. NULL: at the
 * kernel's places. */
void cgroup_set_place(const char *self, const char *root);

#endif
