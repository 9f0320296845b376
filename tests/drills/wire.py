"""The protocol by hand, for peers that violate it: envelope.h, frame.h, and as much of
proto/control.proto as a claim needs."""
import collections
import os
import socket
import struct

CONTROL_MAGIC, DATA_MAGIC = 0x43535350, 0x44535350
VERSION, LEAST = 9, 8                   # of control messages
DATA_VERSION = 7
WRITE, READ = 2, 3
SIGNALLED = 1
LOG, PROMISE, SEGMENT = 0, 1, 16
OK, BAD_TOKEN, BAD_VERSION, BAD_FRAME = range(4)
OTHER_IDENTITY = 7
STATUS_OK, STATUS_BAD_REQUEST = 0, 1
CLAIM = 6                               # field of Request
CLAIM_REPLY, GRANT, TOKEN = 9, 5, 1     # fields of Reply, ClaimReply, Grant
WORKING = 24                            # field of Reply
SECONDS = int(os.environ.get("PERSEAS_HANGING", 600))  # HANGING_SECONDS of bench/cluster.py
Region = collections.namedtuple("Region", "address key length")


def connect(address):
    """Returns a connection to host:port or unix:///path."""
    if address.startswith("unix://"):
        peer = socket.socket(socket.AF_UNIX)
        # With a timeout of Python's, connect would fail at once while the queue of connections is
        # full.
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", SECONDS, 0))
        peer.connect(address[len("unix://"):])
        peer.settimeout(SECONDS)
    else:
        host, _, port = address.rpartition(":")
        peer = socket.create_connection((host, int(port)), SECONDS)
    return peer


def receive(peer, count):
    """Receives exactly `count` bytes. Raises EOFError if the connection ends before."""
    data = b""
    while len(data) < count:
        part = peer.recv(count - len(data))
        if not part:
            raise EOFError("%d of %d bytes" % (len(data), count))
        data += part
    return data


def rest(peer):
    """Receives until the other end closes. Raises TimeoutError if it does not."""
    data = b""
    while True:
        try:
            part = peer.recv(65536)
        except ConnectionResetError:
            return data
        if not part:
            return data
        data += part


# --- control messages ---

def varint(number):
    out = b""
    while number > 0x7f:
        out += bytes([number & 0x7f | 0x80])
        number >>= 7
    return out + bytes([number])


def field(number, value):
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    value = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(value)) + value


def take_varint(data, at):
    number = shift = 0
    while True:
        number |= (data[at] & 0x7f) << shift
        at, shift = at + 1, shift + 7
        if not data[at - 1] & 0x80:
            return number, at


def pairs(data):
    """Yields (number, value) for each field of a message whose fields are numbers and bytes."""
    at = 0
    while at < len(data):
        key, at = take_varint(data, at)
        if key & 7 == 5:
            value, at = int.from_bytes(data[at:at + 4], "little"), at + 4
        else:
            value, at = take_varint(data, at)
        if key & 7 == 2:
            value, at = data[at:at + value], at + value
        yield key >> 3, value


def fields(data):
    """Returns the fields of a message: {number: last value}."""
    return dict(pairs(data))


def all_of(data, number):
    """Returns every value of one field."""
    return [value for each, value in pairs(data) if each == number]


def control_hello(version=VERSION):
    return struct.pack("<II", CONTROL_MAGIC, version)


def message(body):
    return struct.pack("<I", len(body)) + body


class Control:
    """A control connection that has sent its hello, to an address or over an existing socket."""

    def __init__(self, address):
        self.peer = connect(address) if isinstance(address, str) else address
        self.peer.sendall(control_hello())
        assert receive(self.peer, 8) == control_hello()

    def reply(self):
        """Returns the next answer. Skips signs of progress before it."""
        while True:
            length, = struct.unpack("<I", receive(self.peer, 4))
            reply = fields(receive(self.peer, length))
            if WORKING not in reply:
                return reply

    def ask(self, body):
        self.peer.sendall(message(body))
        return self.reply()

    def grant(self, store, epoch, takeover=True, rdma=False):
        """Claims a store. Returns the grant, packed."""
        reply = self.ask(field(CLAIM, field(1, store) + field(2, epoch) +
                               field(3, os.urandom(16)) + field(4, int(takeover)) +
                               field(8, int(rdma))))
        assert reply.get(1, STATUS_OK) == STATUS_OK, reply
        return fields(reply[CLAIM_REPLY])[GRANT]

    def claim(self, store, epoch, takeover=True):
        """Claims a store. Returns the token for the data connection."""
        return fields(self.grant(store, epoch, takeover))[TOKEN]

    def keys(self, store, epoch):
        """Claims a store with takeover and RDMA. Returns its Keys."""
        return Keys(self.grant(store, epoch, rdma=True))


class Keys:
    """The RDMA part of a grant: token, port, the reason if there is none, and the regions by id."""

    def __init__(self, packed):
        grant = fields(packed)
        self.token, self.port = grant[TOKEN], grant.get(4, 0)
        self.trouble = grant.get(8, b"").decode()
        regions = [fields(region) for region in all_of(packed, 2)]
        self.regions = {region.get(1, 0): Region(region.get(3, 0), region.get(4, 0), region[2])
                        for region in regions}


# --- the data path ---

def data_hello(token=bytes(16), version=DATA_VERSION, zero=0):
    return struct.pack("<II16sQ", DATA_MAGIC, version, token, zero)


def frame(op, *extents, flags=0, count=None, zero=0, cookie=0):
    """Packs a frame. Extents are (region, length, offset)."""
    head = struct.pack("<BBHIQ", op, flags, len(extents) if count is None else count, zero, cookie)
    return head + b"".join(struct.pack("<IIQ", *extent) for extent in extents)


def answer(data):
    """Unpacks an answer: (op, status, length, cookie)."""
    op, status, _, length, cookie = struct.unpack("<BBHIQ", data)
    return op, status, length, cookie
