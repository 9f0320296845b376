"""Commands that change mirrors: roster, drop, spill; and status about a live owner's mirrors."""
import concurrent.futures
import fcntl
import select
import signal
import socket
import subprocess

import pytest

import wire
from binding import CREATE, TAKEOVER, PerseasError, Store
from drill import (BUILD, FAILURE, MIB, NO, OK, PARTLY, SECONDS, command_line, fill, mirror_list,
                   process_state, run_command, status_of, wait_even, wait_for)
from test_command import serve


# --- drop ---

def test_drop_says_what_it_would_delete_and_deletes_only_with_yes(perseas, mirrors):
    """Drops a store from one of three mirrors; the others keep it, and the store opens on them."""
    daemons = mirrors(3)
    fill("s", daemons, {"accounts": b"contents"})
    before = status_of("s", daemons)
    done = perseas("drop", "s", daemons[1].address)
    assert done.status == NO and "nothing is deleted without --yes" in done.err, done
    assert "would delete the image %s of store 's'" % before["mirrors"][1]["image_id"] in done.out
    assert "one of the 3 images" in done.out and "W = 2" in done.out
    assert status_of("s", daemons) == before
    done = perseas("drop", "s", daemons[1].address, "--yes")
    assert done.status == OK and "deleted the image" in done.out, done
    assert [m["has_store"] for m in status_of("s", daemons)["mirrors"]] == [True, False, True]
    assert perseas("drop", "s", daemons[1].address, "--yes").status == NO
    with Store("s", mirror_list(daemons)) as store:
        store.map("accounts")
        assert store.read("accounts", 0, 8) == b"contents"


def test_a_dropped_store_is_gone_from_memory_and_may_be_made_again(perseas, mirrors):
    """Its files are deleted, and the mirror's memory is free again."""
    daemons = mirrors(1)
    fill("s", daemons, {"accounts": b"contents"})
    assert perseas("drop", "s", "--mirrors", daemons[0].address, "--yes").status == OK
    assert not (daemons[0].memory / "s").exists()
    assert perseas("ls", "--json", mirrors=daemons).json()["mirrors"][0]["memory_used"] == 0
    with pytest.raises(PerseasError):
        Store("s", mirror_list(daemons))
    assert perseas("create", "s", mirrors=daemons).status == OK


def test_a_list_of_mirrors_is_dropped_as_far_as_they_have_images(perseas, mirrors):
    """Of four mirrors one is down, one has no image, and one has a damaged image. Without --yes
    nothing is deleted; with it the images are, and the exit status tells that a mirror did not
    answer."""
    daemons = mirrors(4)
    fill("s", daemons[:3], {"accounts": b"contents"})
    daemons[0].kill9()
    daemons[1].kill9()
    (daemons[1].memory / "s/header").write_bytes(b"?" * 100)
    daemons[1].restart()
    done = perseas("drop", "s", mirrors=daemons)
    assert done.status == NO and "nothing is deleted without --yes" in done.err, done
    assert done.out.count("would delete") == 2, done
    assert (daemons[1].memory / "s").exists() and (daemons[2].memory / "s").exists()
    done = perseas("drop", "s", "--yes", mirrors=daemons)
    assert done.status == FAILURE and done.out.count("deleted") == 2, done
    assert daemons[0].address in done.err and daemons[3].address in done.err, done
    assert not (daemons[1].memory / "s").exists() and not (daemons[2].memory / "s").exists()
    assert perseas("drop", "s", "--yes", mirrors=daemons[1:]).status == NO


def test_a_store_is_dropped_from_all_of_its_mirrors_at_once(perseas, mirrors):
    """--json prints one object for any number of mirrors."""
    daemons = mirrors(3)
    fill("s", daemons, {"accounts": b"contents"})
    told = perseas("drop", "s", "--yes", "--json", mirrors=daemons).json()
    assert [(each["mirror"], each["deleted"], each["listed"]) for each in told["mirrors"]] == \
        [(daemon.address, True, True) for daemon in daemons]
    assert not any((daemon.memory / "s").exists() for daemon in daemons)


