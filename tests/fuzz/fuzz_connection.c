/*
 * fuzz_connection.c - any bytes over the daemon's connections, of TCP and of Unix sockets, control
 * and data: ../support/daemon_peers.h says how they are written down.
 */
#include "../support/daemon_peers.h"
#include "target.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	daemon_peers_run(data, size, NULL);
	return 0;
}
