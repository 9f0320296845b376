"""Machines that a test drives from the host: starts processes in them, pauses them, pulls their
cable, cuts their power.

    with Pair() as (one, two):              # 10.6.0.1 and 10.6.0.2, an RDMA device each
        daemon = one.start(BUILD / "perseasd", "--listen", one.address + ":7170",
                           "--plaintext", "anywhere")
        two.run(BUILD / "perseas", "ls", "--mirrors", one.address + ":7170").check()
        one.pause(); one.resume(); one.link(False); one.kill()
"""
import base64
import json
import pathlib
import socket
import time

from monitor import Line
from qemu import BOOT_SECONDS, Failure, Guest, HERE, Options, TREE, job_of, wait_for

SECONDS = 60                            # for what should take much less
PORT = "agent"


class Process:
    """A process in a machine, and the group that it leads."""

    def __init__(self, machine, words, pid, output):
        self.machine, self.words, self.pid, self.output = machine, words, pid, output
        self.status = None

    @property
    def text(self):
        """What it has said until now."""
        return self.output.read_text(errors="replace")

    def running(self):
        self.machine.agent.listen(0)
        return self.pid not in self.machine.agent.ended

    def wait(self, seconds=SECONDS):
        """Its exit status, minus the signal's number where one ended it."""
        self.machine.agent.listen_for(lambda: not self.running(), seconds,
                                      "the end of %s" % " ".join(self.words))
        self.status = self.machine.agent.ended[self.pid]
        return self.status

    def wait_for_text(self, text, seconds=SECONDS):
        """Until it has said so."""
        self.machine.agent.listen_for(lambda: text in self.text or not self.running(), seconds,
                                      "%r from %s" % (text, self.words[0]))
        if text not in self.text:
            raise Failure("%s ended without %r:\n%s" % (self.words[0], text, self.text))
        return self

    def signal(self, number):
        self.machine.agent.ask("signal", pid=self.pid, number=int(number))

    def kill(self):
        """kill -9, and waits."""
        self.signal(9)
        return self.wait()

    def check(self, seconds=SECONDS):
        """Waits for a status of 0; what it said."""
        status = self.wait(seconds)
        if status:
            raise Failure("%s: status %d\n%s" % (" ".join(self.words), status, self.text))
        return self.text


class Agent:
    """The host's end of agent.py's line. describe(what): a failure's text."""

    def __init__(self, describe):
        self.line, self.describe = Line("agent"), describe
        self.number, self.rest = 0, b""
        self.ready, self.answers, self.ended = False, {}, {}

    def words(self):
        return self.line.words() + ["-device", "virtio-serial-pci",
                                    "-device", "virtserialport,chardev=agent,name=" + PORT]

    def listen(self, seconds):
        """Takes in what comes within this time."""
        self.line.ours.settimeout(seconds)
        try:
            data = self.line.ours.recv(1 << 20)
        except (BlockingIOError, TimeoutError):
            return
        except ConnectionResetError:
            data = b""
        if not data:
            raise Failure(self.describe("the machine is gone"))
        *lines, self.rest = (self.rest + data).split(b"\n")
        for line in lines:
            self._take(json.loads(line))

    def _take(self, message):
        if "ended" in message:
            self.ended[message["ended"]] = message["status"]
        elif "ready" in message:
            self.ready = True
        else:
            self.answers[message["id"]] = message

    def listen_for(self, predicate, seconds, what):
        until = time.monotonic() + seconds
        while not predicate():
            if time.monotonic() > until:
                raise TimeoutError("%s: not within %g s" % (what, seconds))
            self.listen(0.01)

    def ask(self, do, **arguments):
        self.number += 1
        number = self.number
        line = json.dumps({"id": number, "do": do, **arguments}).encode() + b"\n"
        self.line.ours.settimeout(SECONDS)
        self.line.ours.sendall(line)
        self.listen_for(lambda: number in self.answers, SECONDS, "an answer to %s" % do)
        answer = self.answers.pop(number)
        if "error" in answer:
            raise OSError("%s: %s" % (do, answer["error"]))
        return answer["result"]