def test_a_drop_that_was_killed_is_told_and_completed(perseas, mirrors):
    """A drop deleted the images of one mirror, then of two of three. The store can be opened as
    long as R mirrors have it, and status and ls name the mirrors without an image. Repeating the
    command completes the drop."""
    daemons = mirrors(3)
    fill("s", daemons, {"accounts": b"contents"}, acks=2)
    for gone in (1, 2):
        assert perseas("drop", "s", "--yes", mirrors=daemons[gone - 1:gone]).status == 0
        told = status_of("s", daemons)
        assert [each["has_store"] for each in told["mirrors"]] == [i >= gone for i in range(3)]
        assert told["verdict"]["can_open"] == (gone == 1)
        assert perseas("ls", mirrors=daemons).out.count("  s ") == 3 - gone
    done = perseas("drop", "s", "--yes", mirrors=daemons)
    assert done.status == 0 and done.out.count("deleted") == 1, done
    assert not any((daemon.memory / "s").exists() for daemon in daemons)
    assert not status_of("s", daemons)["found"]


def test_a_list_is_not_dropped_where_one_image_has_a_live_owner(perseas, mirrors):
    """The second mirror has another store of the same name with a live owner: no image is deleted,
    not even the first mirror's."""
    daemons = mirrors(2)
    fill("s", daemons[:1], {"accounts": b"contents"})
    with Store("s", daemons[1].address, flags=CREATE):
        done = perseas("drop", "s", "--yes", mirrors=daemons)
        assert done.status == NO and "has a live owner" in done.err, done
        assert (daemons[0].memory / "s").exists()


def test_a_damaged_image_is_dropped_by_its_name(perseas, mirrors):
    """Its header is unreadable, so its ids are unknown; the store is repaired after the drop."""
    daemons = mirrors(3)
    fill("s", daemons, {"accounts": b"contents"})
    daemons[2].kill9()
    header = daemons[2].memory / "s/header"
    header.write_bytes(b"?" * header.stat().st_size)
    daemons[2].restart()
    done = perseas("drop", "s", daemons[2].address)
    assert done.status == NO and "nothing is deleted without --yes" in done.err, done
    assert "the image of store s is damaged" in done.out, done
    assert header.exists()
    done = perseas("drop", "s", daemons[2].address, "--yes")
    assert done.status == OK and "deleted the damaged image of store 's'" in done.out, done
    assert not header.exists()
    assert perseas("recover", "s", mirrors=daemons).status == OK
    assert perseas("verify", "s", mirrors=daemons).status == OK


def test_drop_refuses_an_image_with_a_live_owner(perseas, mirrors, fabric):
    """The owner continues."""
    daemons = mirrors(2, fabric)
    with Store("s", mirror_list(daemons), flags=CREATE) as store:
        store.map("accounts", 4096)
        store.publish()
        done = perseas("drop", "s", daemons[0].address, "--yes")
        assert done.status == NO and "has a live owner" in done.err, done
        store.write("accounts", 0, b"contents")
        wait_even("s", daemons)


# --- spill ---

def test_spill_writes_the_images_and_ends_the_mirror(perseas, mirrors, tmp_path):
    """Spills one of two mirrors, which restarts with all of its images."""
    spilling = mirrors(1, options=["--spill-dir", str(tmp_path)])
    daemons = spilling + mirrors(1)
    fill("s", daemons, {"accounts": b"contents" * 1000})
    done = perseas("spill", daemons[0].address)
    assert done.status == OK and "1 store, " in done.out and str(tmp_path) in done.out, done
    assert done.out.endswith("; the mirror has ended\n")
    assert daemons[0].mirror.process.wait(SECONDS) == 0
    assert [each.name for each in tmp_path.glob("*.spill")] == ["s.spill"]
    daemons[0].lose_memory()
    daemons[0].restart()
    assert list(tmp_path.glob("*.spill")) == []
    assert perseas("recover", "s", mirrors=daemons).status == OK
    assert perseas("verify", "s", mirrors=daemons).status == OK


