"""The least that has to work over any provider of RDMA: a bank that is killed, and recovered."""
import json
import os
import random
import signal
import struct

import pytest

from binding import CREATE, Store
from cluster import EMULATED, Cluster
from drill import BUILD, MIB, hosts, status_of, wait_for, wait_ownerless

SECONDS = 120


@pytest.fixture
def cluster():
    assert EMULATED
    with Cluster(BUILD, 3, hosts=hosts(3)) as cluster:
        yield cluster


def acked(oracle):
    content = oracle.read_bytes() if oracle.exists() else b""
    return struct.unpack_from("<Q", content)[0] if len(content) >= 8 else 0


def bank(cluster, oracle, *more):
    return [BUILD / "bench/debit-credit", "--store", "bank", "--mirrors", cluster.rdma(),
            "--oracle", oracle, *more]


def test_a_bank_that_is_killed_while_it_commits_is_recovered(cluster, tmp_path):
    """kill -9 of the owner again and again; another process finds every acknowledged transaction,
    and all bytes as those that are there must have made them."""
    oracle = tmp_path / "oracle"
    for number in range(2):
        more = ["--continue"] if number else []
        before = acked(oracle)
        with open(tmp_path / "log", "wb") as log:
            process = cluster.spawn(*bank(cluster, oracle, *more), stdout=log, stderr=log)
        goal = before + random.randrange(20, 300)
        wait_for(lambda: acked(oracle) >= goal or process.poll() is not None, SECONDS, "commits")
        assert process.poll() is None, (tmp_path / "log").read_text()
        if number == 0:
            fabrics = {m["fabric"] for m in status_of("bank", cluster.rdma())["mirrors"]}
            assert fabrics == {"rdma"}
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        done = cluster.run(*bank(cluster, oracle, "--verify", "--takeover", "--json"),
                           seconds=SECONDS)
        assert done.returncode == 0, done.stdout + done.stderr
        assert acked(oracle) <= json.loads(done.stdout)["transactions"] <= acked(oracle) + 1
    done = cluster.run(BUILD / "perseas", "verify", "bank", "--mirrors", cluster.rdma(),
                       seconds=SECONDS)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_child_that_is_forked_does_its_parent_no_harm(cluster):
    """Its copies of pages are its own: what the device sends and receives is the parent's."""
    mirrors = cluster.rdma()
    with Store("s", mirrors, flags=CREATE) as store:
        store.map("a", MIB)
        store.publish()
        ready, leave = os.pipe(), os.pipe()
        child = os.fork()
        if child == 0:
            # Writes to all that it inherited and can write to without knowing what it is.
            garbage = [bytearray(os.urandom(64)) * 1024 for _ in range(64)]
            os.write(ready[1], b"%d" % len(garbage))
            os.read(leave[0], 1)
            os._exit(0)
        os.read(ready[0], 16)
        for number in range(200):
            store.write("a", number * 4096, b"%08d" % number)
        os.write(leave[1], b"x")
        assert os.waitpid(child, 0)[1] == 0
        store.write("a", 200 * 4096, b"%08d" % 200)
    wait_ownerless("s", mirrors)
    with Store("s", mirrors) as store:
        store.map("a", 0)
        assert [store.read("a", n * 4096, 8) for n in range(201)] == \
            [b"%08d" % n for n in range(201)]
