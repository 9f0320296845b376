"""Access rules for drills: a rules file that a daemon rereads, identities by fabric, and every
request by the right that it needs."""
import contextlib
import os
import signal

import wire
from authority import dial
from drill import EMULATED, SECONDS, wait_for

# Numbers of fields of Request.
STATUS, CREATE, SETTLE, ABANDON, CLAIM, REBUILD = 2, 3, 4, 5, 6, 11
DIGEST, READ, ORDER, DROP, SPILL, MOVE = 16, 17, 18, 19, 20, 22
DENIED, LIMIT, NO_MEMORY = 13, 11, 7                    # Status
RIGHTS = ("create", "own", "read", "recover", "admin")


class Rules:
    """The file that --access names."""

    def __init__(self, path, *lines):
        self.path = path
        self.write(*lines)

    def write(self, *lines):
        self.path.write_text("".join(line + "\n" for line in lines))

    @property
    def options(self):
        return ("--access", str(self.path))

    def put(self, daemon, *lines):
        """Has the daemon read these rules. Returns True if they are in force, False if they were
        refused."""
        def read():
            log = daemon.log()
            return log.count("are in force"), log.count("stay in force")
        before = read()
        self.write(*lines)
        os.kill(daemon.pid, signal.SIGHUP)
        wait_for(lambda: read() != before, SECONDS, "rules that are read again")
        return read()[1] == before[1]


def open_to_all(daemon):
    """Lets other users reach the daemon's socket."""
    for folder in (daemon.mirror.folder.parent, daemon.mirror.folder):
        folder.chmod(0o755)


@contextlib.contextmanager
def user(uid):
    """Connections made in the `with` block are this user's, as far as the kernel tells:
    @pytest.mark.root."""
    groups = os.getgroups()
    os.setgroups([])
    os.setegid(uid)
    os.seteuid(uid)
    try:
        yield
    finally:
        os.seteuid(0)
        os.setegid(0)
        os.setgroups(groups)


class Somebody:
    """An identity, and the fabric that it uses."""

    def __init__(self, name, fabric, uid=None):
        self.name, self.fabric, self.uid = name, fabric, uid

    @property
    def secure(self):
        return self.fabric.endswith("tls")

    def address(self, daemon):
        """Returns the address that the library and the command connect to on this fabric."""
        if self.uid is not None:
            return daemon.mirror.unix
        return daemon.mirror.rdma if "rdma" in self.fabric else daemon.mirror.tcp

    def control(self, daemon):
        """Returns a new control connection with this identity."""
        if self.secure:
            return wire.Control(dial(daemon.mirror.tcp))
        if self.uid is None:
            return wire.Control(daemon.mirror.tcp)
        with user(self.uid):
            return wire.Control(daemon.mirror.unix)

    def __repr__(self):
        return "%s over %s" % (self.name, self.fabric)


# All identities that can connect here. An RDMA connection has no identity: it has that of the
# control connection that made the claim.
SOMEBODIES = [Somebody("anonymous", "rdma"), Somebody("cert:owner", "rdma-tls")] if EMULATED else [
    Somebody("uid:12345", "shm", 12345), Somebody("anonymous", "tcp"),
    Somebody("cert:owner", "tls")]


def some_id():
    return os.urandom(16)


def _roster():
    member = wire.field(1, "127.0.0.1:1") + wire.field(2, some_id())
    return wire.field(1, 1) + wire.field(2, 1) + wire.field(3, member)


def _claim(store, takeover, shared):
    return wire.field(CLAIM, wire.field(1, store) + wire.field(2, 1 << 40) +
                      wire.field(3, some_id()) + wire.field(4, int(takeover)) +
                      wire.field(6, int(shared)) + wire.field(8, 1))


def _rebuild(store):
    header = (wire.field(1, store) + wire.field(2, some_id()) + wire.field(3, some_id()) +
              wire.field(6, 3) + wire.field(8, 4096) + wire.field(9, _roster()))
    return wire.field(REBUILD, wire.field(1, header) + wire.field(2, 1 << 40) +
                      wire.field(3, some_id()) + wire.field(5, 1))


def _move(store):
    return wire.field(MOVE, wire.field(1, store) + wire.field(2, some_id()) + wire.field(4, 1) +
                      wire.field(5, b"mark") + wire.field(6, "beta") + wire.field(7, 60000))


def all_but(somebody, right):
    """Returns the rule that grants an identity every right but this one."""
    return "allow %s %s" % (somebody.name, ",".join(each for each in RIGHTS if each != right))


def requests(store, shared):
    """Returns {right: [requests that need it]}. All claims ask for RDMA; with `shared` they also
    ask for the memory itself."""
    name = wire.field(1, store)
    made = name + wire.field(2, some_id())
    order = wire.field(1, some_id()) + wire.field(2, 2) + wire.field(3, "127.0.0.1:1")
    part = name + wire.field(2, wire.LOG) + wire.field(3, 0) + wire.field(4, 4096)
    return {
        "create": [wire.field(CREATE, made + wire.field(3, some_id()) + wire.field(4, 4096) +
                              wire.field(5, _roster())),
                   wire.field(SETTLE, made), wire.field(ABANDON, made)],
        "own": [_claim(store, False, shared), _claim(store, True, shared), _rebuild(store),
                _move(store)],
        "read": [wire.field(STATUS, name), wire.field(DIGEST, part), wire.field(READ, part)],
        "recover": [_claim(store, True, shared), _move(store)],
        "admin": [wire.field(ORDER, name + wire.field(2, order)), wire.field(DROP, name),
                  wire.field(DROP, made + wire.field(3, some_id())), wire.field(SPILL, b"")],
    }
