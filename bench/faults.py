"""Measures what it costs to touch missing memory of a store while the rest arrives, and for
comparison what that costs two bare lanes (bench/two_lanes.c). failover.py calls it."""
import ctypes
import json
import pathlib
import random
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "tests/drills"))
import binding  # noqa: E402

GRANULE = 64 << 10                      # bytes that a fault fetches (PROTOCOL.md)
BULK = 512 << 10                        # bytes of the rest that one request asks for
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


def bare_lanes(build, size, fabric):
    """Measures two bare lanes, which only fetch memory."""
    line = [build / "bench/two-lanes", "--size", str(size), "--bulk", str(BULK),
            "--fault", str(GRANULE), *(["--tcp"] if fabric == "tcp" else [])]
    told = json.loads(subprocess.run(line, stdout=subprocess.PIPE, check=True).stdout)
    return {"p50_us": told["p50_ns"] / 1e3, "p99_us": told["p99_ns"] / 1e3,
            "count": told["count"], "all_ms": told["all_ns"] / 1e6}
