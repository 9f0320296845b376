"""Standbys: perseas.standby gives one, which waits until a store has no owner, and opens it."""
from __future__ import annotations

import asyncio
import atexit
import os
import types
import weakref
from typing import Any, Iterable

from . import figures, options
from ._native import ffi, lib
from .errors import PerseasError, check
from .store import OnEvent, Store, sliced

alive: weakref.WeakSet[Standby] = weakref.WeakSet()


class Standby:
    """A process that waits to own a store. One thread waits; others may look, and cancel."""

    def __init__(self, store: str, mirrors: str | Iterable[str], on_event: OnEvent | None,
                 given: dict[str, Any]) -> None:
        self.name, self._on_event, self._given = store, on_event, given
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
        """Waits until the store has no owner, and opens it; for timeout seconds at most, 0: only if
        it is time to. A signal ends the wait, but not an open that has begun.

        Errors: TimeoutExpired, CancelledError, ClosedError, those of perseas_standby_wait.
        """
        opened = Store(self.name, self._on_event, self._given)
        self._check(sliced(lambda ms: lib.ps_py_standby_wait(self._handle, ms, opened._handle),
                           timeout, lib.PERSEAS_ETIMEOUT))
        return opened._opened()

    async def owned(self) -> Store:
        """The same in asyncio: nothing waits in the loop's thread but the open itself, which
        usually takes milliseconds."""
        loop = asyncio.get_running_loop()
        fd = lib.ps_py_standby_fd(self._handle)
        if fd < 0:
            self._check(fd)
        while True:
            try:
                return self.wait(0)
            except TimeoutError:
                ready: asyncio.Future[None] = loop.create_future()
                loop.add_reader(fd, self._ready, ready)
                try:
                    await ready
                finally:
                    loop.remove_reader(fd)

    @staticmethod
    def _ready(waiter: asyncio.Future[None]) -> None:
        if not waiter.done():
            waiter.set_result(None)

    def cancel(self) -> None:
        """Ends the wait that is under way with CancelledError, or else the next one."""
        self._check(lib.ps_py_standby_cancel(self._handle))

    def stat(self) -> figures.StandbyStat:
        stat = ffi.new("struct perseas_standby_stat *")
        self._check(lib.ps_py_standby_stat(self._handle, stat))
        state = ffi.string(lib.perseas_standby_state_name(stat.state)).decode()
        return figures.filled(figures.StandbyStat, stat, state=state)

    def mirrors(self) -> list[figures.StandbyMirror]:
        mirror = ffi.new("struct perseas_standby_mirror *")
        found: list[figures.StandbyMirror] = []
        for index in range(self.stat().mirrors):
            self._check(lib.ps_py_standby_mirror(self._handle, index, mirror))
            found.append(figures.filled(figures.StandbyMirror, mirror,
                                        reached=bool(mirror.reached)))
        return found

    def close(self) -> None:
        """Ends it, and the wait of another thread. Stores that it has opened stay open."""
        alive.discard(self)
        lib.ps_py_standby_close(self._handle)

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


os.register_at_fork(after_in_child=alive.clear)
