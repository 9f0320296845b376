"""Kills processes after a number of instructions of their main thread: at points that can be
counted instead of at moments."""
import ctypes
import errno
import os
import pathlib
import subprocess

import pytest

from drill import SECONDS, wait_for

SINGLESTEP, ATTACH = 9, 16              # from sys/ptrace.h
WALL = 0x40000000                       # __WALL: threads, too

LIBC = ctypes.CDLL(None, use_errno=True)
LIBC.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]


def trace(request, pid):
    if LIBC.ptrace(request, pid, None, None) < 0:
        code = ctypes.get_errno()
        if code in (errno.EPERM, errno.EACCES, errno.ENOSYS):
            pytest.skip("processes cannot be traced here: " + os.strerror(code))
        raise OSError(code, os.strerror(code))


def writes_to_its_output(pid):
    """Returns whether the process's main thread is inside a write to standard output."""
    words = pathlib.Path("/proc/%d/syscall" % pid).read_text().split()
    return len(words) > 3 and words[1] == "0x1"


class Held:
    """A program whose first line of output finds the pipe full, so that it waits there until it is
    released."""

    def __init__(self, words):
        self.output, writing = os.pipe()
        os.set_blocking(writing, False)
        try:
            while True:
                os.write(writing, b"\n")
        except BlockingIOError:
            os.set_blocking(writing, True)
        self.process = subprocess.Popen(words, stdout=writing)
        os.close(writing)
        try:
            wait_for(lambda: writes_to_its_output(self.process.pid), SECONDS, "the first line")
        except BaseException:
            self.process.kill()
            raise

    def kill_after(self, instructions):
        """Lets the program run for `instructions` instructions, and kills it. Returns the lines
        that it printed."""
        pid, lines = self.process.pid, b""
        try:
            trace(ATTACH, pid)
            os.waitpid(pid, WALL)
            # Makes room for the line that it waits with, and for all that it prints afterward.
            lines += os.read(self.output, 1 << 20)
            for _ in range(instructions):
                trace(SINGLESTEP, pid)
                if not os.WIFSTOPPED(os.waitpid(pid, WALL)[1]):
                    break
        finally:
            self.process.kill()
            self.process.wait()
        while piece := os.read(self.output, 1 << 16):
            lines += piece
        os.close(self.output)
        return [line for line in lines.decode().split("\n")[:-1] if line]
