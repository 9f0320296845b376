"""Mirrors that are killed, stopped or full while owners work."""
import pytest

from drill import WITH_TLS, rounds, status_of
from teller import LOG, Refused, dice, pieces, random_moment, tellers, until  # noqa: F401

KILLS = 4
ALL_KILLS = rounds(8)
OPEN_KILLS = rounds(20)
# Transactions during which a kill happens.
MANY = {"tcp": 2000, "tls": 2000, "shm": 20000, "rdma": 500}
ENDLESS = 1 << 40                       # until it is told to stop
CREATE_KILLS = rounds(12)
STORES_PER_KILL = 6


def list_of(daemons):
    return ",".join(daemon.address for daemon in daemons)


def kill_while_it_runs(dice, desk, daemon, count, most):
    """Kills the mirror at a random one of the first `most` of `count` transactions that the owner
    runs, or soon after it."""
    goal = desk.page.acked + dice.randrange(1, most)
    desk.send("run", count)
    until(lambda: desk.page.acked >= goal, "transactions")
    daemon.kill9()


# --- kill -9 of a daemon ---

@pytest.mark.parametrize("fabric", WITH_TLS)
def test_a_mirror_of_three_is_killed_and_comes_back_while_its_owner_commits(
        mirrors, tellers, dice, fabric):
    """Each mirror in turn. No commit fails, and missed transactions are replayed."""
    daemons = mirrors(3, fabric)
    desk = tellers.desk()
    desk.open("books", daemons, "create", "acks=2")
    desk.books()
    desk.settle()                       # a mirror without the publish would be copied whole
    for number in range(KILLS):
        daemon = daemons[number % 3]
        kill_while_it_runs(dice, desk, daemon, 600, 300)
        desk.answer()
        until(lambda: desk.figures()["live"] == 2, "the owner's notice of it")
        replayed = desk.figures()["replayed"]
        desk.run(50)
        daemon.restart()
        desk.work_until_live(3)
        assert desk.figures()["replayed"] >= replayed + 50
    figures = desk.figures()
    assert figures["reconnects"] >= KILLS
    assert desk.page.in_doubt == desk.page.error == 0
    k = desk.check()
    assert k == desk.page.acked
    desk.ask("close")
    assert tellers.verify_images("books", daemons, desk.page) == k


def flushes(desk):
    """Returns whether nothing is in doubt any more. A busy mirror may take longer than the short
    timeout."""
    try:
        desk.ask("flush")
    except Refused as refused:
        assert refused.name == "PERSEAS_EINDOUBT"
        return False
    return True


def stop_run(desk):
    """Ends the run of an owner with a short commit timeout: its last commit may be in doubt first,
    and is resolved at the end."""
    desk.page.tell_to_stop()
    try:
        desk.answer()
    except Refused as refused:
        assert refused.name == "PERSEAS_EINDOUBT"
    until(lambda: flushes(desk), "the end of the doubt")


def test_the_only_mirror_is_killed_and_comes_back(mirrors, tellers, dice, fabric):
    """The commit in flight is in doubt until the daemon is back with the same image."""
    daemon, = mirrors(1, fabric)
    desk = tellers.desk()
    desk.open("books", [daemon], "create", LOG, "commit-ms=100")
    desk.books()
    for _ in range(KILLS):
        in_doubt = desk.page.in_doubt
        kill_while_it_runs(dice, desk, daemon, ENDLESS, MANY[fabric])
        until(lambda: desk.page.in_doubt > in_doubt, "a commit in doubt")
        daemon.restart()
        desk.page.advances(20)
        stop_run(desk)
    figures = desk.figures()
    assert figures["reconnects"] >= KILLS and figures["in_doubt"] == 0
    assert desk.check() == desk.page.attempted
    desk.ask("close")
    assert tellers.verify("books", [daemon], desk.page) == desk.page.attempted


