"""perseas status --all: many stores on many daemons, one line each, with one request to each
daemon."""
import contextlib
import socket
import threading

from acceptor import Acceptor
from binding import CREATE, Store
from drill import (FAILURE, NO, OK, PARTLY, SECONDS, USAGE, at_hosts, fill, mirror_list,
                   run_command, status_of, wait_for)
from many import COPIES, DAEMONS, LOG, PATIENT, STORES, make_stores


def show(daemons, *words):
    return run_command("status", "--all", "--connect-timeout", 1000 * SECONDS, *words,
                       mirrors=daemons)


def lines_of(done):
    """Returns {store: cells of its line}, in order."""
    rows = [line.split("  ") for line in done.out.splitlines()[3:]]
    return {row[0]: [cell.strip() for cell in row[1:] if cell.strip()] for row in rows}


class Door(Acceptor):
    """A proxy in front of a daemon that counts connections. Programs that ask all daemons of this
    host, such as perseas doctor, do not use it."""

    def __init__(self, daemon):
        super().__init__()
        host, _, port = daemon.address.rpartition(":")
        self.there, self.count = (host, int(port)), 0

    def accepted(self, peer):
        self.count += 1
        super().accepted(peer)

    def serve(self, peer):
        there = socket.create_connection(self.there)
        threading.Thread(target=self.carry, args=(there, peer), daemon=True).start()
        self.carry(peer, there)

    @staticmethod
    def carry(one, other):
        with contextlib.suppress(OSError):
            while data := one.recv(1 << 16):
                other.sendall(data)
        with contextlib.suppress(OSError):
            other.shutdown(socket.SHUT_WR)


def test_each_daemon_is_asked_once_however_many_stores_it_has(mirrors):
    """Also a daemon known only from rosters. When the command has its answer, all earlier
    connections have been counted."""
    with contextlib.ExitStack() as stack:
        doors = [stack.enter_context(Door(daemon)) for daemon in mirrors(DAEMONS)]
        for k in range(2 * DAEMONS):
            home = mirror_list([doors[(k + i) % DAEMONS] for i in range(COPIES)])
            assert run_command("create", "store%02d" % k, home, "--log-size", LOG,
                               "--connect-timeout", 1000 * SECONDS).status == OK
        for named in (doors, doors[:1]):
            before = [door.count for door in doors]
            done = show(named)
            assert done.status == OK and done.out.startswith("20 stores on 10 daemons;"), done
            assert [door.count - old for door, old in zip(doors, before)] == [1] * DAEMONS


def test_a_hundred_stores_are_a_line_each(mirrors):
    """All stores are well; then a daemon dies: its stores are listed first, and the exit status
    says so."""
    daemons = mirrors(DAEMONS)
    homes = make_stores(daemons)
    done = show(daemons)
    assert done.status == OK and done.err == "", done
    assert done.out.splitlines()[0] == ("100 stores on 10 daemons; all bear the losses that they "
                                        "promise; 100 without an owner")
    lines = lines_of(done)
    assert list(lines) == sorted(homes)
    assert {tuple(cells[:3]) for cells in lines.values()} == {("-", "3 of 3", "1 of 1")}

    dead = daemons[3]
    dead.kill9()
    hurt = sorted(name for name, home in homes.items() if dead in home)
    done = show(daemons)
    assert done.status == NO and dead.address in done.err, done
    assert done.out.splitlines()[0] == (
        "100 stores on 10 daemons, of which 1 does not answer; %d bear fewer losses than "
        "promised; 100 without an owner" % len(hurt))
    lines = lines_of(done)
    assert list(lines)[:len(hurt)] == hurt and len(lines) == STORES
    for name in hurt:
        assert lines[name][1:3] == ["2 of 3", "0 of 1"], lines[name]
        assert lines[name][-1] == dead.address + " does not show its image"
    told = show(daemons, "--json").json()
    assert told["bare"] == len(hurt) and told["stuck"] == 0 and told["unreachable"] == 1
    assert len(told["stores"]) == STORES and len(told["daemons"]) == DAEMONS
    for name in (hurt[0], sorted(set(homes) - set(hurt))[0]):
        one = status_of(name, homes[name])["verdict"]
        line, = (s for s in told["stores"] if s["store"] == name)
        assert (line["can_commit"], line["can_open"]) == (one["can_commit"], one["can_open"])


