"""`perseas move` hands a running store over to a standby, by name. Nothing is lost, and every
failure has a name."""
import concurrent.futures
import contextlib
import ctypes
import itertools
import math
import os
import random
import re
import signal
import statistics
import subprocess
import sys
import threading
import time

import pytest

from binding import Standby
from drill import (FABRICS, FAILURE, HERE, NO, OK, PARTLY, PATIENCE, SECONDS, USAGE, WITH_TLS,
                   command_line, fill, mirror_list, run_command, status_of, wait_for)
from relay import Relay
from rules import Rules
from sentinel import attempt, unless_overslept
from teller import LOG, TELLER, Page, until
from test_run import LIVES, OWNS, RUNS, YIELDS, run  # noqa: F401
from wire import STATUS_OK, Control, field
from worker import Delays

# An owner that writes the books until SIGTERM, and then closes the store.
SERVES = ("sh", "-c", 'exec "%s" serve "$PERSEAS_STORE" "$PERSEAS_MIRRORS" "$PAGE" %s'
          % (TELLER, LOG))


class Node:
    """A `perseas run` with that name, and the page of what was acknowledged to its COMMAND."""

    def __init__(self, start, folder, name, daemons, options=(), command=SERVES):
        path = folder / ("page-%s" % name)
        self.name, self.page = name, Page(path)
        self.run = start("bank", daemons, command, ("--name", name, *options), PAGE=str(path))

    def wait_serving(self):
        """Waits until it has committed as owner since it opened the store last."""
        until(lambda: self.page.first_at, "a commit")

    def wait_said(self, text, times=1):
        self.run.wait_said(text, times)

    def wait_following(self, daemons):
        """Waits until it has seen the owner, and each mirror knows it: what it tells them may be
        under way when it says so."""
        self.wait_said(LIVES)
        until(lambda: all(knows(each, self.name) for each in daemons), "a standby that is known")


@pytest.fixture
def node(tmp_path, run):  # noqa: F811
    def start(name, daemons, options=(), command=SERVES):
        return Node(run, tmp_path, name, daemons, options, command)
    return start


@pytest.fixture
def bank(mirrors, perseas):
    """bank(fabric="tcp", options=()) starts three mirrors with an empty store "bank"."""
    def make(fabric="tcp", options=()):
        daemons = mirrors(3, fabric, options)
        assert perseas("create", "bank", mirror_list(daemons)).status == OK
        return daemons
    return make


def knows(daemon, name):
    """Returns whether this mirror tells of a standby of that name."""
    asker = Control(daemon.mirror.unix)
    reply = asker.ask(field(2, field(1, "bank")))
    asker.peer.close()
    return any(name.encode() in part for part in reply.values() if isinstance(part, bytes))


def stubborn(seconds):
    """Returns an owner that does not end at SIGTERM, and what its run does about that."""
    return {"command": ("sh", "-c", SERVES[2].replace("exec", "trap '' TERM; exec", 1)
                        .replace(" serve ", " run ")),
            "options": ("--stop-after", str(seconds))}


def move(daemons, *words, **keywords):
    return run_command("move", "bank", mirror_list(daemons), *words, **keywords)


