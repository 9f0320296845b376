"""How fast the processor's time-stamp counter ticks on this host. qemu.py tells it to the kernel of
a guest, whose counter QEMU makes of the host's. The guest must not find it out by itself: while it
boots it compares the counter with an emulated timer, and where the host gives the processor to
others in between, it comes to a frequency that is several times too low."""
import ctypes
import functools
import mmap
import time

from kernel import Problem

# rdtsc; shl rdx, 32; or rax, rdx; ret
READ_COUNTER = bytes.fromhex("0f31 48c1e220 4809d0 c3")
LOOKS = 64                              # of which the quickest counts
SECONDS = 0.05                          # between the first look and the last, at least
EXACT = 100e-6                          # a part of the frequency: more is not good enough


def counter():
    """A function that reads the counter."""
    try:
        memory = mmap.mmap(-1, mmap.PAGESIZE,
                           prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    except OSError as error:
        raise Problem("the clock of a guest cannot be set: this process may not have memory that "
                      "is executable (%s)" % error.strerror) from None
    memory.write(READ_COUNTER)
    address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    read = ctypes.CFUNCTYPE(ctypes.c_uint64)(address)
    read.memory = memory                # stays as long as the function
    return read


def look(read):
    """(the counter, the time in ns, by how much that may be wrong)"""
    def once():
        before = time.monotonic_ns()
        ticks = read()
        after = time.monotonic_ns()
        return after - before, ticks, (before + after) / 2
    width, ticks, when = min(once() for _ in range(LOOKS))
    return ticks, when, width / 2


@functools.lru_cache(maxsize=None)
def counter_khz():
    """Ticks in a millisecond. A busy host makes this slower, never wrong: what may be wrong is
    measured, too, and with more time it becomes a smaller part."""
    read = counter()
    first = look(read)
    while True:
        time.sleep(SECONDS)
        last = look(read)
        passed = last[1] - first[1]
        if last[2] + first[2] <= EXACT * passed:
            break
    return round((last[0] - first[0]) * 1e6 / passed)