def replies(connection, bodies):
    """Answers request after request, each with one of these bodies of Reply."""
    connection.sendall(wire.control_hello())
    wire.receive(connection, 8)
    for body in bodies:
        length = int.from_bytes(wire.receive(connection, 4), "little")
        asked = wire.fields(wire.receive(connection, length))
        connection.sendall(wire.message(wire.field(30, asked[30]) + body))


def test_spill_waits_for_the_end_of_the_mirror():
    """A peer reports that the images are written and then delays its end until the command sleeps;
    the command must not have printed anything yet."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = "127.0.0.1:%d" % listener.getsockname()[1]
        command = subprocess.Popen(command_line("spill", address), text=True,
                                   stdout=subprocess.PIPE)
        connection, _ = listener.accept()
        with connection:
            listed = wire.field(4, wire.field(2, "0"))
            spilled = wire.field(23, wire.field(1, 2) + wire.field(3, "/spill"))
            replies(connection, [listed, spilled])
            wait_for(lambda: command.poll() is not None or process_state(command.pid) == "S",
                     SECONDS, "a command that waits")
            assert select.select([command.stdout], [], [], 0)[0] == []
        out, _ = command.communicate(timeout=SECONDS)
    assert command.returncode == OK and out.endswith("written to /spill; the mirror has ended\n")


def test_a_spill_that_does_not_end_is_not_told_as_an_end(perseas, mirrors, tmp_path):
    """The images are written, but the mirror does not end in time."""
    listed = wire.field(4, wire.field(2, "0"))
    spilled = wire.field(23, wire.field(1, 2) + wire.field(3, "/spill"))

    def conversation(connection):
        replies(connection, [listed, spilled])
        connection.recv(1)

    port, close = serve(conversation)
    try:
        done = perseas("spill", "127.0.0.1:%d" % port, "--wait", "6", "--json")
    finally:
        close()
    assert done.status == PARTLY and done.json()["ended"] is False, done
    assert "has not ended within 6 s" in done.err, done


def test_the_connection_of_a_spill_ends_after_the_mirror_has_let_go_of_its_memory(mirrors,
                                                                                tmp_path):
    """A mirror with much memory takes a while to free it: the connection ends with the process."""
    daemon, = mirrors(1, options=["--spill-dir", str(tmp_path)])
    with Store("s", daemon.address, flags=CREATE) as store:
        store.map("accounts", 64 * MIB)
        store.publish()
    control = wire.Control(daemon.address)
    assert control.ask(wire.field(20, b"")).get(1, 0) == wire.STATUS_OK
    assert wire.rest(control.peer) == b""
    with open(daemon.memory / ".lock", "rb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)


@pytest.mark.parametrize("fabric", ["tcp", "shm", "tls"])
def test_a_mirror_that_has_ended_can_be_started_at_once(perseas, mirrors, tmp_path, fabric):
    """Port, socket and memory directory are free when the connection ends."""
    daemon, = mirrors(1, fabric, ["--spill-dir", str(tmp_path)])
    fill("s", [daemon], {"accounts": b"contents"})
    for _ in range(3):
        process = daemon.mirror.process
        done = perseas("spill", daemon.address)
        assert done.status == OK and done.out.endswith("; the mirror has ended\n"), done
        daemon.mirror.start()
        assert process.wait(SECONDS) == 0


def test_a_mirror_without_a_spill_directory_refuses(perseas, mirrors):
    """It continues to run. A mirror that is down is named."""
    daemons = mirrors(1)
    done = perseas("spill", daemons[0].address)
    assert done.status != OK and daemons[0].address in done.err, done
    assert daemons[0].running()
    daemons[0].kill9()
    done = perseas("spill", daemons[0].address)
    assert done.status == FAILURE and daemons[0].address in done.err, done


# --- roster ---

def test_roster_shows_the_mirrors_of_a_store(perseas, mirrors):
    """Shows all mirrors even if only some are asked; a mirror that does not answer is named."""
    daemons = mirrors(3)
    fill("s", daemons, {"accounts": b"contents"})
    done = perseas("roster", "s", mirror_list(daemons))
    assert done.status == OK and "W = 2 of 3" in done.out, done
    assert all(d.address in done.out for d in daemons)
    done = perseas("roster", "s", mirrors=daemons[:1])
    assert done.status == OK and done.out.count("not seen") == 2, done
    daemons[2].kill9()
    done = perseas("roster", "s", mirrors=daemons)
    assert done.status == PARTLY and daemons[2].address in done.err, done
    assert perseas("roster", "t", mirrors=daemons[:2]).status == NO


def members(store, daemons):
    """Returns the addresses, W, and whether no change is in progress."""
    told = status_of(store, daemons)["roster"]
    return {m["address"] for m in told["members"]}, told["acks"], told["settled"]


def states_of(store, daemons):
    """Returns the mirrors' states as their owner sees them, or [] before its first report."""
    owner = status_of(store, daemons)["owner"]
    return [m["state"] for m in owner["mirrors"]] if owner else []