def open_to_doubt(desk, daemons):
    """Opens a store with a short commit timeout, so that the next commit is in doubt. Earlier
    commits had the long one."""
    desk.open("doubt", daemons, "create")
    desk.ask("map", "a", 4096)
    desk.ask("publish")
    desk.transaction("a", 0, 8, 1)
    desk.ask("close")
    desk.open("doubt", daemons, "commit-ms=100")
    desk.ask("map", "a", 0)


def test_a_commit_in_doubt_blocks_the_next_until_it_is_flushed(mirrors, tellers, fabric):
    """The only mirror is gone: EINDOUBT, EBLOCKED, and neither after its return."""
    daemon, = mirrors(1, fabric)
    desk = tellers.desk()
    open_to_doubt(desk, [daemon])
    daemon.kill9()
    until(lambda: desk.figures()["live"] == 0, "the owner's notice of it")
    desk.ask("begin")
    desk.ask("range", "a", 0, 8)
    desk.ask("store", "a", 0, 8, 2)
    assert desk.refused("commit").name == "PERSEAS_EINDOUBT"
    assert desk.refused("begin").name == "PERSEAS_EBLOCKED"
    assert desk.refused("flush").name == "PERSEAS_EINDOUBT"
    daemon.restart()
    until(lambda: desk.figures()["live"] == 1, "the mirror's return")
    until(lambda: flushes(desk), "the end of the doubt")
    desk.ask("begin")
    desk.ask("range", "a", 8, 8)
    desk.ask("store", "a", 8, 8, 3)
    try:
        desk.ask("commit")
    except Refused as refused:
        assert refused.name == "PERSEAS_EINDOUBT"
        until(lambda: flushes(desk), "the next one")
    desk.ask("close")
    desk.open("doubt", [daemon])
    desk.ask("map", "a", 0)
    assert [desk.ask("load", "a", at) for at in (0, 8)] == ["2", "3"]


def test_status_tells_that_a_commit_is_in_doubt(mirrors, tellers, perseas):
    """Two of three mirrors die and come back; the third one is told about the doubt."""
    daemons = mirrors(3)
    desk = tellers.desk()
    open_to_doubt(desk, daemons)

    def told():
        return (status_of("doubt", daemons)["owner"] or {}).get("doubt_ms")

    until(lambda: told() == 0, "an owner without doubts")
    assert "in doubt" not in perseas("status", "doubt", mirrors=daemons).out
    for daemon in daemons[1:]:
        daemon.kill9()
    desk.ask("begin")
    desk.ask("range", "a", 0, 8)
    desk.ask("store", "a", 0, 8, 2)
    assert desk.refused("commit").name == "PERSEAS_EINDOUBT"
    until(told, "word of it")
    assert "a commit has been in doubt for " in perseas("status", "doubt", mirrors=daemons).out
    for daemon in daemons[1:]:
        daemon.restart()
    until(lambda: told() == 0, "word that it is over")
    until(lambda: flushes(desk), "the end of the doubt")
    desk.ask("close")


@pytest.mark.parametrize("fabric", WITH_TLS)
def test_a_mirror_that_lost_its_memory_is_made_anew_while_its_owner_goes_on(
        mirrors, tellers, fabric):
    """The mirror's host was restarted while the owner continued."""
    daemons = mirrors(3, fabric)
    desk = tellers.desk()
    desk.open("books", daemons, "create", LOG)
    desk.books()
    desk.run(300)
    daemons[1].lose_memory()
    desk.run(300)
    daemons[1].restart()
    desk.run(300)
    until(lambda: desk.figures()["resyncs"] == 1 and desk.states()[1][0] == "live",
          "a whole copy on the mirror")
    desk.ask("close")
    desk.open("books", daemons)
    assert desk.figures()["mended_whole"] == 0
    assert desk.books() == desk.check() == 900
    desk.ask("close")
    daemons[0].kill9()
    daemons[2].kill9()
    daemons[0].restart()
    assert tellers.verify("books", daemons, desk.page) == 900
    daemons[2].restart()
    assert tellers.verify_images("books", daemons, desk.page) == 900


