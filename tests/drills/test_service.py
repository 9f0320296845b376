"""perseasd on sockets that systemd opens and keeps open, as in perseasd.socket."""
import os
import re
import signal
import socket
import subprocess
import sys

import pytest

from cluster import die_with_parent
from authority import authority  # noqa: F401
from drill import BUILD, SECONDS, TOP, run_command
from teller import LOG, tellers  # noqa: F401
from test_daemon import listen

LAUNCHER = str(TOP / "tests/drills/service.py")
IP_FREEBIND = 15


class Service:
    """A perseasd on sockets that outlive it. `words` are further options."""

    def __init__(self, folder, *words):
        self.folder, self.words, self.process = folder, words, None
        self.program = BUILD / "perseasd"
        self.memory, self.ports = folder / "memory", folder / "ports"
        self.path, self.log = folder / "socket", folder / "log"
        self.tcp = socket.create_server(("127.0.0.1", 0))
        self.local = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.local.bind(str(self.path))
        self.local.listen()
        self.port = self.tcp.getsockname()[1]
        self.addresses = {"tcp": "127.0.0.1:%d" % self.port, "shm": "unix://%s" % self.path}

    def start(self, sockets=None):
        sockets = [self.tcp, self.local] if sockets is None else sockets
        numbers = [each.fileno() for each in sockets]
        words = [sys.executable, LAUNCHER, "--sockets", ",".join(map(str, numbers)),
                 self.program, "--memory-dir", self.memory, "--unsafe-memory-on-disk", "on",
                 "--port-file", self.ports,
                 *self.words]
        with listen(self.folder / "notify") as notices, open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                [str(w) for w in words], stdin=subprocess.DEVNULL, stderr=log, pass_fds=numbers,
                preexec_fn=die_with_parent,
                env=dict(os.environ, NOTIFY_SOCKET=str(self.folder / "notify")))
            if sockets == [self.tcp, self.local]:
                # While it loads images, which may take long, it asks for more time.
                while b"READY=1" not in notices.recv(4096):
                    pass
        (self.folder / "notify").unlink()

    def stop(self, number=signal.SIGTERM):
        self.process.send_signal(number)
        return self.process.wait(SECONDS)

    def tidy_up(self):
        if self.process and self.process.poll() is None:
            self.stop(signal.SIGKILL)
        self.tcp.close()
        self.local.close()


@pytest.fixture
def service(tmp_path):
    """service(options...) returns a Service that is not yet started."""
    services = []

    def make(*words):
        services.append(Service(tmp_path, *words))
        return services[-1]

    yield make
    for each in services:
        each.tidy_up()


def test_it_listens_where_it_was_told_by_the_service_manager_and_nowhere_else(service):
    """It does not use the default address, the port file has the socket's port, and the socket's
    path belongs to the service manager."""
    it = service()
    it.start()
    assert it.ports.read_text() == "%d\n" % it.port
    said = re.findall(r"listening at (\S+)", it.log.read_text())
    assert said == ["tcp://127.0.0.1:%d" % it.port, "unix://%s" % it.path]
    for address in it.addresses.values():
        assert run_command("ls", "--mirrors", address).status == 0
    assert it.stop() == 0
    assert it.path.is_socket()


def test_what_the_options_say_is_opened_beside_it(service):
    it = service("--listen", "127.0.0.1:0")
    it.start()
    mine, other = it.ports.read_text().split()
    assert int(mine) == it.port != int(other)
    for port in (mine, other):
        socket.create_connection(("127.0.0.1", int(port)), SECONDS).close()


def test_a_socket_that_is_of_no_use_is_named(service):
    """For example from ListenDatagram= in the unit."""
    it = service()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as wrong:
        it.start([it.tcp, wrong])
        assert it.process.wait(SECONDS) == 1
    assert "descriptor 4 from the service manager, of perseasd.socket is no stream socket" \
        in it.log.read_text()


def guides_service():
    """Returns (what doc/installing.md adds to perseasd.conf, the address that it adds to
    perseasd.socket)."""
    text = (TOP / "doc/installing.md").read_text()
    lines, = re.findall(r"^    cat >>/etc/perseasd.conf <<END\n(.*?)^    END$", text, re.M | re.S)
    address, = re.findall(r"ListenStream=(\S+)", text)
    return re.sub(r"^    ", "", lines, flags=re.M), address


@pytest.mark.parametrize("remote", [False, True], ids=["this host", "network"])
def test_the_service_of_the_guide_starts(service, tmp_path, authority, remote):  # noqa: F811
    """With the unit's sockets and the example perseasd.conf; and with what the guide adds to both
    for owners on other hosts, at an address that this host may lack."""
    lines, address = guides_service() if remote else ("", "")
    for option, path in (("tls-cert", authority.cert("mirror")),
                         ("tls-key", authority.key("mirror")), ("tls-ca", authority.ca)):
        lines, count = re.subn("^%s .*$" % option, "%s %s" % (option, path), lines, flags=re.M)
        assert count == remote
    conf = tmp_path / "perseasd.conf"
    conf.write_text((TOP / "deploy/perseasd.conf").read_text() + lines)
    it = service("--config", conf)
    if remote:
        it.tcp.close()
        it.tcp = socket.socket()
        it.tcp.setsockopt(socket.IPPROTO_IP, IP_FREEBIND, 1)
        it.tcp.bind((address.rpartition(":")[0], 0))
        it.tcp.listen()
    it.start()
    said = it.log.read_text()
    assert said.count("listening at tcp://") == 1 and (", with TLS" in said) == remote, said
    assert it.stop() == 0


@pytest.mark.parametrize("fabric", ["tcp", "shm"])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_an_owner_goes_on_when_the_service_is_restarted(service, tellers, fabric, number):
    """The owner commits all the time. The daemon ends, cleanly or not; a client that connects
    before its successor runs waits, and is not refused."""
    it = service()
    it.start()
    owner = tellers.run("books", it.addresses[fabric], "create", LOG, "commit-ms=20000")
    owner.advances(100)
    it.stop(number)
    with socket.create_connection(("127.0.0.1", it.port), SECONDS), \
            socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as early:
        early.connect(str(it.path))
        it.start()
        owner.advances(100)
    owner.kill9()
    acked = owner.page.acked
    verified = tellers.verify("books", it.addresses[fabric], owner.page, "takeover")
    assert acked <= verified <= acked + 1
