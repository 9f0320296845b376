"""Protects open stores from the interpreter's end and from forks. Importing the package registers
it; nothing else calls it. It must not raise: nothing could catch that.
"""
from __future__ import annotations

import atexit
import os
import sys
import threading

from . import memory
from ._native import lib
from .errors import PerseasError
from .store import WHOLE_SECONDS, Store, alive


@atexit.register
def close_all() -> None:
    """Closes all stores before the interpreter ends: after that the library's threads must not call
    Python."""
    for store in list(alive):
        try:
            store.close()
        except (PerseasError, BufferError) as error:
            print("perseas: store '%s' at the end: %s" % (store.name, error), file=sys.stderr)


def inherit(store: Store, is_inherited: bool) -> None:
    """Gives a child of fork its views, with the contents at the time of the fork, as for any other
    memory."""
    for each in list(store._memories.values()):
        if each.is_viewed():
            lib.ps_py_inherit(each.pointer, each.size, is_inherited)


def before_fork() -> None:
    for each in list(memory.left_behind):
        lib.ps_py_inherit(each.pointer, each.size, True)
    for store in list(alive):
        if store._on_demand and lib.ps_py_wait_whole(store._handle, int(WHOLE_SECONDS * 1000)):
            continue
        inherit(store, True)


def after_fork_here() -> None:
    for store in list(alive):
        inherit(store, False)


def after_fork_there() -> None:
    for store in list(alive):
        store._foreign = True
        store._lock, store._closing = threading.RLock(), threading.RLock()


os.register_at_fork(before=before_fork, after_in_parent=after_fork_here,
                    after_in_child=after_fork_there)
