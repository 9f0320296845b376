"""bench/limits: the bare fabric's figures, and no figure when it breaks."""
import json
import subprocess

import pytest

from drill import BUILD, SECONDS, die_with_parent, wait_for

MEASURED, FAILED = 0, 2
PORT = 7177                             # in the machine's own network


def start(*words):
    line = [str(word) for word in (BUILD / "bench/limits", *words)]
    return subprocess.Popen(line, stdin=subprocess.DEVNULL, text=True, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, preexec_fn=die_with_parent)


def run(*words):
    """(status, output, errors)."""
    process = start("--rounds", 1, "--seconds", 0.02, *words)
    try:
        out, errors = process.communicate(timeout=SECONDS)
    finally:
        process.kill()
    return process.returncode, out, errors


def test_every_figure_is_there():
    """Writes and chains to one target, chains to three targets (two awaited), and reads."""
    status, out, errors = run("--to", "10.5.0.1,10.5.0.2,10.5.0.3", "--segment", "1M", "--json",
                              "--read-sizes", "64K,1M", "--read-depths", 4)
    assert status == MEASURED, errors
    told = json.loads(out)
    assert (told["targets"], told["acks"]) == (3, 2)
    assert all(told[name]["p50_ns"] > 0 for name in ("write", "chain", "chains"))
    assert [read["size"] for read in told["reads"]] == [65536, 1 << 20]
    assert told["read"]["bytes_s"]["median"] == max(read["bytes_s"]["median"]
                                                    for read in told["reads"])


@pytest.mark.parametrize("target, why", [
    ("127.0.0.1", "not the address of an RDMA device"), ("10.5.0.1:1", "cannot connect"),
    ("10.9.9.9:1", "no way to it over an RDMA device"), ("10.5.0.1:0", "HOST or HOST:PORT")])
def test_a_target_that_cannot_be_reached(target, why):
    """No figure, and a sentence that says why."""
    status, out, errors = run("--to", target)
    assert (status, out) == (FAILED, "") and why in errors


def test_a_far_end_that_dies_ends_the_measurement():
    """kill -9 of `limits --serve` while another writes to it: no figure."""
    serving = start("--serve", "10.5.0.1:%d" % PORT, "--segment", "1M")
    to = "10.5.0.1:%d" % PORT
    wait_for(lambda: run("--to", to, "--measure", "write")[0] == MEASURED, SECONDS, "a far end")
    writing = start("--to", to, "--measure", "write", "--rounds", 101, "--seconds", 100)
    written = "/sys/class/infiniband/rxe1/ports/1/hw_counters/rcvd_pkts"
    before = int(open(written).read())
    wait_for(lambda: int(open(written).read()) > before + 100, SECONDS, "writes under way")
    serving.kill()
    serving.communicate()
    out, errors = writing.communicate(timeout=SECONDS)
    assert (writing.returncode, out) == (FAILED, "") and "limits: write: " in errors
