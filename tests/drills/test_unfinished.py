"""Commands that fill a store and are killed: no program opens what they left, and repeating the
command starts again."""
import signal
import subprocess

import pytest

from binding import CREATE, TAKEOVER, PerseasError, Store
from drill import (FAILURE, MIB, NO, OK, PARTLY, SECONDS, command_line, fill, mirror_list,
                   run_command, status_of, wait_for, wait_ownerless)
from relay import Relay

BEGIN = b"begins-here"
SEGMENTS = {"first": BEGIN + bytes(MIB), "last": bytes(MIB)}
# The last is from a request for the checksum of the first segment: the store, and region 16.
STAGES = {"a segment": "last", "the contents": BEGIN.decode(), "the comparison": "t\x10\x10"}
WORDS = ["restore {file} t {to}", "recover s {source} --as t --onto {to}"]


def lists(done):
    """Returns what ls shows for store t, a line for each mirror."""
    return [line for line in done.out.splitlines() if line.startswith("  t ")]


def kill_at(relay, text, line, look=None):
    """Runs the command, and kills it when the mirror behind the relay would receive this text next.
    Calls look() before the kill."""
    relay.catch(text, 1)
    process = subprocess.Popen(command_line(*line), stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL)
    wait_for(relay.caught, SECONDS, "the text")
    if look:
        look()
    process.send_signal(signal.SIGKILL)
    process.wait()
    relay.drop()


def filled(mirrors, tmp_path):
    """A mirror with store s, and a snapshot of the store."""
    source, file = mirrors(1)[0], tmp_path / "f"
    fill("s", [source], SEGMENTS)
    assert run_command("snapshot", "s", "--from", source.address, "--to", file).status == OK
    return source, file


def refused(to, flags):
    with pytest.raises(PerseasError) as error:
        Store("t", to, flags=flags)
    return error.value.name == "PERSEAS_EUNFINISHED"


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("words", WORDS)
def test_a_killed_command_begins_anew(mirrors, tmp_path, stage, words):
    """It is killed before one of three mirrors has everything. Before it is repeated, everything
    that could mistake the store for an empty one is tried."""
    (source, file), daemons = filled(mirrors, tmp_path), mirrors(3)
    with Relay(daemons[2]) as relay:
        to = mirror_list([*daemons[:2], relay])
        line = words.format(file=file, source=source.address, to=to).split()

        def look():
            told = run_command("status", "t", to).out
            assert "can open: no (restore unfinished: a command is filling the store" in told, told

        kill_at(relay, STAGES[stage], line, look)
        wait_ownerless("t", daemons)
        told = run_command("status", "t", to)
        assert told.status == OK and "can open: no (restore unfinished: run it" in told.out, told
        nothing = run_command("snapshot", "t", "--from", daemons[0].address, "--to", tmp_path / "n")
        assert nothing.status == NO and "has nothing yet of what" in nothing.err, nothing
        assert status_of("t", daemons)["restore_unfinished"]
        listed = lists(run_command("ls", to))
        assert len(listed) == 3 and all("restore unfinished" in each for each in listed), listed
        assert all(refused(to, flags) for flags in (0, CREATE, TAKEOVER, CREATE | TAKEOVER))
        done = run_command(*line)
        assert done.status == OK and "is made anew" in done.err, done
        with Store("t", to) as store:
            store.map("first")
            assert store.read("first", 0, len(BEGIN)) == BEGIN
        assert not status_of("t", daemons)["restore_unfinished"]


def test_drop_removes_an_unfinished_store_if_every_mirror_answers(mirrors, tmp_path):
    """Without --yes. At first one of three mirrors is away, and two are given."""
    file, daemons = filled(mirrors, tmp_path)[1], mirrors(3)
    with Relay(daemons[2]) as relay:
        to = mirror_list([*daemons[:2], relay])
        kill_at(relay, "last", ["restore", file, "t", to])
        wait_ownerless("t", daemons)
        daemons[2].kill9()
        for line in (["drop", "t", mirror_list(daemons[:2])], ["restore", file, "t", to]):
            done = run_command(*line)
            assert done.status in (NO, FAILURE), done
            assert "nothing is deleted before each of its mirrors answers" in done.err, done
        assert all(m["state"] == "consistent" for m in status_of("t", daemons[:2])["mirrors"][:2])
        daemons[2].restart()
        done = run_command("drop", "t", mirror_list(daemons[:2]))
        assert done.status == OK and "is deleted from all of its mirrors" in done.out, done
        assert not status_of("t", daemons)["found"]


