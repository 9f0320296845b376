"""Shared memory as a security boundary: whatever a user does with memory that a mirror gave him
damages only his own store."""
import ctypes
import os
import socket
import subprocess
import threading

import pytest

import wire
from drill import NO, OK, run_command
from rules import Rules, open_to_all, user
from teller import LOG, tellers, until  # noqa: F401
from watching import Watch, options

ME = "uid:%d" % os.geteuid()
HIM = 12345
CLAIM_SHARED = 6        # field of ClaimRequest


@pytest.fixture
def rules(tmp_path):
    return Rules(tmp_path / "access", "allow %s all" % ME, "allow uid:%d all store his" % HIM)


@pytest.fixture
def mirror(mirrors, rules, tmp_path):
    """A mirror that other users can reach, with a spill directory and HTTP."""
    daemon, = mirrors(1, "shm", (*rules.options, "--unix-mode", "666", "--spill-dir",
                                 str(tmp_path / "spill"), *options(tmp_path)))
    open_to_all(daemon)
    return daemon


def spilled(folder):
    return sorted(each.name for each in (folder / "spill").glob("*.spill"))


class Neighbour:
    """A user who speaks the protocol by hand, and keeps the descriptors that he was given."""

    def __init__(self, daemon, uid):
        with user(uid):
            self.control = wire.Control(daemon.mirror.unix)
        self.fds = []

    def claim(self, store, epoch, owner=None):
        """Claims a store. Returns the reply's status, and keeps descriptors that arrive."""
        body = wire.field(wire.CLAIM, wire.field(1, store) + wire.field(2, epoch) +
                          wire.field(3, owner or os.urandom(16)) + wire.field(4, 1) +
                          wire.field(CLAIM_SHARED, 1))
        self.control.peer.sendall(wire.message(body))
        reply = self.take()
        while wire.WORKING in reply:    # a busy daemon sends signs of progress first
            reply = self.take()
        return reply.get(1, wire.STATUS_OK)

    def take(self):
        """Returns the next message. Its descriptors come with its first byte."""
        peer = self.control.peer
        head, fds, _, _ = socket.recv_fds(peer, 4, 64)
        self.fds += fds
        return wire.fields(wire.receive(peer, int.from_bytes(head, "little")))

    def end(self):
        self.control.peer.close()
        for fd in self.fds:
            os.close(fd)


@pytest.fixture
def neighbour(mirror, tellers):
    """A neighbor with the memory of a store "his"; another owner's store is "books"."""
    desk = tellers.desk()
    desk.open("his", [mirror], "create", "log=65536")
    desk.ask("map", "a", 1 << 20)
    desk.ask("publish")
    desk.ask("close")
    him = Neighbour(mirror, HIM)
    assert him.claim("his", 1 << 16) == wire.STATUS_OK
    assert len(him.fds) == 3
    yield him
    him.end()


class Cutter(threading.Thread):
    """Truncates every file and extends it again, repeatedly."""

    def __init__(self, fds):
        super().__init__()
        self.fds, self.rounds, self.over = fds, 0, threading.Event()

    def run(self):
        while not self.over.is_set():
            for fd in self.fds:
                for size in (0, 4096, 1 << 16, 1 << 20):
                    try:
                        os.ftruncate(fd, size)
                    except OSError:     # the promise page is read-only for him
                        break
            self.rounds += 1

    def stop(self):
        self.over.set()
        self.join()


@pytest.mark.root("comes as another user")
def test_whoever_cuts_his_memory_short_damages_his_own_store(mirror, neighbour, tellers, tmp_path):
    """He repeats it while the daemon serves others, answers HTTP, gets requests for his store, and
    at the end writes its spill."""
    watch = Watch(tmp_path)
    desk = tellers.desk()
    desk.open("books", [mirror], "create", LOG)
    desk.books()
    desk.ask("start")
    cutter = Cutter(neighbour.fds)
    cutter.start()
    try:
        for _ in range(30):
            watch.get("/metrics")
            run_command("status", "his", mirrors=[mirror])
            desk.page.advances(20)
        until(lambda: cutter.rounds > 10, "files that are cut again and again")
        for fd in neighbour.fds:        # at the end all of them are gone
            try:
                os.ftruncate(fd, 0)
            except OSError:
                pass
        done = run_command("verify", "his", mirrors=[mirror])
        assert done.status != 0
        watch.get("/metrics")
        assert mirror.running()
        assert "store his: the image is damaged" in mirror.log()
        k = int(desk.ask("halt"))
        assert desk.check() == k
        desk.ask("close")
        assert mirror.terminate() == 0
    finally:
        cutter.stop()
    assert spilled(tmp_path) == ["books.spill"]
    assert "store his is not spilled: its image is damaged" in mirror.log()


@pytest.mark.root("comes as another user")
def test_a_spill_survives_memory_that_goes_meanwhile(mirror, neighbour, tellers, tmp_path):
    """The daemon is told to spill before it has noticed that the memory is gone."""
    desk = tellers.desk()
    desk.open("books", [mirror], "create", LOG)
    desk.books()
    desk.ask("run", 20)
    desk.ask("close")
    os.ftruncate(neighbour.fds[-1], 4096)
    assert mirror.terminate() == 0
    assert spilled(tmp_path) == ["books.spill"]


