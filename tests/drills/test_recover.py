"""`perseas recover`: in place, into files, and onto other mirrors."""
import json
import os
import pathlib
import re
import resource
import shlex
import shutil
import signal
import subprocess

import pytest

from binding import CREATE, PerseasError, Store
from drill import (FAILURE, MIB, NO, OK, SECONDS, USAGE, command_line, fill, mirror_list,
                   run_command, status_of, wait_for, wait_ownerless)
from relay import Relay

NOBODY = "127.0.0.1:1"
OTHER = {"tcp": "shm", "shm": "tcp", "rdma": "tcp"}


def crc_of_byte(byte):
    """Returns the crc, by Castagnoli's polynomial, bit by bit."""
    for _ in range(8):
        byte = byte >> 1 ^ (0x82f63b78 if byte & 1 else 0)
    return byte


CRCS = [crc_of_byte(byte) for byte in range(256)]


def crc32c(data):
    crc = 0xffffffff
    for byte in data:
        crc = crc >> 8 ^ CRCS[crc & 0xff ^ byte]
    return crc ^ 0xffffffff


def promises(name, daemons):
    return [m["promised_epoch"] for m in status_of(name, daemons)["mirrors"]]


def test_recover_in_place_mends_what_a_crash_left(perseas, mirrors, owner):
    """The owner is killed; one mirror was killed, too, and another lost its memory."""
    daemons = mirrors(3)
    held = owner("s", daemons, "map,accounts,8192", "poke,accounts,0,first", "publish",
                 "write,accounts,100,second")
    daemons[2].kill9()
    held.kill9()
    daemons[2].restart()
    daemons[0].lose_memory()
    daemons[0].restart()
    wait_ownerless("s", daemons)
    done = perseas("recover", "s", mirrors=daemons)
    assert done.status == OK, done
    assert "chosen: epoch 1, transaction 2" in done.out and "gets a new one" in done.out
    assert "on 3 of 3 mirrors" in done.out
    assert perseas("verify", "s", mirrors=daemons).status == OK
    with Store("s", mirror_list(daemons)) as store:
        store.map("accounts")
        assert store.read("accounts", 0, 5) + store.read("accounts", 100, 6) == b"firstsecond"


def test_a_former_mirror_of_an_old_list_is_no_loss(perseas, mirrors):
    """The list still names a mirror that was replaced, and that is dead by now."""
    daemons = mirrors(4)
    old, now = daemons[:3], daemons[1:]
    fill("s", old, {"accounts": b"contents"})
    assert perseas("roster", "replace", "s", mirror_list(old), old[0].address,
                   daemons[3].address).status == OK
    old[0].kill9()
    done = perseas("recover", "s", "--json", mirrors=old)
    assert (done.status, done.err) == (OK, ""), done
    assert (done.json()["mirrors"], done.json()["live"]) == (3, 3)
    with Store("s", mirror_list(old)) as store:
        store.map("accounts")
        wait_for(lambda: (status_of("s", now)["owner"] or {}).get("mirrors"), SECONDS,
                 "its report")
        seen = {m["address"]: m["state"] for m in status_of("s", now)["owner"]["mirrors"]}
        assert seen.pop(old[0].address) == "removed"
        assert list(seen.values()) == ["live"] * 3


def test_recover_refuses_a_live_owner_and_leaves_it_alone(perseas, mirrors, tmp_path):
    """In place, into files, and onto others. With --takeover the owner is fenced."""
    daemons, others = mirrors(3), mirrors(1)
    with Store("s", mirror_list(daemons), flags=CREATE) as store:
        store.map("accounts", 4096)
        store.publish()
        for more in ([], ["--to", str(tmp_path / "d")], ["--onto", mirror_list(others)]):
            done = perseas("recover", "s", *more, mirrors=daemons)
            assert done.status == NO and "--takeover" in done.err, done
            store.write("accounts", 0, b"mine")
        assert perseas("recover", "s", "--takeover", mirrors=daemons).status == OK
        with pytest.raises(PerseasError) as caught:
            store.write("accounts", 0, b"late")
            store.flush()
        assert caught.value.name in ("PERSEAS_EFENCED", "PERSEAS_EINDOUBT")
    assert perseas("ls", "--json", mirrors=others).json()["mirrors"][0]["stores"] == []
    with Store("s", mirror_list(daemons)) as store:
        store.map("accounts")
        assert store.read("accounts", 0, 4) == b"mine"


