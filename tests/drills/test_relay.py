"""The relay does what its commands say; otherwise drills that use it would prove nothing."""
import contextlib
import select
import socket
import threading
import time
import types

import pytest

import relay as relaying
from acceptor import Acceptor
from drill import SECONDS, wait_for
from relay import BACK, ROOM, THERE, Relay, Way

BULK = 64 << 20


class Echo(Acceptor):
    """An echo server; `address` has the form of a daemon's."""

    def serve(self, peer):
        with peer, contextlib.suppress(OSError):
            while data := peer.recv(1 << 18):
                peer.sendall(data)


@pytest.fixture
def relay():
    with Echo() as echo, Relay(echo) as relay:
        yield relay


@pytest.fixture
def line(relay):
    """Returns a connection through the relay."""
    with dial(relay) as end:
        yield end


def dial(relay):
    host, _, port = relay.address.rpartition(":")
    end = socket.create_connection((host, int(port)), SECONDS)
    end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return end


def take(end, count):
    """Receives `count` bytes, or fewer if the connection ends."""
    data = bytearray()
    while len(data) < count and (part := end.recv(count - len(data))):
        data += part
    return data


def round_trip(end, data=b"x"):
    """Returns the seconds of a round trip."""
    start = time.monotonic()
    end.sendall(data)
    assert take(end, len(data)) == data
    return time.monotonic() - start


def silent(end, seconds=0.1):
    return not select.select([end], [], [], seconds)[0]


def fill(end):
    """Sends until the socket accepts no more. Returns how many bytes it accepted."""
    end.setblocking(False)
    count = 0
    while select.select([], [end], [], 0.2)[1]:
        with contextlib.suppress(BlockingIOError):
            count += end.send(bytes(1 << 16))
    end.settimeout(SECONDS)
    return count


def test_it_passes_everything_on_in_order(relay, line):
    """64 MiB there and back at the same time."""
    pattern = bytes(range(256)) * 1024
    sender = threading.Thread(target=lambda: [line.sendall(pattern) for _ in range(256)])
    sender.start()
    for _ in range(256):
        assert take(line, len(pattern)) == pattern
    sender.join()
    assert relay.passed() == (BULK, BULK)


@pytest.mark.parametrize("delay_ms", [5, 40])
def test_a_delay_is_what_was_asked_for(relay, line, delay_ms):
    """No round trip takes less than twice the delay. Afterward there is no delay: the hour's delay
    of another connection would be noticed."""
    relay.delay(delay_ms)
    assert min(round_trip(line) for _ in range(9)) >= 2e-3 * delay_ms
    relay.delay(3600e3)
    relay.go()
    round_trip(line)


@pytest.fixture
def way():
    """(client, Way, server): one direction of the relay's own code, with a clock that the test
    sets, and the two ends that it connects."""
    (client, near), (far, server) = socket.socketpair(), socket.socketpair()
    for end in (client, near, far, server):
        end.setblocking(False)
    yield client, Way(THERE, near, far), server
    for end in (client, near, far, server):
        end.close()


def test_a_delay_is_not_longer_than_was_asked_for(monkeypatch, capsys):
    """A byte is passed on exactly when it is due, by a clock that the test sets."""
    now = 100.0
    monkeypatch.setattr(relaying, "time", types.SimpleNamespace(monotonic=lambda: now))
    with contextlib.ExitStack() as stack:
        server = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        program = relaying.Program(server.getsockname())
        listener = stack.enter_context(program.listener)
        client = stack.enter_context(socket.create_connection(listener.getsockname(), SECONDS))
        program.accept()
        pair, = program.pairs
        stack.callback(pair.close)
        assert program.obey("delay 5") == "ok"
        client.sendall(b"a")
        near = pair.sockets[0]
        assert select.select([near], [], [], SECONDS)[0]
        program.move(pair, [near], [])
        for now, passed in ((100 + 0.0049, 0), (100 + 0.005, 1)):
            program.move(pair, [], [])
            assert program.total(THERE) == passed


def test_a_delay_does_not_make_it_slow(way):
    """Bytes in flight are buffered: it accepts 8 MiB before the first byte is due, and then passes
    all of them on as fast as they are received."""
    client, there, server = way
    part, sent = bytes(16 << 10), 0
    while sent < 8 << 20:
        sent += client.send(part)
        assert there.hungry()
        there.receive(1)
    assert (there.size, there.passed) == (sent, 0) and sent < ROOM
    came = 0
    while came < sent:
        there.send(1)
        came += len(server.recv(1 << 20))
    assert (there.size, there.passed) == (0, sent)


@pytest.mark.parametrize("way", [THERE, BACK])
def test_one_direction_is_held(relay, line, way):
    """A byte comes back only after `go`; the other direction stays open."""
    round_trip(line)
    before = relay.passed()
    relay.hold(way)
    line.sendall(b"abc")

    def passed():
        return tuple(now - then for now, then in zip(relay.passed(), before))

    if way == BACK:
        wait_for(lambda: passed()[0] == 3, SECONDS, "bytes there")
    assert silent(line)
    assert passed() == ((0, 0) if way == THERE else (3, 0))
    relay.go()
    assert take(line, 3) == b"abc"


def test_a_held_connection_is_full_before_long_and_loses_nothing(relay, line):
    """The sender finds no room; everything arrives after `go`."""
    relay.hold()
    count = fill(line)
    assert 0 < count < 32 << 20
    relay.go()
    assert len(take(line, count)) == count


def test_dropped_connections_are_reset_and_new_ones_are_taken(relay, line):
    """Both connections are reset."""
    with dial(relay) as other:
        for end in (line, other):
            round_trip(end)
        relay.drop()
        for end in (line, other):
            with pytest.raises(ConnectionResetError):
                end.recv(1)
    with dial(relay) as end:
        round_trip(end)


def test_an_end_is_passed_on(relay, line):
    """The last bytes arrive, and then the end."""
    line.sendall(b"last")
    line.shutdown(socket.SHUT_WR)
    assert take(line, 5) == b"last"


def test_a_mirror_that_does_not_listen_breaks_the_connection(relay):
    """As it would without the relay."""
    relay.daemon.listener.shutdown(socket.SHUT_RDWR)
    relay.daemon.listener.close()
    with pytest.raises(ConnectionResetError), dial(relay) as end:
        end.recv(1)
