/*
 * cgroup.h - how much memory the kernel's control groups allow this process. Pages of a tmpfs are
 * charged to the group of the process that first writes to them, and the kernel kills a process in
 * a group above its limit, with everything that it serves. So this is checked before memory is
 * allocated.
 */
#ifndef PERSEAS_SERVER_CGROUP_H
#define PERSEAS_SERVER_CGROUP_H

#include <stdint.h>

/* Returns how many bytes of images this process can still allocate under the limits of its group
 * and the groups above that, less a reserve for the process itself. UINT64_MAX: there is no limit,
 * or it cannot be read. */
uint64_t cgroup_room(void);

/* Returns for how many bytes of tmpfs each of these groups that has a limit is charged: the least
 * of them. Memory of this process in tmpfs beyond that is charged to other groups, such as that of
 * an earlier daemon, and not limited here. UINT64_MAX: there is no limit, or it cannot be read. */
uint64_t cgroup_charged(void);

/* For tests: sets the paths where this process's groups and the tree of all groups are read. NULL:
 * /proc/self/cgroup and the mounted tree. */
void cgroup_set_paths(const char *self, const char *root);

#endif