@contextlib.contextmanager
def moving(daemons, *words):
    """Starts the command. Returns its Popen."""
    with subprocess.Popen(command_line("move", "bank", mirror_list(daemons), *words),
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def ended(process):
    """Returns its status and its output."""
    out, err = process.communicate(timeout=SECONDS)
    return process.returncode, out, err


NO_COPY = {"memory": None, "warm": None, "warm_percent": None}
CLOSES = "COMMAND is ended, to hand the store over to beta"


def test_status_says_how_warm_a_standby_is(mirrors, owner, run):  # noqa: F811
    """The owner changes nothing, so the copy becomes complete."""
    daemons = mirrors(3, "tcp")
    fill("bank", daemons, {"accounts": random.Random(1).randbytes(1 << 20)})
    owner("bank", daemons)
    run("bank", daemons, ("true",), ("--warm", "--name", "beta"))
    until(lambda: status_of("bank", daemons)["standbys"] ==
          [{"name": "beta", "order": 0, "owns": False, "memory": 1 << 20, "warm": 1 << 20,
            "warm_percent": 100}], "a standby, and its copy")
    told = run_command("status", "bank", mirrors=daemons).out
    assert "standbys: beta (its copy has 100 %: 1.0 MiB of 1.0 MiB)\n" in told


# --- as planned ---

@pytest.mark.parametrize("fabric", WITH_TLS)
def test_a_store_is_handed_over_and_back(fabric, bank, node):
    """The next owner finds exactly what was acknowledged to the last one."""
    daemons = bank(fabric)
    alpha = node("alpha", daemons)
    alpha.wait_serving()
    beta = node("beta", daemons)
    beta.wait_following(daemons)
    for giver, taker, name in ((alpha, beta, "beta"), (beta, alpha, "alpha")):
        giver.page.advances(20)
        done = move(daemons, name)
        assert done.status == OK, done
        assert "store 'bank' is handed over to %s: epoch " % name in done.out
        assert "\nlost: 0, in doubt: 0\n" in done.out
        assert giver.page.last_at
        taker.wait_serving()
        assert taker.page.found == giver.page.acked and taker.page.in_doubt == 0
        taker.page.advances(1)
        giver.wait_said("COMMAND is ended, to hand the store over to " + name)
        giver.page.forget()
        giver.wait_following(daemons)


PAUSE = 0.020 * PATIENCE               # seconds without an owner
MOVES = 6                               # an even number: each attempt begins at the same node


def watched_move(daemons, name, standby, delays):
    """Moves the store. Meanwhile records what keeps these processes and the standby's COMMAND from
    running. Returns the output of the move."""
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        done = pool.submit(move, daemons, name, "--json")
        while not done.done():
            with contextlib.suppress(ValueError):       # it has none yet
                delays.pids = [*{*delays.pids, standby.command()}]
            delays.note()
            time.sleep(0.01)            # between two samples
    return done.result().json()


@pytest.mark.parametrize("fabric", FABRICS)
def test_the_pause_is_short(fabric, bank, node):
    """From the end of one session to the start of the other, by the mirrors, without the time for
    which processors kept these processes from running: the median of several moves, back and
    forth."""
    daemons = bank(fabric)
    places = {"alpha": node("alpha", daemons)}
    places["alpha"].wait_serving()
    places["beta"] = node("beta", daemons)
    places["beta"].wait_following(daemons)
    names = itertools.cycle((("alpha", "beta"), ("beta", "alpha")))

    def moves(sentinel):
        pauses = []
        sentinel.begin()
        for giver, taker in itertools.islice(names, MOVES):
            places[giver].page.advances(20)
            places[taker].page.forget()
            delays = Delays([*(each.pid for each in daemons),
                             *(each.run.process.pid for each in places.values())])
            told = watched_move(daemons, taker, places[taker].run, delays)
            places[taker].wait_serving()
            delayed_ms = delays.most_in(told["pause_us"] / 1e3)
            assert told["moved"] and told["planned"]
            assert told["lost"] == told["in_doubt"] == 0
            # The command gives mirrors beyond W a moment to notice.
            pauses.append(told["pause_us"] / 1e6 - delayed_ms / 1e3 if told["mirrors"] == 3
                          else math.inf)
        return statistics.median(pauses)

    attempt(PAUSE, moves)


def test_the_named_standby_goes_first_and_the_others_hold_back(bank, node):
    """By its order it would come last, 25 s after the first, and the others hold back for 5 s."""
    daemons = bank()
    alpha = node("alpha", daemons)
    alpha.wait_serving()
    others = [node("beta", daemons), node("gamma", daemons, ("--order", "1"))]
    last = node("delta", daemons, ("--order", "100"))
    for each in (*others, last):
        each.wait_following(daemons)
    told = [{"name": name, "order": order, "owns": name == "alpha", **NO_COPY}
            for name, order in (("alpha", 0), ("beta", 0), ("gamma", 1), ("delta", 100))]
    until(lambda: status_of("bank", daemons)["standbys"] == told, "standbys that are told of")
    with unless_overslept(YIELDS):
        done = move(daemons, "nobody", "delta", "beta")
        assert done.status == OK, done
        last.wait_said(OWNS)
        for each in others:
            each.wait_said("standby: its owner lives", 2)
            assert RUNS not in each.run.said()


EVENT = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.POINTER(ctypes.c_int))
HANDOVER = 15                           # enum perseas_event_kind


