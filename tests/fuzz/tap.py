"""What real sessions say: a tap between a daemon and whoever connects to it. It passes on every
byte, and the descriptors that come over Unix sockets, and keeps the bytes on a tape. (The drills'
relay is for bad networks: it is of TCP alone, and keeps nothing.)

    tape = Tape()
    with Tap(tape, "127.0.0.1:7170") as tap: ...        connect to tap.address instead
"""
import array
import contextlib
import itertools
import os
import socket
import struct
import tempfile
import threading

from acceptor import Acceptor

PIECE = 256 << 10                       # bytes received at once
HELLO = 8                               # bytes that begin a control connection
DESCRIPTORS = 253                       # of one message: the kernel's limit
THERE, BACK, END = "there", "back", "end"


class Tape:
    """All connections of one daemon, in the order in which it heard of them: `events` are
    (connection, THERE or BACK or END, bytes), `local` the connections of Unix sockets."""

    def __init__(self):
        self.lock, self.numbers = threading.Lock(), itertools.count()
        self.events, self.local = [], set()
        self.first = 0                  # the connection: of earlier ones nothing is kept

    def begin(self, local):
        number = next(self.numbers)
        if local:
            self.local.add(number)
        return number

    def put(self, number, what, data=b""):
        with self.lock:
            if number >= self.first:
                self.events.append((number, what, data))

    def cut(self):
        """What is on it; it goes on with the connections that come from now on."""
        with self.lock:
            events, self.events, self.first = self.events, [], next(self.numbers)
        cut = Tape()
        cut.events, cut.local = events, set(self.local)
        return cut

    def streams(self, what):
        """{connection: all bytes of that direction}"""
        streams = {}
        for number, each, data in self.events:
            if each == what:
                streams[number] = streams.get(number, b"") + data
        return streams


class Tap(Acceptor):
    """Takes connections as long as the `with` block lasts, and passes them on to the target."""

    def __init__(self, tape, target):
        self.tape, self.target = tape, target
        self.local = target.startswith("unix://")
        self.folder = tempfile.mkdtemp(prefix="perseas-tap-") if self.local else None
        if self.local:
            self.listener = socket.socket(socket.AF_UNIX)
            self.listener.bind(self.folder + "/socket")
            self.listener.listen()
            self.address = "unix://%s/socket" % self.folder
        else:
            super().__init__()

    def __exit__(self, *error):
        super().__exit__(*error)
        if self.folder:
            os.unlink(self.folder + "/socket")
            os.rmdir(self.folder)

    def dial(self):
        if self.local:
            far = socket.socket(socket.AF_UNIX)
            far.connect(self.target[len("unix://"):])
            return far
        host, _, port = self.target.rpartition(":")
        return socket.create_connection((host, int(port)))

    def accepted(self, peer):
        try:
            far = self.dial()
        except OSError:
            peer.close()
            return
        number = self.tape.begin(self.local)
        for way in ((peer, far, THERE), (far, peer, BACK)):
            threading.Thread(target=self.carry, args=[number, *way], daemon=True).start()

    def carry(self, number, source, sink, what):
        """One direction of a connection, to its end; each closes what it reads from."""
        for end in (source, sink):
            if not self.local:
                end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sizes = units() if self.local and what == BACK else None
        size = next(sizes) if sizes else PIECE
        with contextlib.suppress(OSError):
            while True:
                data, parts, _, _ = source.recvmsg(size, socket.CMSG_SPACE(4 * DESCRIPTORS))
                if not data:
                    break
                size = sizes.send(data) if sizes else PIECE
                self.tape.put(number, what, data)
                pass_on(sink, data, parts)
        if what == THERE:
            self.tape.put(number, END)
        with contextlib.suppress(OSError):
            sink.shutdown(socket.SHUT_WR)


def units():
    """How many bytes of replies to take next; it is sent those that came. Descriptors belong to the
    first byte of a reply: taken with the one before, they would be that one's."""
    left = HELLO
    while True:
        while left > 0:
            left -= len((yield left))
        head = b""
        while len(head) < 4:
            head += yield 4 - len(head)
        left, = struct.unpack("<I", head)


def pass_on(sink, data, parts):
    """All of it, the descriptors with its first byte; ours of them are closed."""
    sent = sink.sendmsg([data], parts)
    for _, _, packed in parts:
        descriptors = array.array("i")
        descriptors.frombytes(packed[:len(packed) - len(packed) % descriptors.itemsize])
        for each in descriptors:
            os.close(each)
    sink.sendall(data[sent:])
