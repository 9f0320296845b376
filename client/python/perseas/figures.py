"""Statistics of stores as dataclasses: the members of the C structs, whose comments in perseas.h
say what each means. A test checks that they match the structs.
"""
from __future__ import annotations

import dataclasses
from typing import Any, TypeVar

from ._native import ffi, lib

Made = TypeVar("Made")


def filled(into: type[Made], struct: Any, /, **others: Any) -> Made:
    """Returns a dataclass filled from the struct's members of the same names; texts become str."""
    values = {}
    for field in dataclasses.fields(into):
        if field.name in others:
            values[field.name] = others[field.name]
            continue
        value = getattr(struct, field.name)
        if isinstance(value, ffi.CData) and ffi.typeof(value).kind == "array":
            value = ffi.string(value).decode(errors="replace")
        values[field.name] = value
    return into(**values)


@dataclasses.dataclass(frozen=True)
class Stat:
    """Statistics of a store (struct perseas_stat). Times in ns, sizes in bytes."""
    epoch: int
    seq: int
    durable_seq: int
    mirrors: int
    acks: int
    live: int
    in_doubt: int
    commits: int
    aborts: int
    bytes_sent: int
    reconnects: int
    replayed: int
    dropped: int
    log_laps: int
    mended_forward: int
    mended_delta: int
    mended_whole: int
    resyncs: int
    resync_bytes: int
    allocations: int
    range_bytes: int
    doubts: int
    timed: int
    latency_p50_ns: int
    latency_p99_ns: int
    latency_p999_ns: int
    latency_max_ns: int
    renewals: int
    paced: int
    paced_ns: int
    missing: int
    fetched: int
    faults: int
    open: int
    saved_within: int
    saved_between: int
    gathered: int
    groups: int


@dataclasses.dataclass(frozen=True)
class MirrorStat:
    """Status of a mirror (struct perseas_mirror_stat). state is its name, for example "live"."""
    address: str
    fabric: str
    state: str
    copy_place: int
    seq: int
    resync_done: int
    resync_total: int
    resync_rate: int
    resync_ms: int
    resync_whole: str
    trouble: str


@dataclasses.dataclass(frozen=True)
class SegmentInfo:
    """A segment of a store (struct perseas_segment_info). address is the recorded one."""
    name: str
    size: int
    address: int
    mapped: bool
    published: bool


@dataclasses.dataclass(frozen=True)
class HeapStat:
    """Statistics of a heap (struct perseas_heap_stat). Sizes in bytes."""
    extents: int
    roots: int
    size: int
    objects: int
    used: int
    free: int
    gaps: int
    large: int
    allocated: int
    freed: int


@dataclasses.dataclass(frozen=True)
class StandbyStat:
    """Status of a standby (struct perseas_standby_stat). state is its name, for example "owned"."""
    state: str
    mirrors: int
    reached: int
    opens: int
    epoch: int
    owner: str
    text: str
    warning: str
    memory: int
    warm: int


@dataclasses.dataclass(frozen=True)
class StandbyMirror:
    """A mirror as a standby sees it (struct perseas_standby_mirror): its address, whether it
    answered, and why not."""
    address: str
    reached: bool
    trouble: str


@dataclasses.dataclass(frozen=True)
class Event:
    """An event of a store (struct perseas_event). kind is its name, for example "mirror-down"."""
    kind: str
    missed: int
    seq: int
    mirror: str
    text: str


@dataclasses.dataclass(frozen=True)
class OpenTransaction:
    """An open transaction (struct perseas_transaction). serial and track are its flags. Sizes in
    bytes."""
    since: int
    bytes: int
    ranges: int
    locks: int
    serial: bool
    track: bool


def transaction_of(struct: Any) -> OpenTransaction:
    return filled(OpenTransaction, struct, serial=bool(struct.flags & lib.PERSEAS_SERIAL),
                  track=bool(struct.flags & lib.PERSEAS_TRACK))


def event_of(struct: Any) -> Event:
    return filled(Event, struct, kind=ffi.string(lib.perseas_event_name(struct.kind)).decode())


def mirror_of(struct: Any) -> MirrorStat:
    state = ffi.string(lib.perseas_mirror_state_name(struct.state)).decode()
    return filled(MirrorStat, struct, state=state)


def segment_of(struct: Any) -> SegmentInfo:
    return filled(SegmentInfo, struct, address=int(ffi.cast("uintptr_t", struct.address)),
                  mapped=bool(struct.mapped), published=bool(struct.published))


class Latency:
    """The durations of commits (struct perseas_latency), as of one moment."""

    def __init__(self, struct: Any) -> None:
        self._struct = struct
        self.timed: int = struct.timed
        self.count: int = struct.count
        self.sum_ns: int = struct.sum_ns
        self.max_ns: int = struct.max_ns

    def percentile_ns(self, percent: float) -> int:
        """Returns the duration in ns that `percent` (0 to 100) of the commits do not exceed."""
        return int(lib.perseas_latency_percentile(self._struct, percent))

    def histogram(self) -> list[tuple[int, int]]:
        """Yields (ns, commits) for each bucket that is not empty: its longest duration, and its
        number of commits. For the last bucket that is the longest duration measured."""
        return [(min(int(lib.perseas_latency_bound(bucket)), self.max_ns), int(count))
                for bucket, count in enumerate(self._struct.counts) if count]

    def __repr__(self) -> str:
        return "<Latency of %d commits: p50 %d ns, p99 %d ns, longest %d ns>" % (
            self.count, self.percentile_ns(50), self.percentile_ns(99), self.max_ns)