@pytest.mark.parametrize("fabric", FABRICS)
def test_a_store_is_handed_over_to_a_process_that_waits_itself(fabric, bank, node):
    """By its order it would come last. When it owns the store it is asked to hand it over, closes
    it by itself, and the previous owner has it again."""
    daemons, asked = bank(fabric), threading.Event()
    alpha = node("alpha", daemons)
    alpha.wait_serving()
    gamma = node("gamma", daemons, ("--order", "1"))
    gamma.wait_following(daemons)

    @EVENT
    def told(_, event):
        if event[0] == HANDOVER:
            asked.set()

    with unless_overslept(YIELDS), concurrent.futures.ThreadPoolExecutor() as pool, Standby(
            "bank", mirror_list(daemons), name=b"beta", order=100,
            on_event=ctypes.cast(told, ctypes.c_void_p).value) as beta:
        waiting = pool.submit(beta.become_owner)
        until(lambda: {"name": "beta", "order": 100, "owns": False, **NO_COPY}
              in status_of("bank", daemons)["standbys"] and beta.state() == "owned",
              "a standby that mirrors tell of")
        alpha.page.advances(20)
        done = move(daemons, "beta")
        assert done.status == OK, done
        assert "store 'bank' is handed over to beta: epoch " in done.out
        assert "\nlost: 0, in doubt: 0\n" in done.out
        acked = alpha.page.acked
        with waiting.result(SECONDS) as store:
            assert not asked.is_set()
            alpha.page.forget()
            alpha.wait_following(daemons)
            moved = pool.submit(move, daemons, "alpha")
            assert asked.wait(SECONDS)
            store.close()
            done = moved.result(SECONDS)
    assert done.status == OK, done
    assert "was not started by perseas run: it is told" in done.err
    alpha.wait_serving()
    assert alpha.page.found == acked and alpha.page.in_doubt == 0
    assert RUNS not in gamma.run.said()


# --- refused: nothing is changed ---

def expect_unmoved(done, status, sentence, owner):
    """The owner was not asked, and continues."""
    assert done.status == status, done
    assert sentence in done.err, done
    owner.page.advances(1)
    assert "COMMAND is ended" not in owner.run.said()


def test_without_such_a_standby_nobody_is_asked(bank, node):
    """No standby at all; others; the owner itself."""
    daemons = bank()
    alpha = node("alpha", daemons)
    alpha.wait_serving()
    expect_unmoved(move(daemons, "beta"), NO, "store 'bank' has no standby; start one", alpha)
    for name in ("beta", "gamma"):
        node(name, daemons).wait_following(daemons)
    done = move(daemons, "delta")
    expect_unmoved(done, NO, "this is not a standby of store 'bank'; its standbys are: ", alpha)
    assert {"beta", "gamma"} == set(done.err.rstrip().rpartition(": ")[2].split(", "))
    expect_unmoved(move(daemons, "delta", "epsilon"), NO, "none of these is a standby", alpha)
    for words in (), ("--json",):
        done = move(daemons, "delta", "alpha", "beta", *words)
        expect_unmoved(done, OK,
                       "store 'bank' is owned at alpha already; nothing was changed", alpha)
        assert not words or (done.json()["to"], done.json()["moved"]) == ("alpha", False)


def test_a_store_without_an_owner_is_not_handed_over(bank):
    daemons = bank()
    done = move(daemons, "beta")
    assert done.status == NO and "has no live owner, so there is nothing to hand over" in done.err
    done = run_command("move", "vault", mirror_list(daemons), "beta")
    assert done.status == NO and "no mirror has a store 'vault'" in done.err


def test_who_may_not_recover_does_not_end_an_owner(bank, node, tmp_path):
    """With the rights own and read a client waits as a standby. It may not have the store handed
    over to itself, which would be a takeover without that right."""
    owner = "allow uid:%d all" % os.geteuid()
    rules = Rules(tmp_path / "access", owner, "allow anonymous own,read")
    daemons = bank("shm", rules.options)
    alpha = node("alpha", daemons)
    alpha.wait_serving()
    others = ",".join(each.mirror.tcp for each in daemons)
    beta = node("beta", others)
    beta.wait_following(daemons)
    expect_unmoved(run_command("move", "bank", others, "beta"), NO,
                   'anonymous lacks the right "recover" on store bank', alpha)
    assert RUNS not in beta.run.said()
    for each in daemons:
        assert rules.put(each, owner, "allow anonymous own,read,recover")
    assert run_command("move", "bank", others, "beta").status == OK
    beta.wait_said(OWNS)


