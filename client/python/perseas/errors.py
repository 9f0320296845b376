"""What can go wrong, as exceptions: one class for each code of perseas.h, all of them PerseasError.
Every module of the package raises by `check`, which copies the library's sentence out at once.
"""
from __future__ import annotations

from typing import Any, Callable

from ._native import ffi, lib

__all__ = ["PerseasError", "InvalidArgumentError", "NoMemoryError", "SystemCallError",
           "UnreachableError", "ProtocolError", "VersionError", "NoStoreError", "ExistsError",
           "BusyError", "FencedError", "QuorumError", "InDoubtError", "BlockedError",
           "DamagedError", "MirrorMemoryError", "NoSegmentError", "SizeError", "AddressError",
           "RangeError", "UnpublishedError", "TooBigError", "EndedError", "ConflictError",
           "UndeclaredError", "RosterError", "LimitError", "SalvageError", "RdmaError",
           "DeniedError", "TlsError", "TimeoutExpired", "CancelledError", "HeapError",
           "ObjectError", "EpochError", "AgainError", "UnfinishedError", "ClosedError", "ForkError",
           "ThreadError"]


class PerseasError(Exception):
    """code is the library's (negative), name is "PERSEAS_E…", and sentence says what to do."""
    code: int = 0
    name: str = ""

    def __init__(self, sentence: str) -> None:
        super().__init__(sentence)
        self.sentence = sentence

    def __str__(self) -> str:
        return "%s: %s" % (self.name, self.sentence) if self.name else self.sentence


class InvalidArgumentError(PerseasError, ValueError):
    """An argument is invalid."""


class NoMemoryError(PerseasError, MemoryError):
    """This process is out of memory."""


class SystemCallError(PerseasError):
    """The operating system refused."""


class UnreachableError(PerseasError):
    """A mirror cannot be reached."""


class ProtocolError(PerseasError):
    """A mirror sent something that this library does not understand."""


class VersionError(PerseasError):
    """A mirror speaks another version."""


class NoStoreError(PerseasError, LookupError):
    """No mirror has the store."""


class ExistsError(PerseasError):
    """The store exists already."""


class BusyError(PerseasError):
    """The store has an owner that is alive."""


class FencedError(PerseasError):
    """Another owner has taken over the store: close it."""


class QuorumError(PerseasError):
    """Too few mirrors answered to know the newest state."""


class InDoubtError(PerseasError):
    """The commit is applied here, but not yet held by enough mirrors: Store.flush waits for it."""


class BlockedError(PerseasError):
    """An earlier commit is in doubt; nothing was done."""


class DamagedError(PerseasError):
    """An image failed its checks."""


class MirrorMemoryError(PerseasError):
    """A mirror's memory limit is reached."""


class NoSegmentError(PerseasError, LookupError):
    """The segment does not exist."""


class SizeError(PerseasError, ValueError):
    """The segment has another size."""


class AddressError(PerseasError):
    """The segment's address is taken in this process."""


class RangeError(PerseasError, ValueError):
    """The range is not inside a mapped segment."""


class UnpublishedError(PerseasError):
    """The segment is not published."""


class TooBigError(PerseasError):
    """The transaction is too large for the log."""


class EndedError(PerseasError):
    """The transaction has ended, or was not begun."""


class ConflictError(PerseasError):
    """The transaction conflicts with another open one: Store.transact tries again."""


class UndeclaredError(PerseasError):
    """Memory was changed outside the declared ranges."""


class RosterError(PerseasError):
    """The given mirrors are not those of the store."""


class LimitError(PerseasError):
    """A fixed limit is reached."""


class SalvageError(PerseasError):
    """The store was opened for salvage only."""


class RdmaError(PerseasError):
    """A mirror cannot be reached over RDMA."""


class DeniedError(PerseasError):
    """A mirror's access rules do not allow it."""


class TlsError(PerseasError):
    """TLS with a mirror failed."""


class TimeoutExpired(PerseasError, TimeoutError):
    """The call timed out before its condition was met."""


class CancelledError(PerseasError):
    """The wait was cancelled."""


class HeapError(PerseasError):
    """The heap is damaged, or of another version."""


