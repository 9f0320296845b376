"""perseasd as a service manager sees it."""
import os
import signal
import socket
import subprocess
import time

import pytest

from cluster import wait_for
from drill import BUILD, SECONDS, fill


def listen(path):
    notices = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    notices.bind(str(path))
    notices.settimeout(SECONDS)
    return notices


def test_it_says_when_it_is_ready_and_when_it_stops(tmp_path):
    """A service manager waits for READY before it starts what depends on the mirror; it gets it
    only when the ports are open. SIGTERM is told too, and ends it cleanly."""
    ports = tmp_path / "ports"
    with listen(tmp_path / "notify") as notices:
        words = [BUILD / "perseasd", "--listen", "127.0.0.1:0", "--port-file", ports,
                 "--memory-dir", tmp_path / "memory"]
        daemon = subprocess.Popen(words, stderr=subprocess.DEVNULL,
                                  env=dict(os.environ, NOTIFY_SOCKET=str(tmp_path / "notify")))
        try:
            assert b"READY=1" in notices.recv(4096)
            port = int(ports.read_text().split()[0])
            socket.create_connection(("127.0.0.1", port), SECONDS).close()
            daemon.send_signal(signal.SIGTERM)
            while b"STOPPING=1" not in notices.recv(4096):
                pass
            assert daemon.wait(SECONDS) == 0
        finally:
            if daemon.poll() is None:
                daemon.kill()
                daemon.wait()


def test_options_come_from_a_file_and_the_command_line_goes_before_it(tmp_path):
    """The file has the names of the flags, without the dashes."""
    options = tmp_path / "perseasd.conf"
    first, second = tmp_path / "first", tmp_path / "second"
    options.write_text("# a mirror\nlisten 127.0.0.1:0\nport-file %s\nmemory-dir %s\n"
                       % (first, tmp_path / "memory"))
    with listen(tmp_path / "notify") as notices:
        daemon = subprocess.Popen([BUILD / "perseasd", "--config", options, "--port-file", second],
                                  stderr=subprocess.DEVNULL,
                                  env=dict(os.environ, NOTIFY_SOCKET=str(tmp_path / "notify")))
        try:
            assert b"READY=1" in notices.recv(4096)
            assert second.exists() and not first.exists()
            assert (tmp_path / "memory").is_dir()
        finally:
            daemon.kill()
            daemon.wait()


@pytest.mark.parametrize("option", ["--help", "--version"])
def test_an_answer_that_cannot_be_written_is_an_error(option):
    """A script that keeps the answer must not take nothing for one."""
    with open("/dev/full", "w") as full:
        done = subprocess.run([BUILD / "perseasd", option], stdout=full, stderr=subprocess.PIPE,
                              text=True, timeout=SECONDS)
    assert done.returncode == 1
    assert "could not be written" in done.stderr


def ticks(pid):
    """Processor time of a process, in hundredths of a second."""
    fields = open("/proc/%d/stat" % pid).read().rsplit(")", 1)[1].split()
    return int(fields[11]) + int(fields[12])


def test_a_mirror_that_spins_sleeps_when_idle(mirrors):
    """After each frame it looks for more without sleeping. When nothing comes it must give the
    processor back: half a second passes in which it uses none of it."""
    daemon, = mirrors(1, options=("--spin-us", "1000"))
    fill("s", [daemon], {"accounts": b"contents"})
    seen = [ticks(daemon.pid), time.monotonic()]

    def slept():
        now = ticks(daemon.pid)
        if now != seen[0]:
            seen[:] = now, time.monotonic()
        return time.monotonic() - seen[1] > 0.5

    wait_for(slept, 10, "a daemon that sleeps")
