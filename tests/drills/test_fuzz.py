"""Seeds of the fuzz targets, from real sessions, and the report that misses them."""
import pathlib
import re
import struct
import subprocess
import sys

import pytest

from binding import CREATE, Store
from drill import HERE, OK, SECONDS, TOP, run_command

FUZZ = pathlib.Path(HERE).parent / "fuzz"
sys.path.append(str(FUZZ))

import seeds  # noqa: E402
import wire  # noqa: E402
from tap import BACK, THERE, Tap, Tape  # noqa: E402

LOG = ("#4 INITED cov: 10 ft: 12 corp: 3/99b\n#50 DONE cov: 34 ft: 53 corp: 7/99b\n"
       "stat::number_of_executed_units: 12345\n")


def report(folder, target, *names):
    """Returns the report's status, the table row for a target with these seeds, and the last two
    lines."""
    (folder / "logs").mkdir()
    (folder / "logs" / (target + ".log")).write_text(LOG)
    (folder / (target + ".c")).touch()
    seeds_of = folder / "corpus" / target[len("fuzz_"):]
    seeds_of.mkdir(parents=True)
    for name in names:
        (seeds_of / name).write_bytes(b"x")
    done = subprocess.run([sys.executable, FUZZ / "report.py", folder, folder / "logs"],
                          stdout=subprocess.PIPE, text=True, timeout=600)
    lines = done.stdout.splitlines()
    return done.returncode, lines[1].split(), lines[-2:]


def test_the_report_counts_what_was_made_and_what_was_recorded(tmp_path):
    """A target with two generated seeds and one recorded seed."""
    status, row, (_, total) = report(tmp_path, "fuzz_http", "get", "head", "recorded-curl-1")
    assert status == 0 and row == ["fuzz_http", "2", "1", "12,345", "34", "7"]
    assert total == "1 passed, 0 failed"


def test_a_listener_without_recorded_seeds_is_a_failure(tmp_path):
    """It has only a generated seed."""
    status, row, told = report(tmp_path, "fuzz_http", "get")
    assert status == 1 and row[1:3] == ["1", "0"]
    assert told == ["FAILED fuzz_http has no recorded seeds: make corpus", "0 passed, 1 failed"]


def test_what_is_exempt_needs_none(tmp_path):
    """Access rules come from a file."""
    assert report(tmp_path, "fuzz_access", "rules")[0] == 0


@pytest.mark.parametrize("fabric", ["tcp", "shm"])
def test_a_tap_changes_nothing_and_keeps_all(mirrors, fabric):
    """A store with commits, and the command, through the tap; the tape then has the same bytes."""
    daemon, = mirrors(1, fabric)
    tape = Tape()
    with Tap(tape, daemon.address) as tap:
        with Store("s", tap.address, flags=CREATE, log_size=4096) as store:
            store.map("accounts", 256)
            store.publish()
            store.write("accounts", 0, b"contents")
            assert run_command("verify", "s", tap.address).status == OK
    kinds = {name.rpartition("-")[0] for name in seeds.request(tape)}
    assert {"create", "settle", "claim", "add_segments", "publish", "read"} <= kinds
    written = b"".join(stream for stream in tape.streams(THERE).values() if seeds.is_data(stream))
    assert (b"contents" in written) == (fabric == "tcp")
    for stream in tape.streams(BACK).values():
        assert stream[:8] == wire.control_hello() or wire.answer(stream[:16])[:2] == (1, wire.OK)
    assert seeds.connection(tape)["session"][0] >> 2 == (1 if fabric == "tcp" else 3)


def test_recorded_sessions_greet_in_the_version_of_the_protocol():
    """A daemon closes a connection of another version, so bytes after such a hello would not be
    tested."""
    header = (TOP / "proto/data/frame.h").read_text()
    versions = [int(re.search(r"PS_%s = (\d+)" % name, header)[1])
                for name in ("PROTOCOL_VERSION", "PROTOCOL_LEAST", "DATA_VERSION")]
    assert versions == [wire.VERSION, wire.LEAST, wire.DATA_VERSION]
    magic = struct.pack("<I", wire.CONTROL_MAGIC)
    greetings = {struct.unpack_from("<HH", data, at.end()) for target in ("connection", "tls")
              for path in (FUZZ / "corpus" / target).glob("recorded-*")
              for data in [path.read_bytes()] for at in re.finditer(re.escape(magic), data)}
    assert greetings and all((least or most) <= wire.VERSION and most >= wire.LEAST
                             for most, least in greetings)
