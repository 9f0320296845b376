"""Segments are mapped while another owner takes the store over; and mapped under sanitizers."""
import os
import pathlib
import signal
import re
import subprocess
import sys

import pytest

from binding import CREATE, TAKEOVER, Store
from drill import BUILD, HERE, MIB, SECONDS, TOP, mirror_list

ROUNDS = 5

# An owner that creates and destroys a segment, repeatedly, until a call fails, and prints the
# reason.
MAPPER = """
import sys
from binding import PerseasError, Store
with Store("s", sys.argv[1]) as store:
    print("open", flush=True)
    try:
        while True:
            store.map("more", 1 << 20)
            store.unmap("more")
    except PerseasError as error:
        print(error, flush=True)
"""


def test_an_owner_that_is_fenced_while_it_maps_is_told_so(mirrors):
    """It is stopped in the middle and fenced. Its sessions break, and it learns the reason."""
    daemons = mirrors(3)
    drills = str(pathlib.Path(__file__).resolve().parent)
    with Store("s", mirror_list(daemons), flags=CREATE) as store:
        store.map("accounts", MIB)
        store.publish()
    for _ in range(ROUNDS):
        mapper = subprocess.Popen([sys.executable, "-c", MAPPER, mirror_list(daemons)],
                                  env={**os.environ, "PYTHONPATH": drills},
                                  stdout=subprocess.PIPE, text=True)
        try:
            assert mapper.stdout.readline() == "open\n"
            mapper.send_signal(signal.SIGSTOP)
            with Store("s", mirror_list(daemons), flags=TAKEOVER):
                mapper.send_signal(signal.SIGCONT)
                said = mapper.communicate(timeout=SECONDS)[0]
        finally:
            mapper.kill()
            mapper.wait()
        assert said.startswith("PERSEAS_EFENCED"), said


@pytest.mark.parametrize("sanitizer", ["thread", "address"])
def test_sanitizers_allow_the_address_of_the_guide(mirrors, fabric, tmp_path, sanitizer):
    """An owner creates a segment there and commits to it; the next owner finds it there."""
    address, = re.findall(r"perseas_map_at\(p, \"counters\", size, \(void \*\)(0x\w+)",
                          (TOP / "doc/programming.md").read_text())
    program = tmp_path / "sanitized"
    environment = {**os.environ, "LD_LIBRARY_PATH": str(BUILD.resolve())}
    subprocess.run(["gcc", "-std=c11", "-Wall", "-Wextra", "-Werror", "-g",
                    "-fsanitize=" + sanitizer, "-I", str(TOP / "client"),
                    str(HERE / "mapping/sanitized.c"), "-o", str(program), "-L", str(BUILD),
                    "-lperseas"], check=True, timeout=SECONDS)
    if subprocess.run([program], env=environment, timeout=SECONDS).returncode:
        pytest.skip("programs under this sanitizer do not start on this kernel")
    mirror = mirror_list(mirrors(2, fabric))
    for _ in range(2):
        done = subprocess.run([program, mirror, address], env=environment, capture_output=True,
                              text=True, timeout=SECONDS)
        assert done.returncode == 0, done.stderr
