/*
 * doctor_rdma.c - lists the addresses at which owners reach the RDMA devices of this host, as sysfs
 * shows them. It must never call rdma-core.
 */
#include "doctor.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	GIDS_MAX = 1024,
	/* After so many empty entries, the rest of a GID table counts as empty. */
	GIDS_EMPTY_MAX = 16,
};

static const char devices_path[] = "/sys/class/infiniband";

/* Converts a GID such as "0000:0000:0000:0000:0000:ffff:c000:0201" to the text of an address.
 * Returns false if the GID is link-local, empty or malformed. */
static bool gid_address(const char *gid, char text[INET6_ADDRSTRLEN])
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };
	static const struct in6_addr none;
	struct in6_addr address;

	if (inet_pton(AF_INET6, gid, &address) != 1)
		return false;
	if (memcmp(&address, &none, sizeof(none)) == 0 || IN6_IS_ADDR_LINKLOCAL(&address))
		return false;
	if (memcmp(&address, mapped, sizeof(mapped)) == 0)
		return inet_ntop(AF_INET, (uint8_t *)&address + 12, text, INET6_ADDRSTRLEN);
	return inet_ntop(AF_INET6, &address, text, INET6_ADDRSTRLEN);
}

/* Adds the addresses of a port at which owners can reach it. Returns how many. */
static unsigned add_gids(const struct ps_host *host, struct ps_finding *finding, const char *device,
                         const char *port)
{
	char base[160], type[32], gid[64], text[INET6_ADDRSTRLEN];
	unsigned found = 0, empty = 0;

	snprintf(base, sizeof(base), "%s/%s/ports/%s", devices_path, device, port);
	for (unsigned i = 0; i < GIDS_MAX && empty < GIDS_EMPTY_MAX; i++) {
		/* The type of an empty table entry cannot be read. */
		if (!ps_host_read(host, type, sizeof(type), "%s/gid_attrs/types/%u", base, i)) {
			empty++;
			continue;
		}
		empty = 0;
		ps_host_read(host, gid, sizeof(gid), "%s/gids/%u", base, i);
		if (strcmp(type, "RoCE v2") != 0 || !gid_address(gid, text))
			continue;
		ps_finding_add(finding, "%s%s at %s (GID %u, RoCE v2)", *finding->found ? ", " : "",
		               device, text, i);
		found++;
	}
	return found;
}

static bool is_ethernet(const struct ps_host *host, const char *device, const char *port)
{
	char layer[32], node[32];

	ps_host_read(host, node, sizeof(node), "%s/%s/node_type", devices_path, device);
	ps_host_read(host, layer, sizeof(layer), "%s/%s/ports/%s/link_layer", devices_path, device,
	             port);
	/* 4 is iWARP, which has no GIDs to choose from. */
	return node[0] != '4' && strcmp(layer, "InfiniBand") != 0;
}

/* Notes a device that is made by software (Soft-RoCE). It can permanently lose the queue pair that
 * makes connections, which sysfs does not show, so the note says where to look if owners
 * unexpectedly use TCP. */
static void note_software_device(const struct ps_host *host, struct ps_finding *finding,
                                 const char *device)
{
	if (ps_host_exists(host, "%s/%s/parent", devices_path, device))
		ps_finding_add(finding,
		               "; that %s still makes connections is shown by `rdma resource show "
		               "qp link %s type GSI`: state RTS (deploy/roce.md)",
		               device, device);
}

/* Adds the findings on a device. Returns the number of its Ethernet ports at which no owner can
 * reach it. */
static unsigned add_device(const struct ps_host *host, struct ps_finding *finding,
                           const char *device)
{
	char path[128], **ports;
	unsigned count, without = 0;

	snprintf(path, sizeof(path), "%s/%s/ports", devices_path, device);
	count = ps_host_list_names(host, path, &ports);
	for (unsigned i = 0; i < count; i++) {
		if (!is_ethernet(host, device, ports[i]) ||
		    add_gids(host, finding, device, ports[i]))
			continue;
		without++;
		ps_finding_add(finding, "%s%s port %s has none", *finding->found ? ", " : "",
		               device, ports[i]);
	}
	ps_host_names_free(ports, count);
	if (*finding->found)
		note_software_device(host, finding, device);
	return without;
}

void ps_check_rdma_addresses(const struct ps_host *host, struct ps_finding *finding)
{
	unsigned count, without = 0;
	char **names;

	if (!host->has_rdma) {
		ps_finding_set(finding, PS_HEALTH_SKIPPED,
		               "RDMA is left out of this build, or switched off "
		               "(PERSEAS_RDMA=off)");
		return;
	}
	count = ps_host_list_names(host, devices_path, &names);
	for (unsigned i = 0; i < count; i++)
		without += add_device(host, finding, names[i]);
	ps_host_names_free(names, count);
	if (!*finding->found)
		ps_finding_set(
			finding, PS_HEALTH_SKIPPED,
			"there is no RDMA device, or none of RoCE; perseas-rxe up --dev DEVICE "
			"makes one of an Ethernet device");
	if (without > 0)
		ps_finding_worsen(finding, PS_HEALTH_FAIL,
		                  "Owners need a GID of RoCE v2 for an address that is not "
		                  "link-local: ip addr add ADDRESS/BITS dev DEVICE "
		                  "(deploy/roce.md)");
}
