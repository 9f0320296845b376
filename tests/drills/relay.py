"""A TCP relay between an owner and a mirror that behaves like a bad network: it delays, holds one
direction or both, breaks connections, and recovers.

Tests use the class. Run as a program, it is the relay itself:

    relay.py HOST PORT      listens on a loopback port, which it prints, and forwards to HOST

It reads a command a line on standard input, answers each with "ok", and ends with its input:

    delay MS                delays every byte by MS, in both directions
    hold there | hold back  holds all bytes to the mirror, or from it: the sender soon finds the
                            socket full
    catch TEXT COUNT        holds bytes to the mirror from those with TEXT on, on the first COUNT
                            connections that send them
    caught                  "ok" and how many connections are caught
    go                      stops holding and delaying
    meter                   lets data connections pass only what is allowed to the mirror: OPENING
                            bytes at their beginning, and then
    allow COUNT             COUNT bytes more; "ok" and how many of the allowed bytes were not
                            passed to the mirror, or not read by it yet
    drop                    resets every connection
    passed                  "ok" and how many bytes went there and came back
"""
import collections
import os
import pathlib
import select
import socket
import struct
import subprocess
import sys
import time

THERE, BACK = "there", "back"
PIECE = 256 << 10                       # bytes received at once
ROOM = 16 << 20                         # bytes that the network buffers in each direction
SOCKET_ROOM = 128 << 10  # small, so that the socket of a held connection is full soon
MAGIC = struct.pack("<I", 0x44535350)   # first bytes of a data connection
OPENING = 64 << 10
RESET = struct.pack("ii", 1, 0)         # struct linger: close() resets


class Way:
    """One direction of a connection: the bytes that were received and not yet passed on."""

    def __init__(self, name, source, sink):
        self.name, self.source, self.sink = name, source, sink
        self.parts = collections.deque()    # (when it is due, bytes)
        self.size, self.passed = 0, 0
        self.ended, self.told, self.full, self.caught = False, False, False, False
        self.metered, self.begun = False, False

    def has(self, text):
        return any(text in bytes(data) for _, data in self.parts)

    def hungry(self):
        return not self.ended and self.size < ROOM

    def due(self, now):
        return bool(self.parts) and self.parts[0][0] <= now

    def receive(self, due):
        data = self.source.recv(PIECE)
        if data:
            self.parts.append((due, memoryview(data)))
            self.size += len(data)
        else:
            self.ended = True
            self.finish()

    def send(self, now, most=None):
        """Passes on bytes that are due, at most `most`, as far as the socket accepts them. Returns
        how many."""
        before = self.passed
        self.full = False
        while self.due(now) and not self.full and self.passed - before != most:
            due, data = self.parts.popleft()
            part = data if most is None else data[:most - (self.passed - before)]
            try:
                count = self.sink.send(part)
            except BlockingIOError:
                count = 0
            self.size -= count
            self.passed += count
            self.full = count < len(part)
            if count < len(data):
                self.parts.appendleft((due, data[count:]))
        self.finish()
        return self.passed - before

    def finish(self):
        """Passes on the end of the connection, after the bytes before it."""
        if self.ended and not self.parts and not self.told:
            self.told = True
            self.sink.shutdown(socket.SHUT_WR)


class Pair:
    """The owner's connection to the relay, and the relay's to the mirror."""

    def __init__(self, near, far):
        self.sockets = (near, far)
        for each in self.sockets:
            each.setblocking(False)
            each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.ways = (Way(THERE, near, far), Way(BACK, far, near))

    def over(self):
        return all(way.ended and not way.parts for way in self.ways)

    def close(self, reset=False):
        for each in self.sockets:
            if reset:
                each.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
            each.close()