@pytest.mark.parametrize("fabric", WITH_TLS)
def test_a_mirror_that_is_killed_while_an_owner_opens_is_done_without(
        mirrors, tellers, dice, fabric):
    """One of three, at any step of the open; the other two are enough."""
    daemons = mirrors(3, fabric)
    desk = tellers.desk()
    for number in range(OPEN_KILLS):
        victim = dice.choice(daemons)
        desk.send("open", "books", list_of(daemons), "create" if number == 0 else "takeover", LOG)
        if number > 0:
            random_moment(dice, 0.01)
            victim.kill9()
        desk.answer()
        assert desk.books() == desk.check() == 20 * number
        desk.run(20)
        desk.ask("close")
        victim.restart()


def test_the_only_mirror_that_is_killed_while_an_owner_opens_is_missed_by_name(
        mirrors, tellers, dice, fabric):
    """Without it no state can be chosen: the error names the mirror, whatever the step."""
    daemon, = mirrors(1, fabric)
    desk = tellers.desk()
    desk.open("books", [daemon], "create", LOG)
    desk.books()
    desk.run(20)
    desk.ask("close")
    for _ in range(OPEN_KILLS):
        desk.send("open", "books", daemon.address, "open-ms=300", "connect-ms=300")
        random_moment(dice, 0.005)
        daemon.kill9()
        try:
            desk.answer()
            desk.ask("close")
        except Refused as refused:
            names = ["PERSEAS_EUNREACHABLE", "PERSEAS_EQUORUM", "PERSEAS_EFENCED"]
            # It was killed between its answer and the connection to its RDMA port.
            if "nobody listens for RDMA" in refused.text:
                names.append("PERSEAS_ERDMA")
            assert refused.name in names
            assert daemon.address in refused.text
        daemon.restart()
    desk.open("books", [daemon])
    assert desk.books() == desk.check() == 20


@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize("fabric", WITH_TLS)
def test_everything_is_killed_at_once_and_comes_back(mirrors, tellers, dice, fabric, count):
    """Kills every daemon and the owner while it commits. What the daemons had is in memory."""
    daemons = mirrors(count, fabric)
    page = tellers.page()
    for _ in range(ALL_KILLS):
        owner = tellers.run("books", daemons, "create", LOG, "acks=%d" % count, page=page)
        owner.advances(dice.randrange(1, 400))
        for process in dice.sample([owner, *daemons], count + 1):
            process.kill9()
        for daemon in daemons:
            daemon.restart()
        assert page.acked <= tellers.verify("books", daemons, page) <= page.acked + 1


# --- kill -9 of a daemon while stores are made ---

STEPS = ("open", "map a", "map b", "publish", "close")


def make_store(desk, name, daemon):
    """Sends all commands that create a store, without waiting for answers."""
    desk.send("open", name, daemon.address, "create", "log=4096", "connect-ms=300", "open-ms=300",
              "commit-ms=100")
    desk.send("map", "a", 4096)
    desk.send("map", "b", 8192)
    desk.send("publish")
    desk.send("close")


def take_answers(desk, names):
    """Returns {name: {step: whether it was acknowledged}}."""
    def acknowledged():
        try:
            desk.answer()
            return True
        except Refused:
            return False

    return {name: {step: acknowledged() for step in STEPS} for name in names}


def whole_or_not_there(desk, name, daemon, done):
    """What was acknowledged is there. Other segments are complete or absent, because segments
    mapped together are created together. On a slow machine a map may time out by itself."""
    try:
        desk.open(name, [daemon])
    except Refused as refused:
        assert refused.name == "PERSEAS_ENOSTORE" and not done["open"], (name, done, str(refused))
        return False
    sizes = {}
    for segment, size in (("a", 4096), ("b", 8192)):
        try:
            desk.ask("map", segment, 0)
            sizes[segment] = size
        except Refused as refused:
            assert refused.name == "PERSEAS_ENOSEGMENT", (name, str(refused))
    mapped = {segment for segment in ("a", "b") if done["map " + segment]}
    assert set(sizes) == mapped or (not sizes and not done["publish"]), (name, done, sizes)
    for segment, size in sizes.items():
        desk.transaction(segment, size - 1, 1, 7)
    desk.ask("close")
    return True


