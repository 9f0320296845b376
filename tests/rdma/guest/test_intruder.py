"""Peers that connect to a mirror's queue pairs and are no owner, or no longer one, on soft-RoCE."""
import os
import subprocess

import pytest

import wire
from drill import BUILD, die_with_parent, fill, hosts, wait_for
from rules import DENIED, SOMEBODIES, Rules, all_but, requests
from teller import LOG, tellers  # noqa: F401
from watching import Watch, options as watched

USED_TOKEN = 4
SECONDS = 30
# What is told of a write first depends on whether the mirror's farewell came before it.
CUT = ("transport retry counter exceeded", "Work Request Flushed Error", "remote access error",
       "remote invalid request error")


class Intruder:
    """tests/rdma/intruder_verbs.c"""

    def __init__(self, keys, version=wire.DATA_VERSION, port=None, token=None):
        words = [BUILD / "tests/rdma/intruder", hosts(1)[0], port or keys.port,
                 (token or keys.token).hex(), version]
        self.process = subprocess.Popen([str(w) for w in words], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True,
                                        preexec_fn=die_with_parent)
        self.said = self.process.stdout.readline().strip()

    def ask(self, *words):
        self.process.stdin.write(" ".join(str(w) for w in words) + "\n")
        self.process.stdin.flush()
        return self.process.stdout.readline().strip()

    def write(self, region, length=64, offset=0, key=None):
        return self.ask("write", region.address + offset, region.key if key is None else key,
                        length, 0xee)

    def read(self, region, length=64, offset=0):
        return self.ask("read", region.address + offset, region.key, length)

    def end(self):
        self.process.stdin.close()
        self.process.wait(SECONDS)
        self.process.stdout.close()


@pytest.fixture
def intruder():
    """intruder(keys, ...): an Intruder, ended with the test."""
    started = []

    def start(*words, **options):
        started.append(Intruder(*words, **options))
        return started[-1]

    yield start
    for each in started:
        each.end()


@pytest.fixture
def daemon(mirrors):
    """A mirror with the stores "a" and "b", which nobody has open."""
    daemon, = mirrors(1, "rdma")
    for name in "ab":
        fill(name, [daemon], {"data": b"kept" * 4096})
    return daemon


def claimed(daemon, store="a", epoch=50):
    """The control connection, which holds the claim as long as it is there, and the keys."""
    control = wire.Control(daemon.mirror.tcp)
    return control, control.keys(store, epoch)


def content(daemon, store):
    """What the mirror has in its files."""
    return {path.name.partition(".")[0]: path.read_bytes()
            for path in (daemon.memory / store).iterdir() if not path.name.startswith("promise")}


def test_an_owner_writes_and_reads_what_it_was_granted(daemon, intruder):
    """The tool is able to do what the other tests show to be refused."""
    _control, keys = claimed(daemon)
    owner = intruder(keys)
    assert owner.said == "connected"
    assert owner.write(keys.regions[wire.SEGMENT]) == "ok"
    assert owner.read(keys.regions[wire.PROMISE]) == "ok"
    assert content(daemon, "a")["segment-0"][:64] == b"\xee" * 64


def test_a_token_opens_one_queue_pair(daemon, intruder):
    """Used again while the first lives, and after it has gone."""
    _control, keys = claimed(daemon)
    first = intruder(keys)
    assert first.said == "connected"
    assert intruder(keys).said == "refused %d" % USED_TOKEN
    assert first.write(keys.regions[wire.SEGMENT]) == "ok"


def test_wrong_tokens_and_versions_are_refused_by_name(daemon, intruder):
    """Random, of a session that did not ask for RDMA, and of another version."""
    control, keys = claimed(daemon)
    assert intruder(keys, token=os.urandom(16)).said == "refused %d" % wire.BAD_TOKEN
    assert intruder(keys, version=wire.DATA_VERSION + 1).said == "refused %d" % wire.BAD_VERSION
    plain = wire.Control(daemon.mirror.tcp).claim("b", 50)
    assert intruder(keys, token=plain).said == "refused %d" % wire.BAD_TOKEN
    assert intruder(keys).said == "connected"
    assert control.keys("a", 51).token != keys.token


def test_nobody_listens_at_a_wrong_port(daemon, intruder):
    """The connection manager of the mirror refuses; no token gets anywhere."""
    _control, keys = claimed(daemon)
    assert intruder(keys, port=keys.port - 1).said == "refused -1"


@pytest.mark.parametrize("offset,length", [(-64, 64), (1 << 40, 64), (0, 1 << 20)])
def test_nothing_outside_a_region_is_reached(daemon, intruder, offset, length):
    """Before it, far behind it, and from inside to behind its end."""
    _control, keys = claimed(daemon)
    before = content(daemon, "a")
    region = keys.regions[wire.SEGMENT]
    assert intruder(keys).write(region, length, offset) == "remote access error"
    after = content(daemon, "a")
    assert after["header"] == before["header"]
    assert {n: c for n, c in after.items() if n != "segment-0"} == \
        {n: c for n, c in before.items() if n != "segment-0"}


def test_the_promise_is_for_reading(daemon, intruder):
    _control, keys = claimed(daemon)
    assert intruder(keys).write(keys.regions[wire.PROMISE]) == "remote access error"


