"""perseas drain: moves all images of a mirror elsewhere, one after the other, while owners commit.
"""
import signal
import struct
import subprocess
import threading

import pytest

from binding import CREATE, Store
from drill import (BUILD, FAILURE, MIB, NO, OK, PARTLY, SECONDS, USAGE, die_with_parent, fill,
                   mirror_list, run_command, status_of, wait_for, wait_ownerless)
from relay import Relay
from wire import Control, field, fields

TIMEOUT = 1000 * SECONDS                # ms; a dead mirror is refused at once anyway
PATIENT = dict(log_size=64 << 10, connect_timeout_ms=TIMEOUT, mirror_timeout_ms=TIMEOUT,
               commit_timeout_ms=TIMEOUT)
SLOT = struct.Struct("<Q")
LONG = pytest.mark.night("takes seconds of processor time; by day the same holds without a death")


class Writer:
    """An owner that counts in its store, one transaction for each number."""

    def __init__(self, name, daemons, **options):
        self.name, self.count, self.fault = name, 0, None
        self.store = Store(name, mirror_list(daemons), flags=CREATE, **PATIENT, **options)
        self.store.map("counter", 4096)
        self.store.publish()
        self.ends = threading.Event()
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        try:
            while not self.ends.is_set():
                self.store.write("counter", 0, SLOT.pack(self.count + 1))
                self.count += 1
        except Exception as fault:                                # noqa: B902
            self.fault = fault

    def advances(self, by=20):
        begin = self.count
        wait_for(lambda: self.fault or self.count >= begin + by, SECONDS, "commits of " + self.name)
        assert self.fault is None, self.fault

    def end(self):
        """Ends the owner. Returns the last number, which was acknowledged."""
        if not self.ends.is_set():
            self.ends.set()
            self.thread.join()
            self.store.close()
        assert self.fault is None, self.fault
        return self.count


@pytest.fixture
def writer():
    writers = []

    def start(*words, **options):
        writers.append(Writer(*words, **options))
        return writers[-1]

    yield start
    for each in writers:
        each.end()


@pytest.fixture
def fleet(mirrors):
    """fleet("r1", "r2", ...) starts a daemon in each of these racks, each on its own machine."""
    hosts = iter(range(1, 100))

    def start(*racks):
        return [mirrors(1, options=("--boot-id", "%032x" % host, "--label", "host=h%d" % host,
                                    "--label", "rack=" + rack, "--label", "zone=z",
                                    "--max-memory", "256M"))[0]
                for host, rack in zip(hosts, racks)]

    return start


def begin(*words):
    """Starts perseas drain as a process with a pipe."""
    return subprocess.Popen([str(BUILD / "perseas"), "drain", *words, "--connect-timeout",
                             str(TIMEOUT)], stdin=subprocess.DEVNULL,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                            preexec_fn=die_with_parent)


def drain(*words, mirrors):
    return run_command("drain", *words, "--connect-timeout", TIMEOUT, mirrors=mirrors)


def images(daemon):
    told = run_command("ls", "--json", "--connect-timeout", TIMEOUT, mirrors=[daemon]).json()
    return [s["store"] for s in told["mirrors"][0]["stores"]]


def members(name, daemons):
    """Returns the addresses of the roster, after checking that all given daemons with the store
    agree."""
    told = run_command("status", name, "--json", "--connect-timeout", TIMEOUT, mirrors=daemons)
    return [m["address"] for m in told.json()["roster"]["members"]]


def epoch_of(name, daemons):
    told = run_command("status", name, "--json", "--connect-timeout", TIMEOUT, mirrors=daemons)
    return told.json()["newest"]["epoch"]


def check_count(name, daemons, count):
    """Checks that every mirror of the store's roster has what was acknowledged."""
    with Store(name, ",".join(members(name, daemons)), **PATIENT) as store:
        store.map("counter", 4096)
        assert SLOT.unpack(store.read("counter", 0, SLOT.size))[0] == count
    assert len(members(name, daemons)) == len(set(members(name, daemons)))


