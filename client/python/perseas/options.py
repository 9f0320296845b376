"""Options of stores and standbys as keyword arguments: the members of struct perseas_options, and
its flags by their names. The library checks ranges and says what is allowed; here values are only
checked to fit their members.
"""
from __future__ import annotations

from typing import Any, Mapping, TypedDict

from ._native import ffi, lib
from .errors import InvalidArgumentError


class Options(TypedDict, total=False):
    """The options of perseas.open, perseas.create and perseas.standby; perseas.h describes each in
    full.

    create: create the store if no mirror has it; takeover: fence a live owner; check_overlap,
    check_writes: find mistakes in declaring ranges; salvage: only map; cancel: cancel a change of
    the roster; tracked: transactions may begin with track=True; level_0: a store that is created
    can also be used by the previous version.

    acks: W of a store that is created; log_size: bytes of its undo log, 4 KiB to 64 GiB;
    ring_size: bytes of the ring of sent transactions, at least 64 KiB. Times in ms:
    connect_timeout_ms, commit_timeout_ms, open_timeout_ms, pace_ms, mirror_timeout_ms,
    flush_within_ms; in µs: spin_us, gather_us. Rates in bytes per second: resync_rate, fetch_rate,
    warm_rate. 0 or absent: the library's default.

    recovery: "read first" or "on demand". order, name, warm: for standbys.
    """
    create: bool
    takeover: bool
    check_overlap: bool
    check_writes: bool
    salvage: bool
    cancel: bool
    tracked: bool
    level_0: bool
    acks: int
    log_size: int
    ring_size: int
    connect_timeout_ms: int
    commit_timeout_ms: int
    open_timeout_ms: int
    spin_us: int
    accept_epoch: int
    accept_seq: int
    resync_rate: int
    tls_cert: str
    tls_key: str
    tls_ca: str
    tls_crl: str
    pace_ms: int
    recovery: str
    fetch_rate: int
    mirror_timeout_ms: int
    order: int
    name: str
    warm: bool
    warm_rate: int
    flush_within_ms: int
    gather_us: int
    gather_bytes: int


FLAGS = {"create": lib.PERSEAS_CREATE, "takeover": lib.PERSEAS_TAKEOVER,
         "check_overlap": lib.PERSEAS_CHECK_OVERLAP, "check_writes": lib.PERSEAS_CHECK_WRITES,
         "salvage": lib.PERSEAS_SALVAGE, "cancel": lib.PERSEAS_CANCEL,
         "tracked": lib.PERSEAS_TRACKED, "level_0": lib.PERSEAS_LEVEL_0}
RECOVERIES = {"read first": lib.PERSEAS_RECOVERY_READ_FIRST,
              "on demand": lib.PERSEAS_RECOVERY_ON_DEMAND}
TEXTS = ("tls_cert", "tls_key", "tls_ca", "tls_crl", "name")
# Members of the C structure that are not options in Python.
HIDDEN = ("size", "flags", "on_event", "event_arg")


def encoded(text: str, what: str) -> bytes:
    """Encodes a text for C. Refuses a text with a zero byte, which C would cut off there."""
    if not isinstance(text, str):
        raise TypeError("%s must be a str, not %s" % (what, type(text).__name__))
    if "\0" in text:
        raise InvalidArgumentError("%s has a zero byte in it" % what)
    return text.encode()


def whole(value: int, what: str, bits: int = 64) -> int:
    """Checks that the value is an unsigned number of so many bits."""
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise TypeError("%s must be an int, not %s" % (what, type(value).__name__))
    number = value.__index__()
    if not 0 <= number < 1 << bits:
        raise InvalidArgumentError("%s must be 0 to %d, and is %d" % (
            what, (1 << bits) - 1, number))
    return number


def listed(mirrors: Any) -> str:
    """Returns a comma-separated list from one text or several addresses."""
    return mirrors if isinstance(mirrors, str) else ",".join(mirrors)


def recovery_of(value: Any) -> int:
    if value not in RECOVERIES:
        raise InvalidArgumentError("recovery must be %s, and is %r" % (
            " or ".join(map(repr, RECOVERIES)), value))
    return int(RECOVERIES[value])


def made(given: Mapping[str, Any]) -> tuple[Any, list[Any]]:
    """Returns a struct perseas_options, and the objects that must stay alive while it is used."""
    options = ffi.new("struct perseas_options *")
    options.size, keeps = ffi.sizeof("struct perseas_options"), []
    members = {name: field.type for name, field in ffi.typeof("struct perseas_options").fields}
    for name, value in given.items():
        if name in FLAGS:
            options.flags |= FLAGS[name] if value else 0
        elif name == "recovery":
            options.recovery = recovery_of(value)
        elif name == "warm":
            options.warm = bool(value)
        elif name in TEXTS:
            if value is not None:
                keeps.append(ffi.new("char[]", encoded(value, name)))
                setattr(options, name, keeps[-1])
        elif name in members and name not in HIDDEN:
            setattr(options, name, whole(value, name, 8 * ffi.sizeof(members[name])))
        else:
            raise TypeError("there is no option %r; there are: %s" % (
                name, ", ".join(sorted(Options.__annotations__))))
    return options, keeps