def test_a_second_move_waits_for_the_first(bank, node):
    """The first move waits for the owner's end, which takes until the second one was refused."""
    daemons = bank()
    alpha = node("alpha", daemons, **stubborn(SECONDS))
    alpha.wait_serving()
    nodes = [node(name, daemons) for name in ("beta", "gamma")]
    for each in nodes:
        each.wait_following(daemons)
    with moving(daemons, "beta") as first:
        alpha.wait_said(CLOSES)
        done = move(daemons, "gamma")
        assert done.status == NO, done
        assert "is already asked to hand it over to beta" in done.err
        assert "nothing was changed" in done.err
        with unless_overslept(YIELDS):
            alpha.page.tell_to_stop()
            status, out, err = ended(first)
            assert status == OK, (out, err)
            nodes[0].wait_said(OWNS)
            assert RUNS not in nodes[1].run.said()


def test_one_mirror_does_not_end_an_owner(bank, node):
    """One mirror knows a standby that no other mirror knows, so that standby could not open the
    store: no move is made to it, and the owner continues if only that mirror was asked for one."""
    daemons = bank()
    alpha = node("alpha", daemons)
    alpha.wait_said(OWNS)
    alpha.wait_serving()
    mark, epoch = b"mark", status_of("bank", daemons)["owner"]["epoch"]
    gamma, asker = Control(daemons[0].address), Control(daemons[0].address)
    gamma.ask(field(21, field(1, "bank") + field(5, field(1, "gamma") + field(3, mark))))
    expect_unmoved(move(daemons, "gamma"), NO, "gamma is known to 1 of 3 mirrors of store 'bank', "
                   "too few to open it; nothing was changed", alpha)
    reply = asker.ask(field(22, field(1, "bank") + field(2, os.urandom(16)) + field(4, epoch) +
                            field(5, mark) + field(6, "gamma") + field(7, 60000)))
    assert reply.get(1, STATUS_OK) == STATUS_OK, reply
    alpha.page.advances(200)
    assert "COMMAND is ended" not in alpha.run.said()


def test_too_few_mirrors_answer(bank, node):
    """The owner's commit waits for the mirrors, and its standby's open would, too: the owner is not
    even asked. The store works again when they are back."""
    daemons = bank()
    alpha = node("alpha", daemons)
    alpha.wait_serving()
    node("beta", daemons).wait_following(daemons)
    for daemon in daemons[1:]:
        daemon.stop()

    def refused():
        """Returns once the first mirror has answered in time."""
        done = move(daemons, "beta", "--connect-timeout", "500")
        return "beta is known to 1 of 3 mirrors of store 'bank', too few to open it" in done.err \
            and done

    assert until(refused, "a mirror that answers").status == NO
    for daemon in daemons[1:]:
        daemon.cont()
    alpha.page.advances(1)
    assert "COMMAND is ended" not in alpha.run.said()
    # A run that missed the two in a look asks them again after half a minute.
    done = move(daemons, "beta", "--within", str(SECONDS))
    assert done.status == OK, done


def doubt_of(daemons):
    """Returns for how many ms a commit has been in doubt, by its owner's report, or None without a
    report."""
    return (status_of("bank", daemons)["owner"] or {}).get("doubt_ms")


def test_a_commit_is_in_doubt(bank, node):
    """The mirrors answer everybody but the owner. A move does not resolve the doubt: the commit is
    durable when the mirrors are back, and then the store is handed over with it."""
    daemons = bank()
    with Relay(daemons[1]) as one, Relay(daemons[2]) as two:
        alpha = node("alpha", [daemons[0], one, two],
                     command=(*SERVES[:2], SERVES[2] + " commit-ms=6000"))
        alpha.wait_serving()
        beta = node("beta", daemons)
        beta.wait_following(daemons)
        for relay in (one, two):
            relay.hold()
        until(lambda: doubt_of(daemons), "a commit in doubt")
        done = move(daemons, "beta")
        assert done.status == NO, done
        assert "a commit of store 'bank' has been in doubt for " in done.err
        assert "nothing was changed" in done.err
        for relay in (one, two):
            relay.go()
        until(lambda: doubt_of(daemons) == 0, "nothing in doubt")
        alpha.page.advances(1)
        assert "COMMAND is ended" not in alpha.run.said()
        done = move(daemons, "beta")
        assert done.status == OK and "\nlost: 0, in doubt: 0\n" in done.out, done
        beta.wait_serving()
        assert beta.page.found == alpha.page.acked


