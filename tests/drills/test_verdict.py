"""The first line of perseas status: what is possible now, and which loss would end that."""
import os
import socket

import pytest
import wire

from binding import CREATE, Store
from drill import NO, OK, SECONDS, at_hosts, fill, mirror_list, wait_for
from test_versions import BEFORE


def verdict(perseas, daemons):
    """Returns the line, and its JSON form."""
    done = perseas("status", "s", mirrors=daemons)
    told = perseas("status", "s", "--json", mirrors=daemons).json()["verdict"]
    del told["unheard"], told["next_loss"]
    return done.out.splitlines()[0], told


def told(commit, opens, hurts=()):
    return {"can_commit": commit, "can_open": opens, "hurts": [d.address for d in hurts]}


WHY = " (too few images are seen to know the newest state)"


@pytest.mark.parametrize("owned", [False, True], ids=["no owner", "owner"])
def test_each_loss_of_three_mirrors_is_judged(perseas, mirrors, owned):
    """W = 2: one mirror may fail, then neither of the two left, and then nothing is left to do. A
    live owner reports which mirrors it reaches."""
    daemons = at_hosts(mirrors, "h1", "h2", "h3")
    a, b, c = daemons
    store = Store("s", mirror_list(daemons), flags=CREATE, acks=2)
    store.map("accounts", 4096)
    store.publish()
    if not owned:
        store.close()
    wait_for(lambda: verdict(perseas, daemons) == (
        "can commit: yes; can open: yes; next loss that hurts: none alone", told(True, True)),
        SECONDS, "three that are live")
    b.kill9()
    wait_for(lambda: verdict(perseas, daemons) == (
        "can commit: yes; can open: yes; next loss that hurts: any of %s, %s" % (
            a.address, c.address), told(True, True, (a, c))), SECONDS, "two that are live")
    c.kill9()
    wait_for(lambda: verdict(perseas, daemons) == (
        "can commit: no; can open: no" + WHY, told(False, False)), SECONDS, "one that is live")
    if owned:
        b.restart()
        c.restart()
        store.close()


@pytest.mark.parametrize("spelt", [pytest.param("localhost", marks=pytest.mark.needs("localhost")),
                                   "tcp://127.0.0.1"])
def test_an_owner_may_have_other_names_of_its_mirrors(perseas, mirrors, spelt):
    """The store was created with numeric addresses, and its owner has opened it by names: all is
    well, and with W = n each loss hurts."""
    daemons = mirrors(2)
    fill("s", daemons, {"accounts": b"contents"})
    names = ",".join("%s:%s" % (spelt, d.address.rpartition(":")[2]) for d in daemons)
    with Store("s", names):
        wait_for(lambda: verdict(perseas, daemons)[1] == told(True, True, daemons), SECONDS,
                 "an owner that is live")


def test_commits_and_opens_are_judged_apart(perseas, mirrors):
    """W = 1 of two: an owner continues with one mirror, but nobody can open the store with it.
    Without an owner, a commit needs an open, and so both mirrors."""
    daemons = mirrors(2)
    a, b = daemons
    with Store("s", mirror_list(daemons), flags=CREATE, acks=1) as store:
        store.map("accounts", 4096)
        store.publish()
        wait_for(lambda: verdict(perseas, daemons)[1] == told(True, True, (a, b)), SECONDS,
                 "a verdict on two")
        b.kill9()
        wait_for(lambda: verdict(perseas, daemons) == (
            "can commit: yes; can open: no%s; next loss that hurts: %s" % (WHY, a.address),
            told(True, False, (a,))), SECONDS, "a verdict on one")
        b.restart()
        wait_for(lambda: verdict(perseas, daemons)[1] == told(True, True, (a, b)), SECONDS,
                 "a verdict on two again")


def test_an_open_and_its_refusal_have_one_reason(perseas, mirrors):
    """R = 2 of four answer, so the state is known, but W = 3 are needed to hold it."""
    daemons = mirrors(4)
    assert perseas("create", "s", "--acks", "3", mirrors=daemons).status == OK
    for each in daemons[2:]:
        each.kill9()
    told = perseas("status", "s", mirrors=daemons).out
    assert "can open: no (too few mirrors can come to hold the newest state)" in told, told
    done = perseas("recover", "s", mirrors=daemons)
    assert done.status == NO and "2 of 4 mirrors hold the newest state" in done.err, done


def test_a_store_on_one_mirror_hangs_on_it(perseas, mirrors):
    daemon, = mirrors(1)
    fill("s", [daemon], {"accounts": b"contents"})
    assert verdict(perseas, [daemon]) == (
        "can commit: yes; can open: yes; next loss that hurts: " + daemon.address,
        told(True, True, (daemon,)))