class Program:
    """The relay process: one thread, one loop."""

    def __init__(self, target):
        self.target = target
        self.delay, self.held, self.pairs = 0, set(), []
        self.text, self.catches = b"", 0
        self.meters, self.allowed = False, 0
        self.passed = {THERE: 0, BACK: 0}
        self.buffer = b""
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, SOCKET_ROOM)
        print(self.listener.getsockname()[1], flush=True)

    def accept(self):
        near = self.listener.accept()[0]
        far = socket.socket()
        far.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, SOCKET_ROOM)
        try:
            far.connect(self.target)
        except OSError:
            near.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
            near.close()
            far.close()
            return
        self.pairs.append(Pair(near, far))

    def obey(self, line):
        """Executes a command. Returns the answer."""
        verb, *words = line.split()
        if verb == "delay":
            self.delay = float(words[0]) / 1000
        elif verb == "hold":
            self.held.add(words[0])
        elif verb == "catch":
            self.text, self.catches = words[0].encode(), int(words[1])
        elif verb == "caught":
            return "ok %d" % sum(way.caught for way in self.ways())
        elif verb == "meter":
            self.meters = True
        elif verb == "allow":
            self.allowed += int(words[0])
            return "ok %d" % (self.allowed + self.unread())
        elif verb == "go":
            self.held, self.delay, self.catches, self.meters = set(), 0, 0, False
            for way in self.ways():
                way.caught = way.metered = False
        elif verb == "drop":
            for pair in list(self.pairs):
                self.end(pair, reset=True)
        elif verb == "passed":
            return "ok %d %d" % (self.total(THERE), self.total(BACK))
        else:
            return "there is no " + verb
        return "ok"

    def total(self, name):
        return self.passed[name] + sum(w.passed for w in self.ways() if w.name == name)

    def ways(self):
        return [way for pair in self.pairs for way in pair.ways]

    def is_held(self, way):
        return way.caught or way.name in self.held

    def catch(self, way):
        if self.catches and way.name == THERE and way.has(self.text):
            self.catches -= 1
            way.caught = True

    def meter(self, way):
        """Recognizes a data connection by its first bytes. What was allowed for an earlier one
        expires."""
        if not way.begun and way.name == THERE and way.size >= len(MAGIC):
            way.begun = True
            way.metered = self.meters and bytes(way.parts[0][1][:len(MAGIC)]) == MAGIC
            if way.metered:
                self.allowed = OPENING

    def unread(self):
        """Returns the bytes passed on data connections that the mirror has not read yet."""
        ours = {way.sink.getsockname()[1] for way in self.ways() if way.metered}
        count = 0
        for line in pathlib.Path("/proc/net/tcp").read_text().splitlines()[1:]:
            _, near, far, _, queues, *_ = line.split()
            ports = [int(end.rpartition(":")[2], 16) for end in (near, far)]
            to_send, to_read = (int(queue, 16) for queue in queues.split(":"))
            if ports[0] in ours and ports[1] == int(self.target[1]):
                count += to_send
            if ports[1] in ours and ports[0] == int(self.target[1]):
                count += to_read
        return count

    def pass_on(self, way, now):
        if way.metered and way.ended:
            raise ConnectionAbortedError("the rest is lost with its sender")
        if way.metered:
            self.allowed -= way.send(now, self.allowed)
        else:
            way.send(now)

    def commands(self):
        """Executes the commands that have arrived. Returns False at the end of input."""
        part = os.read(0, 4096)
        self.buffer += part
        while b"\n" in self.buffer:
            line, _, self.buffer = self.buffer.partition(b"\n")
            print(self.obey(line.decode()), flush=True)
        return bool(part)

    def end(self, pair, reset=False):
        for way in pair.ways:
            self.passed[way.name] += way.passed
        pair.close(reset)
        self.pairs.remove(pair)

    def move(self, pair, readable, writable):
        now = time.monotonic()
        for way in pair.ways:
            if self.is_held(way):
                continue
            if way.source in readable and way.hungry():
                way.receive(now + self.delay)
                self.catch(way)
                self.meter(way)
            if way.caught:
                continue
            if way.sink in writable or not way.full:
                self.pass_on(way, now)

    def watched(self, now):
        """Returns what to wait for: sockets to read, sockets to write, and a timeout."""
        readers, writers, wait = [self.listener, 0], [], None
        for way in self.ways():
            if self.is_held(way):
                continue
            if way.hungry():
                readers.append(way.source)
            if way.metered and not self.allowed:
                continue
            if way.due(now) and way.full:
                writers.append(way.sink)
            elif way.parts:
                left = max(0, way.parts[0][0] - now)
                wait = left if wait is None else min(wait, left)
        return readers, writers, wait

    def run(self):
        while True:
            readers, writers, wait = self.watched(time.monotonic())
            readable, writable, _ = select.select(readers, writers, [], wait)
            if 0 in readable and not self.commands():
                return
            for pair in list(self.pairs):
                try:
                    self.move(pair, readable, writable)
                except OSError:             # an end broke it, so it breaks for both
                    self.end(pair, reset=True)
                else:
                    if pair.over():
                        self.end(pair)
            if self.listener in readable:
                self.accept()


class Relay:
    """with Relay(daemon) as relay: owners that use relay.address reach the mirror through the
    relay."""

    def __init__(self, daemon):
        host, _, port = daemon.address.rpartition(":")
        self.daemon = daemon
        self.process = subprocess.Popen(
            [sys.executable, str(pathlib.Path(__file__).resolve()), host, port],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.address = "127.0.0.1:%d" % int(self.process.stdout.readline())

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()

    def ask(self, *words):
        """Sends a command. Returns the words after "ok"."""
        self.process.stdin.write(" ".join(str(w) for w in words) + "\n")
        self.process.stdin.flush()
        verdict, *rest = self.process.stdout.readline().split()
        assert verdict == "ok", " ".join([verdict, *rest])
        return rest

    def delay(self, milliseconds):
        self.ask("delay", milliseconds)

    def hold(self, *ways):
        for way in ways or (THERE, BACK):
            self.ask("hold", way)

    def catch(self, text, count):
        self.ask("catch", text, count)

    def caught(self):
        """Returns how many connections have sent the text and are caught."""
        return int(self.ask("caught")[0])

    def go(self):
        self.ask("go")

    def drop(self):
        self.ask("drop")

    def meter(self):
        self.ask("meter")

    def allow(self, count=0):
        """Allows bytes. Returns how many of the allowed bytes were not passed to the mirror, or not
        read by it yet."""
        return int(self.ask("allow", count)[0])

    def passed(self):
        """Returns the bytes passed there and back."""
        return tuple(int(word) for word in self.ask("passed"))


if __name__ == "__main__":
    Program((sys.argv[1], int(sys.argv[2]))).run()
