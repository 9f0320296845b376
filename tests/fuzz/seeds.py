"""Tapes of real sessions (tap.py) as inputs of the fuzz targets: each function gives {name: bytes}
for one target, as the head of its source says that they are written down."""
import pathlib
import re
import struct

import wire
from tap import BACK, END, THERE

TOP = pathlib.Path(__file__).resolve().parents[2]
SEED_MAX = 32 << 10
PIECE = 4000                            # bytes that are sent at once
EVENTS_MAX = 64                         # of fuzz_control
HELLO = len(wire.control_hello())
DATA_HELLO = len(wire.data_hello())
LIST_REPLY = 4                          # field of Reply
READ_LENGTH = 4                         # field of ReadRequest
PAGE = 4096                             # of the log: the slots, before the ring
SLOTS = (0, 128)                        # where they are in it
SLOT = struct.Struct("<4QII")
PLACE = len(wire.frame(wire.WRITE, (0, 0, 0))) - len(wire.frame(wire.WRITE))    # of one extent
HEAD = len(wire.frame(wire.WRITE))


def bodies(message):
    """{number of the field: its name} of Request or Reply."""
    text = (TOP / "proto/control.proto").read_text()
    body = re.search(r"message %s \{(.*?)\n\}" % message, text, re.S)[1]
    return {int(number): name for name, number in re.findall(r"\w+ (\w+) = (\d+);", body)}


def is_data(stream):
    return stream.startswith(struct.pack("<I", wire.DATA_MAGIC))


def is_control(stream):
    return stream.startswith(struct.pack("<I", wire.CONTROL_MAGIC))


def messages(stream):
    """Those of one direction of a control connection that are whole; how many bytes they are."""
    found, at = [], HELLO
    while at + 4 <= len(stream):
        length, = struct.unpack_from("<I", stream, at)
        if at + 4 + length > len(stream):
            break
        found.append(stream[at + 4:at + 4 + length])
        at += 4 + length
    return found, at


def frames(stream):
    """(op, [(region, offset, bytes)]) of a data connection's frames that are whole, and how many
    bytes they are; a read's bytes are zeros."""
    found, at = [], DATA_HELLO
    while at + HEAD <= len(stream):
        op, _, count, _, _ = struct.unpack_from("<BBHIQ", stream, at)
        end = at + HEAD + count * PLACE
        if end > len(stream):
            break
        extents = []
        for region, length, offset in struct.iter_unpack("<IIQ", stream[at + HEAD:end]):
            data = stream[end:end + length] if op == wire.WRITE else bytes(length)
            extents.append((region, offset, data))
            end += length if op == wire.WRITE else 0
        if end > len(stream):
            break
        found.append((op, extents))
        at = end
    return found, at


# --- what one direction of one connection says ---

def of_messages(tape, way, kind):
    """Named for what they are: all that differ."""
    names, seeds = bodies(kind), {}
    for stream in tape.streams(way).values():
        if not is_control(stream):
            continue
        for message in messages(stream)[0]:
            name = next((names[n] for n, _ in wire.pairs(message) if n in names), "refused")
            if kind == "Reply" and name in ("status", "message", "promised_epoch"):
                name = "refused"
            seeds["%s-%d" % (name, len(seeds))] = message
    return seeds


def request(tape):
    return of_messages(tape, THERE, "Request")


def reply(tape):
    return of_messages(tape, BACK, "Reply")


def frame(tape):
    streams = [each for each in tape.streams(THERE).values() if is_data(each)]
    return {"frames-%d" % i: b"\xff" + each[DATA_HELLO:] for i, each in enumerate(streams)}


def answer(tape):
    """As far as the target goes: writes that are due, then one read."""
    seeds, places = {}, tape.streams(THERE)
    for number, stream in tape.streams(BACK).items():
        if not is_data(places.get(number, b"")):
            continue
        at, writes, asked = 16, 0, 0
        while at + 16 <= len(stream) and writes < 255 and not asked:
            op, _, length, _ = wire.answer(stream[at:at + 16])
            writes += op == wire.WRITE
            asked = length
            at += 16 + length
        seeds["answers-%d" % number] = struct.pack(">BHB", writes, min(asked, 0xffff), 100) + \
            stream[16:at]
    return seeds


def fetch(tape):
    """Of each connection that only asks for a status, bytes and a status: what it is told."""
    names, seeds, told = bodies("Request"), {}, tape.streams(BACK)
    for number, stream in tape.streams(THERE).items():
        if not is_control(stream):
            continue
        asked = [wire.fields(each) for each in messages(stream)[0][:3]]
        kinds = [min(each) for each in asked]
        if [names[kind] for kind in kinds] == ["status", "read", "status"]:
            length = wire.fields(asked[1][kinds[1]])[READ_LENGTH]
            seeds["answer-%d" % number] = (length - 1).to_bytes(3, "big") + b"\x0f" + told[number]
    return seeds


# --- what all connections of a daemon say ---

class Places:
    """Which of so many peers of a target has which connection of the tape; one for which there is
    no place is left out."""

    def __init__(self, count):
        self.free, self.of = list(range(count)), {}

    def take(self, number):
        if number not in self.of and self.free:
            self.of[number] = self.free.pop(0)
        return self.of.get(number)

    def leave(self, number):
        place = self.of.pop(number, None)
        if place is not None:
            self.free.append(place)
        return place