def test_how_much_the_owner_still_reads_is_said(perseas, mirrors):
    """An owner that recovers on demand: each loss hurts as much as without that."""
    daemon, = mirrors(1)
    fill("s", [daemon], {"accounts": b"contents"})
    owner = wire.Control(daemon.address)
    owner.claim("s", 1000)
    whole = "can commit: yes; can open: yes; next loss that hurts: " + daemon.address
    for missing, clause in ((24 << 20, "; its owner still reads 24.0 MiB from mirrors"), (0, "")):
        figures = wire.field(57, missing)
        assert owner.ask(wire.field(7, wire.field(3, figures))).get(1, 0) == 0
        assert verdict(perseas, [daemon]) == (whole + clause, told(True, True, (daemon,)))
        shown = perseas("status", "s", "--json", mirrors=[daemon]).json()
        assert shown["owner"]["missing"] == missing


def test_the_new_mirror_of_a_change_is_asked_too(perseas, mirrors):
    """The previous list does not have it, but it counts in the verdict."""
    daemons = mirrors(4)
    fill("s", daemons[:3], {"accounts": b"contents"}, acks=2)
    change = perseas("roster", "replace", "s", mirror_list(daemons[:3]), daemons[0].address,
                     daemons[3].address)
    assert change.status == 0, change
    shown = perseas("status", "s", "--json", mirrors=daemons[:3]).json()
    assert [m["address"] for m in shown["mirrors"]] == [d.address for d in daemons]
    assert shown["mirrors"][3]["listed"] and all(m["seen"] for m in shown["roster"]["members"])
    del shown["verdict"]["next_loss"]
    assert shown["verdict"] == {**told(True, True), "unheard": []}


# --- mirrors that fail together ---

def test_the_host_of_the_owner_is_named(perseas, mirrors):
    """If a mirror is on it. The owner runs here, and the other mirrors appear to run elsewhere."""
    daemons = mirrors(1, options=("--label", "host=h1")) + at_hosts(mirrors, "h2", "h3")

    def told():
        line, = (line for line in perseas("status", "s", mirrors=daemons).out.splitlines()
                 if line.startswith("live owner: "))
        shown = perseas("status", "s", "--json", mirrors=daemons).json()
        return line.rpartition(", epoch 2")[2], shown["beside_owner"]

    fill("s", daemons, {"accounts": b"contents"})
    assert perseas("status", "s", "--json", mirrors=daemons).json()["beside_owner"] == []
    with Store("s", mirror_list(daemons)):
        here = (", on host h1 with mirror " + daemons[0].address, [daemons[0].address])
        wait_for(lambda: told() == here, SECONDS, "an owner that tells its boot")


def loss(perseas, daemons, hurts=()):
    """Returns the loss that the line names, and in JSON the smallest loss for a commit and for an
    open."""
    done = perseas("status", "s", mirrors=daemons)
    told = perseas("status", "s", "--json", mirrors=daemons).json()["verdict"]
    assert told["hurts"] == [daemon.address for daemon in hurts]
    return (done.out.splitlines()[0].partition("can open: yes; ")[2], told["next_loss"]["commit"],
            told["next_loss"]["open"])


def of(domain, name, daemons, known=True):
    return {"known": known, "of": domain, "name": name, "mirrors": [d.address for d in daemons]}


def test_two_mirrors_of_one_host_are_lost_together(perseas, mirrors):
    """By their labels, without an owner and with one. Each alone may be lost."""
    daemons = at_hosts(mirrors, "h1", "h2", "h2")
    _, b, c = daemons
    fill("s", daemons, {"accounts": b"contents"})
    host = of("host", "h2", (b, c))
    line = "next loss that hurts: host h2: mirrors %s and %s" % (b.address, c.address)
    assert loss(perseas, daemons) == (line, host, host)
    with Store("s", mirror_list(daemons)):
        wait_for(lambda: loss(perseas, daemons) == (line, host, host), SECONDS, "a live owner")


def test_mirrors_without_labels_are_on_the_host_that_they_run_on(perseas, mirrors):
    """All of these run here."""
    daemons = mirrors(3)
    fill("s", daemons, {"accounts": b"contents"})
    host = of("host", socket.gethostname(), daemons)
    line = "next loss that hurts: host %s: mirrors %s, %s and %s" % (
        socket.gethostname(), *(daemon.address for daemon in daemons))
    assert loss(perseas, daemons) == (line, host, host)


def contain(daemon, first):
    """Restarts it in its own namespaces, through this shell command."""
    daemon.mirror.wrap = ["unshare", "--uts", "--ipc", "--mount",
                          *(["--map-root-user"] if os.geteuid() else []),
                          "sh", "-euc", first + '; exec "$@"', "sh"]
    daemon.restart()


@pytest.mark.needs("own_namespaces")
def test_containers_on_one_machine_are_seen_as_such(perseas, mirrors):
    """Each has its own host name, but the boot id is the machine's."""
    daemons = mirrors(3)
    for daemon, name in zip(daemons, ("c1", "c2", "c3")):
        contain(daemon, "hostname " + name)
    fill("s", daemons, {"accounts": b"contents"})
    machine = of("machine", None, daemons)
    line = "next loss that hurts: one machine (hosts c1, c2, c3): mirrors %s, %s and %s" % tuple(
        daemon.address for daemon in daemons)
    assert loss(perseas, daemons) == (line, machine, machine)


