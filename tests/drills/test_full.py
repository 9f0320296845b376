"""A full memory file system: everything that needs no memory continues, above all takeovers."""
import contextlib
import os
import subprocess

import pytest

from binding import Store
from drill import FAILURE, MIB, OK, fill, mirror_list, run_command, wait_ownerless


@pytest.fixture
def small_memory():
    """small_memory(daemon, options) mounts a tmpfs of 8 MiB, with these options, as its memory
    directory."""
    places = []

    def mount(daemon, options=""):
        daemon.lose_memory()
        place = daemon.memory
        place.mkdir(mode=0o700)
        done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m,mode=0700" + options, "none",
                               str(place)], capture_output=True, text=True)
        if done.returncode:
            pytest.skip("a file system cannot be mounted here: " + done.stderr.strip())
        places.append((daemon, place))
        daemon.restart()

    yield mount
    for daemon, place in places:
        if daemon.running():
            daemon.kill9()
        subprocess.run(["umount", "--lazy", str(place)], check=True)


def fill_up(place):
    """Fills the file system to the last page."""
    with open(place / ".filler", "wb", buffering=0) as filler, contextlib.suppress(OSError):
        while True:
            filler.write(bytes(4096))
    assert os.statvfs(place).f_bavail == 0


def test_a_store_is_taken_over_while_its_memory_is_full(small_memory, mirrors, owner):
    """An owner is killed, and the next ones claim its store repeatedly."""
    daemon, = mirrors(1)
    small_memory(daemon)
    fill("s", [daemon], {"accounts": bytes(MIB)}, log_size=65536)
    held = owner("s", [daemon], "map,accounts,%d" % MIB, "write,accounts,0,first",
                 "write,accounts,8,second")
    fill_up(daemon.memory)
    held.kill9()
    wait_ownerless("s", [daemon])
    for _ in range(3):
        done = run_command("recover", "s", mirrors=[daemon])
        assert done.status == OK, done
    with Store("s", mirror_list([daemon])) as store:
        store.map("accounts")
        store.write("accounts", 16, b"third")
        assert store.read("accounts", 0, 21) == b"first\0\0\0second\0\0third"
    # Also with a daemon that starts on a full file system.
    daemon.kill9()
    daemon.restart()
    assert run_command("recover", "s", mirrors=[daemon]).status == OK
    # Requests that need memory are refused with that reason.
    done = run_command("create", "other", mirror_list([daemon]))
    assert done.status != OK and "memory" in done.err, done
    assert not (daemon.memory / "other").exists()


def test_a_file_system_without_inodes_is_named(small_memory, mirrors):
    """It has room for the bytes, but for fewer files than a store needs: the folder, a piece or the
    header cannot be created."""
    daemon, = mirrors(1)
    small_memory(daemon, ",nr_inodes=16")
    fillers = []
    while os.statvfs(daemon.memory).f_favail:
        fillers.append(daemon.memory / (".filler%d" % len(fillers)))
        fillers[-1].touch()
    refused = 0
    while True:
        done = run_command("create", "s", "--log-size", str(MIB), mirror_list([daemon]))
        if done.status == OK:
            break
        assert "no inodes left" in done.err and "nr_inodes" in done.err, done
        refused += 1
        fillers.pop().unlink()
    assert refused > 4


def test_what_the_system_says_of_a_piece_that_cannot_be_made_is_told(perseas, mirrors):
    """A file has the name of the store's folder."""
    daemon, = mirrors(1)
    (daemon.memory / "s").write_text("")
    done = perseas("create", "s", mirrors=[daemon])
    assert done.status == FAILURE and "cannot be made (Not a directory); look at" in done.err, done
