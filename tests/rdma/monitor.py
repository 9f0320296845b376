"""QEMU's monitor: pauses a machine, lets it go on, pulls its cable."""
import json
import socket

SECONDS = 20


class Line:
    """A pair of sockets: one end is ours, the other becomes a character device of QEMU's."""

    def __init__(self, name):
        self.name = name
        self.ours, self.theirs = socket.socketpair()

    def words(self):
        """For QEMU, which must inherit `theirs`."""
        return ["-chardev", "socket,id=%s,fd=%d" % (self.name, self.theirs.fileno())]

    def close(self):
        self.ours.close()
        self.theirs.close()


class Monitor:
    def __init__(self):
        self.line = Line("monitor")
        self.line.ours.settimeout(SECONDS)
        self.answers = None

    def words(self):
        return self.line.words() + ["-mon", "chardev=monitor,mode=control"]

    def _greet(self):
        self.answers = self.line.ours.makefile("r")
        self.answers.readline()
        self.execute("qmp_capabilities")

    def execute(self, command, **arguments):
        """The answer to a command; RuntimeError when it is an error."""
        if not self.answers:
            self._greet()
        message = {"execute": command, "arguments": arguments}
        self.line.ours.sendall(json.dumps(message).encode() + b"\n")
        for line in self.answers:
            answer = json.loads(line)
            if "error" in answer:
                raise RuntimeError("%s: %s" % (command, answer["error"]["desc"]))
            if "return" in answer:      # what is neither is an event
                return answer["return"]
        raise RuntimeError("%s: the machine is gone" % command)

    def close(self):
        if self.answers:
            self.answers.close()
        self.line.close()