def test_racks_and_zones_are_lost_with_their_mirrors(perseas, mirrors):
    """Of two domains, the one with fewer mirrors is named."""
    places = (("h1", "r1", "z1"), ("h2", "r2", "z2"), ("h3", "r2", "z2"), ("h4", "r3", "z2"),
              ("h5", "r4", "z2"))
    daemons = [mirrors(1, options=("--boot-id", "%032x" % number, "--label", "host=" + host,
                                   "--label", "rack=" + rack, "--label", "zone=" + zone))[0]
               for number, (host, rack, zone) in enumerate(places, 1)]
    fill("s", daemons, {"accounts": b"contents"}, acks=3)
    zone = of("zone", "z2", daemons[1:])
    assert loss(perseas, daemons)[1:] == (zone, zone)
    daemons[4].kill9()
    rack = of("rack", "r2", daemons[1:3])
    line = "next loss that hurts: rack r2: mirrors %s and %s" % (daemons[1].address,
                                                                 daemons[2].address)
    assert loss(perseas, daemons) == (line, rack, rack)


def test_commits_and_opens_may_end_with_different_losses(perseas, mirrors):
    """W = 1 of two: an owner continues with either mirror, and nobody opens the store with one."""
    daemons = at_hosts(mirrors, "h1", "h1")
    fill("s", daemons, {"accounts": b"contents"}, acks=1)
    line = ("next loss that stops commits: host h1: mirrors %s and %s; next loss that stops an "
            "open: any of %s, %s" % (2 * tuple(daemon.address for daemon in daemons)))
    told = (line, of("host", "h1", daemons), of("mirror", None, daemons))
    with Store("s", mirror_list(daemons)):
        wait_for(lambda: loss(perseas, daemons, daemons) == told, SECONDS, "a live owner")


def test_a_mirror_of_a_version_before_labels_tells_its_boot(perseas, mirrors):
    daemons = at_hosts(mirrors, "h1", "h2", "h2")
    for daemon in daemons:
        daemon.mirror.options += ["--protocol=%d" % BEFORE]
        daemon.restart()
    fill("s", daemons, {"accounts": b"contents"})
    machine = of("machine", None, daemons[1:])
    line = "next loss that hurts: one machine: mirrors %s and %s" % (daemons[1].address,
                                                                     daemons[2].address)
    assert loss(perseas, daemons) == (line, machine, machine)


@pytest.mark.needs("own_namespaces")
def test_a_mirror_that_does_not_tell_where_it_runs_may_be_on_any_host(perseas, mirrors):
    """Its version has no labels, and it cannot read the boot id. So the line does not say that any
    single host may be lost."""
    daemons = at_hosts(mirrors, "h1", "h2") + mirrors(1, options=("--protocol=%d" % BEFORE,))
    contain(daemons[2], "mount --bind /dev/null /proc/sys/kernel/random/boot_id")
    fill("s", daemons, {"accounts": b"contents"})
    unknown = of(None, None, (), known=False)
    line = "next loss that hurts: not known, since the host of %s is not told" % daemons[2].address
    assert loss(perseas, daemons) == (line, unknown, unknown)


def test_the_word_of_an_owner_is_no_answer_of_a_mirror(perseas, mirrors, request):
    """Two of three mirrors are stopped (SIGSTOP), and their owner has not noticed and reports them
    as live. With only one of them stopped, the two that answer are enough for a commit."""
    daemons = mirrors(3)
    a, b, c = daemons
    fill("s", daemons, {"accounts": b"contents"})
    hurried = ("--connect-timeout", 1000)

    def judged():
        told = perseas("status", "s", *hurried, "--json", mirrors=daemons).json()["verdict"]
        return told["can_commit"], told["can_open"], told["unheard"], set(told["hurts"])

    with Store("s", mirror_list(daemons), mirror_timeout_ms=1000 * SECONDS) as owner:
        owner.map("accounts")
        wait_for(lambda: verdict(perseas, daemons)[1] == told(True, True), SECONDS, "all are live")
        for daemon in (b, c):
            request.addfinalizer(daemon.cont)
        b.stop()
        wait_for(lambda: judged() == (True, True, [b.address], {a.address, c.address}), SECONDS,
                 "a verdict on two that answer")
        c.stop()
        wait_for(lambda: judged() == (None, False, [b.address, c.address], set()), SECONDS,
                 "a verdict on one that answers")
        line = ("can commit: not known (no answer from %s, %s; the owner called them live " % (
            b.address, c.address))
        wait_for(lambda: perseas("status", "s", *hurried, mirrors=daemons).out.startswith(line),
                 SECONDS, line)
        wait_for(lambda: [store["can_commit"] for store in perseas(
            "status", "--all", *hurried, "--json", mirrors=[a]).json()["stores"]] == [None],
                 SECONDS, "a verdict on all stores")
        b.cont()
        c.cont()
