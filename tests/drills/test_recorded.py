"""Sessions of earlier protocol versions, recorded from their own owners, commands and daemons
(tests/protocol). The owners' bytes are replayed to the present daemon, which must answer as their
daemon did. And that daemon's answers are replayed to present owners and commands
(recorded_daemon.py), which must work with them. Only one of the four daemons of `changed` was
recorded, so only the first test uses it."""
import contextlib
import functools
import itertools
import socket
import struct
import sys

import pytest

import wire
from drill import TOP
from test_versions import BEFORE, NOW

sys.path.append(str(TOP / "tests/fuzz"))
import record  # noqa: E402
import recorded_daemon  # noqa: E402
import seeds  # noqa: E402

FOLDER = TOP / "tests/protocol"
EARLIER = range(BEFORE, NOW)            # the earlier versions that are spoken
NAMES = seeds.bodies("Reply")
# Replies in which nothing depends on the daemon, time or host: all bytes must be equal.
SAME = {"create", "settle", "abandon", "publish", "destroy", "release", "joining", "roster",
        "digest", "read", "drop", "order", "move"}


def session(version, name):
    """Returns [(connection, what, bytes)]."""
    for line in (FOLDER / str(version) / name).read_text().splitlines():
        number, what, text = line.split(" ")
        yield int(number), what, bytes.fromhex(text)


def whole(stream, data):
    """Takes the complete answers off the stream: (kind, bytes), without heartbeats."""
    while len(stream) >= (16 if data else 4):
        size = 16 if data else 4
        head = bytes(stream[:size])
        length = wire.answer(head)[2] if data else struct.unpack("<I", head)[0]
        if len(stream) < size + length:
            return
        body = bytes(stream[:size + length]) if data else bytes(stream[4:4 + length])
        del stream[:size + length]
        if length or data:
            yield body


def said(reply):
    """Returns (status, id, name of the body, the fields in the body)."""
    fields = wire.fields(reply)
    bodies = [number for number in fields if number in NAMES and
              NAMES[number] not in ("status", "message", "promised_epoch", "id")]
    name = NAMES[bodies[0]] if bodies else None
    return fields.get(1, 0), fields.get(30), name, fields[bodies[0]] if bodies else b""


def token_of(reply):
    """Returns the token of a claim's grant, or None."""
    body = wire.fields(reply).get(wire.CLAIM_REPLY)
    return wire.fields(wire.fields(body)[wire.GRANT])[wire.TOKEN] if body else None


class Player:
    """One side of a recorded session: plays the owners, and compares the answers."""

    def __init__(self, daemon):
        self.daemon, self.peers, self.tokens = daemon, {}, {}
        self.due, self.data, self.greeted = {}, {}, set()
        self.compared = 0

    def there(self, number, data):
        if number not in self.peers:
            self.peers[number] = wire.connect(self.daemon.address)
            self.due[number] = bytearray()
            self.data[number] = seeds.is_data(data)
        # The present daemon issues its own tokens, which data hellos and Lifelines contain.
        for then, now in self.tokens.items():
            data = data.replace(then, now)
        # A fenced owner may have sent more on a connection that was closed.
        with contextlib.suppress(ConnectionError):
            self.peers[number].sendall(data)

    def back(self, number, data):
        stream = self.due[number]
        stream += data
        if not self.data[number] and number not in self.greeted:
            if len(stream) < seeds.HELLO:
                return
            assert wire.receive(self.peers[number], seeds.HELLO) == bytes(stream[:seeds.HELLO])
            del stream[:seeds.HELLO]
            self.greeted.add(number)
        for expected in whole(stream, self.data[number]):
            if self.data[number]:
                assert wire.receive(self.peers[number], len(expected)) == expected
                self.compared += 1
            elif wire.WORKING not in wire.fields(expected):
                self.compare(expected, self.reply(number))

    def reply(self, number):
        """Returns the next answer that is no heartbeat."""
        peer = self.peers[number]
        while True:
            length, = struct.unpack("<I", wire.receive(peer, 4))
            body = wire.receive(peer, length)
            if length and wire.WORKING not in wire.fields(body):
                return body

    def compare(self, expected, reply):
        then, now = said(expected), said(reply)
        assert now[:3] == then[:3], (wire.fields(reply), wire.fields(expected))
        if then[2] in SAME:
            assert now[3] == then[3], then[2]
        if token_of(expected):
            self.tokens[token_of(expected)] = token_of(reply)
        self.compared += 1

    def end(self, number):
        """Ends the connection; returns when the daemon has closed it, too."""
        peer = self.peers.pop(number)
        with contextlib.suppress(OSError):
            peer.shutdown(socket.SHUT_WR)
        wire.rest(peer)
        peer.close()


@pytest.mark.parametrize("name", ["life-0", "fenced-0", "changed-0"])
@pytest.mark.parametrize("version", EARLIER)
def test_the_present_daemon_answers_as_an_earlier_one_did(mirrors, version, name):
    """Every answer has the same status, id and kind. The contents of stores are equal byte for
    byte, and so is every answer on the data path."""
    daemon, = mirrors(1)
    player = Player(daemon)
    for number, what, data in session(version, name):
        if what == "there":
            player.there(number, data)
        elif what == "back":
            player.back(number, data)
        elif number in player.peers:
            player.end(number)
    assert not any(player.due.values())
    assert player.compared >= 40


@pytest.mark.parametrize("version", EARLIER)
def test_every_recorded_session_is_of_its_version(version):
    """They must not be recorded again with a later release."""
    greetings = {int.from_bytes(data[4:6], "little") for name in (FOLDER / str(version)).iterdir()
                 for _, streams in itertools.groupby(session(version, name.name), lambda e: e[0])
                 for _, what, data in streams if what == "there" and
                 data[:4] == struct.pack("<I", wire.CONTROL_MAGIC)}
    assert greetings == {version}       # the highest version of the sender


class Stage:
    """Replaces record.Recorder: its mirror is a recorded_daemon.Daemon."""

    def __init__(self, daemon):
        self.daemon = daemon

    @contextlib.contextmanager
    def mirrors(self, name, count, local=False, options=()):
        assert count == 1 and not local and not options
        yield [self.daemon]

    def keep(self, *_):
        """Records nothing."""


@pytest.fixture
def patient(monkeypatch):
    """On a busy machine an answer may take long, and a client that repeated its request would get a
    later answer of the session."""
    limits = dict(connect_timeout_ms=600000, mirror_timeout_ms=600000, commit_timeout_ms=600000)
    command = record.command
    monkeypatch.setattr(record, "Store", functools.partial(record.Store, **limits))
    monkeypatch.setattr(record, "command", lambda *words, **keywords: command(
        *words, "--connect-timeout", "600000", **keywords))


@pytest.mark.usefixtures("patient")
@pytest.mark.parametrize("name", ["life", "fenced"])
@pytest.mark.parametrize("version", EARLIER)
def test_the_present_owner_goes_on_with_what_an_earlier_one_was_told(version, name, monkeypatch):
    """So does the command: the sessions' actions are repeated against a daemon of that version. All
    of them succeed, with the contents that they wrote."""
    if name == "fenced":                # none of its owners lived until it took a lifeline
        monkeypatch.setenv("PERSEAS_LIFELINES", "off")
    with recorded_daemon.Daemon(version, list(session(version, name + "-0"))) as daemon:
        getattr(record, name)(Stage(daemon), name, False)
    assert not daemon.surprises
    assert daemon.versions
    assert not [each.kind for each in daemon.session.exchanges[daemon.session.at:] if each.changes]