@pytest.fixture(params=["live", "resting"])
def held(request, mirrors):
    """(three mirrors and a fourth, the open store or None), with an owner and without."""
    daemons, extra = mirrors(3), mirrors(1)
    fill("s", daemons, {"accounts": b"contents" * 1000})
    if request.param == "resting":
        yield daemons, extra[0], None
        return
    with Store("s", mirror_list(daemons)) as store:
        store.map("accounts")
        yield daemons, extra[0], store


def contents_are_good(store, daemons, owner):
    """Checks that the store can be opened with its contents, and that all mirrors are equal."""
    if owner:
        owner.write("accounts", 0, b"more....")
        wait_even(store, daemons)
    assert run_command("verify", store, mirrors=daemons).status == OK


def test_a_mirror_is_replaced(perseas, held):
    """The new mirror has everything; the old one's image no longer counts."""
    daemons, extra, owner = held
    done = perseas("roster", "replace", "s", mirror_list(daemons), daemons[2].address,
                   extra.address)
    assert done.status == OK, done
    now = daemons[:2] + [extra]
    assert members("s", now) == ({d.address for d in now}, 2, True)
    contents_are_good("s", now, owner)
    assert "not in the roster" in perseas("status", "s", mirrors=daemons).out


def test_the_only_mirror_is_replaced(perseas, mirrors):
    """The mirror that passed the order on has left, so nobody tells it that the change
    succeeded."""
    old, new = mirrors(1)[0], mirrors(1)[0]
    fill("s", [old], {"accounts": b"contents" * 1000})
    with Store("s", old.address) as owner:
        owner.map("accounts")
        done = perseas("roster", "replace", "s", old.address, old.address, new.address)
        assert done.status == OK and "is changed" in done.out, done
        assert members("s", [new]) == ({new.address}, 1, True)
        contents_are_good("s", [new], owner)


def test_a_mirror_is_added_and_removed_again(perseas, held):
    """W changes if the command says so."""
    daemons, extra, owner = held
    done = perseas("roster", "add", "s", mirror_list(daemons), extra.address, "--acks", "3")
    assert done.status == OK, done
    every = daemons + [extra]
    assert members("s", every) == ({d.address for d in every}, 3, True)
    contents_are_good("s", every, owner)
    done = perseas("roster", "remove", "s", mirror_list(every), daemons[0].address, "--acks", "2")
    assert done.status == OK, done
    assert members("s", every[1:]) == ({d.address for d in every[1:]}, 2, True)
    contents_are_good("s", every[1:], owner)


