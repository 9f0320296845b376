"""asyncio: coroutines that wait until W mirrors hold a transaction. One reader of the store's
descriptor serves all of them, in the first event loop that asks. No thread waits.
"""
from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Any

from ._native import ffi, lib
from .errors import InvalidArgumentError, PerseasError, check

if TYPE_CHECKING:
    from .store import Store
    from .transaction import Token

# After EAGAIN during a change of segments the descriptor tells nothing (perseas_nowait.h).
ROOM_SECONDS = 0.02


class Durability:
    """The coroutines that wait for tokens of a store."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._loop: asyncio.AbstractEventLoop | None = None
        self._fd = -1                                   # -1: nobody may watch one
        self._lock = threading.RLock()                  # of who begins and ends to watch it
        self._waiters: dict[asyncio.Future[Any], int] = {}  # seq; 0: for room

    def _listen(self) -> asyncio.AbstractEventLoop:
        loop = asyncio.get_running_loop()
        if self._loop is loop and self._fd >= 0:
            return loop
        if self._loop is not None and self._waiters and not self._loop.is_closed():
            raise InvalidArgumentError("another event loop waits for this store: await its tokens "
                                       "in one loop, or call Store.wait in a thread")
        fd = lib.ps_py_fd(self._store._handle)
        if fd < 0:
            check(fd, self._store._tell)
        self._loop, self._fd, self._waiters = loop, fd, {}
        return loop

    async def _wait(self, seq: int, seconds: float | None) -> None:
        with self._lock:
            loop = self._listen()
            future: asyncio.Future[Any] = loop.create_future()
            if not self._waiters:
                loop.add_reader(self._fd, self._look)
            self._waiters[future] = seq
        try:
            self._look()
            await asyncio.wait_for(future, seconds)
        finally:
            with self._lock:
                self._waiters.pop(future, None)
                if not self._waiters:
                    self._rest()

    def _rest(self) -> None:
        """Stops watching the descriptor. Does nothing after closing(): the number may belong to
        another descriptor by then."""
        if self._fd >= 0 and self._loop is not None and not self._loop.is_closed():
            self._loop.remove_reader(self._fd)

    def _look(self) -> None:
        """Called when the descriptor is readable."""
        token = ffi.new("struct perseas_token *")
        try:
            check(lib.ps_py_durable(self._store._handle, token), self._store._tell)
            error = None
        except PerseasError as failed:
            error = failed
        for future, seq in list(self._waiters.items()):
            if future.done():
                continue
            if token.seq >= seq:
                future.set_result(None)
            elif error is not None:
                future.set_exception(error)

    async def durable(self, token: Token) -> Token:
        asked = ffi.new("struct perseas_token *", (token.epoch, token.seq))
        # The wait also sends gathered commits.
        rc = lib.ps_py_wait(self._store._handle, asked, 0)
        if rc == lib.PERSEAS_ETIMEOUT:
            await self._wait(token.seq, None)
        elif rc:
            check(rc, self._store._tell)
        return token

    async def room(self) -> None:
        """Waits until a mirror makes progress, or for a moment."""
        newest = ffi.new("struct perseas_token *")
        check(lib.ps_py_posted(self._store._handle, newest), self._store._tell)
        try:
            await self._wait(max(newest.seq, 1), ROOM_SECONDS)
        except asyncio.TimeoutError:
            pass

    def closing(self) -> None:
        """Stops watching the descriptor before it is closed. Any thread may call it."""
        with self._lock:
            if self._waiters:
                self._rest()
            self._fd = -1

    def closed(self) -> None:
        """Raises ClosedError in all waiting coroutines after the store was closed. Any thread may
        call it."""
        if self._waiters and self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._look)
