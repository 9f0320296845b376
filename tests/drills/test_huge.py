"""An owner in huge pages is killed, and the next one, which reads on demand, has them, too."""
import pathlib
import re

import pytest

import drill  # which finds the benchmarks' folder, too
import huge
from cluster import Cluster, wait_for
from worker import MIB, Worker

SIZE = 32 * MIB


def in_huge_pages(pid):
    """Bytes of its memory that lie there."""
    smaps = pathlib.Path("/proc/%d/smaps" % pid).read_text()
    found = re.findall(r"^Size: +(\d+) kB\nKernelPageSize: +2048 kB", smaps, re.M)
    return sum(int(kib) << 10 for kib in found)


def owner(cluster, fabric, *words):
    mirrors = {"tcp": cluster.tcp, "shm": cluster.unix}[fabric]()
    return Worker(cluster, mirrors, "--fabric", fabric, "--huge", *words)


@pytest.mark.root("has the kernel keep huge pages")
@pytest.mark.parametrize("fabric", ["tcp", "shm"])
def test_the_next_owner_has_huge_pages_too(fabric):
    before = huge.POOL.read_text()
    with huge.kept(2 * SIZE) as kept, Cluster(drill.BUILD, 3) as cluster:
        assert kept
        owner(cluster, fabric, "--make", "--size", SIZE).end()
        number = 0
        for _ in range(5):
            worker = owner(cluster, fabric, "--demand")
            assert worker.first["found"] >= number
            assert in_huge_pages(worker.process.pid) == SIZE
            told = wait_for(lambda owner=worker: not (told := owner.ask())["missing"] and told,
                            drill.SECONDS, "all memory")
            number = told["number"]
            worker.kill()
    assert huge.POOL.read_text() == before