def test_all_images_go_elsewhere_while_owners_commit(fleet, writer):
    """Stores with and without owners, with and without all mirrors needed for a commit. No owner
    notices the drain, no store gets two daemons in one rack, and the mirror is empty at the end."""
    daemons = fleet("r1", "r2", "r3", "r4", "r4")
    a, others = daemons[0], daemons[1:]
    busy = [writer("busy%d" % k, daemons[:3]) for k in range(3)]
    pair = writer("pair", daemons[:2], acks=2)
    fill("idle", daemons[:3], {"data": b"contents"}, **PATIENT)
    elsewhere = writer("elsewhere", daemons[1:3])
    before = {name: members(name, daemons) for name in ("busy0", "idle", "elsewhere")}
    plan = drain(a.address, "--dry-run", "--json", mirrors=daemons)
    assert plan.status == OK and plan.json()["left"] == 0, plan
    assert {i["result"] for i in plan.json()["images"]} == {"planned"}
    assert len({i["to"] for i in plan.json()["images"] if i["store"] != "pair"}) == 2, \
        "what is planned first counts for what is planned later"
    assert before == {name: members(name, daemons) for name in before}, "a dry run changes nothing"
    done = drain(a.address, mirrors=daemons)
    assert done.status == OK, done
    assert done.out.splitlines()[-1] == a.address + ": 5 of 5 images are gone, 0 left", done
    assert images(a) == []
    for each in (*busy, pair, elsewhere):
        each.advances()
    assert members("elsewhere", others) == before["elsewhere"]
    racks = dict(zip((d.address for d in daemons), ("r1", "r2", "r3", "r4", "r4")))
    for name in ("busy0", "busy1", "busy2", "idle"):
        assert sorted(racks[m] for m in members(name, others)) == ["r2", "r3", "r4"]
    a.kill9()
    for each in (*busy, pair, elsewhere):
        check_count(each.name, others, each.end())
    with Store("idle", ",".join(members("idle", others))) as store:
        store.map("data", 8)
        assert store.read("data", 0, 8) == b"contents"


def test_it_says_what_the_replacements_were_sent(fleet, writer):
    """By the owner of one store, and by the command itself, which opens the other one."""
    daemons = fleet("r1", "r2", "r3", "r4", "r5")
    busy = writer("busy", daemons[:3])
    fill("idle", daemons[:3], {"data": b"contents" * 1024}, **PATIENT)
    plan = drain(daemons[0].address, "--dry-run", "--json", mirrors=daemons).json()
    assert {(i["sent"], i["whole"]) for i in plan["images"]} == {(None, None)}
    done = drain(daemons[0].address, "--json", mirrors=daemons)
    assert done.status == OK, done
    assert {i["store"]: (i["sent"], i["whole"]) for i in done.json()["images"]} == \
        {"busy": (4096, "joins"), "idle": (8192, "joins")}
    done = drain(daemons[1].address, mirrors=daemons[1:])
    assert done.status == OK, done
    moved = {line.split("'")[1]: line.partition("; ")[2] for line in done.out.splitlines()
             if "moved to" in line}
    assert moved == {"busy": "sent 4.0 KiB (copied whole: joins)",
                     "idle": "sent 8.0 KiB (copied whole: joins)"}
    busy.end()


@LONG
def test_a_run_that_was_killed_is_gone_on_with(fleet, writer):
    """The command is killed after it announced a change, and after a change was made. The owner
    completes the change that was ordered, and the second run does the rest."""
    daemons = fleet("r1", "r2", "r3", "r4", "r5")
    a, others = daemons[0], daemons[1:]
    busy = [writer("busy%d" % k, daemons[:3]) for k in range(3)]
    fill("idle", daemons[:3], {"data": b"contents"}, **PATIENT)
    for end in ("from ", "moved to "):
        run = begin(a.address, mirror_list(daemons))
        for line in run.stdout:
            if end in line:
                break
        run.kill()
        run.communicate()
    done = drain(a.address, mirrors=daemons)
    assert done.status == OK and images(a) == [], done
    a.kill9()
    for each in busy:
        each.advances()
        check_count(each.name, others, each.end())
        assert a.address not in members(each.name, others)
    assert a.address not in members("idle", others)


