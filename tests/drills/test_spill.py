"""Mirrors that are ended on purpose and write their images to disk, and hosts that then lose their
memory."""
import os
import resource
import shutil
import signal
import socket
import subprocess

import pytest

from cluster import wait_for
from drill import MIB, NO, OK, PARTLY, SECONDS, fill, mirror_list, noise, run_command
from binding import PerseasError, Store
from teller import LOG, tellers, until  # noqa: F401

KILLS = 5


def spill_dir(daemon):
    return daemon.mirror.folder / "spill"


def spills(daemon, ending=".spill"):
    folder = spill_dir(daemon)
    return sorted(p.name for p in folder.iterdir() if p.name.endswith(ending)) \
        if folder.exists() else []


def with_spill(daemons):
    """Restarts the daemons, each with its spill directory."""
    for daemon in daemons:
        daemon.mirror.options += ["--spill-dir", str(spill_dir(daemon))]
        daemon.restart()
    return daemons


def lose_hosts(daemons):
    """Deletes what tmpfs had, and starts the daemons."""
    for daemon in daemons:
        daemon.lose_memory()
        daemon.restart()


def test_impatient_signals_do_not_stop_a_spill(mirrors, tellers):
    """More signals arrive at every point of the end, also after the handlers were removed."""
    daemon, = with_spill(mirrors(1, "tcp"))
    desk = tellers.desk()
    desk.open("books", [daemon], "create", LOG)
    desk.ask("close")
    for _ in range(KILLS):
        process = daemon.mirror.process
        while process.poll() is None:
            for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
                process.send_signal(number)
        assert process.returncode == 0
        assert spills(daemon) == ["books.spill"]
        daemon.lose_memory()
        daemon.restart()


def shut_down_with_large_stores(daemon):
    """Makes stores, and ends the daemon and its host. Loading one of them takes longer than
    noticing that another one is loaded. Returns what they contain."""
    stores = {"large%d" % i: noise((8 << 20) + i) for i in range(6)}
    for name, data in stores.items():
        fill(name, [daemon], {"all": data})
    assert daemon.terminate() == 0
    assert len(spills(daemon)) == len(stores)
    daemon.lose_memory()
    return stores


def assert_contents(daemon, stores):
    for name, data in stores.items():
        with Store(name, mirror_list([daemon])) as store:
            store.map("all", len(data))
            assert store.read("all", 0, len(data)) == data


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_while_spills_are_loaded_loses_nothing(mirrors, number):
    """Spills that were loaded are used up, so they are written again before the host is gone.
    SIGHUP does not end the daemon."""
    daemon, = with_spill(mirrors(1, "tcp"))
    stores = shut_down_with_large_stores(daemon)
    daemon.mirror.spawn()
    process = daemon.mirror.process
    while len(spills(daemon)) == len(stores):
        assert process.poll() is None
    process.send_signal(signal.SIGHUP)
    process.send_signal(number)
    assert process.wait(SECONDS) == 0
    assert spills(daemon) == ["%s.spill" % name for name in stores]
    lose_hosts([daemon])
    assert_contents(daemon, stores)


def test_a_store_whose_spill_finds_no_memory_is_not_created_again(mirrors, perseas):
    """A program that creates its store must not get an empty one, and all commands name it."""
    daemons = with_spill(mirrors(2, "tcp"))
    data = noise(8 << 20)
    fill("bank", daemons, {"all": data})
    for daemon in daemons:
        assert daemon.terminate() == 0
        daemon.mirror.options += ["--max-memory", "1M"]
    lose_hosts(daemons)
    with pytest.raises(PerseasError, match="raise --max-memory"):
        fill("bank", daemons, {"all": b"new"})
    for words, status in (("ls",), OK), (("doctor",), NO), (("status", "--all"), PARTLY):
        told = perseas(*words, "--mirrors", mirror_list(daemons))
        assert told.status == status, told
        assert (told.out + told.err).count("raise --max-memory") == 2, told
    for daemon in daemons:
        del daemon.mirror.options[-2:]
        daemon.restart()
    with Store("bank", mirror_list(daemons)) as store:
        store.map("all", len(data))
        assert store.read("all", 0, len(data)) == data


