"""What the rig promises to those who run something in it; on the host, with machines under QEMU."""
import os
import pathlib
import re
import signal
import subprocess
import sys
import time

import pytest

from machine import Pair
from qemu import (BOOT_SECONDS, TREE, Failure, Guest, Options, die_with_parent, job_of, tick_khz,
                  wait_for)

RIG = TREE / "tests/rdma/rig.py"
BUILD = pathlib.Path(os.environ.get("PERSEAS_BUILD", TREE / "build"))
WRITER = BUILD / "tests/rdma/writer"
RETRIES = "/sys/class/infiniband/rxe1/ports/1/hw_counters/completer_retry_err"
SECONDS = 60
MANY, FOR_EVER, FEW = 1000000, 7, 6     # writes; retries, a second for FEW
FAILED = 3                              # writer's status


def rig(*command, output):
    return [sys.executable, str(RIG), "run", "--timeout", str(BOOT_SECONDS), "--output",
            str(output), "--", *command]


def test_output_and_status_of_a_command_come_back(tmp_path):
    """In one boot: the folder is the caller's, the host's files cannot be written, /tmp can."""
    script = "pwd; touch Makefile || echo refused; touch /tmp/mine && echo made; exit 7"
    done = subprocess.run(rig("sh", "-c", script, output=tmp_path), cwd=TREE, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          preexec_fn=die_with_parent)
    lines = [line for line in done.stdout.splitlines() if not line.startswith("touch:")]
    assert lines == [str(TREE), "refused", "made"], done.stderr
    assert done.returncode == 7


def begun(guest):
    wait_for(lambda: "begun" in guest.text or not guest.running(), BOOT_SECONDS, "a job's begin")


def test_a_command_that_hangs_is_ended(tmp_path):
    """The machine goes, and what it said comes with the failure."""
    hang = ["sh", "-c", "echo begun; exec sleep 1000"]
    with pytest.raises(Failure, match="no end within 1 s.*\n(.*\n)*output: begun"):
        with Guest(job_of(hang), Options(output=tmp_path)) as guest:
            begun(guest)
            guest.wait(1)
    assert not guest.running()


def test_a_kernel_that_panics_is_a_failure(tmp_path):
    """Not a command that ended well, and the console tells why."""
    crash = ["sh", "-c", "echo c >/proc/sysrq-trigger; sleep 1000"]
    with pytest.raises(Failure, match="sysrq triggered crash"):
        with Guest(job_of(crash), Options(output=tmp_path)) as guest:
            guest.wait(BOOT_SECONDS)


def children(pid):
    tasks = pathlib.Path("/proc/%d/task" % pid).glob("*/children")
    return [int(child) for path in tasks for child in path.read_text().split()]


def test_no_machine_outlives_a_rig_that_is_killed(tmp_path):
    """kill -9 of rig.py while its machine boots."""
    process = subprocess.Popen(rig("sleep", "1000", output=tmp_path), stdin=subprocess.DEVNULL,
                               preexec_fn=die_with_parent)
    try:
        def machine():
            return [pid for pid in children(process.pid)
                    if "qemu" in pathlib.Path("/proc/%d/comm" % pid).read_text()]
        qemu, = wait_for(machine, SECONDS, "a machine")
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    wait_for(lambda: not pathlib.Path("/proc/%d" % qemu).exists(), SECONDS, "its end")


@pytest.fixture(scope="module")
def pair():
    """Two machines for all tests that follow; the last of them loses one."""
    with Pair() as machines:
        yield machines


@pytest.fixture
def connect(pair):
    """connect(count, retries): the second machine writes to the first, (server, client). They are
    gone after the test."""
    one, two = pair
    started = []

    def start(count, retries):
        server = one.start(WRITER, "serve", one.address)
        started.append(server)
        port = server.wait_for_text("port ").text.split()[1]
        client = two.start(WRITER, "write", one.address, port, count, retries)
        started.append(client)
        return server, client

    yield start
    for process in started:
        if process.machine.running() and process.running():
            process.kill()


def written(client):
    return int(([0] + re.findall(r"wrote (\d+)", client.text))[-1])


def advances(client):
    before = written(client)
    wait_for(lambda: written(client) > before, SECONDS, "more writes")


def detected(kernel_log):
    """The frequency of the counter that the kernel goes by, in kHz."""
    return round(1000 * float(re.findall(r"tsc: Detected ([0-9.]+) MHz", kernel_log)[-1]))


def test_a_guest_goes_by_the_clock_that_it_is_told(pair, tmp_path):
    """Not by one that its kernel made out while the host did something else."""
    assert detected(pair[0].run("dmesg").check()) == tick_khz(False)
    with Guest(job_of(["dmesg"]), Options(output=tmp_path, steady=True)) as guest:
        assert guest.wait(BOOT_SECONDS) == 0
        assert detected(guest.text) == tick_khz(True)


def test_a_guests_clock_is_as_fast_as_the_hosts(pair):
    """However long an answer takes: the guest's time was read between question and answer. Its
    kernel corrects what it is told by a hundredth at most."""
    def look():
        asked = time.monotonic()
        seen = float(pair[0].read_file("/proc/uptime").split()[0])
        return asked, seen, time.monotonic()

    first = look()
    time.sleep(1)
    last = look()
    passed = last[1] - first[1]
    assert 0.99 * (last[0] - first[2]) - 0.01 <= passed <= 1.01 * (last[2] - first[0]) + 0.01


def test_two_machines_write_to_each_other_by_rdma(connect, pair):
    """A hundred writes from the second to the first."""
    server, client = connect(100, FOR_EVER)
    assert "from %s\n" % pair[1].address in client.check()
    server.check()


def test_processes_tell_how_they_ended(pair):
    """A status, and a signal that the host sent."""
    assert pair[0].run("sh", "-c", "exit 7").status == 7
    process = pair[0].start("sleep", "1000")
    assert process.running()
    assert process.kill() == -signal.SIGKILL


def test_files_of_a_machine_can_be_read(pair):
    """One that only its memory holds."""
    pair[0].run("sh", "-c", "echo here >/tmp/file")
    assert pair[0].read_file("/tmp/file") == b"here\n"
    with pytest.raises(OSError):
        pair[1].read_file("/tmp/file")


def test_a_paused_machine_stands_still_and_goes_on(connect, pair):
    """The peer's adapter tries again and again meanwhile."""
    one, two = pair

    def tries(count):
        goal = int(two.read_file(RETRIES)) + count
        wait_for(lambda: int(two.read_file(RETRIES)) >= goal, SECONDS, "%d retries" % count)

    client = connect(MANY, FOR_EVER)[1].wait_for_text("wrote ")
    one.pause()
    tries(2)
    before = written(client)
    tries(3)
    assert written(client) == before
    one.resume()
    advances(client)


def test_a_cable_that_is_out_fails_a_write_and_one_that_is_in_carries_the_next(connect, pair):
    """The first machine's cable."""
    client = connect(MANY, FEW)[1].wait_for_text("wrote ")
    pair[0].link(False)
    assert client.wait() == FAILED
    pair[0].link(True)
    connect(100, FOR_EVER)[1].check()


def test_a_machine_that_loses_power_fails_a_write(connect, pair):
    """kill -9 of the first machine; the second goes on."""
    client = connect(MANY, FEW)[1].wait_for_text("wrote ")
    pair[0].kill()
    assert client.wait() == FAILED
    assert pair[1].run("true").status == 0
