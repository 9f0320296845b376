"""A daemon that answers from a recorded session (tests/protocol), as a daemon of an earlier version
did. Owners and commands of the present version must work with these answers (test_recorded.py).

    with Daemon(version, events) as daemon: ...      # owners connect to daemon.address

Present owners do not send the same bytes as those of the session: they have other ids, and how
often they query depends on timing. So a request that changes something gets the reply to the
session's next request of its kind, and a query gets a reply from the current position in the
session. In each reply, the session's ids and address are replaced by the present ones. Writes are
acknowledged, and reads on the data path get the bytes that were read in the session."""
import contextlib
import socket
import struct
import threading

import seeds
import wire
from acceptor import Acceptor

NAMES = seeds.bodies("Request")
# Queries: (kind, whether the connection has a claim). When an owner takes a lifeline depends on
# timing, too.
LOOKING = {(name, claimed) for name in ("list", "status", "confirm", "digest", "read", "watch",
                                        "lifeline")
           for claimed in (False, True)} | {("release", False)}
EXACT = {"digest", "read"}              # answered only for a request with the same contents
REQUEST_ID = 30                         # field of Request and Reply
HOST = b"127.0.0.1:"


class Surprise(Exception):
    """A request of a kind that was not recorded."""


def kind_of(request):
    return next(NAMES[number] for number, _ in wire.pairs(request)
                if number in NAMES and number != REQUEST_ID)


def body_of(request):
    return next(value for number, value in wire.pairs(request) if number != REQUEST_ID)


class Exchange:
    """A request and its final reply."""

    def __init__(self, request, claimed):
        self.body, self.reply, self.used = body_of(request), None, False
        self.kind = (kind_of(request), claimed)
        self.changes = self.kind not in LOOKING


def learned(old, new):
    """Returns {old: new} for ids and addresses at the same places of two messages."""
    found = {}
    with contextlib.suppress(IndexError):
        for (_, was), (_, now) in zip(list(wire.pairs(old)), list(wire.pairs(new))):
            if isinstance(was, int) or isinstance(now, int) or was == now:
                continue
            if len(was) == len(now) == 16:
                found[was] = now
                found[was[:8] + bytes(8)] = now[:8] + bytes(8)
            elif was.startswith(HOST) and now.startswith(HOST):
                found[was] = now
            else:
                found.update(learned(was, now))
    return found


class Session:
    """The recorded exchanges, and the position up to which they have been played."""

    def __init__(self, events):
        self.exchanges, self.reads = [], {}
        self.at, self.names = 0, {}
        streams, waiting, claimed = {}, {}, set()
        for number, what, data in events:
            if what != "end":
                stream = streams[number, what] = streams.get((number, what), b"") + data
                if seeds.is_data(streams[number, "there"]):
                    continue
                found, used = seeds.messages(stream)
                streams[number, what] = stream[:seeds.HELLO] + stream[used:]
                for each in filter(None, found):
                    self.take(number, what, each, waiting.setdefault(number, []), claimed)
        for number, what in list(streams):
            if what == "there" and seeds.is_data(streams[number, what]):
                self.take_reads(streams[number, "there"], streams[number, "back"])

    def take(self, number, what, message, waiting, claimed):
        if what == "there":
            waiting.append(Exchange(message, number in claimed))
            self.exchanges.append(waiting[-1])
            if waiting[-1].kind[0] == "claim":
                claimed.add(number)
        elif wire.WORKING not in wire.fields(message):
            waiting.pop(0).reply = message

    def take_reads(self, there, back):
        """Collects the bytes of a data connection's reads. Its answers come in the order of its
        frames."""
        answers, at = [], 16
        while at < len(back):
            op, _, length, _ = wire.answer(back[at:at + 16])
            if op == wire.READ:
                answers.append(back[at + 16:at + 16 + length])
            at += 16 + length
        for op, extents in seeds.frames(there)[0]:
            if op == wire.READ:
                (region, offset, data), = extents
                self.reads[region, offset, len(data)] = answers.pop(0)

    def answer(self, request, claimed):
        """Returns the reply to a present request."""
        kind, body = (kind_of(request), claimed), body_of(request)
        chosen = self.look(kind, body) if kind in LOOKING else self.change(kind)
        if not chosen or not chosen.reply:
            raise Surprise("%s, at %d of %d" % (kind, self.at, len(self.exchanges)))
        chosen.used = True
        self.names.update(learned(chosen.body, body))
        return self.renamed(chosen.reply) + wire.field(REQUEST_ID, wire.fields(request)[REQUEST_ID])

    def change(self, kind):
        for index in range(self.at, len(self.exchanges)):
            if self.exchanges[index].kind == kind:
                self.at = index + 1
                return self.exchanges[index]
        return None

    def look(self, kind, body):
        """Returns the exchange to answer a query from, among those of its kind. Prefers exchanges
        before the next change: the first unused one, else the last one; then the last one of the
        part already played, then the first later one."""
        like = [(index, each) for index, each in enumerate(self.exchanges)
                if each.kind == kind and each.reply and
                (kind[0] not in EXACT or self.renamed(each.body) == body)]
        end = next((index for index in range(self.at, len(self.exchanges))
                    if self.exchanges[index].changes), len(self.exchanges))
        here = [each for index, each in like if self.at <= index < end]
        fresh = [each for each in here if not each.used]
        before = [each for index, each in like if index < self.at]
        return (fresh[:1] or here[-1:] or before[-1:] or [each for _, each in like] or [None])[0]

    def renamed(self, message):
        """Returns the message with the present ids and address instead of the session's."""
        for old, new in self.names.items():
            message = message.replace(old, new)
        return message