def test_recover_names_what_is_missing_for_a_quorum(perseas, mirrors, tmp_path):
    """Two of three mirrors are down. An option accepts the remaining state explicitly."""
    daemons = mirrors(3)
    fill("s", daemons, {"accounts": b"contents" * 16})
    daemons[0].kill9()
    daemons[1].kill9()
    done = perseas("recover", "s", mirrors=daemons)
    assert done.status == NO, done
    assert daemons[0].address in done.err and daemons[1].address in done.err
    assert "newest state seen is 1:2" in done.err
    to = ["--to", str(tmp_path / "d")]
    assert perseas("recover", "s", *to, mirrors=daemons).status == NO
    assert perseas("recover", "s", *to, "--accept-state", "1:1", mirrors=daemons).status == NO
    assert not (tmp_path / "d" / "accounts").exists()
    done = perseas("recover", "s", *to, "--accept-state", "1:2", mirrors=daemons)
    assert done.status == OK and "accepted as asked" in done.out, done
    assert (tmp_path / "d" / "accounts").read_bytes() == b"contents" * 16


def advised(done):
    """Returns the command that a refusal recommends."""
    line = done.err.rstrip("\n").splitlines()[-1]
    assert line.startswith("    perseas recover "), done
    return shlex.split(line)[1:]


def images(daemons):
    """Returns the state and the promise of each mirror that answers."""
    return [(m.get("promised_epoch"), m.get("slot")) for m in status_of("s", daemons)["mirrors"]]


@pytest.mark.parametrize("acks, lost", [(2, True), (2, False), (3, True), (3, False)])
def test_recover_in_place_changes_nothing_where_w_cannot_have_it(perseas, mirrors, acks, lost):
    """One of three mirrors is left. With W = 2 its state must be accepted, with W = 3 it is the
    newest. W mirrors cannot have it in place, and the command that the refusal names saves it."""
    daemons = mirrors(3)
    fill("s", daemons, {"accounts": b"contents" * 16}, acks=acks)
    for daemon in daemons[:2]:
        daemon.lose_memory() if lost else daemon.kill9()
        if lost:
            daemon.restart()
    before = images(daemons)
    accept = ["--accept-state", "1:2"] if acks == 2 else []
    done = perseas("recover", "s", *accept, mirrors=daemons)
    assert done.status == NO and "no state was changed" in done.err, done
    assert "1 of 3 mirrors hold the newest state" in done.err
    assert ("made anew only while 2 others have theirs (I9)" in done.err) == lost
    assert images(daemons) == before
    done = perseas(*advised(done))
    assert done.status == OK, done
    left = daemons if lost else daemons[2:]
    with Store("s.saved", mirror_list(left)) as store:
        store.map("accounts")
        assert store.read("accounts", 0, 128) == b"contents" * 16


def test_recover_in_place_accepts_a_state_that_w_can_have(perseas, mirrors):
    """W = 1 of three, so the one that is left is enough once its state is accepted."""
    daemons = mirrors(3)
    fill("s", daemons, {"accounts": b"contents" * 16}, acks=1)
    daemons[0].kill9()
    daemons[1].kill9()
    done = perseas("recover", "s", mirrors=daemons)
    assert done.status == NO and "newest state seen is 1:2" in done.err, done
    done = perseas("recover", "s", "--accept-state", "1:2", mirrors=daemons)
    assert done.status == OK and "on 1 of 3 mirrors" in done.out, done
    assert "3 mirrors must be there to open it again, and 1 hold it" in done.err
    daemons[0].restart()
    daemons[1].restart()
    with Store("s", mirror_list(daemons)) as store:
        store.map("accounts")
        assert store.read("accounts", 0, 128) == b"contents" * 16