@pytest.mark.parametrize("kept", [True, False])
def test_a_daemon_that_cannot_listen_writes_its_images(mirrors, kept):
    """The images are in its memory still, or it has loaded their spills. Both use the spills up."""
    daemon, = with_spill(mirrors(1, "tcp"))
    stores = shut_down_with_large_stores(daemon)
    if kept:
        daemon.restart()
        daemon.kill9()
    with socket.create_server(("127.0.0.1", 0)) as occupied:
        daemon.mirror.options += ["--listen", "127.0.0.1:%d" % occupied.getsockname()[1]]
        daemon.mirror.spawn()
        assert daemon.mirror.process.wait(SECONDS) == 1
    del daemon.mirror.options[-2:]
    assert spills(daemon) == ["%s.spill" % name for name in stores]
    lose_hosts([daemon])
    assert_contents(daemon, stores)


def test_all_mirrors_shut_down_while_an_owner_commits_and_come_back(mirrors, tellers, fabric,
                                                                    perseas):
    """All daemons get SIGTERM, and their memory is lost. Everything acknowledged is there again,
    once."""
    daemons = with_spill(mirrors(3, fabric))
    owner = tellers.run("books", daemons, "create", LOG, "commit-ms=200")
    owner.advances(200)
    for daemon in daemons:
        daemon.mirror.process.send_signal(signal.SIGTERM)
    assert [daemon.mirror.process.wait(SECONDS) for daemon in daemons] == [0, 0, 0]
    owner.kill9()
    assert [spills(daemon) for daemon in daemons] == [["books.spill"]] * 3
    lose_hosts(daemons)
    assert [spills(daemon) for daemon in daemons] == [[]] * 3
    assert tellers.verify("books", daemons, owner.page) >= owner.page.acked
    # A spill is loaded only once: what is lost now stays lost.
    lose_hosts(daemons)
    assert perseas("status", "books", mirrors=daemons).status != OK


def test_a_spill_that_was_loaded_is_never_served_again_but_can_be_restored(mirrors):
    """The only mirror loses its memory just after it has loaded its spill. An owner may have
    committed in between, so the spill is no longer the store, but an operator can decide to restore
    it."""
    daemon, = with_spill(mirrors(1))
    fill("s", [daemon], {"accounts": b"as it was spilled"}, log_size=65536)
    assert daemon.terminate() == 0
    lose_hosts([daemon])
    assert spills(daemon) == [] and spills(daemon, ".loaded") == ["s.spill.loaded"]
    with Store("s", daemon.address) as store:
        store.map("accounts")
        store.write("accounts", 0, b"committed since")
    lose_hosts([daemon])
    assert run_command("status", "s", mirrors=[daemon]).status != OK
    kept = spill_dir(daemon) / "s.spill.loaded"
    assert run_command("restore", kept, "saved", daemon.address).status == OK
    with Store("saved", daemon.address) as store:
        store.map("accounts")
        assert store.read("accounts", 0, 17) == b"as it was spilled"


def test_a_spill_that_is_put_back_is_not_loaded(mirrors):
    """A backup contains the spill directory. The host loses its memory after the spill was loaded
    and an owner has committed; then the backup is restored."""
    daemon, = with_spill(mirrors(1))
    daemon.mirror.options += ["--state-dir", str(daemon.mirror.folder / "state")]
    daemon.restart()
    fill("s", [daemon], {"accounts": b"as it was spilled"}, log_size=65536)
    assert daemon.terminate() == 0
    spill = spill_dir(daemon) / "s.spill"
    backup = spill.read_bytes()
    lose_hosts([daemon])
    with Store("s", daemon.address) as store:
        store.map("accounts")
        store.write("accounts", 0, b"committed since")
    daemon.lose_memory()
    spill.write_bytes(backup)
    daemon.restart()
    assert "it is set aside, not loaded: it was used up before" in daemon.log()
    assert spills(daemon) == [] and spills(daemon, ".spill.aside-1") == ["s.spill.aside-1"]
    assert run_command("status", "s", mirrors=[daemon]).status != OK