class Daemon(Acceptor):
    """The daemon. `surprises` are the requests that it could not answer; `versions` are those that
    peers used in the end."""

    def __init__(self, version, events):
        super().__init__()
        self.version = version
        self.session, self.lock = Session(events), threading.Lock()
        self.surprises, self.versions = [], []
        self.data = []                  # data connections of the present owner

    def serve(self, peer):
        with peer, contextlib.suppress(EOFError, OSError):
            peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            try:
                magic, version = struct.unpack("<II", wire.receive(peer, 8))
                if magic == wire.DATA_MAGIC:
                    self.serve_data(peer)
                else:
                    self.serve_control(peer, version)
            except Surprise as surprise:
                self.surprises.append(str(surprise))

    def speaks(self, hello):
        """Returns whether the peer offers the session's version."""
        least, most = hello >> 16, hello & 0xffff
        return (least or most) <= self.version <= most

    def serve_control(self, peer, version):
        peer.sendall(wire.control_hello(self.version))
        if not self.speaks(version):
            return
        self.versions.append(version)
        claimed = False
        while True:
            length, = struct.unpack("<I", wire.receive(peer, 4))
            if not length:
                if claimed:
                    peer.sendall(bytes(4))
                continue
            request = wire.receive(peer, length)
            with self.lock:
                reply = self.session.answer(request, claimed)
                claimed = claimed or kind_of(request) == "claim"
                if wire.CLAIM_REPLY in wire.fields(reply):
                    self.fence()
            peer.sendall(wire.message(reply))

    def fence(self):
        """Closes the data path of the previous owner (I5)."""
        for each in self.data:
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
        self.data.clear()

    def serve_data(self, peer):
        wire.receive(peer, seeds.DATA_HELLO - 8)
        with self.lock:
            self.data.append(peer)
        peer.sendall(struct.pack("<BBHIQ", 1, 0, 0, 0, 0))
        while True:
            op, flags, count, _, cookie = struct.unpack("<BBHIQ", wire.receive(peer, seeds.HEAD))
            extents = [struct.unpack("<IIQ", wire.receive(peer, seeds.PLACE))
                       for _ in range(count)]
            data = b""
            if op == wire.WRITE:
                wire.receive(peer, sum(length for _, length, _ in extents))
            else:
                (region, length, offset), = extents
                data = self.session.reads.get((region, offset, length))
                if data is None:
                    raise Surprise("a read of %d bytes at %d of %d" % (length, offset, region))
            if flags & wire.SIGNALLED or op == wire.READ:
                peer.sendall(struct.pack("<BBHIQ", op, 0, 0, len(data), cookie) + data)