@pytest.mark.parametrize("words", ["drop t {to}", "restore {file} t {to}"])
def test_what_a_killed_removal_left_is_removed(mirrors, tmp_path, words):
    """Only one of three mirrors still has an unfinished store: the others have deleted theirs."""
    file, daemons = filled(mirrors, tmp_path)[1], mirrors(3)
    with Relay(daemons[2]) as relay:
        to = mirror_list([*daemons[:2], relay])
        kill_at(relay, "last", ["restore", file, "t", to])
        wait_ownerless("t", daemons)
        for daemon in daemons[:2]:
            assert run_command("drop", "t", "--yes", daemon.address).status == OK
            assert status_of("t", [*daemons[:2], relay])["restore_unfinished"]
            assert "can open: no (restore unfinished" in run_command("status", "t", to).out
            assert all("restore unfinished" in each for each in lists(run_command("ls", to)))
        done = run_command(*words.format(file=file, to=to).split())
        assert done.status == OK, done
        assert status_of("t", daemons)["found"] == words.startswith("restore")


def test_a_mirror_that_missed_the_restore_says_nothing_against_it(mirrors, tmp_path):
    """The last of three mirrors dies while it is filled, and comes back without the contents after
    the store was used. The store must not count as unfinished for that, or be removed."""
    file, daemons = filled(mirrors, tmp_path)[1], mirrors(3)
    with Relay(daemons[2]) as relay:
        to = mirror_list([*daemons[:2], relay])
        relay.catch(BEGIN.decode(), 1)
        process = subprocess.Popen(command_line("restore", file, "t", to),
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wait_for(relay.caught, SECONDS, "the contents")
        daemons[2].kill9()
        relay.drop()
        assert process.wait(SECONDS) == PARTLY
        with Store("t", to) as store:
            store.map("first")
            store.write("first", 0, b"used")
        daemons[2].restart()
        before = status_of("t", daemons)
        assert [m["slot"]["seq"] for m in before["mirrors"]] == [2, 2, 0]
        assert before["verdict"]["can_open"] and not before["restore_unfinished"]
        alone = lists(run_command("ls", relay.address))
        assert len(alone) == 1 and "unless other mirrors have more" in alone[0], alone
        assert not any("unfinished" in each for each in lists(run_command("ls", to)))
        for line in (["drop", "t", to], ["drop", "t", relay.address], ["restore", file, "t", to]):
            assert run_command(*line).status == NO
        assert status_of("t", daemons) == before
        with Store("t", to) as store:
            store.map("first")
            assert store.read("first", 0, 4) == b"used"


def test_a_filler_that_wakes_up_leaves_the_next_one_alone(mirrors, tmp_path):
    """It is stopped until its store has been created again by another command. Its requests after
    it resumes must not delete the other store."""
    file, daemons = filled(mirrors, tmp_path)[1], mirrors(3, options=("--owner-timeout", "0.5"))
    with Relay(daemons[2]) as relay:
        relay.catch(BEGIN.decode(), 1)
        to = mirror_list([*daemons[:2], relay])
        first = subprocess.Popen(command_line("restore", file, "t", to), text=True,
                                 stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        try:
            wait_for(relay.caught, SECONDS, "the contents")
            first.send_signal(signal.SIGSTOP)
            wait_ownerless("t", daemons)
            done = run_command("restore", file, "t", mirror_list(daemons))
            assert done.status == OK and "is made anew" in done.err, done
            relay.drop()
            first.send_signal(signal.SIGCONT)
            told = first.communicate(timeout=SECONDS)[1]
        finally:
            first.kill()
            first.wait()
        assert first.returncode == FAILURE and "another store has its name now" in told, told
        assert "deletes it if it is unfinished" in told, told
        assert run_command("drop", "t", mirrors=daemons).status == NO
    with Store("t", mirror_list(daemons)) as store:
        store.map("first")
        assert store.read("first", 0, len(BEGIN)) == BEGIN


def test_a_making_that_was_killed_is_named(mirrors):
    """The command is killed when it asks the second of two mirrors to create the store."""
    daemons = mirrors(2)
    with Relay(daemons[1]) as relay:
        to = ",".join([daemons[0].address, relay.address])
        kill_at(relay, relay.address, ["create", "t", to])
        told = run_command("status", "t", to)
        assert "its making was not finished" in told.out, told
        assert "its making was not finished" in lists(run_command("ls", to))[0]
        with Store("t", to, flags=CREATE):
            pass