def test_a_change_that_cannot_be_is_refused_with_a_sentence(perseas, held):
    """Removing a mirror that is not in the roster; adding one that is; a W that does not fit;
    adding a mirror that is down. The roster does not change."""
    daemons, extra, owner = held
    before = members("s", daemons)
    for words in (["remove", extra.address], ["add", daemons[0].address, "--acks", "3"],
                  ["add", extra.address, "--acks", "9"], ["add", "127.0.0.1:1"]):
        done = perseas("roster", words[0], "s", mirror_list(daemons), *words[1:])
        assert done.status not in (OK, PARTLY) and len(done.err) > 20, (words, done)
        assert "being copied" not in done.out, (words, done)
    assert members("s", daemons) == before
    contents_are_good("s", daemons, owner)


def test_a_change_that_could_not_be_settled_is_refused(perseas, held):
    """One of three mirrors is dead, so removing a live one would leave fewer than W. The command
    names what is missing, and commits continue. Removing the dead one is possible."""
    daemons, _, owner = held
    daemons[2].kill9()
    if owner:
        wait_for(lambda: "down" in states_of("s", daemons[:2]), SECONDS,
                 "an owner that sees a dead mirror")
    done = perseas("roster", "remove", "s", mirror_list(daemons), daemons[1].address)
    assert done.status == NO, done
    assert "as it would be has 1 of 2 mirrors live, and a commit needs 2" in done.err, done
    assert "not live: " + daemons[2].address in done.err, done
    assert members("s", daemons[:2]) == ({d.address for d in daemons}, 2, True)
    if owner:
        owner.write("accounts", 0, b"more....")
    done = perseas("roster", "remove", "s", mirror_list(daemons), daemons[2].address)
    assert done.status == OK, done
    contents_are_good("s", daemons[:2], owner)


def test_a_change_is_taken_back(perseas, mirrors):
    """cancel takes a change back while a new mirror is copied, slowly, and the command that ordered
    it reports that. Afterward there is nothing to cancel, with an owner and without."""
    daemons, extra = mirrors(3), mirrors(1)[0]
    with Store("s", mirror_list(daemons), flags=CREATE, resync_rate=100000) as store:
        store.map("accounts", 8 * MIB)
        store.publish()
        done = perseas("roster", "cancel", "s", mirror_list(daemons))
        assert done.status == OK and "nothing to do" in done.out, done
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            waiting = pool.submit(perseas, "roster", "add", "s", mirror_list(daemons),
                                  extra.address, "--wait", "3600")
            wait_for(lambda: any((status_of("s", [d])["owner"] or {}).get("order")
                                 for d in daemons), SECONDS, "an order")
            wait_for(lambda: "resyncing" in states_of("s", daemons), SECONDS,
                     "a copy that is being made")
            done = perseas("roster", "cancel", "s", mirror_list(daemons))
            assert done.status == OK and "taken back" in done.out, done
            done = waiting.result(SECONDS)
        assert done.status == NO and "taken back" in done.err, done
        assert members("s", daemons) == ({d.address for d in daemons}, 2, True)
        store.write("accounts", 0, b"contents")
    done = perseas("roster", "cancel", "s", mirror_list(daemons))
    assert done.status == OK and "nothing to do" in done.out, done