# --- not as planned ---

def test_an_owner_that_does_not_end_is_killed(bank, node):
    """As in a failover; the books are still right."""
    daemons = bank()
    alpha = node("alpha", daemons, **stubborn(0.3))
    alpha.wait_serving()
    beta = node("beta", daemons)
    beta.wait_following(daemons)
    done = move(daemons, "beta")
    assert done.status == PARTLY, done
    assert "ended without closing it, as in a failover" in done.err
    alpha.wait_said("COMMAND did not end in time, and is killed")
    beta.wait_serving()
    assert alpha.page.acked <= beta.page.found <= alpha.page.attempted


def test_an_owner_that_is_killed_meanwhile_loses_nothing(bank, node):
    """Together with its run, as when its host loses power."""
    daemons = bank()
    alpha = node("alpha", daemons, **stubborn(60))
    alpha.wait_serving()
    beta = node("beta", daemons)
    beta.wait_following(daemons)
    with moving(daemons, "beta") as process:
        alpha.wait_said(CLOSES)
        alpha.run.signal(signal.SIGKILL)
        status, _, err = ended(process)
    assert status == PARTLY and "ended without closing it" in err
    beta.wait_serving()
    assert alpha.page.acked <= beta.page.found <= alpha.page.attempted


def test_a_standby_that_dies_meanwhile_is_not_waited_for(bank, node):
    """The next standby by order takes the store as soon as it is free."""
    daemons = bank()
    alpha = node("alpha", daemons, **stubborn(SECONDS))
    alpha.wait_serving()
    beta, gamma = node("beta", daemons), node("gamma", daemons)
    for each in (beta, gamma):
        each.wait_following(daemons)
    with moving(daemons, "beta") as process:
        alpha.wait_said(CLOSES)
        beta.run.signal(signal.SIGKILL)
        beta.run.process.wait()
        alpha.page.tell_to_stop()
        status, _, err = ended(process)
    assert status == PARTLY and "beta did not take store 'bank'" in err
    gamma.wait_said(OWNS)


def test_an_owner_is_not_ended_for_a_standby_that_is_gone(bank, node):
    """The standby died before the owner's run received the request."""
    daemons = bank()
    alpha = node("alpha", daemons)
    alpha.wait_serving()
    alpha.wait_said(OWNS)
    beta = node("beta", daemons)
    beta.wait_following(daemons)
    alpha.run.signal(signal.SIGSTOP)
    with moving(daemons, "beta", "--within", "2") as process:
        until(lambda: "is asked to hand it over" in daemons[2].log(), "a request")
        beta.run.signal(signal.SIGKILL)
        beta.run.process.wait()
        until(lambda: [each["name"] for each in status_of("bank", daemons)["standbys"]]
              == ["alpha"], "the end of a standby")
        alpha.run.signal(signal.SIGCONT)
        status, _, err = ended(process)
    assert status == FAILURE and re.search(r"did not let go of it within \d+\.\d s", err)
    alpha.page.advances(1)
    assert "COMMAND is ended" not in alpha.run.said()


def test_a_standby_that_never_opens_the_store_is_not_waited_for_for_ever(bank, node):
    """Its COMMAND runs but does not open the store: after 5 s the others proceed by their order.
    The next move makes them hold back again, although the store was theirs for long: the
    standby named then opens it after a second."""
    daemons = bank()
    alpha = node("alpha", daemons)
    alpha.wait_serving()
    beta = node("beta", daemons, command=("sleep", "1000"))
    beta.wait_following(daemons)
    done = move(daemons, "beta", "--within", str(SECONDS))
    assert done.status == PARTLY, done
    assert "beta did not take store 'bank'" in done.err
    alpha.wait_said(OWNS, 2)
    gamma = node("gamma", daemons, command=("sh", "-c", "sleep 1; " + SERVES[2]))
    gamma.wait_following(daemons)
    with unless_overslept(YIELDS):
        done = move(daemons, "gamma")
        assert done.status == OK, done
        gamma.wait_said(OWNS)
        assert alpha.run.said().count(RUNS + "\n") == 2