def test_a_key_is_of_no_use_to_the_owner_of_another_store(daemon, intruder):
    """A foreign queue pair: another protection domain."""
    _control, keys = claimed(daemon)
    _other, foreign = claimed(daemon, "b")
    before = content(daemon, "a")
    owner = intruder(foreign)
    assert owner.said == "connected"
    assert owner.write(keys.regions[wire.SEGMENT]) == "remote access error"
    assert content(daemon, "a") == before


def test_a_key_is_of_no_use_after_a_takeover(daemon, intruder):
    """The queue pair is gone when the claim has been answered, and the token opens no other."""
    _control, keys = claimed(daemon)
    zombie = intruder(keys)
    region = keys.regions[wire.SEGMENT]
    assert zombie.write(region) == "ok"
    _successor, _keys = claimed(daemon, epoch=60)
    before = content(daemon, "a")
    assert zombie.write(region) in CUT
    assert zombie.ask("more", keys.token.hex()) == "refused %d" % wire.BAD_TOKEN
    assert content(daemon, "a") == before


def test_an_owner_that_sends_a_message_loses_its_queue_pair(daemon, intruder):
    """The mirror's one receive is for nobody."""
    control, keys = claimed(daemon)
    owner = intruder(keys)
    owner.ask("send", 0)
    wait_for(lambda: owner.write(keys.regions[wire.SEGMENT]) != "ok", SECONDS, "the end of it")
    assert daemon.running()
    # The claim stands; a new one by the same connection opens another queue pair.
    assert intruder(control.keys("a", 51)).said == "connected"


def test_the_mirror_serves_others_all_the_while(daemon, intruder, tellers):
    """An owner of store "books" commits while all this goes on."""
    desk = tellers.desk()
    desk.open("books", [daemon], "create", LOG)
    desk.books()
    desk.ask("start")
    for epoch in range(60, 70):
        _control, keys = claimed(daemon, epoch=epoch)
        owner = intruder(keys)
        assert owner.write(keys.regions[wire.SEGMENT], 64, 1 << 40) == "remote access error"
        desk.page.advances(20)
    k = int(desk.ask("halt"))
    figures = desk.figures()
    assert (figures["live"], figures["reconnects"], figures["in_doubt"]) == (1, 0, 0)
    assert desk.check() == k


def test_who_is_denied_reaches_no_memory(mirrors, intruder, tmp_path):
    """An owner whose rights are taken away one by one while it is connected: it is cut off, its
    claims bring neither token nor key, and what it knows from before opens nothing."""
    somebody = SOMEBODIES[0]
    rules = Rules(tmp_path / "access", "allow uid:0 all", "allow %s all" % somebody.name)
    daemon, = mirrors(1, "shm", rules.options)
    fill("a", [daemon], {"data": b"kept" * 4096})
    control = somebody.control(daemon)
    keys = control.keys("a", 50)
    owner = intruder(keys)
    assert owner.write(keys.regions[wire.SEGMENT]) == "ok"
    before = content(daemon, "a")
    for right in ("own", "recover"):
        assert rules.put(daemon, "allow uid:0 all", all_but(somebody, right))
        for body in requests("a", False)[right]:
            reply = control.ask(body)
            assert (reply[1], set(reply)) == (DENIED, {1, 2}), reply
            assert ('%s lacks the right "%s"' % (somebody.name, right)).encode() in reply[2]
        assert owner.write(keys.regions[wire.SEGMENT]) in CUT
        for token in (keys.token, bytes(16), os.urandom(16)):
            assert owner.ask("more", token.hex()) == "refused %d" % wire.BAD_TOKEN
    assert content(daemon, "a") == before
    assert "it has the token of no session that waits for it" in daemon.log()


def test_a_flood_of_requests_to_connect_takes_no_room(mirrors, intruder, tellers, tmp_path):
    """Far more than there may be connections, while an owner commits: each is refused by name and
    counted, none has a place among the connections, and the log tells of few."""
    daemon, = mirrors(1, "rdma", ("--max-connections", "16", *watched(tmp_path)))
    fill("a", [daemon], {"data": b"kept"})
    desk = tellers.desk()
    desk.open("books", [daemon], "create", LOG)
    desk.books()
    desk.ask("start")
    control, keys = claimed(daemon)
    flood, watch = intruder(keys), Watch(tmp_path)
    # Two owners, each with its queue pair, and the lifeline of one, which begins a little later.
    wait_for(lambda: watch.value("perseas_connections") == 5, SECONDS,
             "owners and a lifeline")
    for _ in range(32):
        assert flood.ask("more", os.urandom(16).hex()) == "refused %d" % wire.BAD_TOKEN
    assert watch.value("perseas_connections_refused_total", reason="token") == 32
    assert watch.value("perseas_connections") == 5
    assert 10 <= daemon.log().count(" is refused (status 1)") < 20
    desk.page.advances(20)
    k = int(desk.ask("halt"))
    figures = desk.figures()
    assert (figures["live"], figures["reconnects"], figures["in_doubt"]) == (1, 0, 0)
    assert desk.check() == k
    control.peer.close()
