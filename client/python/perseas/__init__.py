"""Transactions on memory that is mirrored on other nodes: libperseas for Python.

    with perseas.open("bank", mirrors, create=True) as store:
        segment = store.map("accounts", 8000)
        store.publish()
        balances = segment.array("i8")
        with store.transaction() as tx:
            tx.writable(balances[3:4])[0] += 100

When the `with` block of the transaction is over, W mirrors hold it. doc/python.md is the guide, and
perseas.h says what each call of the library means, whose names are kept here.

Stores may be used by many threads at once, transactions by the thread that began them. Whatever
waits lets other threads run.
"""
from ._native import ffi as _ffi, lib as _lib
from .errors import *  # noqa: F401,F403
from . import process as _process  # noqa: F401
from .errors import CLASSES
from .figures import (Event, HeapStat, Latency, MirrorStat, OpenTransaction, SegmentInfo,
                      StandbyMirror, StandbyStat, Stat)
from .heap import ANY_TYPE, Heap, Object
from .options import Options
from .segment import Segment
from .standing import Standby, standby
from .store import Store, create, open
from .table import Table
from .transaction import Savepoint, Token, Transaction, lock_key

__version__: str = _ffi.string(_lib.perseas_version()).decode()

__all__ = ["ANY_TYPE", "Event", "Heap", "HeapStat", "Latency", "MirrorStat", "Object",
           "OpenTransaction", "Options", "Savepoint", "Segment", "SegmentInfo", "Standby",
           "StandbyMirror", "StandbyStat", "Stat", "Store", "Table", "Token", "Transaction",
           "create", "lock_key", "open", "standby", "PerseasError", "ClosedError", "ForkError",
           "ThreadError",
           *(each.__name__ for each in CLASSES.values())]