def owner_of(tape, hello):
    """The connection that was told the token of a data connection's hello; None: nobody was."""
    token = hello[8:24]
    for number, stream in tape.streams(BACK).items():
        if is_control(stream) and token in stream:
            return number
    return None


def joined(events):
    """Neighbours of the same connection and direction as one."""
    out = []
    for number, what, data in events:
        if out and out[-1][:2] == (number, what) and what != END:
            out[-1] = (number, what, out[-1][2] + data)
        else:
            out.append((number, what, data))
    return out


def event(what, place):
    """Of fuzz_control and of tests/support/daemon_peers.h."""
    return bytes([what << 2 | place])


def opening(tape, places, number, data, raw):
    """The event of a new connection that begins with these bytes, and those that are left."""
    owner = owner_of(tape, data) if is_data(data) else None
    place = places.of[number]
    if number in tape.local:
        return event(3, place), data
    if owner in places.of and len(data) >= DATA_HELLO:
        hello = bytes([places.of[owner]]) + counted(bytes(DATA_HELLO))
        return event(4, place) + hello, data[DATA_HELLO:]
    return event(2 if raw else 1, place), data


def counted(data):
    """Behind its length, of 2 bytes."""
    return struct.pack("<H", len(data)) + data


def said(tape, places, number, data, raw):
    """The events of these bytes; none: there is no place for the connection."""
    new, place = number not in places.of, places.take(number)
    if place is None:
        return []
    out = []
    if new:
        first, data = opening(tape, places, number, data, raw)
        out.append(first)
    for at in range(0, len(data), PIECE):
        out.append(event(0, place) + counted(data[at:at + PIECE]))
    return out


def connection(tape, raw=False, most=SEED_MAX):
    """raw: TCP connections are not to have TLS put on, they have it."""
    parts, places = [], Places(4)
    for number, what, data in joined(e for e in tape.events if e[1] != BACK):
        if what != END:
            parts += said(tape, places, number, data, raw)
        elif number in places.of:
            parts.append(event(5, places.leave(number)))
    while sum(map(len, parts)) > most:
        parts.pop()
    return {"session": b"".join(parts)} if parts else {}


def inside(tape):
    """For a daemon with TLS, what was said over TCP without: less, since handshakes take time."""
    return {} if tape.local else connection(tape, most=SEED_MAX // 4)


def plain(tape):
    """.. what was said to one, with TLS or not."""
    return connection(tape, raw=True)


def control(tape):
    """Requests, and the writes of their data paths, 255 bytes at most each: as many events as the
    target takes."""
    parts, places, rest = [], Places(3), {}
    for number, what, data in tape.events:
        if what == END and number in places.of:
            parts.append(event(2, places.leave(number)))
        elif what == THERE:
            stream = rest[number] = rest.get(number, b"") + data
            if is_control(stream) and places.take(number) is not None:
                used = add_requests(parts, stream, places.of[number])
                rest[number] = stream[:HELLO] + stream[used:]
            elif is_data(stream) and owner_of(tape, stream) in places.of:
                used = add_writes(parts, stream, places.of[owner_of(tape, stream)])
                rest[number] = stream[:DATA_HELLO] + stream[used:]
    return {"session": b"".join(parts[:EVENTS_MAX])} if parts else {}


def add_requests(parts, stream, place):
    found, used = messages(stream)
    parts += [event(0, place) + counted(each) for each in found if len(each) <= 0xffff]
    return used


def add_writes(parts, stream, place):
    found, used = frames(stream)
    for op, extents in found:
        for region, offset, data in extents if op == wire.WRITE else []:
            for at in range(0, len(data), 255):
                piece = data[at:at + 255]
                head = struct.pack("<IHB", region, (offset + at) & 0xffff, len(piece))
                parts.append(event(1, place) + head + piece)
    return used


# --- what a mirror's memory holds ---

def unfinished(tape):
    """Every state of the log in which a record is there and its slot is not: (slots, record)."""
    for stream in tape.streams(THERE).values():
        if not is_data(stream):
            continue
        log = bytearray(1 << 20)
        for op, extents in frames(stream)[0]:
            for region, offset, data in extents:
                if op != wire.WRITE or region != wire.LOG or offset + len(data) > len(log):
                    continue
                log[offset:offset + len(data)] = data
                slots = [log[at:at + SLOT.size] for at in SLOTS]
                if offset >= PAGE and any(any(slot) for slot in slots):
                    yield bytes(slots[0] + slots[1]), data


def image(tape):
    return {"image-%d" % i: b"\0" + slots + record
            for i, (slots, record) in enumerate(unfinished(tape))}


def log(tape):
    return {name.replace("image", "log"): seed for name, seed in image(tape).items()}


def record(tape):
    return {"record-%d" % i: b"\0" + record for i, (_, record) in enumerate(unfinished(tape))}


def top(tapes):
    """Looks at three mirrors, each look one list of each."""
    lists = []
    for tape in tapes:
        replies = [m for s in tape.streams(BACK).values() if is_control(s) for m in messages(s)[0]]
        lists.append([m for m in replies if LIST_REPLY in wire.fields(m)])
    return {"looks": b"".join(wire.message(each) for look in zip(*lists) for each in look)}


OF_A_DAEMON = {"request": request, "reply": reply, "frame": frame, "answer": answer,
               "fetch": fetch, "connection": connection, "tls": inside, "control": control,
               "image": image, "log": log, "record": record}