def test_recover_says_which_store_or_mirror_is_missing(perseas, mirrors, tmp_path):
    """No such store; no mirror."""
    daemons = mirrors(1)
    for more in ([], ["--to", str(tmp_path / "d")]):
        assert perseas("recover", "s", *more, mirrors=daemons).status == NO
        assert perseas("recover", "s", *more, mirrors=NOBODY).status == FAILURE
    assert not (tmp_path / "d").exists()


def test_recover_to_files_writes_what_the_store_held(perseas, mirrors, owner, tmp_path,
                                                      fabric):
    """Two segments: one has the manifest's name, the other is larger than a single write. The owner
    was killed."""
    daemons, size = mirrors(3, fabric), 4 * MIB + 100
    held = owner("s", daemons, "map,MANIFEST.json,5000", "poke,MANIFEST.json,0,tricky",
                 "map,accounts,%d" % size, "publish", "write,accounts,%d,the end" % (size - 10))
    held.kill9()
    wait_ownerless("s", daemons)
    before = promises("s", daemons)
    done = perseas("recover", "s", "--to", str(tmp_path / "d"), mirrors=daemons)
    assert done.status == OK, done
    manifest = json.loads((tmp_path / "d" / "MANIFEST.json").read_text())
    assert (manifest["store"], manifest["epoch"], manifest["seq"]) == ("s", 1, 2)
    told = status_of("s", daemons)
    assert manifest["store_id"] == told["store_id"] and told["newest"] == {"epoch": 1, "seq": 2}
    assert promises("s", daemons) > before
    addresses = {s["name"]: s["address"] for s in told["segments"]}
    contents = {s["name"]: (tmp_path / "d" / s["file"]).read_bytes() for s in manifest["segments"]}
    assert contents == {"MANIFEST.json": b"tricky".ljust(5000, b"\0"),
                        "accounts": b"the end\0\0\0".rjust(size, b"\0")}
    for segment in manifest["segments"]:
        data = contents[segment["name"]]
        assert segment["size"] == len(data) and segment["crc32c"] == "%08x" % crc32c(data)
        assert segment["address"] == addresses[segment["name"]]
    assert len(os.listdir(tmp_path / "d")) == 3


@pytest.mark.parametrize("name", ["accounts", "MANIFEST.json"])
def test_recover_to_files_replaces_none_and_fences_nobody_for_it(perseas, mirrors, tmp_path, name):
    """A file of that name exists; a dangling link counts, too."""
    daemons = mirrors(1)
    fill("s", daemons, {"accounts": b"contents" * 16})
    (tmp_path / name).symlink_to("nowhere")
    before = promises("s", daemons)
    done = perseas("recover", "s", "--to", str(tmp_path), mirrors=daemons)
    assert done.status == NO and "is there already" in done.err, done
    assert os.listdir(tmp_path) == [name]
    assert promises("s", daemons) == before


def test_recover_to_files_leaves_none_when_one_cannot_be_written(perseas, mirrors, tmp_path):
    """The second segment exceeds the maximum size of a file; then the directory cannot be
    created."""
    daemons = mirrors(1)
    fill("s", daemons, {"little": b"contents", "large": b"contents" * 1000})
    limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))  # noqa: E731
    done = perseas("recover", "s", "--to", str(tmp_path / "d"), mirrors=daemons, before=limit)
    assert done.status == FAILURE and "cannot be written" in done.err, done
    assert os.listdir(tmp_path / "d") == []
    (tmp_path / "file").write_text("")
    for path in (tmp_path / "file", tmp_path / "file" / "d", tmp_path / "no" / "d"):
        assert perseas("recover", "s", "--to", str(path), mirrors=daemons).status == FAILURE


def test_recover_to_files_leaves_none_when_the_manifest_cannot_be_written(mirrors, tmp_path):
    """It is written in three parts, one of which finds no room; then fsync fails for the files, and
    for the directory."""
    daemon, = mirrors(1)
    fill("s", [daemon], {"segment-with-a-long-name-%02d" % k: b"contents" for k in range(60)})
    to, partial, trace = tmp_path / "d", ".unfinished+/MANIFEST.json", tmp_path / "trace"
    to.mkdir()
    for path, call, when in ((partial, "write", 1), (partial, "write", 2), (partial, "write", 3),
                             (partial, "fsync", 1), ("", "fsync", 1)):
        done = subprocess.run(
            ["sh", "-c", "exec strace -D -qq -o %s -P %s/%s -e inject=%s:error=ENOSPC:when=%d %s" %
             (trace, to, path, call, when,
              shlex.join(command_line("recover", "s", daemon.address, "--to", to)))],
            capture_output=True, text=True, timeout=SECONDS)
        assert done.returncode == FAILURE and "No space left" in done.stderr, done
        assert os.listdir(to) == []


