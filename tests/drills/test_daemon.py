"""perseasd from a service manager's point of view."""
import os
import pathlib
import signal
import socket
import subprocess
import time
import uuid

import pytest

from cluster import in_memory, wait_for
from drill import BUILD, OK, SECONDS, fill, status_of
from test_recover import crc32c


def listen(path):
    notices = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    notices.bind(str(path))
    notices.settimeout(SECONDS)
    return notices


def test_it_says_when_it_is_ready_and_when_it_stops(tmp_path):
    """A service manager waits for READY before it starts units that depend on the mirror, so READY
    is sent only when the ports are open. SIGTERM is reported, too, and ends perseasd cleanly."""
    ports = tmp_path / "ports"
    with listen(tmp_path / "notify") as notices:
        words = [BUILD / "perseasd", "--listen", "127.0.0.1:0", "--port-file", ports,
                 "--memory-dir", tmp_path / "memory", "--unsafe-memory-on-disk", "on"]
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
    """The file's options are named like the flags, without dashes."""
    options = tmp_path / "perseasd.conf"
    first, second = tmp_path / "first", tmp_path / "second"
    options.write_text("# a mirror\nlisten 127.0.0.1:0\nport-file %s\nmemory-dir %s\n"
                       "unsafe-memory-on-disk on\n" % (first, tmp_path / "memory"))
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


def ask(*words):
    """Runs a daemon that prints something and ends."""
    return subprocess.run([BUILD / "perseasd", *words], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, timeout=SECONDS)


def test_help_is_there_in_short_too(tmp_path):
    """-h prints what --help prints: every option with its default, and the default port."""
    done = ask("-h")
    assert (done.returncode, done.stderr) == (0, "") and done.stdout == ask("--help").stdout
    text = " ".join(done.stdout.split())
    for said in ("Usage: perseasd", "-h, --help", "--max-connections N", "Default: 1024.",
                 "127.0.0.1:7170", "Exit status:"):
        assert said in text, text


@pytest.mark.parametrize("words, said", [
    (["--lisen", "127.0.0.1:0"], "there is no option --lisen; is --listen meant?"),
    (["--log-lvl=info"], "is --log-level meant?"),
    (["--zzzzzzzz"], "there is no option --zzzzzzzz; perseasd --help lists them"),
    (["-x"], "there is no option -x"),
    (["listen"], "is not an option"),
    (["--max-connections", "15"], "--max-connections 15: it must be a number from 16 to 65536"),
    (["--max-memory", "1X"], "a number of bytes"),
    (["--log-level", "loud"], "it must be error, warning, info or debug"),
])
def test_a_wrong_option_is_refused_with_a_right_one(words, said):
    """Nothing is opened."""
    done = ask(*words)
    assert done.returncode == 2 and said in done.stderr and done.stdout == "", done


def test_a_misspelt_line_of_the_file_is_answered_with_the_right_one(tmp_path):
    """Options that a file cannot have are not suggested there."""
    file = tmp_path / "perseasd.conf"
    for line, said in (("lisen 127.0.0.1:0", 'there is no option "lisen" in this file; is "listen" '
                        'meant?'), ("boot-ids 1", 'no option "boot-ids" in this file\n')):
        file.write_text("# first\n%s\n" % line)
        done = ask("--config", file)
        assert done.returncode == 2 and "line 2: " in done.stderr and said in done.stderr, done


def check(*words):
    done = ask("--check", *words)
    return done.returncode, done.stdout + done.stderr


def test_it_says_before_a_start_what_is_wrong_with_its_files(tmp_path, authority):
    """Checks options, rules and certificates without a socket or an image. A daemon that runs with
    the same options is not disturbed. All errors are reported at once."""
    rules, file = tmp_path / "access", tmp_path / "perseasd.conf"
    rules.write_text("allow cert:owner all\n")
    tls = {"tls-cert": authority.cert("mirror"), "tls-key": authority.key("mirror"),
           "tls-ca": authority.ca}
    memory = tmp_path / "nowhere/memory"

    def write(**changes):
        lines = dict(tls, access=rules, **{"memory-dir": memory, "listen": "192.0.2.1:7170"},
                     **{name.replace("_", "-"): value for name, value in changes.items()})
        file.write_text("".join("%s %s\n" % line for line in lines.items()))
        return check("--config", file)
    assert write() == (0, "the options and the files that they name can be used\n")
    assert not memory.parent.exists()
    rules.write_text("allow cert:owner all\nallow cert:owner everything\n")
    authority.issue("other")
    tls["tls-key"] = authority.key("other")
    status, said = write()
    assert status == 1 and "%s, line 2: " % rules in said, said
    assert str(authority.key("other")) in said and "can be used" not in said, said
    status, said = write(max_memory="64X")
    assert status == 2 and "--max-memory 64X" in said, said
    rules.write_text("allow cert:owner all\n")
    tls["tls-key"] = authority.key("mirror")
    os.chmod(tls["tls-key"], 0o644)
    status, said = write()
    assert status == 0 and "others may read the key" in said, said


