"""Peers that violate the protocol, connected to a daemon through which an owner commits."""
import contextlib
import os
import resource
import socket
import struct
import threading

import pytest

import wire
from drill import OK, fill
from teller import LOG, dice, tellers  # noqa: F401

FLOOD = 1400                            # more connections than a daemon accepts


class Busy:
    """An owner that commits, and checks that must hold after a peer has misbehaved."""

    def __init__(self, tellers, daemons):
        self.daemons, self.desk = daemons, tellers.desk()
        self.epoch, _ = self.desk.open("books", daemons, "create", LOG)
        self.desk.books()
        self.desk.ask("start")
        self.desk.page.advances(50)

    def goes_on(self):
        self.desk.page.advances(200)
        assert all(daemon.running() for daemon in self.daemons)

    def is_unharmed(self):
        self.goes_on()
        k = int(self.desk.ask("halt"))
        figures = self.desk.figures()
        assert figures["live"] == len(self.daemons)
        assert (figures["epoch"], figures["reconnects"], figures["in_doubt"]) == (self.epoch, 0, 0)
        assert self.desk.page.in_doubt == self.desk.page.error == 0
        assert self.desk.check() == k


@pytest.fixture
def no_lifelines(monkeypatch):
    """Disables lifelines: an owner over TCP uses another descriptor of the daemon for each, a tenth
    of a second after it opened its store."""
    monkeypatch.setenv("PERSEAS_LIFELINES", "off")


@pytest.fixture
def busy(fabric, mirrors, tellers):
    """One mirror, over each fabric. At the end of the test its owner must not have noticed
    anything."""
    busy = Busy(tellers, mirrors(1, fabric))
    yield busy
    busy.is_unharmed()


def closed(peer):
    """Returns what the daemon sends before it closes the connection."""
    peer.settimeout(wire.SECONDS)
    said = wire.rest(peer)
    peer.close()
    return said


def say(busy, data):
    """Connects and sends `data`."""
    peer = wire.connect(busy.daemons[0].address)
    peer.sendall(data)
    return peer


def test_garbage_is_closed(busy, dice):
    """Bytes that begin no connection, some of them many."""
    for length in (4, 5, 64, 4096, 1 << 20):
        garbage = bytes(4) + dice.randbytes(length - 4)
        try:
            peer = say(busy, garbage)
        except (BrokenPipeError, ConnectionResetError):
            continue
        assert closed(peer) == b""
        busy.goes_on()


def test_a_control_connection_of_another_version_is_told_ours_and_closed(busy):
    """The daemon sends its version, so that the other end can report the mismatch."""
    ours = wire.control_hello(wire.VERSION | wire.LEAST << 16)
    for version, answer in ((0, wire.control_hello()), (wire.LEAST - 1, wire.control_hello()),
                            (wire.VERSION + 1, wire.control_hello()), (0xffffffff, ours)):
        assert closed(say(busy, wire.control_hello(version))) == answer


def test_a_data_connection_of_another_version_is_told_so_and_closed(busy):
    """The same on the data path."""
    for version in (0, wire.DATA_VERSION - 1, wire.DATA_VERSION + 1, 0xffffffff):
        said = closed(say(busy, wire.data_hello(version=version)))
        assert wire.answer(said)[1] == wire.BAD_VERSION


def test_a_data_connection_with_no_sessions_token_is_refused(busy, dice):
    """Zeros, which are nobody's token, and random bytes."""
    for token in [bytes(16)] + [dice.randbytes(16) for _ in range(20)]:
        assert wire.answer(closed(say(busy, wire.data_hello(token))))[1] == wire.BAD_TOKEN
    said = closed(say(busy, wire.data_hello(dice.randbytes(16)) +
                      wire.frame(wire.WRITE, (wire.LOG, 64, 0)) + bytes(64)))
    assert wire.answer(said[:16])[1] == wire.BAD_TOKEN


def test_a_message_that_would_be_huge_is_refused_before_it_comes(busy):
    """The daemon allocates nothing for it and closes the connection."""
    for length in ((1 << 20) + 1, 1 << 31, 0xffffffff):
        peer = say(busy, wire.control_hello() + struct.pack("<I", length) + bytes(1000))
        said = closed(peer)
        assert said[:8] == wire.control_hello()
        reply = wire.fields(said[12:])
        assert reply[1] == wire.STATUS_BAD_REQUEST


