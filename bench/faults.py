"""Measures what it costs to touch missing memory of a store, and for comparison a bare read of as
many bytes. failover.py calls it. The memory for bare reads is larger than the processor's caches,
so that it is not read from them."""
import ctypes
import mmap
import multiprocessing
import pathlib
import random
import socket
import sys
import time

from worker import MIB

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "tests/drills"))
import binding  # noqa: E402

GRANULE = 128 << 10                     # bytes that a fault fetches (PROTOCOL.md)
REQUEST = 64                            # bytes of the request for a granule
AREA = 64 * MIB                         # memory for bare copies
FAULTS = 1000                           # upper bound for a run


def quantiles(taken):
    """Returns p50 and p99 in us, from times in ns."""
    taken = sorted(taken)
    return {"p50_us": taken[len(taken) // 2] / 1e3, "p99_us": taken[len(taken) * 99 // 100] / 1e3,
            "count": len(taken)}


def fault_costs(mirrors, size):
    """Measures touching missing memory. Returns None if nothing was missing."""
    taken = []
    with binding.Store("worker", mirrors, recovery=binding.ON_DEMAND) as store:
        base, before = store.map("segment"), store.stat().faults
        for granule in random.sample(range(size // GRANULE), size // GRANULE):
            word = ctypes.c_uint64.from_address(base + granule * GRANULE)
            began = time.perf_counter_ns()
            word.value                  # pylint: disable=pointless-statement
            took = time.perf_counter_ns() - began
            now = store.stat()
            if now.faults > before:
                taken.append(took)
            before = now.faults
            if not now.missing or len(taken) == FAULTS:
                break
    return quantiles(taken) if taken else None


def give_bytes(link):
    """Runs the far end of bare reads over a connection."""
    data = bytes(GRANULE)
    while link.recv(REQUEST, socket.MSG_WAITALL):
        link.sendall(data)


def bare_connection():
    """Measures reads of a granule over TCP: a request and its answer."""
    taken, buffer, ask = [], bytearray(GRANULE), bytes(REQUEST)
    with socket.create_server(("127.0.0.1", 0)) as server:
        link = socket.create_connection(server.getsockname())
        far, _ = server.accept()
    process = multiprocessing.Process(target=give_bytes, args=(far,), daemon=True)
    process.start()
    far.close()
    with link:
        link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for _ in range(FAULTS):
            began = time.perf_counter_ns()
            link.sendall(ask)
            link.recv_into(buffer, GRANULE, socket.MSG_WAITALL)
            taken.append(time.perf_counter_ns() - began)
    process.kill()
    process.join()
    return quantiles(taken)


def bare_memory():
    """Measures copies of a granule from shared memory that is not in a cache."""
    taken, area = [], mmap.mmap(-1, AREA)
    area.write(bytes(AREA))
    first = ctypes.c_char.from_buffer(area)
    base, to = ctypes.addressof(first), ctypes.create_string_buffer(GRANULE)
    for place in random.choices(range(AREA // GRANULE), k=FAULTS):
        began = time.perf_counter_ns()
        ctypes.memmove(to, base + place * GRANULE, GRANULE)
        taken.append(time.perf_counter_ns() - began)
    return quantiles(taken)