def test_what_is_carried_out_is_taken_back_before_what_waits(perseas, mirrors):
    """Two mirrors have an order; the owner carries out one, and then the other."""
    daemons, (one, two) = mirrors(3), mirrors(2)

    def orders(address):
        """Returns how many mirrors have an order, once the owner copies to that address. A mirror's
        answer may be from before the end of the previous copy."""
        told = [owner for owner in (status_of("s", [d])["owner"] for d in daemons) if owner]
        copies = [m["state"] for owner in told for m in owner["mirrors"] if m["address"] == address]
        return "resyncing" in copies and sum(bool(owner["order"]) for owner in told)

    def cancel():
        done = perseas("roster", "cancel", "s", mirror_list(daemons))
        assert done.status == OK and "taken back" in done.out, done
        assert "had not begun" not in done.out, done

    with Store("s", mirror_list(daemons), flags=CREATE, resync_rate=100000) as store:
        store.map("accounts", 8 * MIB)
        store.publish()
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            first = pool.submit(perseas, "roster", "add", "s", mirror_list(daemons), one.address,
                                "--wait", "3600")
            wait_for(lambda: orders(one.address) == 1, SECONDS, "a copy that is being made")
            second = pool.submit(perseas, "roster", "replace", "s", mirror_list(daemons),
                                 daemons[0].address, two.address, "--wait", "3600")
            wait_for(lambda: orders(one.address) == 2, SECONDS, "an order that waits")
            cancel()
            done = first.result(SECONDS)
            assert done.status == NO and "taken back" in done.err, done
            wait_for(lambda: orders(two.address), SECONDS, "the next copy")
            cancel()
            done = second.result(SECONDS)
            assert done.status == NO and "taken back" in done.err, done
        assert members("s", daemons) == ({d.address for d in daemons}, 2, True)


def test_an_order_ends_with_the_owner_that_took_it(perseas, mirrors, owner):
    """The owner is stopped when the order arrives, and another takes the store over: the command
    says so at once, whatever its timeout."""
    daemons, extra = mirrors(3), mirrors(1)[0]
    old = owner("s", daemons, "map,accounts,4096", "publish")

    def orders():
        told = [status_of("s", [d])["owner"] for d in daemons]
        return None not in told and [owner["order"] for owner in told if owner["order"]]

    wait_for(lambda: orders() == [], SECONDS, "an owner that every mirror has heard of")
    old.stop()
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(perseas, "roster", "add", "s", mirror_list(daemons), extra.address,
                              "--wait", "3600")
        wait_for(orders, SECONDS, "an order")
        with Store("s", mirror_list(daemons), flags=TAKEOVER):
            done = waiting.result(SECONDS)
    assert done.status == PARTLY and "another owner that knows nothing of it" in done.err, done


# --- what a live owner tells ---

def test_status_shows_the_mirrors_as_their_owner_sees_them(perseas, mirrors):
    """All mirrors are live; then one is down."""
    daemons = mirrors(3)

    def seen():
        return states_of("s", daemons[:2])

    with Store("s", mirror_list(daemons), flags=CREATE) as store:
        store.map("accounts", 4096)
        store.publish()
        wait_for(lambda: seen() == ["live"] * 3, SECONDS, "a report of three live mirrors")
        owner = status_of("s", daemons)["owner"]
        assert [m["address"] for m in owner["mirrors"]] == [d.address for d in daemons]
        assert owner["order"] is None and all(m["resync"] is None for m in owner["mirrors"])
        assert "AS ITS OWNER SEES IT" in perseas("status", "s", mirrors=daemons).out
        daemons[2].kill9()
        wait_for(lambda: seen() == ["live", "live", "down"], SECONDS, "a report of one down")
    assert status_of("s", daemons[:2])["owner"] is None


@pytest.mark.parametrize("signalled", [False, True])
def test_a_change_without_an_owner_is_waited_for_no_longer_than_was_said(mirrors, signalled):
    """The new mirror accepts the connection and does not answer. Then the timeout expires, or a
    signal arrives."""
    daemons, (extra,) = mirrors(2), mirrors(1)
    fill("s", daemons, {"a": b"contents"})
    extra.stop()
    process = subprocess.Popen(
        [BUILD / "perseas", "roster", "add", "s", mirror_list(daemons), extra.address, "--wait",
         "600" if signalled else "1", "--connect-timeout", "30000"], stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True)
    if signalled:
        wait_for(lambda: status_of("s", daemons)["live"], SECONDS, "an owner that makes it")
        process.send_signal(signal.SIGTERM)
    err = process.communicate(timeout=SECONDS)[1]
    assert process.returncode == PARTLY and "the change is not over" in err, err
    extra.cont()
    done = run_command("roster", "add", "s", mirror_list(daemons), extra.address)
    assert done.status == OK, done