def test_without_a_state_directory_the_log_says_what_is_not_known(mirrors):
    daemon, = with_spill(mirrors(1))
    assert "name a --state-dir" in daemon.log()
    daemon.mirror.options += ["--state-dir", str(daemon.mirror.folder / "state")]
    told = daemon.log().count("name a --state-dir")
    daemon.restart()
    assert daemon.log().count("name a --state-dir") == told


def test_hosts_that_shut_down_twice_without_an_owner_keep_their_store(mirrors, tellers):
    daemons = with_spill(mirrors(3))
    desk = tellers.desk()
    desk.open("books", daemons, "create", LOG)
    desk.books()
    desk.run(50)
    desk.ask("close")
    for _ in range(3):
        assert [daemon.terminate() for daemon in daemons] == [0, 0, 0]
        lose_hosts(daemons)
    assert tellers.verify("books", daemons, desk.page) == desk.page.acked


def test_what_was_loaded_from_a_spill_is_told_of_before_the_store_is_opened(mirrors, perseas):
    """Its images have new ids, which the first open records; until then they count, too."""
    daemons = with_spill(mirrors(3))
    fill("data", daemons, {"bytes": b"abcdefgh"}, log_size=65536)
    assert [daemon.terminate() for daemon in daemons] == [0, 0, 0]
    lose_hosts(daemons)
    done = perseas("status", "data", mirrors=daemons)
    assert done.status == OK and done.out.count("was spilled, and is back") == 3, done
    assert "not seen" not in done.out and "newest state seen: epoch 1" in done.out, done
    assert "not seen" not in perseas("roster", "data", mirrors=daemons).out
    done = perseas("verify", "data", mirrors=daemons)
    assert done.status == OK and "3 of 3 mirrors hold the same" in done.out, done
    file = daemons[0].mirror.folder / "snapshot"
    assert perseas("snapshot", "data", "--from", daemons[0].address, "--to", file).status == OK
    assert contents(daemons) == b"abcdefgh"
    assert "spilled" not in perseas("status", "data", mirrors=daemons).out


def test_one_mirror_shuts_down_while_the_others_go_on(mirrors, tellers, fabric):
    """Its image is older than the others when it is back, which does not affect the next owner."""
    daemons = with_spill(mirrors(3, fabric))
    desk = tellers.desk()
    desk.open("books", daemons, "create", LOG, "acks=2")
    desk.books()
    desk.run(50)
    assert daemons[0].terminate() == 0
    desk.run(50)
    lose_hosts(daemons[:1])
    desk.run(50)
    desk.exit()
    assert tellers.verify("books", daemons, desk.page) == desk.page.acked


def test_a_daemon_that_is_only_restarted_keeps_its_memory(mirrors, tellers):
    daemons = with_spill(mirrors(3))
    desk = tellers.desk()
    desk.open("books", daemons, "create", LOG)
    desk.books()
    desk.run(50)
    desk.ask("close")
    for daemon in daemons:
        assert daemon.terminate() == 0
        assert spills(daemon) == ["books.spill"]
        daemon.restart()
        assert spills(daemon) == []
    assert tellers.verify("books", daemons, desk.page) == desk.page.acked


def test_a_copied_spill_that_another_daemon_loads_counts_for_nothing(mirrors, perseas):
    """The spill is copied while its daemon is down. That one goes on with its memory, and the copy
    falls behind: with the one mirror that is left, an open must not take it for the member."""
    daemons = with_spill(mirrors(4))
    stale, gone, spilled, copier = daemons
    listed = {gone.address, spilled.address}
    fill("data", [stale, gone, spilled], {"bytes": b"spilled."}, log_size=65536)
    assert [spilled.terminate(), copier.terminate()] == [0, 0]
    shutil.copy2(spill_dir(spilled) / "data.spill", spill_dir(copier))
    spilled.restart()
    copier.restart()
    seen = perseas("status", "data", mirrors=daemons)
    assert "a spill of a member was loaded twice" in seen.out, seen
    with Store("data", mirror_list([stale, gone, spilled])) as store:
        store.map("bytes")
        stale.kill9()
        store.write("bytes", 0, b"acked...")
        seen = perseas("status", "data", "--json", mirrors=daemons).json()
        assert {m["address"] for m in seen["mirrors"] if m.get("listed")} == listed
        seen = perseas("status", "data", mirrors=daemons).out
        assert "counts for nothing" in seen and "loaded twice" not in seen
    gone.kill9()
    spilled.kill9()
    stale.restart()
    done = perseas("recover", "data", mirrors=[stale, copier])
    assert done.status != OK and spilled.address in done.err, done
    spilled.restart()
    assert perseas("recover", "data", mirrors=daemons).status == OK
    assert contents([stale, spilled]) == b"acked..."


