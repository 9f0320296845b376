"""perseas bench: it measures on a store that it creates and deletes afterward."""
import re
import signal
import subprocess

from drill import (FAILURE, OK, PARTLY, SECONDS, command_line, die_with_parent, fill,
                   mirror_list, status_of, wait_for)
from relay import Relay

BRIEF = ["--seconds", "0.1", "--sizes"]


def stores(perseas, daemons):
    """Returns the names of all stores on these mirrors."""
    told = perseas("ls", "--json", mirrors=daemons).json()["mirrors"]
    return {store["store"] for mirror in told for store in mirror.get("stores", ())}


def started(perseas, daemons, *words):
    """Starts a long run and waits until its store exists."""
    line = command_line("bench", mirror_list(daemons), "--seconds", 600, *words)
    process = subprocess.Popen(line, stdin=subprocess.DEVNULL, text=True,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               preexec_fn=die_with_parent)
    wait_for(lambda: all(stores(perseas, [daemon]) for daemon in daemons), SECONDS,
             "the store of perseas bench, on every mirror")
    name, = stores(perseas, daemons)
    wait_for(lambda: (status_of(name, daemons).get("newest") or {}).get("seq"), SECONDS,
             "a transaction of perseas bench")
    return process


def test_it_measures_and_leaves_nothing_behind(perseas, mirrors, fabric):
    """Two sizes and three threads, on mirrors that also have another store."""
    daemons = mirrors(2, fabric)
    fill("s", daemons, {"accounts": b"contents"})
    before = status_of("s", daemons)
    done = perseas("bench", mirror_list(daemons), *BRIEF, "8,64K", "--threads", "3", "--json")
    told = done.json()
    assert done.status == OK and (told["acks"], told["threads"]) == (2, 3), done
    for mirror, daemon in zip(told["mirrors"], daemons):
        assert mirror["address"] == daemon.address and mirror["fabric"] == fabric
    assert [size["bytes"] for size in told["sizes"]] == [8, 65536]
    for size in told["sizes"]:
        commit = size["commit"]
        assert commit["count"] > 0 and size["rate"] > 0
        assert 0 < commit["p50_us"] <= commit["p99_us"] <= commit["max_us"]
    assert stores(perseas, daemons) == {"s"} and status_of("s", daemons) == before


def test_a_commit_is_measured_however_long_it_takes(perseas, mirrors):
    """A round trip takes longer than the requested duration."""
    daemon, = mirrors(1)
    with Relay(daemon) as relay:
        relay.delay(75)
        done = perseas("bench", "--mirrors", relay.address, *BRIEF, "8", "--json")
    assert done.status == OK, done
    size, = done.json()["sizes"]
    assert size["commit"]["count"] > 0 and size["commit"]["p50_us"] > 150000


def test_people_get_a_table(perseas, mirrors, fabric):
    """One mirror, one size."""
    daemons = mirrors(1, fabric)
    done = perseas("bench", "--mirrors", daemons[0].address, *BRIEF, "1K")
    assert done.status == OK and "1 mirror, W = 1, 1 thread" in done.out, done
    assert "1.0 KiB" in done.out
    assert re.search("^%s +%s$" % (re.escape(daemons[0].address), fabric), done.out, re.M)


def test_a_signal_ends_it_and_the_store_goes_too(perseas, mirrors):
    """SIGINT, as from Ctrl-C, SIGTERM, and SIGHUP, as from a terminal that is closed."""
    daemons = mirrors(2)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        process = started(perseas, daemons)
        process.send_signal(number)
        _, err = process.communicate(timeout=SECONDS)
        assert process.returncode == PARTLY and "stopped by a signal" in err, err
        assert stores(perseas, daemons) == set()


def test_a_store_that_cannot_be_deleted_is_named(perseas, mirrors):
    """One of two mirrors dies during the run; W is 1."""
    daemons = mirrors(2)
    process = started(perseas, daemons, "--acks", "1")
    name, = stores(perseas, daemons)
    daemons[1].kill9()
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=SECONDS)
    assert process.returncode == FAILURE and "'%s'" % name in err and "perseas drop" in err, err
    assert stores(perseas, daemons[:1]) == set()


def test_mirrors_that_are_not_there_are_named(perseas, mirrors):
    """One of two mirrors is down: no store is created."""
    daemons = mirrors(1)
    done = perseas("bench", "%s,127.0.0.1:1" % mirror_list(daemons), *BRIEF, "8")
    assert done.status == FAILURE and "127.0.0.1:1" in done.err and done.out == "", done
    assert stores(perseas, daemons) == set()
