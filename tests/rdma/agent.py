#!/usr/bin/env python3
"""Runs in a guest: starts processes for the host and tells how they end.

The host speaks over a virtio port, one JSON object a line: {"id", "do", …} is answered with {"id",
"result"} or {"id", "error"}; {"ended", "status"} tells that a process has ended, by its pid.
"""
import base64
import json
import os
import pathlib
import select
import signal
import subprocess
import sys

PORTS = pathlib.Path("/sys/class/virtio-ports")


def find_port(name):
    for port in PORTS.iterdir():
        if (port / "name").read_text().strip() == name:
            return "/dev/" + port.name
    raise SystemExit("agent: no port %s" % name)


class Agent:
    def __init__(self, port):
        self.port = os.open(port, os.O_RDWR)
        self.processes = {}             # by pid
        self.rest = b""

    def say(self, message):
        data = json.dumps(message).encode() + b"\n"
        while data:
            data = data[os.write(self.port, data):]

    def start(self, words, folder, output):
        """A process group of its own, its output in this file; its pid."""
        with open(output, "ab") as out:
            process = subprocess.Popen(words, cwd=folder, stdin=subprocess.DEVNULL, stdout=out,
                                       stderr=out, start_new_session=True)
        self.processes[process.pid] = process
        return process.pid

    def signal(self, pid, number):
        """To the whole group, while its leader has not been waited for."""
        if pid in self.processes:
            os.killpg(pid, number)

    def read(self, path):
        return base64.b64encode(pathlib.Path(path).read_bytes()).decode()

    def leave(self):
        """Ends the machine: its init sees the job end."""
        for pid in list(self.processes):
            os.killpg(pid, signal.SIGKILL)
        sys.exit(0)

    def answer(self, line):
        message = json.loads(line)
        number, do = message.pop("id"), message.pop("do")
        try:
            result = getattr(self, do)(**message)
        except (OSError, ValueError) as error:
            return {"id": number, "error": str(error)}
        return {"id": number, "result": result}

    def reap(self):
        for pid, process in list(self.processes.items()):
            if process.poll() is not None:
                del self.processes[pid]
                self.say({"ended": pid, "status": process.returncode})

    def serve(self):
        """SIGCHLD writes a byte to `woken`."""
        woken, wake = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.set_wakeup_fd(wake)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        self.say({"ready": True})
        while True:
            ready = select.select([self.port, woken], [], [])[0]
            if woken in ready:
                os.read(woken, 4096)
                self.reap()
            if self.port in ready:
                data = os.read(self.port, 65536)
                if not data:            # nobody is there who could want anything
                    self.leave()
                self.rest += data
                *lines, self.rest = self.rest.split(b"\n")
                for line in lines:
                    self.say(self.answer(line))


if __name__ == "__main__":
    Agent(find_port(sys.argv[1])).serve()