def contents(daemons):
    with Store("data", ",".join(d.address for d in daemons)) as store:
        store.map("bytes")
        return store.read("bytes", 0, 8)


def test_a_mirror_dies_at_a_byte_of_its_spill(mirrors):
    """Until then it has written to files whose names mark them as incomplete. It dies in a piece,
    and around the boundary between two pieces: memory has everything, and half a file is never
    loaded."""
    daemon, = with_spill(mirrors(1))
    data = noise(4 * MIB)
    fill("data", [daemon], {"bytes": data}, log_size=65536)
    assert daemon.terminate() == 0
    whole = (spill_dir(daemon) / "data.spill").read_bytes()
    half = spill_dir(daemon) / "data.spill.tmp"
    for size in (0, MIB // 16, MIB, MIB + 400, 3 * MIB + 1):
        half.write_bytes(whole[:size])
        daemon.restart()
        assert contents([daemon]) == data[:8]
        assert spills(daemon) == [] and not half.exists()
    daemon.kill9()
    half.write_bytes(whole[:MIB])
    lose_hosts([daemon])
    assert run_command("status", "data", mirrors=[daemon]).status != OK
    assert "were loaded" not in daemon.log()


def test_a_mirror_is_killed_while_it_writes(mirrors):
    """kill -9 as soon as a file exists. Either the memory is there then, or a complete spill."""
    daemon, = with_spill(mirrors(1))
    data = noise(MIB) * 16
    fill("data", [daemon], {"bytes": data})
    for _ in range(KILLS):
        daemon.mirror.process.send_signal(signal.SIGTERM)
        wait_for(lambda: spills(daemon, ".tmp") or spills(daemon), SECONDS, "a spill that begins")
        daemon.kill9()
        daemon.restart()
        assert spills(daemon) == []
        assert contents([daemon]) == data[:8]


@pytest.fixture
def tiny_disk(tmp_path):
    """A file system of 1 MiB."""
    place = tmp_path / "disk"
    place.mkdir(mode=0o700)
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m,mode=0700", "none", str(place)],
                          capture_output=True, text=True)
    if done.returncode:
        pytest.skip("a file system cannot be mounted here: " + done.stderr.strip())
    yield place
    subprocess.run(["umount", str(place)], check=True)


def test_a_full_disk_is_named_and_costs_only_what_did_not_fit(tiny_disk, mirrors):
    """One of two stores fits. The daemon ends anyway, and its status reports the failure."""
    daemon, = mirrors(1)
    daemon.mirror.options += ["--spill-dir", str(tiny_disk)]
    daemon.restart()
    big = noise(4 * MIB)
    fill("data", [daemon], {"bytes": big})
    fill("small", [daemon], {"bytes": b"12345678"}, log_size=65536)
    assert daemon.terminate() == 1
    assert "store data could not be spilled" in daemon.log()
    assert sorted(p.name for p in tiny_disk.iterdir()) == [".lock", ".perseas", "small.spill"]
    daemon.restart()
    assert contents([daemon]) == big[:8]
    assert sorted(p.name for p in tiny_disk.iterdir()) == [".lock", ".perseas"]


def move_spill_dir(daemon):
    """Moves the spill directory under the daemon, which then has another one under its path."""
    away = daemon.mirror.folder / "away"
    spill_dir(daemon).rename(away)
    spill_dir(daemon).mkdir(0o700)
    wait_for(lambda: "no longer leads to the spill directory" in daemon.log(), SECONDS,
             "a word about the spill directory")
    return away