def test_a_killed_recover_to_files_can_be_run_again(perseas, mirrors, tmp_path):
    """It is killed when it gives each of its files a name. What it did not make stays."""
    daemons, to = mirrors(1), tmp_path / "d"
    held = {"little": b"contents", "large": b"contents" * 1000}
    fill("s", daemons, held)
    command = ["recover", "s", "--to", str(to), "--mirrors", mirror_list(daemons)]

    def kill_at(call):
        """Returns False if there was no such call."""
        to.mkdir()
        (to / "notes").write_text("of somebody else")
        done = subprocess.run(["strace", "-qq", "-o", "/dev/null", "-e",
                               "inject=linkat:signal=KILL:when=%d" % call,
                               *command_line(*command)], capture_output=True, timeout=SECONDS)
        assert done.returncode in (OK, -signal.SIGKILL), done
        return done.returncode != OK

    calls = 1
    while kill_at(calls):
        assert not (to / "MANIFEST.json").exists()
        done = perseas(*command)
        assert done.status == OK, done
        assert sorted(os.listdir(to)) == ["MANIFEST.json", "large", "little", "notes"]
        assert all((to / name).read_bytes()[:len(data)] == data for name, data in held.items())
        shutil.rmtree(to)
        calls += 1
    assert calls > 3, calls
    shutil.rmtree(to)
    assert kill_at(calls - 1)    # at the manifest
    (to / "large").unlink()
    (to / "large").write_text("of somebody else")
    done = perseas(*command)
    assert done.status == NO and "large is there already" in done.err, done
    assert sorted(os.listdir(to)) == ["large", "notes"]
    assert {(to / name).read_text() for name in ("large", "notes")} == {"of somebody else"}


def test_recover_onto_keeps_names_addresses_and_contents(perseas, mirrors, owner, fabric):
    """Three segments that point at each other and a killed owner, onto mirrors of the other
    fabric."""
    daemons, others = mirrors(3, fabric), mirrors(2, OTHER[fabric])
    contents = {"a": b"first segment", "b": b"second segment", "c": b"third"}
    assert perseas("create", "s", "--log-size", "256K", mirrors=daemons).status == OK
    held = owner("s", daemons, *("map,%s,20000" % name for name in contents), "publish",
                 *("write,%s,1000,%s" % (name, text.decode()) for name, text in contents.items()))
    held.kill9()
    wait_ownerless("s", daemons)
    done = perseas("recover", "s", "--onto", mirror_list(others), "--acks", "1", mirrors=daemons)
    assert done.status == OK and "2 of 2 mirrors hold" in done.out, done
    old, new = status_of("s", daemons), status_of("s", others)
    assert new["roster"]["acks"] == 1 and new["log_size"] == old["log_size"] == 256 * 1024
    assert {(s["name"], s["size"], s["address"]) for s in old["segments"]} == \
        {(s["name"], s["size"], s["address"]) for s in new["segments"]}
    assert old["newest"] == {"epoch": 1, "seq": 4} and old["store_id"] != new["store_id"]
    assert perseas("verify", "s", mirrors=others).status == OK
    with Store("s", mirror_list(others)) as store:
        for name, text in contents.items():
            assert hex(store.map(name)) in {s["address"] for s in old["segments"]}
            assert store.read(name, 0, 20000) == text.rjust(1000 + len(text), b"\0") \
                .ljust(20000, b"\0")