def test_a_message_that_is_none_is_refused_and_the_connection_goes_on(busy, dice):
    """Its length is right, so the message after it can be parsed."""
    control = wire.Control(busy.daemons[0].address)
    for length in (1, 7, 300):
        for _ in range(20):
            reply = control.ask(b"\xff" + dice.randbytes(length - 1))
            assert reply[1] == wire.STATUS_BAD_REQUEST
    assert control.ask(wire.field(1, b""))[4]           # the list of stores
    control.peer.close()


def test_a_flood_of_signs_of_life_is_answered_with_nothing(busy):
    """A client that owns no store sends heartbeats. The other store is not affected, and a request
    after them is answered."""
    control = wire.Control(busy.daemons[0].address)
    control.peer.sendall(bytes(1 << 20))
    busy.goes_on()
    assert control.ask(wire.field(1, b""))[4]
    control.peer.close()


def test_an_owner_that_floods_with_signs_of_life_holds_nobody_up(busy):
    """Other clients connect, claim and ask in the meantime, and commits continue."""
    fill("flooder", busy.daemons, {"a": bytes(4096)})
    control = wire.Control(busy.daemons[0].address)
    control.claim("flooder", 1000)
    over = threading.Event()

    def flood():
        while not over.is_set():
            control.peer.sendall(bytes(64 << 10))

    thread = threading.Thread(target=flood)
    thread.start()
    try:
        busy.goes_on()
        for _ in range(3):
            other = wire.Control(busy.daemons[0].address)
            assert other.ask(wire.field(1, b""))[4]
            other.peer.close()
        fill("beside", busy.daemons, {"a": bytes(4096)})
        assert thread.is_alive()
    finally:
        over.set()
        thread.join()
        control.peer.close()


BEGINNINGS = {
    "nothing": b"",
    "half a magic": wire.control_hello()[:2],
    "half a control hello": wire.control_hello()[:6],
    "half a data hello": wire.data_hello()[:20],
}


def test_a_connection_that_does_not_say_what_it_is_is_closed(busy):
    """Each sends a part of a hello, and then nothing; all at the same time."""
    peers = {name: say(busy, beginning) for name, beginning in BEGINNINGS.items()}
    busy.goes_on()
    for name, peer in peers.items():
        assert closed(peer) == b"", name


def test_half_a_message_holds_nobody_up(busy, tellers):
    """A control connection sends half of a claim and stays open; others claim, create and open."""
    peer = say(busy, wire.control_hello() + wire.message(bytes(100))[:50])
    busy.goes_on()
    desk = tellers.desk()
    desk.open("other", busy.daemons, "create", "log=4096")
    desk.ask("close")
    peer.close()