class Held:
    """A drain of the first daemon to the fourth whose copy cannot end before `go`, because a relay
    catches it."""

    def __init__(self, daemons, writer, relay):
        self.relay, self.daemons = relay, daemons
        relay.catch("M" * 64, 1000)
        self.store = writer("s", daemons[:3])
        self.store.store.map("large", 4 * MIB)
        self.store.store.poke("large", 0, b"M" * (4 * MIB))
        self.store.store.publish()
        self.run = begin(daemons[0].address,
                         ",".join((relay.address, *(d.address for d in daemons[4:]))))
        assert self.run.stdout.readline() == "store 's': from %s to %s\n" % (daemons[0].address,
                                                                             relay.address)
        wait_for(self.copies, SECONDS, "a copy that is under way")

    def copies(self):
        """Returns whether the owner has begun to copy."""
        told = status_of("s", self.daemons[:3])["owner"]
        return told and told["order"] and any(
            m["address"] == self.relay.address and m["state"] == "resyncing"
            for m in told["mirrors"])


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_it_and_the_owner_goes_on(fleet, writer, number):
    """The exit status says that another run can continue; that run waits for the change that was
    ordered."""
    a, b, c, d = daemons = fleet("r1", "r2", "r3", "r4")
    with Relay(d) as relay:
        held = Held(daemons, writer, relay)
        held.run.send_signal(number)
        out, err = held.run.communicate(timeout=SECONDS)
        assert held.run.returncode == PARTLY and "stopped by a signal" in err, (out, err)
        assert images(a) == ["s"]
        relay.go()
        done = drain(a.address, mirrors=relay.address)
        assert done.status == OK and images(a) == [], done
        held.store.advances()
        held.store.end()


@LONG
def test_a_target_that_dies_while_it_is_copied_to_is_left_out(fleet, writer):
    """The owner drops the target, and another daemon gets the image."""
    a, b, c, dies, other = daemons = fleet("r1", "r2", "r3", "r4", "r5")
    fill("weight", [other], {"data": b"contents"}, **PATIENT)
    with Relay(dies) as relay:
        held = Held(daemons, writer, relay)
        dies.kill9()
        out, err = held.run.communicate(timeout=SECONDS)
        assert held.run.returncode == OK, (out, err)
    assert images(a) == []
    assert sorted(members("s", [b, c])) == sorted(x.address for x in (b, c, other))
    held.store.advances()
    check_count("s", [b, c, other], held.store.end())


@LONG
def test_a_target_that_died_after_the_change_is_replaced_before_the_image_is_deleted(fleet, writer):
    """A drain was killed between the change and the deletion, and then the new mirror died. The old
    image is not deleted until another daemon has replaced the dead one."""
    a, b, c, dies, other = fleet("r1", "r2", "r3", "r4", "r5")
    store = writer("s", [a, b, c])
    made = run_command("roster", "replace", "s", mirror_list([a, b, c]), a.address, dies.address)
    assert made.status == OK, made
    dies.kill9()
    done = drain(a.address, mirrors=[dies])
    assert done.status == FAILURE and images(a) == ["s"], done
    done = drain(a.address, "--wait", 1, mirrors=[b, c])
    assert done.status == PARTLY and images(a) == ["s"], done
    assert "the image that left the roster is kept" in done.err
    done = drain(a.address, mirrors=[dies, other])
    assert done.status == OK and images(a) == [], done
    assert sorted(members("s", [b, c])) == sorted(d.address for d in (b, c, other))
    check_count("s", [b, c, other], store.end())


def test_an_image_is_deleted_once_the_other_mirrors_are_up_to_date(fleet, mirrors):
    """Another mirror loses its memory, and has no room for a new image. It is named, and the old
    image is kept. Once there is room, the drain has the mirror brought up to date, since the store
    has no owner."""
    a, b, d = fleet("r1", "r2", "r4")
    c, = mirrors(1, options=("--boot-id", "%032x" % 99, "--label", "host=h99", "--label", "rack=r3",
                             "--label", "zone=z", "--max-memory", "3M"))
    fill("s", [a, b, c], {"data": bytes(1 << 20)}, **PATIENT)
    c.lose_memory()
    c.restart()
    fill("weight", [c], {"data": bytes(2 << 20)}, **PATIENT)
    run = begin(a.address, mirror_list([b, d]))
    wait_for(lambda: d.address in members("s", [b]), SECONDS, "a change of the roster")
    changed = epoch_of("s", [b])
    wait_for(lambda: epoch_of("s", [b]) > changed, SECONDS, "an open for the sake of the mirror")
    run.send_signal(signal.SIGINT)
    out, err = run.communicate(timeout=SECONDS)
    assert run.returncode == PARTLY and images(a) == ["s"], (out, err)
    assert c.address + " of its new roster is not up to date" in err, err
    assert "store 's': %s took its place, and its image is kept" % d.address in out, out
    assert run_command("drop", "weight", c.address, "--yes").status == OK
    done = drain(a.address, mirrors=[b, d])
    assert done.status == OK and images(a) == [], done
    assert run_command("verify", "s", mirrors=[b, c, d]).status == OK