def test_recover_onto_the_same_mirrors_needs_another_name(perseas, mirrors):
    """The store's own mirrors have the name already; nobody is fenced."""
    daemons = mirrors(2)
    fill("s", daemons, {"accounts": b"contents" * 16})
    before = promises("s", daemons)
    onto = ["--onto", mirror_list(daemons)]
    done = perseas("recover", "s", *onto, mirrors=daemons)
    assert done.status == NO and "--as" in done.err, done
    assert promises("s", daemons) == before
    assert perseas("recover", "s", *onto, "--as", "t", mirrors=daemons).status == OK
    with Store("t", mirror_list(daemons)) as store:
        store.map("accounts")
        assert store.read("accounts", 0, 128) == b"contents" * 16


def test_recover_onto_is_refused_before_anybody_is_fenced(perseas, mirrors):
    """One of the new mirrors is down; W exceeds the number of new mirrors."""
    daemons, others = mirrors(1), mirrors(2)
    fill("s", daemons, {"accounts": b"contents" * 16})
    before = promises("s", daemons)
    done = perseas("recover", "s", "--onto", mirror_list(others), "--acks", "3", mirrors=daemons)
    assert done.status == USAGE and "only 2 mirrors" in done.err, done
    others[1].kill9()
    done = perseas("recover", "s", "--onto", mirror_list(others), mirrors=daemons)
    assert done.status == FAILURE and others[1].address in done.err, done
    assert promises("s", daemons) == before
    assert perseas("ls", "--json", mirrors=others[:1]).json()["mirrors"][0]["stores"] == []


def test_recover_onto_a_wrong_list_fences_nobody(perseas, mirrors, monkeypatch):
    """Two addresses of one daemon; an address of a fabric that this process does not have."""
    monkeypatch.setenv("PERSEAS_RDMA", "off")
    daemons, (other,) = mirrors(1), mirrors(1)
    fill("s", daemons, {"accounts": b"contents" * 16})
    before = promises("s", daemons)
    for onto, why, status in (
            (other.mirror.tcp + "," + other.mirror.unix, "are the same mirror: name it", USAGE),
            ("rdma://" + other.mirror.tcp, "; without RDMA it is tcp://", FAILURE)):
        done = perseas("recover", "s", "--onto", onto, mirrors=daemons)
        assert done.status == status and why in done.err, done
        assert promises("s", daemons) == before, onto
    assert perseas("ls", "--json", mirrors=[other]).json()["mirrors"][0]["stores"] == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("words", ["recover s %s --as t --onto %s", "restore {} t {}"])
def test_a_signal_leaves_no_half_of_a_store(mirrors, tmp_path, number, words):
    """The signal arrives when the new store is created and not yet filled: its last segment is
    delayed."""
    (daemon,), (other,) = mirrors(1), mirrors(1)
    fill("s", [daemon], {name: bytes(MIB) for name in ("a", "b", "last")})
    file = tmp_path / "f"
    assert run_command("snapshot", "s", "--from", daemon.address, "--to", file).status == OK
    with Relay(other) as relay:
        words = words.format(file, relay.address) if "{}" in words else \
            words % (daemon.address, relay.address)
        relay.catch("last", 1)
        process = subprocess.Popen(command_line(*words.split()), stdout=subprocess.DEVNULL,
                                   stderr=subprocess.PIPE, text=True)
        wait_for(lambda: (other.memory / "t" / "header").exists(), SECONDS, "a new store")
        process.send_signal(number)
        relay.go()
        err = process.communicate(timeout=SECONDS)[1]
        assert process.returncode == FAILURE and "was deleted again" in err, err
        assert not status_of("t", [other])["found"]
        assert run_command(*words.split()).status == OK


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("words", ["recover s %s --as t --onto %s", "restore {} t {}"])
def test_a_signal_ends_a_long_publish(mirrors, tmp_path, number, words):
    """The signal arrives while the first of many pieces is in flight: the others are not sent, and
    nothing is left of the store."""
    (daemon,), (other,) = mirrors(1), mirrors(1)
    fill("s", [daemon], {"a": b"begins-here" + bytes(4 * MIB), "b": bytes(4 * MIB)})
    file = tmp_path / "f"
    assert run_command("snapshot", "s", "--from", daemon.address, "--to", file).status == OK
    with Relay(other) as relay:
        words = words.format(file, relay.address) if "{}" in words else \
            words % (daemon.address, relay.address)
        relay.catch("begins-here", 1)
        process = subprocess.Popen(command_line(*words.split()), stdout=subprocess.DEVNULL,
                                   stderr=subprocess.PIPE, text=True)
        wait_for(relay.caught, SECONDS, "the first piece")
        process.send_signal(number)
        relay.go()
        err = process.communicate(timeout=SECONDS)[1]
        assert process.returncode == FAILURE and "stopped by a signal" in err, err
        assert "was deleted again" in err and not status_of("t", [other])["found"], err


