"""The server and its replica that Redis is measured with: linked, in memory only, pinned, and gone
when they must be."""
import os
import pathlib
import signal
import socket
import subprocess
import sys

import pytest

BENCH = pathlib.Path(__file__).resolve().parent.parent.parent / "bench"
sys.path.insert(0, str(BENCH))
from cluster import wait_for  # noqa: E402
from peers import redis_pair  # noqa: E402
from peers.redis_pair import RedisPair  # noqa: E402

PROGRAM = BENCH / "peers/redis_pair.py"


def is_there(pid):
    """Does a process run? One that has ended and is not waited for does not."""
    try:
        return pathlib.Path("/proc/%d/stat" % pid).read_text().rsplit(") ", 1)[1][0] != "Z"
    except OSError:
        return False


def test_what_the_server_is_given_the_replica_has():
    with RedisPair() as pair:
        server, replica = pair.servers
        assert server.ask("SET key value") == "OK"
        wait_for(lambda: replica.ask("GET key") == "value", 10, "the replica's copy")
        assert replica.info("replication")["master_port"] == str(pair.port)


def test_it_leaves_no_process_and_no_file():
    with RedisPair() as pair:
        folder = pair.folder
        pids = [s.process.pid for s in pair.servers]
        assert pair.servers[0].ask("SET key value") == "OK"
        assert sorted(p.name for p in folder.rglob("*")) == ["log", "log", "replica", "server"]
    assert not folder.exists()
    assert not any(is_there(pid) for pid in pids)


def test_it_is_gone_after_a_failure_within():
    with pytest.raises(KeyError):
        with RedisPair() as pair:
            folder, pids = pair.folder, [s.process.pid for s in pair.servers]
            raise KeyError("within")
    assert not folder.exists()
    assert not any(is_there(pid) for pid in pids)


def test_servers_stay_on_their_processors():
    cpus = sorted(os.sched_getaffinity(0))
    with RedisPair(cpus[-1], cpus[0]) as pair:
        assert [os.sched_getaffinity(s.process.pid) for s in pair.servers] == [{cpus[-1]},
                                                                              {cpus[0]}]


def test_a_port_that_is_taken_is_not_used(monkeypatch):
    """Somebody else took it between the question and the server's start, once for each server."""
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        taken, asked = other.getsockname()[1], []
        free_port = redis_pair.free_port

        def first_the_taken_one():
            asked.append(1)
            return taken if len(asked) % 2 else free_port()

        monkeypatch.setattr(redis_pair, "free_port", first_the_taken_one)
        with RedisPair() as pair:
            assert taken not in [s.port for s in pair.servers]
            assert len(asked) == 4


def test_a_server_that_does_not_start_says_why(monkeypatch):
    monkeypatch.setitem(redis_pair.SETTINGS, "databases", "none")
    with pytest.raises(RuntimeError, match="databases"):
        with RedisPair():
            pass


def test_the_command_runs_with_the_port_and_gives_its_status():
    done = subprocess.run([sys.executable, PROGRAM, "--", "sh", "-c",
                           "echo port $PERSEAS_REDIS_PORT; exit 7"], stdout=subprocess.PIPE,
                          text=True, timeout=60, check=False)
    assert done.returncode == 7
    assert int(done.stdout.split()[1]) > 1023


def test_killed_outright_it_takes_its_servers_along():
    script = ("import sys, time; sys.path.insert(0, sys.argv[1])\n"
              "from peers.redis_pair import RedisPair\n"
              "with RedisPair() as pair:\n"
              "    print(*[s.process.pid for s in pair.servers], pair.folder, flush=True)\n"
              "    sys.stdin.read()\n")
    with subprocess.Popen([sys.executable, "-c", script, BENCH], stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE, text=True) as holder:
        *pids, folder = holder.stdout.readline().split()
        holder.send_signal(signal.SIGKILL)
        wait_for(lambda: not any(is_there(int(p)) for p in pids), 10, "the servers' end")
    # It could not tidy up its folder, which is this test's.
    for path in sorted(pathlib.Path(folder).rglob("*"), reverse=True):
        path.unlink() if path.is_file() else path.rmdir()
    pathlib.Path(folder).rmdir()