class ObjectError(PerseasError):
    """The address is not an object of the heap, or the object has another type."""


class EpochError(PerseasError):
    """The token is of another epoch."""


class AgainError(PerseasError):
    """The call would block."""


class UnfinishedError(PerseasError):
    """The store's restore is not finished."""


class ClosedError(PerseasError, ValueError):
    """This process has closed the store, the standby or the transaction."""


class ForkError(PerseasError):
    """The store or standby belongs to the parent of this process, which opened it."""


class ThreadError(PerseasError):
    """The transaction was begun by another thread."""


# The class for each code's name. A test checks that perseas.h has the same codes.
CLASSES: dict[str, type[PerseasError]] = {
    "EINVAL": InvalidArgumentError, "ENOMEM": NoMemoryError, "ESYSTEM": SystemCallError,
    "EUNREACHABLE": UnreachableError, "EPROTOCOL": ProtocolError, "EVERSION": VersionError,
    "ENOSTORE": NoStoreError, "EEXIST": ExistsError, "EBUSY": BusyError, "EFENCED": FencedError,
    "EQUORUM": QuorumError, "EINDOUBT": InDoubtError, "EBLOCKED": BlockedError,
    "EDAMAGED": DamagedError, "EMIRRORMEM": MirrorMemoryError, "ENOSEGMENT": NoSegmentError,
    "ESIZE": SizeError, "EADDRESS": AddressError, "ERANGE": RangeError,
    "EUNPUBLISHED": UnpublishedError, "ETOOBIG": TooBigError, "EENDED": EndedError,
    "ECONFLICT": ConflictError, "EUNDECLARED": UndeclaredError, "EROSTER": RosterError,
    "ELIMIT": LimitError, "ESALVAGE": SalvageError, "ERDMA": RdmaError, "EDENIED": DeniedError,
    "ETLS": TlsError, "ETIMEOUT": TimeoutExpired, "ECANCELLED": CancelledError,
    "EHEAP": HeapError, "EOBJECT": ObjectError, "EEPOCH": EpochError, "EAGAIN": AgainError,
    "EUNFINISHED": UnfinishedError,
}
BY_CODE: dict[int, type[PerseasError]] = {}
for _short, _class in CLASSES.items():
    _class.name = "PERSEAS_" + _short
    _class.code = getattr(lib, _class.name)
    BY_CODE[_class.code] = _class

# The classes for the codes of native.h.
OWN: dict[int, tuple[type[PerseasError], str]] = {
    lib.PS_PY_CLOSED: (ClosedError, "it is closed, or is being closed: open the store again"),
    lib.PS_PY_FORKED: (ForkError, "it was opened by the parent of this process, and stays the "
                       "parent's: have the child open a store of its own, or start it by "
                       "multiprocessing's \"spawn\""),
    lib.PS_PY_THREAD: (ThreadError, "the transaction is another thread's, and only that one may "
                       "use it: begin a transaction in each thread"),
    lib.PS_PY_NEVER: (EndedError, "the transaction has ended, or was not begun: begin another one"),
}
SENTENCE_MAX = 4096                     # bytes; the library's are shorter

# perseas_error of a handle: (buffer, size, code) -> rc
Teller = Callable[[Any, int, Any], int]


def text_of(code: int) -> str:
    return str(ffi.string(lib.perseas_strerror(code)).decode())


def told(rc: int, tell: Teller | None) -> PerseasError:
    """Returns the exception for a code, with the library's sentence for the calling thread."""
    if rc in OWN:
        kind, sentence = OWN[rc]
        return kind(sentence)
    buffer, code = ffi.new("char[]", SENTENCE_MAX), ffi.new("int *")
    if tell is None:
        lib.perseas_error(ffi.NULL, buffer, SENTENCE_MAX, code)
    elif tell(buffer, SENTENCE_MAX, code):
        code[0] = 0
    # A call in a signal handler may have replaced this call's sentence.
    sentence = ffi.string(buffer).decode(errors="replace") if code[0] == rc else ""
    kind = BY_CODE.get(rc, PerseasError)
    return kind(sentence or text_of(rc))


def check(rc: int, tell: Teller | None) -> None:
    if rc:
        raise told(rc, tell)