def test_no_mirror_is_put_where_it_fails_together_with_another(fleet):
    """Without --apart the new mirror is never closer than the old one; with it the option decides.
    A mirror whose place is unknown stops the drain."""
    a, b, c, d = daemons = fleet("r1", "r2", "r3", "r3")
    fill("s", [a, b, c], {"data": b"contents"}, **PATIENT)
    done = drain(a.address, mirrors=daemons)
    assert done.status == NO and images(a) == ["s"], done
    assert "no two in the same rack" in done.err
    assert "store 's': not moved" in done.out
    c.kill9()
    done = drain(a.address, "--apart", "host", mirrors=daemons)
    assert done.status == NO and images(a) == ["s"], done
    assert "%s, which keeps its image, does not tell where it runs" % c.address in done.err
    c.restart()
    done = drain(a.address, "--apart", "host", mirrors=daemons)
    assert done.status == OK and images(a) == [], done
    assert sorted(members("s", [b, c, d])) == sorted(x.address for x in (b, c, d))


@pytest.mark.needs("localhost")
def test_another_address_of_the_mirror_is_no_other_mirror(fleet):
    """The images would be moved back to the mirror that is drained."""
    a, b, c = fleet("r1", "r2", "r3")
    fill("s", [a, b, c], {"data": b"contents"}, **PATIENT)
    port = a.address.rpartition(":")[2]
    done = drain(a.address, mirrors="localhost:" + port)
    assert done.status == NO and "is the mirror that is drained" in done.err, done
    assert images(a) == ["s"]
    done = drain(a.address, mirrors=[a])
    assert done.status == NO and images(a) == ["s"], done


def make_under_anothers_id(name, victim, daemon):
    """Creates by hand, with only the right to create, an image on `daemon` with the id and store
    that the victim reports."""
    asked, maker = Control(victim.address), Control(daemon.address)
    told = fields(fields(fields(asked.ask(field(2, field(1, name)))[5])[1])[1])
    roster = b"".join(field(3, field(1, address) + field(2, told[3]))
                      for address in members(name, [victim]) if address == victim.address)
    reply = maker.ask(field(3, field(1, name) + field(2, told[2]) + field(3, told[3]) +
                            field(4, 65536) + field(5, field(1, 1) + field(2, 1) + roster)))
    assert reply.get(1, 0) == 0, reply
    assert maker.ask(field(4, field(1, name) + field(2, told[2]))).get(1, 0) == 0
    for each in (asked, maker):
        each.peer.close()


def test_an_image_with_the_id_of_another_member_is_not_that_member(fleet, writer):
    """Somebody created such an image on the mirror that is drained. The member whose id it has
    stays in the roster, under an owner that commits."""
    a, b, d, e = fleet("r1", "r2", "r3", "r4")
    counts = writer("s", [a, b])
    counts.advances()
    make_under_anothers_id("s", b, d)
    done = drain(d.address, mirrors=[e])
    assert done.status == NO, done
    assert "the image here has the id of the member at " + b.address in done.err, done
    assert sorted(members("s", [a, b])) == sorted(x.address for x in (a, b))
    assert images(e) == []
    counts.advances()


def test_a_daemon_with_another_store_of_the_name_is_left_out(fleet):
    """The other store's image is not touched; the next daemon gets the image."""
    a, b, c, d, e = fleet("r1", "r2", "r3", "r4", "r5")
    fill("s", [a, b, c], {"data": b"contents"}, **PATIENT)
    fill("s", [d], {"data": b"foreigner"}, **PATIENT)
    fill("weight", [e], {"data": b"contents"}, **PATIENT)
    fill("more", [e], {"data": b"contents"}, **PATIENT)
    done = drain(a.address, mirrors=[d, e])
    assert done.status == OK and "has another store 's'" in done.err, done
    assert sorted(members("s", [b, c])) == sorted(x.address for x in (b, c, e))
    assert members("s", [d]) == [d.address]


