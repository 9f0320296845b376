"""The first line of perseas status: what can be done now, and which loss would end that."""
import pytest
import wire

from binding import CREATE, Store
from drill import SECONDS, fill, mirror_list, wait_for


def verdict(perseas, daemons):
    """The line, and what a program is told."""
    done = perseas("status", "s", mirrors=daemons)
    told = perseas("status", "s", "--json", mirrors=daemons).json()["verdict"]
    del told["unheard"]
    return done.out.splitlines()[0], told


def told(commit, opens, hurts=()):
    return {"can_commit": commit, "can_open": opens, "hurts": [d.address for d in hurts]}


WHY = " (too few images are seen to know the newest state)"


@pytest.mark.parametrize("owned", [False, True], ids=["no owner", "owner"])
def test_each_loss_of_three_mirrors_is_judged(perseas, mirrors, owned):
    """W = 2: one may fail, then neither of the two that are left, and then nothing is left to do. A
    live owner says itself whom it can reach."""
    daemons = mirrors(3)
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
    """The store was made by numbers, and its owner has opened it by names: all is well, and each
    loss hurts where W is all."""
    daemons = mirrors(2)
    fill("s", daemons, {"accounts": b"contents"})
    names = ",".join("%s:%s" % (spelt, d.address.rpartition(":")[2]) for d in daemons)
    with Store("s", names):
        wait_for(lambda: verdict(perseas, daemons)[1] == told(True, True, daemons), SECONDS,
                 "an owner that is live")


def test_commits_and_opens_are_judged_apart(perseas, mirrors):
    """W = 1 of two: an owner goes on with one, and nobody can open the store with it. Without an
    owner, an open that needs both is what a commit needs, too."""
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


def test_a_store_on_one_mirror_hangs_on_it(perseas, mirrors):
    daemon, = mirrors(1)
    fill("s", [daemon], {"accounts": b"contents"})
    assert verdict(perseas, [daemon]) == (
        "can commit: yes; can open: yes; next loss that hurts: " + daemon.address,
        told(True, True, (daemon,)))


def test_how_much_the_owner_still_reads_is_said(perseas, mirrors):
    """An owner that recovers on demand: each loss hurts as without that."""
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
    """Which the list of before does not name: it counts in the verdict."""
    daemons = mirrors(4)
    fill("s", daemons[:3], {"accounts": b"contents"}, acks=2)
    change = perseas("roster", "replace", "s", mirror_list(daemons[:3]), daemons[0].address,
                     daemons[3].address)
    assert change.status == 0, change
    shown = perseas("status", "s", "--json", mirrors=daemons[:3]).json()
    assert [m["address"] for m in shown["mirrors"]] == [d.address for d in daemons]
    assert shown["mirrors"][3]["listed"] and all(m["seen"] for m in shown["roster"]["members"])
    assert shown["verdict"] == {**told(True, True), "unheard": []}


def test_the_word_of_an_owner_is_no_answer_of_a_mirror(perseas, mirrors, request):
    """Two of three mirrors are stopped (SIGSTOP), and their owner has not noticed: it calls them
    live. With one of them stopped, the two that answer are enough for a commit."""
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
