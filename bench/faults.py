"""What it costs to touch memory of a store that is missing, and a bare read of as many bytes:
failover.py calls it. It must never be the only user of the processors' caches: what it reads bare
lies where no cache holds it."""
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
REQUEST = 64                            # bytes that ask for them
AREA = 64 * MIB                         # that bare copies come from
FAULTS = 1000                           # of a run, at most


def quantiles(taken):
    """p50 and p99 in us, of ns."""
    taken = sorted(taken)
    return {"p50_us": taken[len(taken) // 2] / 1e3, "p99_us": taken[len(taken) * 99 // 100] / 1e3,
            "count": len(taken)}


def fault_costs(mirrors, size):
    """Of touching what is missing; None where nothing was."""
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
    """The other end of a bare read over a connection."""
    data = bytes(GRANULE)
    while link.recv(REQUEST, socket.MSG_WAITALL):
        link.sendall(data)


def bare_connection():
    """Reads of as many bytes over TCP: a request, and its answer."""
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
    """Copies of as many bytes from shared memory, which no cache holds."""
    taken, area = [], mmap.mmap(-1, AREA)
    area.write(bytes(AREA))
    first = ctypes.c_char.from_buffer(area)
    base, to = ctypes.addressof(first), ctypes.create_string_buffer(GRANULE)
    for place in random.choices(range(AREA // GRANULE), k=FAULTS):
        began = time.perf_counter_ns()
        ctypes.memmove(to, base + place * GRANULE, GRANULE)
        taken.append(time.perf_counter_ns() - began)
    return quantiles(taken)