def test_owners_and_what_is_wrong_are_said(mirrors):
    """One store has an owner and loses a mirror; one loses the mirror that it needs; one has an
    image that a change of the roster left behind; two stores have the same name."""
    daemons = at_hosts(mirrors, "h1", "h2", "h3", "h4")
    a, b, c, d = daemons
    fill("lost", [c, d], {"data": b"contents"}, acks=1, **PATIENT)
    fill("moved", [a, b], {"data": b"contents"}, **PATIENT)
    fill("twin", [a], {"data": b"contents"}, **PATIENT)
    fill("twin", [b], {"data": b"contents"}, **PATIENT)
    made = run_command("roster", "replace", "moved", mirror_list([a, b]), b.address, d.address)
    assert made.status == OK, made
    with Store("owned", mirror_list([a, b, c]), flags=CREATE, **PATIENT) as store:
        store.map("data", 4096)
        store.publish()
        wait_for(lambda: (status_of("owned", [a])["owner"] or {}).get("mirrors"), SECONDS,
                 "a report")
        lines = lines_of(show(daemons))
        assert list(lines)[0] == "moved", "a store with a warning comes before the others"
        assert b.address + " has an image that no roster lists" in lines["moved"][-1]
        assert "127.0.0.1:" in lines["owned"][0] and " tcp" in lines["owned"][0]
        assert lines["owned"][1:3] == ["3 of 3", "1 of 1"]
        done = show(daemons, "--json").json()
        assert [s["store"] for s in done["stores"]].count("twin") == 2
        assert all(s["bears"] == s["promises"] for s in done["stores"])
        c.kill9()
        wait_for(lambda: "2 of 3" in lines_of(show(daemons))["owned"], SECONDS, "a loss")
        wait_for(lambda: any(m["address"] == c.address and m["state"] != "live"
                             for m in status_of("owned", [a])["owner"]["mirrors"]), SECONDS,
                 "an owner that knows")
        done = show(daemons)
        assert done.status == NO, done
        assert done.out.splitlines()[0].startswith(
            "5 stores on 4 daemons, of which 1 does not answer; 1 cannot be used; 1 bears fewer "
            "losses than promised"), done
        lines = lines_of(done)
        assert list(lines)[:2] == ["lost", "owned"]
        assert "it cannot be opened" in lines["lost"][-1]
        assert lines["owned"][1:3] == ["2 of 3", "0 of 1"]


def test_a_store_that_a_host_takes_with_it_is_named(mirrors):
    """The store survives the loss of each mirror, but not of the host that has two."""
    a, b, c, d = at_hosts(mirrors, "h1", "h2", "h2", "h3")
    fill("together", [a, b, c], {"data": b"contents"}, **PATIENT)
    fill("apart", [a, b, d], {"data": b"contents"}, **PATIENT)
    done = show([a, b, c, d])
    assert done.status == OK, done
    clause = "next loss that hurts: host h2: mirrors %s and %s" % (b.address, c.address)
    lines = lines_of(done)
    assert list(lines) == ["together", "apart"]
    assert lines["together"][1:3] == ["3 of 3", "1 of 1"] and lines["together"][-1] == clause
    told = show([a, b, c, d], "--json").json()["stores"]
    assert [store["next_loss"] for store in told] == [clause, "next loss that hurts: none alone"]


def test_a_mirror_that_lost_its_image_is_told_from_one_that_does_not_answer(mirrors):
    """A mirror that answers without an image is described in other words."""
    daemons = mirrors(3)
    fill("s", daemons, {"data": b"contents"}, **PATIENT)
    daemons[2].lose_memory()
    daemons[2].restart()
    done = show(daemons)
    assert done.status == NO and done.err == "", done
    assert lines_of(done)["s"][-1] == daemons[2].address + " has lost its image"


def test_the_status_is_for_scripts(mirrors):
    """No stores; a daemon that does not answer and has no images; none that answers; wrong
    arguments."""
    daemons = mirrors(2)
    done = show(daemons)
    assert done.status == OK and done.out == "0 stores on 2 daemons\n", done
    daemons[1].kill9()
    assert show(daemons).status == PARTLY
    assert show(daemons, "--json").json()["unreachable"] == 1
    daemons[0].kill9()
    done = show(daemons)
    assert done.status == FAILURE and "no daemon answers" in done.err, done
    assert run_command("status", "--all", "s", mirrors=daemons).status == USAGE
    assert run_command("ls", "--all", mirrors=daemons).status == USAGE
