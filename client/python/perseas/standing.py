"""Standbys: perseas.standby returns one, which waits until a store has no owner, and opens it."""
from __future__ import annotations

import asyncio
import atexit
import os
import threading
import types
import weakref
from typing import Any, Iterable

from . import figures, options
from ._native import ffi, lib
from .errors import PerseasError, check
from .store import OnEvent, Store, sliced

alive: weakref.WeakSet[Standby] = weakref.WeakSet()


class Standby:
    """A standby, which waits to own a store. One thread waits; others may ask for its status and
    cancel the wait."""

    def __init__(self, store: str, mirrors: str | Iterable[str], on_event: OnEvent | None,
                 given: dict[str, Any]) -> None:
        self.name, self._on_event, self._given = store, on_event, given
        self._lock, self._closed = threading.RLock(), False
        # Event loops that watch the descriptor, which is closed with the standby.
        self._watchers: dict[asyncio.Future[None], asyncio.AbstractEventLoop] = {}
        handle = lib.ps_py_standby_new()
        if not handle:
            raise MemoryError("no memory for a standby")
        self._handle = ffi.gc(handle, lib.ps_py_standby_free)
        made, _keeps = options.made(given)
        check(lib.ps_py_standby(self._handle, options.encoded(store, "store"),
                                options.encoded(options.listed(mirrors), "mirrors"), made), None)
        alive.add(self)

    def _check(self, rc: int) -> None:
        if rc:
            check(rc, None)

    def wait(self, timeout: float | None = None) -> Store:
        """Waits until the store has no owner, and opens it. timeout is in seconds; 0 opens the
        store only if it can be opened now. A signal ends the wait, but not an open that has begun.
        Errors: TimeoutExpired, CancelledError, ClosedError, those of perseas_standby_wait.
        """
        opened = Store(self.name, self._on_event, self._given)
        self._check(sliced(lambda ms: lib.ps_py_standby_wait(self._handle, ms, opened._handle),
                           timeout, lib.PERSEAS_ETIMEOUT))
        return opened._opened()

    async def owned(self) -> Store:
        """Waits in asyncio. The loop's thread is blocked only by the open itself, which usually
        takes milliseconds. Errors: those of wait; ClosedError (the standby was closed in the
        meantime)."""
        while True:
            try:
                return self.wait(0)
            except TimeoutError:
                ready = self._watch(asyncio.get_running_loop())
                try:
                    await ready
                finally:
                    self._unwatch(ready)

    def _watch(self, loop: asyncio.AbstractEventLoop) -> asyncio.Future[None]:
        """Called when the descriptor is readable or the standby is closed."""
        with self._lock:
            fd = lib.PS_PY_CLOSED if self._closed else lib.ps_py_standby_fd(self._handle)
            if fd < 0:
                self._check(fd)
            ready: asyncio.Future[None] = loop.create_future()
            loop.add_reader(fd, self._wake, loop)
            self._watchers[ready] = loop
            return ready

    def _unwatch(self, ready: asyncio.Future[None]) -> None:
        """Stops watching the descriptor. Does nothing after close(): the number may belong to
        another descriptor by then."""
        with self._lock:
            loop = self._watchers.pop(ready, None)
            if loop is None or loop.is_closed() or loop in self._watchers.values():
                return
            loop.remove_reader(lib.ps_py_standby_fd(self._handle))

    def _wake(self, loop: asyncio.AbstractEventLoop) -> None:
        """Called in the loop's thread when the descriptor is readable."""
        for ready, of in list(self._watchers.items()):
            if of is loop:
                self._ready(ready)

    @staticmethod
    def _ready(waiter: asyncio.Future[None]) -> None:
        if not waiter.done():
            waiter.set_result(None)

    def cancel(self) -> None:
        """Ends the current wait, or else the next one, with CancelledError. Errors: ClosedError,
        ForkError."""
        self._check(lib.ps_py_standby_cancel(self._handle))

    def stat(self) -> figures.StandbyStat:
        """Returns the status, as the mirrors reported it last. Errors: ClosedError, ForkError."""
        stat = ffi.new("struct perseas_standby_stat *")
        self._check(lib.ps_py_standby_stat(self._handle, stat))
        state = ffi.string(lib.perseas_standby_state_name(stat.state)).decode()
        return figures.filled(figures.StandbyStat, stat, state=state)

    def mirrors(self) -> list[figures.StandbyMirror]:
        """Returns the last answer of each mirror. Errors: ClosedError, ForkError."""
        mirror = ffi.new("struct perseas_standby_mirror *")
        found: list[figures.StandbyMirror] = []
        for index in range(self.stat().mirrors):
            self._check(lib.ps_py_standby_mirror(self._handle, index, mirror))
            found.append(figures.filled(figures.StandbyMirror, mirror,
                                        reached=bool(mirror.reached)))
        return found

    def close(self) -> None:
        """Ends the standby, and the waits of other threads and coroutines, which get CancelledError
        or ClosedError. Stores that it has opened stay open."""
        alive.discard(self)
        with self._lock:
            self._closed = True
            watchers = dict(self._watchers)
            for ready in watchers:
                self._unwatch(ready)
        lib.ps_py_standby_close(self._handle)
        for ready, loop in watchers.items():
            if not loop.is_closed():
                loop.call_soon_threadsafe(self._ready, ready)

    def __enter__(self) -> Standby:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: types.TracebackType | None) -> None:
        self.close()

    def __repr__(self) -> str:
        try:
            stat = self.stat()
        except PerseasError as error:
            return "<perseas.Standby for '%s': %s>" % (self.name, error)
        return "<perseas.Standby for '%s': %s, %s>" % (self.name, stat.state, stat.text)


def standby(store: str, mirrors: str | Iterable[str], *, on_event: OnEvent | None = None,
            **given: Any) -> Standby:
    """Begins to stand by for a store, and returns at once. Parameters are those of perseas.open,
    and order, name, warm, warm_rate. Errors: those of perseas_standby; TypeError."""
    return Standby(store, mirrors, on_event, given)


@atexit.register
def close_all() -> None:
    for each in list(alive):
        each.close()


def after_fork_there() -> None:
    """In a child of fork, stops watching descriptors: these, and the loops that watch them, belong
    to the parent."""
    for each in list(alive):
        each._lock, each._watchers = threading.RLock(), {}
    alive.clear()


os.register_at_fork(after_in_child=after_fork_there)