def test_more_connections_than_there_may_be_harm_no_owner(busy, tellers):
    """More connections than the daemon accepts have sent a hello and may stay; others have not.
    Meanwhile another owner connects, over TCP like most of them or another fabric."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    desk, peers = tellers.desk(), []
    try:
        for number in range(min(FLOOD, hard - 200)):
            peer = wire.connect(busy.daemons[0].address)
            peers.append(peer)
            if number % 8:
                peer.sendall(wire.control_hello())
    except (BlockingIOError, BrokenPipeError, ConnectionResetError, socket.timeout):
        pass                            # no room, which is what the test needs
    finally:
        busy.goes_on()
        desk.open("after", busy.daemons, "create", "log=4096")
        desk.ask("close")
        for peer in peers:
            peer.close()
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert "there is no room for more than" in busy.daemons[0].log()


def test_too_few_descriptors_lock_nobody_out(no_lifelines, busy):
    """The daemon may open fewer files than it may have connections."""
    daemon, = busy.daemons
    there = len(os.listdir("/proc/%d/fd" % daemon.pid))
    resource.prlimit(daemon.pid, resource.RLIMIT_NOFILE, (there + 40, there + 40))
    peers = []
    for _ in range(100):                # each is served before the next one comes
        peers.append(say(busy, wire.control_hello()))
        assert wire.receive(peers[-1], 8) == wire.control_hello()
    busy.goes_on()
    for address in (daemon.mirror.tcp, daemon.mirror.unix):
        control = wire.Control(address)
        assert control.ask(wire.field(1, b""))[4]       # the list of stores
        control.peer.close()
    assert closed(peers[0]) == b""      # the connection that was silent longest was closed
    for peer in peers:
        peer.close()


def test_the_last_descriptor_costs_nobody_a_place(no_lifelines, busy):
    """As many connections come, one by one, as the daemon may open files. It has no descriptor left
    to see whether another connection waits; but none does."""
    daemon, = busy.daemons
    there = [int(name) for name in os.listdir("/proc/%d/fd" % daemon.pid)]
    limit = max(there) + 4
    resource.prlimit(daemon.pid, resource.RLIMIT_NOFILE, (limit, limit))
    peers = []
    for _ in range(limit - len(there)):
        peers.append(wire.connect(daemon.mirror.tcp))   # each takes a descriptor
        peers[-1].sendall(wire.control_hello())
        assert wire.receive(peers[-1], 8) == wire.control_hello()
    busy.goes_on()
    for peer in peers:
        peer.setblocking(False)
        with pytest.raises(BlockingIOError):
            peer.recv(1)                # it is still open
        peer.close()
    assert "have to wait" not in daemon.log()


def test_the_last_descriptors_hold_up_no_takeover(mirrors, owner, perseas):
    """Anonymous connections have all descriptors that the daemon may open, and an operator takes a
    store over. The connection that is closed for the operator leaves no room for the file with the
    promise."""
    daemon, = mirrors(1)
    fill("s", [daemon], {"a": b"contents"})
    held = owner("s", [daemon])
    limit = max(int(name) for name in os.listdir("/proc/%d/fd" % daemon.pid)) + 8
    resource.prlimit(daemon.pid, resource.RLIMIT_NOFILE, (limit, limit))
    peers = []
    for _ in range(16):
        peers.append(wire.connect(daemon.mirror.tcp))
        peers[-1].sendall(wire.control_hello())
        assert wire.receive(peers[-1], 8) == wire.control_hello()
    assert perseas("recover", "s", "--takeover", mirrors=[daemon]).status == 0
    held.kill9()
    for peer in peers:
        peer.close()


# --- with a claim of its own ---

class Session:
    """A hand-made session that owns a store, and its data connection."""

    def __init__(self, address, store, epoch):
        self.control = wire.Control(address)
        self.token = self.control.claim(store, epoch)
        self.data = wire.connect(address)
        self.data.sendall(wire.data_hello(self.token))
        assert wire.answer(wire.receive(self.data, 16))[1] == wire.OK

    def close(self):
        self.control.peer.close()
        self.data.close()


@pytest.fixture
def prey(busy, tellers):
    """A second store with a published segment, which its last owner has closed."""
    desk = tellers.desk()
    desk.open("prey", busy.daemons, "create", "log=65536")
    desk.ask("map", "a", 4096)
    desk.ask("publish")
    desk.transaction("a", 0, 4096, 5)
    desk.ask("close")
    return desk


BAD_FRAMES = {
    "an op that is none": wire.frame(99, (wire.LOG, 8, 0)) + bytes(8),
    "the op of a hello": wire.frame(1, (wire.LOG, 8, 0)) + bytes(8),
    "no extent": wire.frame(wire.WRITE),
    "too many extents": wire.frame(wire.WRITE, count=0xffff),
    "a field that must be 0": wire.frame(wire.WRITE, (wire.LOG, 8, 0), zero=1) + bytes(8),
    "unknown flags": wire.frame(wire.WRITE, (wire.LOG, 8, 0), flags=0xff) + bytes(8),
    "an extent of no bytes": wire.frame(wire.WRITE, (wire.LOG, 0, 0)),
    "a region that is none": wire.frame(wire.WRITE, (7, 8, 0)) + bytes(8),
    "a region beyond all": wire.frame(wire.WRITE, (0xffffffff, 8, 0)) + bytes(8),
    "a segment that is none": wire.frame(wire.WRITE, (wire.SEGMENT + 1, 8, 0)) + bytes(8),
    "the promise": wire.frame(wire.WRITE, (wire.PROMISE, 8, 0)) + bytes(8),
    "bytes past the end": wire.frame(wire.WRITE, (wire.SEGMENT, 8, 4089)) + bytes(8),
    "an offset that wraps": wire.frame(wire.WRITE, (wire.SEGMENT, 8, 2**64 - 4)) + bytes(8),
    "a huge length": wire.frame(wire.WRITE, (wire.SEGMENT, 0xffffffff, 0)) + bytes(8),
    "a second extent outside": wire.frame(wire.WRITE, (wire.SEGMENT, 8, 0),
                                          (wire.SEGMENT, 8, 4096)) + bytes(16),
    "a read of too much": wire.frame(wire.READ, (wire.SEGMENT, (4 << 20) + 1, 0)),
    "a read of two extents": wire.frame(wire.READ, (wire.SEGMENT, 8, 0), (wire.SEGMENT, 8, 8)),
    "a read past the end": wire.frame(wire.READ, (wire.SEGMENT, 8, 4092)),
}


def send_for_ever(data, frames):
    """Sends frames until the socket is shut down."""
    with contextlib.suppress(OSError):
        while True:
            data.sendall(frames)


def test_owners_that_never_pause_leave_the_others_their_turn(mirrors, perseas):
    """Two owners send small frames as fast as possible without waiting for answers."""
    daemon, = mirrors(1)
    threads, sessions = [], []
    for name in ("one", "two"):
        fill(name, [daemon], {"a": b"contents"})
        control = wire.Control(daemon.address)
        data = wire.connect(daemon.address)
        data.settimeout(None)
        data.sendall(wire.data_hello(control.claim(name, 1000)))
        assert wire.answer(wire.receive(data, 16))[1] == wire.OK
        sessions.append((control, data))
    frames = (wire.frame(wire.WRITE, (wire.LOG, 64, 4096)) + bytes(64)) * (1 << 16)
    for _, data in sessions:
        threads.append(threading.Thread(target=send_for_ever, args=(data, frames)))
        threads[-1].start()
    try:
        for _ in range(10):
            assert perseas("status", "one", mirrors=[daemon]).status == OK
    finally:
        for _, data in sessions:
            data.shutdown(socket.SHUT_RDWR)
        for thread in threads:
            thread.join()


def test_a_frame_that_is_wrong_is_refused_and_changes_nothing(busy, prey):
    """Each frame is sent in its own session. The next owner finds the segment unchanged."""
    for number, (name, bad) in enumerate(BAD_FRAMES.items()):
        session = Session(busy.daemons[0].address, "prey", 1000 + number)
        session.data.sendall(bad)
        said = closed(session.data)
        assert len(said) == 16 and wire.answer(said)[1] == wire.BAD_FRAME, name
        session.close()
    prey.open("prey", busy.daemons)
    prey.ask("map", "a", 0)
    assert {prey.ask("load", "a", at) for at in (0, 7, 8, 15, 4088, 4095)} == {"5"}


def test_half_a_frame_and_then_nothing_stops_no_takeover(busy, prey):
    """The session is fenced. Only what it wrote without an undo record remains."""
    session = Session(busy.daemons[0].address, "prey", 1000)
    session.data.sendall(wire.frame(wire.WRITE, (wire.SEGMENT, 4096, 0)) + b"\x06" * 100)
    busy.goes_on()
    prey.open("prey", busy.daemons, "takeover")
    assert closed(session.data) == b""
    prey.ask("map", "a", 0)
    assert prey.ask("load", "a", 100) == prey.ask("load", "a", 4095) == "5"
    prey.transaction("a", 0, 8, 7)
    session.close()


def test_a_peer_that_takes_no_answers_is_not_read_from(busy, prey):
    """It requests gigabytes and reads none of them."""
    session = Session(busy.daemons[0].address, "prey", 1000)
    session.data.setblocking(False)
    asked = wire.frame(wire.READ, (wire.SEGMENT, 4096, 0)) * 1000
    sent = 0
    try:
        while sent < 1 << 28:
            sent += session.data.send(asked)
    except BlockingIOError:
        pass
    assert sent < 1 << 28
    busy.goes_on()
    prey.open("prey", busy.daemons, "takeover")
    session.close()


def test_the_token_of_a_session_that_is_over_opens_nothing(busy, prey):
    """A data connection arrives after the takeover."""
    session = Session(busy.daemons[0].address, "prey", 1000)
    prey.open("prey", busy.daemons, "takeover")
    assert closed(session.data) == b""
    said = closed(say(busy, wire.data_hello(session.token)))
    assert wire.answer(said)[1] == wire.BAD_TOKEN
    session.close()


def test_garbage_after_a_good_beginning_ends_only_that_session(busy, prey, dice):
    """Random bytes in place of frames and messages."""
    for number in range(10):
        session = Session(busy.daemons[0].address, "prey", 1000 + number)
        session.data.sendall(b"\xee" + dice.randbytes(2000))
        closed(session.data)
        control = session.control.peer
        control.sendall(dice.randbytes(3) + b"\xff" + dice.randbytes(100))
        closed(control)
        busy.goes_on()
    prey.open("prey", busy.daemons, "takeover")