class Machine(Guest):
    """A guest that does what the host says. Processes are told apart by pid, and no pid is used
    again in a machine's short life."""

    def __init__(self, options, number=0, wire=None):
        job = job_of(["/usr/bin/python3", str(HERE / "agent.py"), PORT], TREE)
        self.agent = Agent(self.describe)
        devices, sockets = self.agent.words(), [self.agent.line.theirs]
        if wire:
            sockets.append(wire)
            devices += ["-netdev", "dgram,id=net0,local.type=fd,local.str=%d" % wire.fileno(),
                        "-device", "virtio-net-pci,netdev=net0,host_mtu=4200,romfile=,"
                        "mac=02:00:0a:06:00:%02x" % number]
        super().__init__(job, options, devices, sockets)
        self.address, self.count = "10.6.0.%d" % number, 0

    def power_on(self):
        super().power_on()
        self.agent.line.theirs.close()

    def ready(self, seconds=BOOT_SECONDS):
        """Waits until it has booted."""
        try:
            self.agent.listen_for(lambda: self.agent.ready or not self.running(), seconds,
                                  "a machine that has booted")
        except (TimeoutError, Failure) as error:
            raise Failure(self.describe(str(error))) from None
        if not self.agent.ready:
            raise Failure(self.describe("the machine ended while it booted"))
        return self

    def start(self, *words, folder=TREE):
        """A Process; its output is in a file on the host."""
        words = [str(word) for word in words]
        self.count += 1
        output = self.output / ("%d-%s" % (self.count, pathlib.Path(words[0]).name))
        output.touch()
        pid = self.agent.ask("start", words=words, folder=str(folder), output=str(output))
        return Process(self, words, pid, output)

    def run(self, *words, seconds=SECONDS):
        """A Process that has ended."""
        process = self.start(*words)
        process.wait(seconds)
        return process

    def read_file(self, path):
        """The bytes of one of its files."""
        return base64.b64decode(self.agent.ask("read", path=str(path)))

    def pause(self):
        """The whole machine stands still, its clocks too."""
        self.monitor.execute("stop")

    def resume(self):
        self.monitor.execute("cont")

    def link(self, up):
        """Its cable is in or out."""
        self.monitor.execute("set_link", name="net0", up=up)

    def __exit__(self, *error):
        super().__exit__(*error)
        self.agent.line.close()


def wires():
    """The two ends of a network cable. A datagram for a machine that does not take it is lost, as
    in a switch: through UNIX sockets it would stop the sender."""
    ends = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(2)]
    for end in ends:
        end.bind(("127.0.0.1", 0))
        for option in (socket.SO_RCVBUF, socket.SO_SNDBUF):
            end.setsockopt(socket.SOL_SOCKET, option, 4 << 20)
    for end, other in (ends, reversed(ends)):
        end.connect(other.getsockname())
    return ends


class Pair:
    """Two machines on one wire, 10.6.0.1 and 10.6.0.2."""

    def __init__(self, cpus=1, memory="1G", provider="rxe", seen=()):
        self.options = [Options(cpus, memory, "machine %d" % i, provider, seen,
                                name="machine%d" % i) for i in (1, 2)]
        self.machines, self.ends = [], []

    def __enter__(self):
        try:
            self.ends = wires()
            for number, (options, end) in enumerate(zip(self.options, self.ends), 1):
                self.machines.append(Machine(options, number, end))
                self.machines[-1].__enter__()
            for machine in self.machines:
                machine.ready()
        except BaseException as error:
            self.__exit__(type(error), error, None)
            raise
        return self.machines

    def __exit__(self, *error):
        for machine in self.machines:
            machine.__exit__(*error)
        for end in self.ends:
            end.close()
