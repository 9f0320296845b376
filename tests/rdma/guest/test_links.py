"""Links that are cut, lose packets and are slow, under owners that commit over soft-RoCE."""
import pytest

from teller import LOG, dice, tellers, until  # noqa: F401


# How long to wait for somebody who may be cut off: as the library does by itself.
LINK = "connect-ms=3000"


def books(tellers, daemons, *options):
    desk = tellers.desk()
    desk.open("books", daemons, "create", LINK, *options)
    desk.books()
    return desk


def the_end(tellers, desk, daemons, perseas):
    """Nothing acknowledged is missing, on any mirror."""
    k = desk.check()
    assert k == desk.page.acked
    desk.settle()
    desk.ask("close")
    assert tellers.verify("books", daemons, desk.page) == k
    assert perseas("verify", "books", mirrors=daemons).status == 0


def test_a_mirror_behind_a_cut_link_is_done_without_and_catches_up(mirrors, tellers, nodes,
                                                                   perseas):
    """Each of three in turn; W = 2 commit on, and what was missed is replayed."""
    daemons = mirrors(3, "rdma")
    desk = books(tellers, daemons, "acks=2")
    for mirror in nodes.mirrors:
        desk.run(50)
        nodes.cut(mirror)
        desk.run(100)
        until(lambda: desk.figures()["live"] == 2, "the owner's notice of it")
        replayed = desk.figures()["replayed"]
        desk.run(50)
        assert desk.page.in_doubt == 0
        nodes.mend(mirror)
        desk.work_until_live(3)
        assert desk.figures()["replayed"] >= replayed + 50
    the_end(tellers, desk, daemons, perseas)


def test_an_idle_owner_notices_that_a_link_is_cut(mirrors, tellers, nodes):
    """Nothing is under way: only the heartbeat tells, and only of that mirror."""
    daemons = mirrors(3, "rdma")
    desk = books(tellers, daemons, "acks=2")
    desk.run(10)
    desk.settle()
    nodes.cut(nodes.mirrors[1])
    until(lambda: desk.states()[1][0] == "down", "the owner's notice of it")
    assert [state for state, _ in desk.states()] == ["live", "down", "live"]
    nodes.mend(nodes.mirrors[1])
    until(lambda: desk.all_live(3), "three live mirrors")


def test_the_only_link_is_cut_and_mended(mirrors, tellers, nodes, perseas):
    """The commit under way is in doubt; it is there when the link is."""
    daemons = mirrors(1, "rdma")
    desk = books(tellers, daemons, LOG, "commit-ms=300")
    desk.run(50)
    desk.send("run", 1000000)
    desk.page.advances(20)
    nodes.cut(nodes.mirrors[0])
    until(lambda: desk.page.in_doubt > 0, "a commit in doubt")
    nodes.mend(nodes.mirrors[0])
    desk.page.advances(20)
    desk.page.tell_to_stop()
    desk.answer()
    desk.ask("flush")
    the_end(tellers, desk, daemons, perseas)


@pytest.mark.parametrize("weather", [("delay", "3ms"), ("loss", "2%"),
                                     ("delay", "2ms", "1ms", "loss", "1%", "duplicate", "1%",
                                      "reorder", "5%")], ids=["delay", "loss", "all"])
def test_a_bad_link_delays_and_loses_nothing(mirrors, tellers, nodes, weather, perseas):
    """netem on the ports of two of three mirrors; every commit waits for one of them."""
    daemons = mirrors(3, "rdma")
    desk = books(tellers, daemons, "acks=2")
    desk.run(20)
    for mirror in nodes.mirrors[:2]:
        nodes.netem(mirror, *weather)
    desk.run(100)
    assert desk.page.in_doubt == 0
    for mirror in nodes.mirrors[:2]:
        nodes.calm(mirror)
    try:
        until(lambda: desk.run(10) and desk.all_live(3), "three live mirrors")
    except TimeoutError:
        raise RuntimeError("%s %s" % (desk.states(), desk.figures()))
    the_end(tellers, desk, daemons, perseas)