def test_a_change_that_an_owner_left_unfinished_is_completed(fleet, owner):
    """An image whose owner died is moved; one that no roster mentions is deleted."""
    a, b, c, d = fleet("r1", "r2", "r3", "r4")
    fill("s", [a, b, c], {"data": b"contents"}, **PATIENT)
    fill("left", [a, b], {"data": b"contents"}, **PATIENT)
    assert run_command("roster", "remove", "left", mirror_list([a, b]), a.address).status == OK
    held = owner("s", [a, b, c])
    held.kill9()
    wait_ownerless("s", [a, b, c])
    done = drain(a.address, "--json", mirrors=[d])
    assert done.status == OK and images(a) == [], done
    told = {i["store"]: i for i in done.json()["images"]}
    assert told["s"]["result"] == "moved" and told["s"]["to"] == d.address
    assert told["left"]["result"] == "deleted" and told["left"]["to"] is None


def test_what_cannot_be_moved_is_said_and_the_rest_is_moved(fleet):
    """A store is not moved if too few of its mirrors answer."""
    a, b, c, d = fleet("r1", "r2", "r3", "r4")
    fill("stuck", [a, c], {"data": b"contents"}, **PATIENT)
    fill("good", [a, b], {"data": b"contents"}, **PATIENT)
    c.kill9()
    done = drain(a.address, "--json", mirrors=[d])
    assert done.status == NO and images(a) == ["stuck"], done
    assert done.json()["left"] == 1
    assert "store 'stuck' stays: " in done.err
    done = drain(c.address, mirrors=[d])
    assert done.status == FAILURE and "refused the connection" in done.err, done
    assert drain(mirrors=[d]).status == USAGE
    assert drain(mirror_list([a, b]), mirrors=[d]).status == USAGE


def test_damaged_images_are_moved_or_named(fleet):
    """An image with damaged commit slots is listed, and other mirrors fill another daemon. One with
    a damaged header is not listed, and is named at the end."""
    a, b, c, d = fleet("r1", "r2", "r3", "r4")
    for name in ("slots", "header"):
        fill(name, [a, b, c], {"data": b"contents"}, **PATIENT)
    a.kill9()
    log, = (a.memory / "slots").glob("log.*")
    with open(log, "r+b") as file:
        file.write(bytes(4096))
    with open(a.memory / "header" / "header", "r+b") as file:
        file.write(bytes(24))
    a.restart()
    done = drain(a.address, "--json", mirrors=[d])
    assert done.status == NO and done.json()["named"] == 1 and images(a) == [], done
    assert "store 'header': its roster names %s, which has lost its image or has a damaged" \
        % a.address in done.err
    assert sorted(members("slots", [b, c])) == sorted(x.address for x in (b, c, d))
    with Store("slots", mirror_list([b, c, d])) as store:
        store.map("data", 8)
        assert store.read("data", 0, 8) == b"contents"


@LONG
def test_what_a_dead_mirror_had_gets_other_mirrors(fleet, writer):
    """--dead is refused while the mirror answers. In a store of two mirrors, the owner cannot
    commit until the change is made; a store without an owner is opened for it."""
    daemons = fleet("r1", "r2", "r3", "r4", "r5")
    a, b, c = daemons[:3]
    pair, three = writer("pair", [a, b], acks=2), writer("three", [a, b, c])
    fill("idle", [a, b, c], {"data": b"contents"}, **PATIENT)
    fill("elsewhere", [b, c], {"data": b"contents"}, **PATIENT)
    done = drain(a.address, "--gone", mirrors=daemons)
    assert done.status == NO and "answers, so it is not gone" in done.err, done
    a.kill9()
    done = drain(a.address, mirrors=daemons)
    assert done.status == FAILURE and "if it has died for good, say the same with --gone" in \
        done.err, done
    plan = drain(a.address, "--gone", "--dry-run", mirrors=daemons)
    assert plan.status == OK and a.address in members("idle", [b, c]), plan
    assert plan.out.splitlines()[-1] == \
        a.address + ": 3 of 3 stores could have another mirror in its place, 0 left"
    done = drain(a.address, "--gone", "--json", mirrors=daemons)
    assert done.status == OK and done.json()["left"] == done.json()["named"] == 0, done
    assert {i["store"]: i["result"] for i in done.json()["images"]} == \
        dict.fromkeys(("pair", "three", "idle"), "moved")
    for name, count in (("pair", 2), ("three", 3), ("idle", 3)):
        assert len(members(name, [b, c])) == count and a.address not in members(name, [b, c])
    for store in (pair, three):
        store.advances()
        check_count(store.name, [b, c], store.end())
    with Store("idle", ",".join(members("idle", [b, c]))) as store:
        store.map("data", 8)
        assert store.read("data", 0, 8) == b"contents"
    again = drain(a.address, "--gone", mirrors=daemons)
    assert again.status == OK and again.out == \
        a.address + ": 0 of 0 stores have another mirror in its place, 0 left\n", again
    # The mirror comes back nevertheless: its image no longer counts, and is deleted.
    a.restart()
    done = drain(a.address, mirrors=daemons)
    assert done.status == OK and images(a) == [], done


