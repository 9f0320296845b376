"""The nodes of a guest and their cables, and a program that writes from one to another."""
import re
import subprocess

import pytest

from drill import BUILD, TOP, die_with_parent, wait_for

WRITER = BUILD / "tests/rdma/writer"
NODES = TOP / "tests/rdma/nodes.sh"
SECONDS = 60
FOR_EVER = 7                            # retries, on rxe


class Nodes:
    """The nodes of this machine. `mirrors` are the addresses that daemons listen on, `owner` is
    where a client without a source address of its own comes from."""

    def __init__(self):
        found = subprocess.run(["ip", "-o", "-4", "address"], stdout=subprocess.PIPE, text=True,
                               check=True).stdout
        self.addresses = re.findall(r"10\.5\.0\.\d+", found)
        *self.mirrors, self.owner = self.addresses
        self.troubled = set()

    @staticmethod
    def number(address):
        return address.rpartition(".")[2]

    def _do(self, what, address, *words):
        done = subprocess.run([str(NODES), what, self.number(address), *words],
                              stdout=subprocess.PIPE, text=True, check=True)
        return done.stdout

    def cut(self, address):
        self.troubled.add(("mend", address))
        self._do("cut", address)

    def mend(self, address):
        self.troubled.discard(("mend", address))
        self._do("mend", address)

    def netem(self, address, *words):
        """As tc-netem(8) takes it, for example "loss", "1%"."""
        self.troubled.add(("calm", address))
        self._do("netem", address, *words)

    def calm(self, address):
        self.troubled.discard(("calm", address))
        self._do("calm", address)

    def counters(self, address):
        """(packets that came in, that went out) at this node's device."""
        return tuple(map(int, self._do("counters", address).split()))

    def dropped(self, address):
        """Packets that netem lost on the way to this node."""
        said = subprocess.run(["tc", "-s", "qdisc", "show", "dev", "p" + self.number(address)],
                              stdout=subprocess.PIPE, text=True, check=True).stdout
        return int(re.search(r"dropped (\d+)", said).group(1))

    def all_well(self):
        """Ends every trouble that is left."""
        for what, address in sorted(self.troubled):
            self._do(what, address)
        self.troubled.clear()


@pytest.fixture
def nodes():
    """The machine's nodes; what a test did to their cables is undone after it."""
    nodes = Nodes()
    yield nodes
    nodes.all_well()


class Writer:
    """A process of writer.c, its output read up to where it is."""

    def __init__(self, folder, *words):
        self.output = folder / ("writer-" + "-".join(map(str, words)))
        with open(self.output, "wb") as out:
            self.process = subprocess.Popen([str(WRITER), *map(str, words)], stdout=out,
                                            stderr=out, preexec_fn=die_with_parent)

    @property
    def text(self):
        return self.output.read_text()

    def wait_for_text(self, text):
        wait_for(lambda: text in self.text or self.process.poll() is not None, SECONDS, text)
        assert text in self.text, self.text
        return self

    @property
    def written(self):
        return int(([0] + re.findall(r"wrote (\d+)", self.text))[-1])

    def advances(self):
        """Waits until it has written more."""
        before = self.written
        wait_for(lambda: self.written > before, SECONDS, "more writes")

    def wait(self):
        """Its exit status."""
        return self.process.wait(SECONDS)


@pytest.fixture
def writer(tmp_path):
    """writer(to, count, retries, source=None): a Writer that writes to a server there."""
    processes = []

    def start(to, count, retries=FOR_EVER, source=None):
        server = Writer(tmp_path, "serve", to)
        processes.append(server.process)
        port = server.wait_for_text("port ").text.split()[1]
        words = [to, port, count, retries] + ([source] if source else [])
        processes.append((client := Writer(tmp_path, "write", *words)).process)
        return client

    yield start
    for process in processes:
        process.kill()
        process.wait()