def test_a_moved_spill_directory_refuses_a_spill_and_ends_nothing(mirrors):
    daemon, = with_spill(mirrors(1))
    fill("s", [daemon], {"accounts": b"kept"}, log_size=65536)
    away = move_spill_dir(daemon)
    with Store("s", daemon.address) as store:
        store.map("accounts")
        done = run_command("spill", daemon.address)
        assert done.status != OK and "nothing was ended" in done.err
        store.write("accounts", 0, b"more")
    spill_dir(daemon).rmdir()
    away.rename(spill_dir(daemon))
    assert run_command("spill", daemon.address).status == OK
    assert spills(daemon) == ["s.spill"]


def test_a_daemon_that_ends_spills_where_the_next_one_looks(mirrors):
    daemon, = with_spill(mirrors(1))
    fill("s", [daemon], {"accounts": b"kept"}, log_size=65536)
    away = move_spill_dir(daemon)
    assert daemon.terminate() == 0
    assert "images are written to the folder that is there now" in daemon.log()
    assert spills(daemon) == ["s.spill"] and list(away.glob("*.spill")) == []
    lose_hosts([daemon])
    with Store("s", daemon.address) as store:
        store.map("accounts")
        assert store.read("accounts", 0, 4) == b"kept"


def test_a_removed_spill_directory_is_made_again(mirrors):
    daemon, = with_spill(mirrors(1))
    fill("s", [daemon], {"accounts": b"kept"}, log_size=65536)
    shutil.rmtree(spill_dir(daemon))
    assert run_command("spill", daemon.address).status == OK
    assert spills(daemon) == ["s.spill"]


def test_a_file_that_may_not_grow_costs_only_what_did_not_fit(mirrors):
    """With the process's limit (ulimit -f) the kernel would end it in the middle, but it still
    writes the other store."""
    daemon, = with_spill(mirrors(1))
    fill("small", [daemon], {"bytes": b"12345678"}, log_size=65536)
    fill("data", [daemon], {"bytes": noise(4 * MIB)}, log_size=65536)
    resource.prlimit(daemon.pid, resource.RLIMIT_FSIZE, (MIB, MIB))
    assert daemon.terminate() == 1
    assert "store data could not be spilled" in daemon.log() and "File too large" in daemon.log()
    assert spills(daemon) == ["small.spill"] and spills(daemon, ".tmp") == []


def test_a_damaged_spill_is_named_kept_and_the_others_are_loaded(mirrors):
    daemon, = with_spill(mirrors(1))
    fill("data", [daemon], {"bytes": b"abcdefgh"})
    fill("other", [daemon], {"bytes": b"12345678"})
    assert daemon.terminate() == 0
    damaged = spill_dir(daemon) / "other.spill"
    content = bytearray(damaged.read_bytes())
    content[len(content) // 2] ^= 1
    damaged.write_bytes(content)
    lose_hosts([daemon])
    assert "the spill of store other: it is kept, not loaded: it is damaged" in daemon.log()
    assert spills(daemon) == ["other.spill"]
    assert damaged.read_bytes() == content
    assert contents([daemon]) == b"abcdefgh"


def test_the_service_manager_is_told_while_images_are_written(tmp_path, mirrors):
    """systemd would otherwise kill a daemon that exceeds its stop timeout."""
    daemon, = mirrors(1)
    daemon.mirror.options += ["--spill-dir", str(spill_dir(daemon))]
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notices:
        notices.bind(str(tmp_path / "notify"))
        notices.settimeout(SECONDS)
        os.environ["NOTIFY_SOCKET"] = str(tmp_path / "notify")
        try:
            daemon.restart()
        finally:
            del os.environ["NOTIFY_SOCKET"]
        fill("data", [daemon], {"bytes": b"abcdefgh"})
        assert daemon.terminate() == 0
        told = []
        while not any("EXTEND_TIMEOUT_USEC=" in each for each in told):
            told.append(notices.recv(4096).decode())
    assert any("READY=1" in each for each in told)
    assert any("STOPPING=1" in each for each in told)