def test_a_daemon_killed_while_stores_are_made_has_them_whole_or_not_at_all(
        mirrors, tellers, dice, fabric):
    """kill -9 at a random step of creating several stores; each store is opened afterward."""
    daemon, = mirrors(1, fabric)
    desk = tellers.desk()
    found = 0
    for number in range(CREATE_KILLS):
        names = ["store-%d-%d" % (number, i) for i in range(STORES_PER_KILL)]
        enough = len(list(daemon.memory.glob("*/*"))) + dice.randrange(1, 4 * STORES_PER_KILL)
        for name in names:
            make_store(desk, name, daemon)
        # On a busy machine creating a store may have timed out.
        until(lambda: len(list(daemon.memory.glob("*/*"))) >= enough or
              desk.answers() == len(STEPS) * len(names), "new pieces")
        daemon.kill9()
        done = take_answers(desk, names)
        daemon.restart()
        assert "damaged" not in daemon.log()
        found += sum(whole_or_not_there(desk, name, daemon, done[name]) for name in names)
        assert not list(daemon.memory.glob("*/*.new"))
    assert 0 < found < CREATE_KILLS * STORES_PER_KILL


# --- mirrors that do not answer ---

# With this timeout, a commit that waited for a stopped mirror would take longer than a drill.
PATIENT = ("connect-ms=600000", "commit-ms=600000", "mirror-ms=600000")


def test_a_stopped_mirror_stops_nobody_and_is_caught_up(mirrors, tellers):
    """SIGSTOP of one of three mirrors, and SIGCONT before the ring runs out of room: the mirror
    missed nothing."""
    daemons = mirrors(3)
    desk = tellers.desk()
    desk.open("books", daemons, "create", *PATIENT)
    desk.books()
    for daemon in daemons:
        desk.run(100)
        daemon.stop()
        desk.run(2000)
        assert desk.page.in_doubt == 0 and desk.figures()["paced"] == 0
        assert desk.states()[daemons.index(daemon)][1] < desk.figures()["seq"]
        daemon.cont()
        desk.settle()
    assert desk.figures()["dropped"] == 0
    assert desk.check() == desk.page.acked


def test_a_stopped_mirror_that_lags_is_dropped_and_copied_while_its_owner_goes_on(
        mirrors, tellers, perseas):
    """With a ring of 16 MiB the mirror is soon in the way. One commit waits for it, and then all
    continue without it."""
    daemons = mirrors(3)
    desk = tellers.desk()
    desk.open("books", daemons, "create", "ring=16777216", *PATIENT)
    desk.books()
    desk.run(100)
    daemons[2].stop()
    until(lambda: desk.run(100) and desk.states()[2][0] == "down", "a mirror that is dropped")
    assert desk.figures()["dropped"] == 1
    desk.run(2000)
    figures = desk.figures()
    assert desk.page.in_doubt == 0 and (figures["paced"], figures["live"]) == (1, 2)
    daemons[2].cont()
    until(lambda: desk.run(10) and desk.states()[2][0] == "live", "a whole copy on the mirror")
    assert desk.figures()["resyncs"] == 1
    k = desk.run(100)
    desk.settle()
    desk.ask("close")
    desk.open("books", daemons)
    figures = desk.figures()
    mended = sum(figures["mended_" + how] for how in ("forward", "delta", "whole"))
    assert (figures["live"], mended) == (3, 0)
    assert desk.books() == desk.check() == k
    desk.ask("close")
    assert perseas("verify", "books", mirrors=daemons).status == 0
    daemons[0].kill9()
    assert tellers.verify("books", daemons, desk.page) == k