@pytest.mark.parametrize("option", ["--help", "--version"])
def test_an_answer_that_cannot_be_written_is_an_error(option):
    """A script that saves the output must not take an empty file for it."""
    with open("/dev/full", "w") as full:
        done = subprocess.run([BUILD / "perseasd", option], stdout=full, stderr=subprocess.PIPE,
                              text=True, timeout=SECONDS)
    assert done.returncode == 1
    assert "could not be written" in done.stderr


def turns(pid):
    """Returns each thread's processor time, its waiting time for a processor, in ns, and how often
    it ran; None if a thread runs or waits for a processor."""
    tasks = sorted(pathlib.Path("/proc/%d/task" % pid).iterdir())
    had = [(task / "schedstat").read_text() for task in tasks]
    asleep = all((task / "stat").read_text().rpartition(")")[2].split()[0] == "S" for task in tasks)
    return had if asleep else None


def test_a_mirror_that_spins_sleeps_when_idle(mirrors):
    """After each frame it polls for more without sleeping. When nothing arrives, it must yield the
    processor: between two samples no thread ran. However busy the machine is, a thread that spins
    runs or waits for a processor."""
    daemon, = mirrors(1, options=("--spin-us", "1000"))
    fill("s", [daemon], {"accounts": b"contents"})
    seen = [turns(daemon.pid), time.monotonic()]

    def slept():
        now = turns(daemon.pid)
        if now is None or now != seen[0]:
            seen[:] = now, time.monotonic()
        return time.monotonic() - seen[1] > 0.5

    wait_for(slept, SECONDS, "a daemon that sleeps")


def test_the_port_of_a_mirror_that_is_down_is_nobody_elses(mirrors):
    """Otherwise another process's connection could get the port before a drill restarts the
    mirror."""
    daemon, = mirrors(1)
    daemon.kill9()
    address = ("127.0.0.1", daemon.mirror.port)
    with socket.socket() as other, pytest.raises(OSError, match="in use"):
        other.bind(address)
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(address, SECONDS)
    daemon.restart()
    socket.create_connection(address, SECONDS).close()


def test_it_does_not_start_on_a_disk(tmp_path):
    """After a power failure, images on a disk would be old but look new."""
    if in_memory(tmp_path):
        pytest.skip("what tests write to is in memory here")
    words = [BUILD / "perseasd", "--listen", "127.0.0.1:0", "--memory-dir", tmp_path / "memory"]
    done = subprocess.run(words, stderr=subprocess.PIPE, text=True, timeout=SECONDS)
    assert done.returncode == 1 and "is not in memory" in done.stderr, done.stderr


def test_an_image_of_another_boot_is_not_served(mirrors, perseas):
    """A memory directory was copied, or came back from a disk, after the host had restarted. One
    mirror has it, and is copied again from the others."""
    daemons = mirrors(3)
    fill("s", daemons, {"accounts": b"old"}, log_size=65536)
    daemons[0].kill9()
    path = daemons[0].memory / "s" / "header"
    boot = uuid.UUID(pathlib.Path("/proc/sys/kernel/random/boot_id").read_text().strip()).bytes
    data = path.read_bytes()
    length = int.from_bytes(data[12:16], "little")
    packed = data[24:24 + length].replace(boot, bytes(15) + b"\1")
    assert packed != data[24:24 + length]
    head = data[:12] + len(packed).to_bytes(4, "little") + crc32c(packed).to_bytes(4, "little")
    path.write_bytes(head + bytes(4) + packed)
    daemons[0].restart()
    assert "of another boot of this host" in daemons[0].log()
    assert (daemons[0].memory / ".s.aside-1" / "header").exists()
    assert perseas("recover", "s", mirrors=daemons).status == OK
    assert len(status_of("s", daemons)["mirrors"]) == 3