def test_a_request_that_nobody_answered_is_taken_back(mirrors, perseas, node):
    """The request is in flight for longer than the timeout for a mirror, and is canceled over
    another connection. If the cancellation does not arrive either, the command says so."""
    daemon, = daemons = mirrors(1)
    assert perseas("create", "bank", mirror_list(daemons)).status == OK
    alpha = node("alpha", daemons)
    alpha.wait_serving()
    beta = node("beta", daemons)
    beta.wait_following(daemons)
    for count, sentence in ((1, "no mirror took the request, which is taken back: "),
                            (9, "may have the request, and was not told that it is taken back")):
        with Relay(daemon) as relay:
            relay.catch("beta", count)
            done = move([relay], "beta", "--connect-timeout", "6000")
            assert done.status == FAILURE, done
            assert sentence in done.err, done
            if count == 1:
                relay.go()
                wait_for(lambda: "has been taken back" in daemon.log(), SECONDS, "a late request")
                alpha.page.advances(1)
    assert "COMMAND is ended" not in alpha.run.said()
    assert move(daemons, "beta").status == OK


# Claims the store at all mirrors, and does not open it until the file exists.
CLAIMS = """
import os, sys
sys.path.insert(0, sys.argv[1])
from drill import SECONDS, wait_for
from wire import Control
claimed = [Control(address) for address in sys.argv[2].split(",")]
for each in claimed:
    each.claim("bank", 1000)
wait_for(lambda: os.path.exists(sys.argv[3]), SECONDS, sys.argv[3])
sys.exit(1)
"""


def test_who_handed_over_comes_last_until_another_one_had_the_store_open(bank, node, tmp_path):
    """The named standby's COMMAND claims the store and fails. The next one by order takes it, and
    not the one that handed it over, which has the lowest order but comes last now, after 25 s."""
    daemons, over = bank(), tmp_path / "over"
    alpha = node("alpha", daemons)
    alpha.wait_serving()
    gamma = node("gamma", daemons, ("--order", "1"))
    omega = node("omega", daemons, ("--order", "100"))
    beta = node("beta", daemons, ("--restarts", "0"),
                (sys.executable, "-c", CLAIMS, str(HERE), mirror_list(daemons), str(over)))
    for each in (beta, gamma, omega):
        each.wait_following(daemons)
    with moving(daemons, "beta"):
        for each in (alpha, gamma):
            each.wait_said("epoch 1000)")
        over.touch()
        gamma.wait_said(OWNS)
    assert alpha.run.said().count(RUNS + "\n") == 1


def test_a_program_that_nobody_ends_is_asked(bank, node, owner):
    """The program does not listen to requests. The request is canceled, and another one may be
    made."""
    daemons = bank()
    holder = owner("bank", daemons)
    node("beta", daemons).wait_following(daemons)
    for _ in range(2):
        done = move(daemons, "beta", "--within", "1")
        assert done.status == FAILURE, done
        assert "was not started by perseas run" in done.err
        assert re.search(r"did not let go of it within [1-9]\d*\.\d s: the request is taken "
                         "back", done.err), done
    assert holder.process.poll() is None


def test_bad_words_are_refused(monkeypatch):
    monkeypatch.delenv("PERSEAS_MIRRORS", raising=False)
    for words, sentence in [
            (("bank", "m1:1"), "which standby? give its name behind the list"),
            (("bank", "m1:1", "a b"), "'a b' cannot name a standby"),
            (("bank", "m1:1", "a", "b", "c", "d", "e"), "one word too many"),
            (("bank", "m1:1", "a", "--within", "0"), "--within"),
            (("bank", "m1:1", "a", "--order", "1"), "move takes no --order")]:
        done = run_command("move", *words)
        assert done.status == USAGE, done
        assert sentence in done.err
    monkeypatch.setenv("PERSEAS_MIRRORS", "127.0.0.1:1")
    assert run_command("move", "bank", "a").status == FAILURE
