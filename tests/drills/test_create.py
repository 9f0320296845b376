"""Processes that create the same store at the same time."""
import signal
import subprocess

import pytest

from binding import CREATE, Store
from drill import OK, SECONDS, command_line, mirror_list, rounds, status_of, wait_for
from relay import Relay
from teller import tellers  # noqa: F401

ROUNDS = rounds(4)


@pytest.mark.parametrize("count", [2, 3])
def test_of_two_applications_that_create_together_both_have_the_store_or_are_told(
        mirrors, tellers, perseas, count):
    """Both open with PERSEAS_CREATE; one may be refused because the other is alive."""
    daemons = mirrors(count, "tcp")
    for number in range(ROUNDS):
        store = "books%d" % number
        # W of all mirrors, so that none is behind when the applications end.
        both = [tellers.run(store, daemons, "create", "acks=%d" % count, "transactions=2")
                for _ in range(2)]
        ends = [each.wait() for each in both]
        assert [status for status, _ in ends].count(0) >= 1, ends
        for status, said in ends:
            assert status == 0 or "EBUSY" in said or "EFENCED" in said, ends
        done = perseas("verify", store, mirrors=daemons)
        assert done.status == OK, done


@pytest.mark.parametrize("count", [2, 3])
def test_of_two_commands_that_create_together_one_succeeds(mirrors, perseas, count):
    """Each command reports that it created the store, or that the other one did."""
    daemons = mirrors(count, "tcp")
    for number in range(ROUNDS):
        store = "books%d" % number
        words = command_line("create", store, "--mirrors", mirror_list(daemons))
        both = [subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
                for _ in range(2)]
        ends = [(each.communicate(timeout=SECONDS), each.returncode) for each in both]
        assert sorted(code != 0 for _, code in ends) == [False, True], ends
        lost, = (said for (_, said), code in ends if code)
        assert "has a store '%s' already" % store in lost, ends
        done = perseas("verify", store, mirrors=daemons)
        assert done.status == OK, done


def create_until_the_second(relay, first, number):
    """Runs `perseas create` and stops it when the first mirror has an image and the second is asked
    for one. Returns its process."""
    words = command_line("create", "books", "--mirrors", first.address + "," + relay.address)
    relay.catch(relay.address, 1)           # the address occurs only in the roster of a Create
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    wait_for(relay.caught, SECONDS, "a create that is half done")
    process.send_signal(number)
    return process


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_does_not_end_a_create_between_two_mirrors(mirrors, perseas, number):
    first, second = mirrors(2, "tcp")
    with Relay(second) as relay:
        process = create_until_the_second(relay, first, number)
        relay.go()
        out, err = process.communicate(timeout=SECONDS)
        assert process.returncode == OK and "is made on" in out, err
        assert perseas("verify", "books", mirrors=[first, second]).status == OK


def test_a_create_that_was_killed_is_named_and_taken_back(mirrors, perseas):
    """The command is killed between two mirrors. status and ls show what it left; another create
    completes it."""
    first, second = mirrors(2, "tcp")
    with Relay(second) as relay:
        process = create_until_the_second(relay, first, signal.SIGKILL)
        process.communicate(timeout=SECONDS)
        relay.drop()
        relay.go()
        done = perseas("status", "books", mirrors=[first])
        assert "its making was not finished: create it again" in done.out, done
        assert status_of("books", [first])["mirrors"][0]["state"] == "creating"
        listed, = perseas("ls", "--json", mirrors=[first]).json()["mirrors"][0]["stores"]
        assert (listed["store"], listed["state"]) == ("books", "creating")
        done = perseas("status", "--all", mirrors=[first])
        assert "%s creating; %s was not given one" % (first.address, relay.address) in done.out
        with Store("books", first.address + "," + relay.address, flags=CREATE) as store:
            store.map("a", 4096)
            store.publish()
        assert perseas("verify", "books", mirrors=[first, second]).status == OK