def catches_sigint(process):
    """True if the process has a handler for SIGINT."""
    status = pathlib.Path("/proc/%d/status" % process.pid).read_text()
    caught = int(re.search(r"^SigCgt:\s*(\w+)", status, re.M)[1], 16)
    return bool(caught >> (signal.SIGINT - 1) & 1)


def test_recover_in_place_ends_although_a_mirror_has_no_room(perseas, mirrors):
    """One mirror lost its memory, and another store takes the room. Recovery waits for it, until a
    signal arrives or nothing has happened for a while, and says what is wrong. Once there is room,
    all mirrors get the state."""
    daemons = mirrors(3, options=["--max-memory", "24M"])
    fill("s", daemons, {"a": bytes(4 * MIB)})
    daemons[2].lose_memory()
    daemons[2].restart()
    fill("other", daemons[2:], {"a": bytes(MIB)})
    process = subprocess.Popen(command_line("recover", "s", mirror_list(daemons)),
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    wait_for(lambda: catches_sigint(process) or process.poll() is not None, SECONDS,
             "a command that waits")
    assert process.poll() is None, process.communicate()
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=SECONDS)
    assert process.returncode == OK and "has no owner" in out, (out, err)
    done = perseas("recover", "s", mirrors=daemons)
    assert done.status == OK and "on 2 of 3 mirrors" in done.out, done
    assert "not up to date" in done.err and "--max-memory" in done.err, done
    assert perseas("drop", "other", "--yes", mirrors=daemons[2:]).status == OK
    done = perseas("recover", "s", mirrors=daemons)
    assert done.status == OK and "on 3 of 3 mirrors" in done.out and not done.err, done


@pytest.mark.night("recovery waits ten seconds at most, which a busy machine may need for this")
def test_recover_in_place_waits_for_a_mirror_that_goes_away_and_comes_back(mirrors):
    """The mirror that lost its memory is restarted while recovery waits for it, with room then."""
    daemons = mirrors(3)
    fill("s", daemons, {"a": bytes(4 * MIB)})
    daemons[2].lose_memory()
    options = daemons[2].mirror.options
    daemons[2].mirror.options = [*options, "--max-memory", "1M"]
    daemons[2].restart()

    def seen_as(state):
        told = status_of("s", daemons[:2])["owner"]
        return process.poll() is not None or (
            told and [m["state"] for m in told["mirrors"]] == ["live", "live", state])

    process = subprocess.Popen(command_line("recover", "s", mirror_list(daemons)),
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    wait_for(lambda: seen_as("lost"), SECONDS, "a mirror without room")
    daemons[2].kill9()
    wait_for(lambda: seen_as("down"), SECONDS, "a mirror that went away")
    daemons[2].mirror.options = options
    daemons[2].restart()
    out, err = process.communicate(timeout=SECONDS)
    assert process.returncode == OK and "on 3 of 3 mirrors" in out and not err, (out, err)


def test_recover_onto_a_mirror_without_room_says_so(perseas, mirrors):
    """The new mirror has room for the log and the first segment, but not for the second; nothing of
    the store is left."""
    daemons = mirrors(1)
    small = mirrors(1, options=["--max-memory", "18M"])
    fill("s", daemons, {"first": b"contents" * (MIB // 8), "second": bytes(4 * MIB)})
    done = perseas("recover", "s", "--onto", mirror_list(small), mirrors=daemons)
    assert done.status == NO and "was deleted again" in done.err, done
    assert not status_of("s", small)["found"]
    assert perseas("verify", "s", mirrors=daemons).status == OK