def test_nothing_is_acknowledged_while_fewer_than_w_mirrors_answer(mirrors, tellers):
    """W = 2 and two of three mirrors are stopped: what only the third has was not acknowledged.
    Then the third dies with the owner, and the other two have everything acknowledged."""
    daemons = mirrors(3)
    desk = tellers.desk()
    desk.open("books", daemons, "create", LOG, "acks=2", "commit-ms=100")
    desk.books()
    acked = desk.run(100)
    in_doubt = desk.page.in_doubt
    for daemon in daemons[1:]:
        daemon.stop()
    desk.send("run", 100)
    until(lambda: desk.page.in_doubt > in_doubt, "a commit in doubt")
    assert (desk.page.acked, desk.page.attempted) == (acked, acked + 1)
    desk.kill9()
    daemons[0].kill9()
    for daemon in daemons[1:]:
        daemon.cont()
    assert tellers.verify("books", daemons, desk.page) in (acked, acked + 1)


def test_a_stopped_daemon_is_not_noticed_over_shm(mirrors, tellers):
    """The mirror's processor takes no part in a commit."""
    daemons = mirrors(3, "shm")
    desk = tellers.desk()
    desk.open("books", daemons, "create", LOG, "acks=3", *PATIENT)
    desk.books()
    for daemon in daemons:
        daemon.stop()
    desk.run(20000)
    assert [desk.states()[i] for i in range(3)] == [("live", desk.figures()["seq"])] * 3
    for daemon in daemons:
        daemon.cont()
    assert desk.check() == 20000 and desk.page.in_doubt == 0


# --- the limit of memory ---

LIMIT = ("--max-memory", "512K")


def test_a_store_that_one_mirror_has_no_memory_for_is_made_on_none(mirrors, tellers, fabric,
                                                                    perseas):
    """Two mirrors have room for a log of 16 MiB, the third does not."""
    daemons = mirrors(2, fabric) + mirrors(1, fabric, options=LIMIT)
    desk = tellers.desk()
    for command in ("create", "open"):
        words = ["create"] if command == "open" else []
        refused = desk.refused(command, "large", list_of(daemons), *words)
        assert refused.name == "PERSEAS_EMIRRORMEM"
        assert daemons[2].address in refused.text and "--max-memory" in refused.text
    listed = perseas("ls", mirrors=daemons)
    assert listed.status == 0 and "large" not in listed.out
    assert not [path for daemon in daemons for path in daemon.memory.iterdir() if path.is_dir()]
    desk.open("small", daemons, "create", "log=4096")


def test_a_segment_that_one_mirror_has_no_memory_for_is_made_on_none(mirrors, tellers, fabric):
    """The owner of a small store asks for a megabyte, then for less, while it commits."""
    daemons = mirrors(2, fabric) + mirrors(1, fabric, options=LIMIT)
    desk = tellers.desk()
    desk.open("store", daemons, "create", "log=65536")
    desk.ask("map", "a", 4096)
    desk.ask("publish")
    desk.transaction("a", 0, 8, 1)
    before = pieces(daemons)
    for _ in range(3):
        refused = desk.refused("map", "b", 1 << 20)
        assert refused.name == "PERSEAS_EMIRRORMEM"
        assert daemons[2].address in refused.text and "--max-memory" in refused.text
        after = pieces(daemons)
        assert after.keys() == before.keys()
        desk.transaction("a", 0, 8, 2)
    desk.ask("map", "b", 65536)
    desk.ask("publish")
    desk.transaction("b", 0, 8, 3)
    desk.ask("close")
    desk.open("store", daemons)
    for segment, byte in (("a", 2), ("b", 3)):
        desk.ask("map", segment, 0)
        assert desk.ask("load", segment, 0) == str(byte)
