#!/usr/bin/env python3
"""Runs a Redis server with one replica, both in memory only, on free loopback ports. Leaving the
`with` block stops both.

    redis_pair.py [--cpus SERVER,REPLICA] COMMAND...   runs a command while the pair is running

The command finds the server's port in PERSEAS_REDIS_PORT.
"""
import argparse
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from cluster import HANGING_SECONDS, INTERRUPTS, die_with_parent, wait_for  # noqa: E402

PORTS_TRIED = 8
ASK_SECONDS = 0.5
# Debian's redis-tools has the program, which is a server if it is run as redis-server. The package
# redis-server would only add a link to it and a service that runs all the time.
PROGRAMS = ("redis-server", "redis-check-rdb")

# Writes nothing to files, synchronizes the replica at once, and never disconnects it for being
# slow.
SETTINGS = {
    "bind": "127.0.0.1",
    "protected-mode": "yes",
    "databases": "1",
    "save": "",
    "appendonly": "no",
    "repl-diskless-sync": "yes",
    "repl-diskless-sync-delay": "0",
    "repl-diskless-load": "on-empty-db",
    "repl-disable-tcp-nodelay": "no",
    "repl-backlog-size": "64mb",
    "client-output-buffer-limit": "replica 0 0 0",
    "latency-tracking": "no",
}


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def program():
    for name in PROGRAMS:
        path = shutil.which(name)
        if path:
            return path
    raise RuntimeError("Redis is not installed: deploy/deps.sh bench")


class Server:
    """One redis-server process."""

    def __init__(self, folder, name, cpu=None, more=()):
        self.folder, self.name, self.cpu, self.more = folder / name, name, cpu, list(more)
        self.folder.mkdir()
        self.log = self.folder / "log"
        self.process, self.port = None, 0

    def start(self):
        """Starts the server. If another process takes its port first, the server ends, and another
        port is tried."""
        for _ in range(PORTS_TRIED):
            self.port = free_port()
            self._spawn()
            if wait_for(self._state, HANGING_SECONDS, "redis " + self.name) == "ready":
                return self
        raise RuntimeError("redis %s ended at its start:\n%s" %
                           (self.name, self.log.read_text(errors="replace")))

    def _spawn(self):
        def prepare():
            die_with_parent()
            if self.cpu is not None:
                os.sched_setaffinity(0, {self.cpu})

        words = ["redis-server", "--port", str(self.port), "--dir", str(self.folder)]
        for key, value in SETTINGS.items():
            words += ["--" + key, value]
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(words + self.more, executable=program(),
                                            stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                            preexec_fn=prepare)

    def _state(self):
        if self.process.poll() is not None:
            return "ended"
        # Another process may have this port, and may never answer.
        answers = self.info("server", ASK_SECONDS).get("process_id") == str(self.process.pid)
        return "ready" if answers else None

    def ask(self, command, seconds=HANGING_SECONDS):
        """Sends a command of plain words. Returns its answer as text, or None if there is none."""
        try:
            with socket.create_connection(("127.0.0.1", self.port), seconds) as link:
                link.sendall(command.encode() + b"\r\n")
                with link.makefile("rb") as answer:
                    return read_answer(answer)
        except OSError:
            return None

    def info(self, section, seconds=HANGING_SECONDS):
        """Returns a section of INFO as a dictionary."""
        lines = (self.ask("INFO " + section, seconds) or "").splitlines()
        return dict(line.split(":", 1) for line in lines if ":" in line)

    def stop(self):
        if self.process and self.process.poll() is None:
            self.process.kill()
        if self.process:
            self.process.wait()


def read_answer(answer):
    """Reads a simple string, bulk string, number or error as text."""
    first = answer.readline().decode().rstrip("\r\n")
    if not first.startswith("$"):
        return first[1:] or None
    return answer.read(max(int(first[1:]), 0)).decode()


class RedisPair:
    """with RedisPair() as pair: ... pair.port. server_cpu, replica_cpu: processors to pin to."""

    def __init__(self, server_cpu=None, replica_cpu=None):
        self.cpus = (server_cpu, replica_cpu)
        self.folder, self.servers = None, []

    def __enter__(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="perseas-redis-"))
        try:
            server = self._start("server", self.cpus[0])
            self._start("replica", self.cpus[1], "--replicaof", "127.0.0.1", str(server.port))
            wait_for(self._linked, HANGING_SECONDS, "the replica's link")
        except BaseException:
            self.__exit__()
            raise
        return self

    def _start(self, name, cpu, *more):
        server = Server(self.folder, name, cpu, more)
        self.servers.append(server)
        return server.start()

    def _linked(self):
        server, replica = self.servers
        return (replica.info("replication").get("master_link_status") == "up" and
                "state=online" in server.info("replication").get("slave0", ""))

    def __exit__(self, *_):
        # An interrupt during cleanup waits until cleanup is done.
        held = signal.pthread_sigmask(signal.SIG_BLOCK, INTERRUPTS)
        try:
            for server in self.servers:
                server.stop()
            shutil.rmtree(self.folder, ignore_errors=True)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, held)

    @property
    def port(self):
        return self.servers[0].port


def processors(text):
    server, replica = text.split(",")
    return int(server), int(replica)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cpus", type=processors, default=(None, None), metavar="SERVER,REPLICA")
    parser.add_argument("command", nargs=argparse.REMAINDER)
    args = parser.parse_args()
    command = args.command[1:] if args.command[:1] == ["--"] else args.command
    if not command:
        parser.error("no command is given")
    try:
        with RedisPair(*args.cpus) as pair:
            return subprocess.run(command, env=dict(os.environ, PERSEAS_REDIS_PORT=str(pair.port)),
                                  check=False).returncode
    except (RuntimeError, OSError, TimeoutError) as error:
        print("redis_pair: %s" % error, file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