def test_a_mirror_that_lost_its_image_is_not_called_drained(fleet):
    """Its list does not show the image, so the store would stay one mirror short."""
    a, b, c, d = fleet("r1", "r2", "r3", "r4")
    fill("s", [a, b, c], {"data": b"contents"}, **PATIENT)
    a.lose_memory()
    a.restart()
    words = "store 's': its roster names %s, which has lost its image" % a.address
    done = drain(a.address, "--json", mirrors=[b, d])
    assert done.status == NO and words in done.err and done.json()["named"] == 1, done
    done = drain(a.address, "--dry-run", mirrors=[b, d])
    assert done.status == NO and words in done.err, done
    made = run_command("roster", "replace", "s", mirror_list([b, c]), a.address, d.address)
    assert made.status == OK, made
    done = drain(a.address, mirrors=[b, d])
    assert done.status == OK and done.err == "", done


def test_what_was_left_behind_does_not_harm_what_went_on(fleet):
    """A mirror that was declared gone comes back with an image that is a complete store by its own
    roster. The store has continued, and only another mirror has its state. What that one
    acknowledged is not overwritten, neither by a drain, which finds the newer roster, nor by hand
    after the old roster has become the newer one because its owners added a mirror."""
    a, b, c, d = fleet("r1", "r2", "r3", "r4")
    fill("s", [a, b], {"data": b"contents"}, acks=2, **PATIENT)
    with Store("s", mirror_list([a, b]), **PATIENT):
        a.kill9()
        done = drain(a.address, "--gone", mirrors=[b, c])
        assert done.status == OK, done
    wait_ownerless("s", [b])
    made = run_command("roster", "remove", "s", mirror_list([b, c]), c.address, "--acks", 1)
    assert made.status == OK, made
    assert drain(c.address, mirrors=[b]).status == OK
    done = drain(b.address, mirrors=[d])
    assert done.status == OK and members("s", [d]) == [d.address], done
    with Store("s", d.address, **PATIENT) as store:
        store.map("data", 8)
        store.write("data", 0, b"newstuff")
    wait_ownerless("s", [d])
    a.restart()
    for _ in range(4):
        done = drain(a.address, mirrors=[d])
        assert done.status == NO and images(a) == ["s"], done
        assert "%s knows a newer roster of it" % d.address in done.err
    for _ in range(6):
        b.lose_memory()
        b.restart()
        Store("s", a.address, **PATIENT).close()
    done = run_command("roster", "replace", "s", a.address, b.address, d.address)
    assert done.status not in (OK, USAGE), done
    assert "which has no image in common with this one" in done.err, done
    told = run_command("status", "s", "--connect-timeout", TIMEOUT, mirrors=[a, d])
    assert "in one of a fork of this store" in told.out, told
    told = run_command("drop", "s", a.address)
    assert told.status == NO and "perseas status s LIST,%s" % a.address in told.out, told
    assert "of a fork, and roster remove would open that" in told.out, told
    told = run_command("drop", "s", mirrors=[a, d])
    assert told.status == NO and told.out.count("of a fork of the store") == 1, told
    with Store("s", d.address, **PATIENT) as store:
        store.map("data", 8)
        assert store.read("data", 0, 8) == b"newstuff"


def test_no_image_goes_to_the_machine_of_another_one(mirrors):
    """By their labels all mirrors run on different hosts, but two are containers on one machine."""
    a, b, c, d = (mirrors(1, options=("--label", "host=" + host, "--boot-id", "%032x" % machine))[0]
                  for host, machine in (("h1", 1), ("h2", 2), ("c1", 3), ("c2", 2)))
    fill("s", [a, b], {"data": b"contents"}, **PATIENT)
    done = drain(a.address, mirrors=[d])
    assert done.status == NO and images(a) == ["s"], done
    assert "store 's' stays: nobody can take its image" in done.err
    done = drain(a.address, mirrors=[d, c])
    assert done.status == OK, done
    assert sorted(members("s", [b, c])) == sorted(x.address for x in (b, c))