@pytest.mark.root("comes as another user")
def test_what_was_kept_is_no_other_owners_memory(mirror, neighbour, rules, tellers):
    """He claims to have released everything but has kept it. The next owner gets a copy: his writes
    reach no image, and he sees none of the owner's."""
    log, _, data = neighbour.fds
    reply = neighbour.control.ask(wire.field(15, b""))          # Release
    assert reply.get(1, wire.STATUS_OK) == wire.STATUS_OK
    desk = tellers.desk()
    desk.open("his", [mirror])
    desk.ask("map", "a", 1 << 20)
    desk.transaction("a", 0, 4096, 7)
    assert os.pread(data, 4096, 0) == bytes(4096)
    os.pwrite(data, b"x" * 4096, 0)
    os.pwrite(log, b"x" * 4096, 0)
    for fd in neighbour.fds:
        try:
            os.ftruncate(fd, 0)
        except OSError:
            pass
    desk.transaction("a", 4096, 4096, 8)
    desk.ask("close")
    desk = tellers.desk()
    desk.open("his", [mirror])
    desk.ask("map", "a", 1 << 20)
    desk.transaction("a", 0, 1, 9)


@pytest.mark.root("comes as another user")
def test_without_the_right_to_share_it_goes_over_the_socket(mirror, rules, tellers):
    """With the same application and address, the store works, and the mirror keeps its memory to
    itself and says so. With the right, the next owner shares memory, until it loses the right."""
    assert rules.put(mirror, "allow %s create,own,read,recover" % ME)
    desk = tellers.desk()
    desk.open("books", [mirror], "create", LOG)
    desk.books()
    k = desk.run(50)
    assert run_command("status", "books", "--json", mirrors=[mirror]).json()[
        "mirrors"][0]["fabric"] == "tcp"
    maps = open("/proc/%d/maps" % desk.pid).read()
    assert str(mirror.memory) not in maps
    assert rules.put(mirror, "allow %s all" % ME)
    k = desk.run(50)
    assert desk.check() == k
    desk.ask("close")
    desk = tellers.desk()
    desk.open("books", [mirror])
    desk.books()
    assert desk.run(1) == k + 1
    assert run_command("status", "books", "--json", mirrors=[mirror]).json()[
        "mirrors"][0]["fabric"] == "shm"
    assert str(mirror.memory) in open("/proc/%d/maps" % desk.pid).read()
    assert rules.put(mirror, "allow %s create,own,read,recover" % ME)   # this disconnects the owner
    desk.run(50)
    assert str(mirror.memory) not in open("/proc/%d/maps" % desk.pid).read()


def blocks(folder):
    """Returns the bytes that all files below the folder take. Some may vanish in the meantime,
    because the daemon copies."""
    sizes = subprocess.run(["du", "-s", "-B1", str(folder)], capture_output=True, text=True)
    return int(sizes.stdout.split()[0])


@pytest.mark.root("comes as another user")
@pytest.mark.parametrize("keep_size", (False, True), ids=("longer", "beyond the end"))
def test_whoever_takes_more_than_his_share_is_cut_off(keep_size, mirrors, rules, tellers, tmp_path):
    """Under a limit for all users, he extends a file, or allocates blocks beyond its end. Another
    owner gets memory within a second or two, and he has lost his session, but not the store."""
    daemon, = mirrors(1, "shm", (*rules.options, "--unix-mode", "666", "--max-memory", "8M"))
    open_to_all(daemon)
    desk = tellers.desk()
    desk.open("his", [daemon], "create", "log=65536")
    desk.ask("map", "a", 1 << 20)
    desk.ask("publish")
    desk.transaction("a", 0, 4096, 5)
    desk.ask("close")
    him = Neighbour(daemon, HIM)
    assert him.claim("his", 1 << 16) == wire.STATUS_OK
    before = blocks(daemon.memory)
    assert before < 4 << 20
    assert ctypes.CDLL(None).fallocate(him.fds[-1], int(keep_size), ctypes.c_long(0),
                                       ctypes.c_long(64 << 20)) == 0
    cut = "took more memory than was reserved"
    done = run_command("create", "other", "--log-size", "1M", mirrors=[daemon])
    if done.status == NO:
        assert "used, limit 8388608" in done.err, done
        assert int(done.err.partition("(")[2].split()[0]) > 64 << 20
    else:                               # on a busy machine he was disconnected before
        assert done.status == OK and cut in daemon.log(), done
    until(lambda: cut in daemon.log(), "the cut")
    until(lambda: blocks(daemon.memory) < 4 << 20, "memory that is given back")
    assert run_command("create", "another", "--log-size", "1M", mirrors=[daemon]).status == OK
    assert run_command("verify", "his", mirrors=[daemon]).status == OK
    him.end()
