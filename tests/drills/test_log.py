"""The daemon's log of events of stores, as an operator reads it."""
import datetime
import json
import os
import re
import resource
import select
import socket
import subprocess

import pytest
import wire

from cluster import die_with_parent, wait_for
from drill import BUILD, MIB, SECONDS, TOP, fill, run_command, wait_ownerless

CODE = {form: ("--log-format", form) for form in ("text", "json")}


def entries(daemon):
    """Returns the entries; every line must be a JSON object."""
    return [json.loads(line) for line in daemon.log().splitlines()]


def named(daemon, event):
    return [entry for entry in entries(daemon) if entry["event"] == event]


@pytest.mark.parametrize("form", ["text", "json"])
def test_an_owners_life_is_told_once(mirrors, owner, fabric, form):
    """A store is created, opened, taken over while its owner lives, and dropped. Each event is one
    line, in JSON with the names and numbers that a program needs."""
    daemon, = mirrors(1, fabric, CODE[form])
    fill("data", [daemon], {"s": b"contents"})
    before = owner("data", [daemon])
    assert run_command("recover", "data", "--takeover", mirrors=[daemon]).status == 0
    before.kill9()
    wait_ownerless("data", [daemon])
    assert run_command("drop", "data", daemon.address, "--yes").status == 0
    if form == "text":
        log = daemon.log()
        mine = "Z perseasd %s: " % daemon.mirror.tcp
        assert all("Z perseasd %s:" % daemon.mirror.host in line for line in log.splitlines())
        assert log.count(mine + "store data: created\n") == 1
        assert log.count(mine + "store data: claimed by ") == 3
        assert log.count(" is fenced by a claim with epoch ") == 1
        assert log.count(", is over\n") == 3
        assert log.count(mine + "store data: dropped\n") == 1
        return
    claims, fences, ends = (named(daemon, event)
                            for event in ("claimed", "fenced", "session-over"))
    assert (len(claims), len(fences), len(ends)) == (3, 1, 3)
    assert [each["epoch"] for each in claims] == sorted({each["epoch"] for each in claims})
    assert fences[0]["epoch"] == claims[2]["epoch"] and fences[0]["peer"] == claims[1]["peer"]
    assert len(named(daemon, "created")) == len(named(daemon, "dropped")) == 1
    assert {each["store"] for each in claims + fences + ends} == {"data"}
    for entry in entries(daemon):
        assert entry["level"] in ("error", "warning", "info", "debug")
        assert entry["message"] and "\n" not in entry["message"]
        moment = datetime.datetime.strptime(entry["time"], "%Y-%m-%dT%H:%M:%S.%fZ")
        assert abs(datetime.datetime.utcnow() - moment) < datetime.timedelta(seconds=600)


def test_what_is_refused_says_who_asked_for_what(mirrors, owner):
    """A claim without takeover while the owner lives; and bytes that are no request."""
    daemon, = mirrors(1, options=CODE["json"])
    fill("data", [daemon], {"s": b"contents"})
    owner("data", [daemon])
    control = wire.Control(daemon.address)
    claim = wire.field(1, "data") + wire.field(2, 99) + wire.field(3, os.urandom(16))
    assert control.ask(wire.field(wire.CLAIM, claim))[1] == 4
    assert control.ask(b"\xff")[1] == wire.STATUS_BAD_REQUEST
    busy, bad = named(daemon, "refused")
    assert busy["peer"] == bad["peer"] == "%s:%d" % control.peer.getsockname()
    assert (busy["store"], busy["epoch"], busy["level"]) == ("data", 99, "info")
    assert "refused \"claim\": store data has a live owner" in busy["message"]
    assert "refused \"unknown\": " in bad["message"] and "store" not in bad


def test_a_log_that_may_not_grow_ends_no_mirror(mirrors):
    """The log file is as large as the process may write (ulimit -f). Owners are still served."""
    daemon, = mirrors(1)
    fill("data", [daemon], {"s": b"contents"})
    # In this order, because what the daemon still logs makes the file reach the limit.
    resource.prlimit(daemon.pid, resource.RLIMIT_FSIZE, (MIB, MIB))
    os.truncate(daemon.mirror.log, MIB)
    assert run_command("recover", "data", mirrors=[daemon]).status == 0
    assert daemon.running() and daemon.mirror.log.stat().st_size == MIB


def test_a_spill_and_its_end_are_told(mirrors, tmp_path):
    daemon, = mirrors(1, options=(*CODE["json"], "--spill-dir", str(tmp_path / "spill")))
    fill("data", [daemon], {"s": b"contents"})
    assert daemon.terminate() == 0
    assert named(daemon, "spilled")[0]["message"].startswith("1 images were written to ")
    assert named(daemon, "ends")


def test_what_it_cannot_start_with_is_an_event_too(tmp_path):
    """The format is known from the command line on."""
    (tmp_path / "file").write_text("")
    done = subprocess.run([BUILD / "perseasd", "--log-format", "json", "--memory-dir",
                           tmp_path / "file"], stderr=subprocess.PIPE, text=True, timeout=SECONDS)
    assert done.returncode == 1
    entry = json.loads(done.stderr)
    assert entry["event"] == "fails" and str(tmp_path) in entry["message"]


class Journal:
    """A socket in place of the journal's socket, and a file in place of the stream that systemd
    uses as standard error. `with` runs a daemon that writes to both."""

    def __init__(self, folder, *words, listens=True):
        self.folder, self.log = folder, folder / "log"
        self.path = folder / "journal"
        if listens:
            self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
            self.socket.bind(str(self.path))
            self.socket.settimeout(SECONDS)
        self.words = [BUILD / "perseasd", "--listen", "127.0.0.1:0", "--memory-dir",
                      folder / "memory", "--unsafe-memory-on-disk", "on", "--port-file",
                      folder / "port", "--journal-socket", self.path, *words]

    def __enter__(self):
        with open(self.log, "wb") as err:
            stream = os.fstat(err.fileno())
            self.daemon = subprocess.Popen(
                self.words, stderr=err,
                env=dict(os.environ, JOURNAL_STREAM="%d:%d" % (stream.st_dev, stream.st_ino)))
        return self

    def __exit__(self, *_):
        self.daemon.kill()
        self.daemon.wait()

    def entry(self):
        """Returns the fields of the next entry."""
        text = self.socket.recv(1 << 16).decode()
        assert text.endswith("\n")
        fields = dict(line.split("=", 1) for line in text.splitlines())
        assert len(fields) == len(text.splitlines()), "each is there once"
        return fields

    def claims_now(self):
        """Returns the epochs of granted claims in all entries so far."""
        found = []
        while select.select([self.socket], [], [], 0)[0]:
            fields = self.entry()
            if fields["PERSEAS_EVENT"] == "claimed":
                found.append(int(fields["PERSEAS_EPOCH"]))
        return found

    def until(self, event):
        while (fields := self.entry())["PERSEAS_EVENT"] != event:
            pass
        return fields

    def address(self):
        return "127.0.0.1:%s" % wait_for(lambda: (self.folder / "port").exists() and
                                         (self.folder / "port").read_text().strip(), SECONDS,
                                         "a port")


def test_in_the_journal_priorities_come_first(tmp_path):
    """Nobody listens at the socket. The journal removes <N> from a line of text and adds the time;
    a JSON object stays intact."""
    for words, begins in ((), "<6>perseasd "), (CODE["json"], "{\"time\":"):
        with Journal(tmp_path, *words, listens=False) as journal:
            wait_for(lambda: "listening" in journal.log.read_text(), SECONDS, "a daemon")
            assert journal.log.read_text().startswith(begins)


def test_in_the_journal_an_entry_has_fields(tmp_path):
    """An owner connects, and a peer sends a name with line breaks, which must not become fields of
    their own."""
    with Journal(tmp_path) as journal:
        begins = journal.entry()
        assert begins["PRIORITY"] == "6" and begins["SYSLOG_IDENTIFIER"] == "perseasd"
        assert begins["PERSEAS_EVENT"] == "begins" and len(begins["MESSAGE_ID"]) == 32
        address = journal.address()
        assert run_command("create", "data", address).status == 0
        assert run_command("recover", "data", address).status == 0
        claimed = journal.until("claimed")
        assert claimed["MESSAGE"].startswith("store data: claimed by 127.0.0.1:")
        assert claimed["PERSEAS_STORE"] == "data" and int(claimed["PERSEAS_EPOCH"]) > 0
        assert claimed["PERSEAS_PEER"].startswith("127.0.0.1:")
        assert claimed["PERSEAS_DAEMON"] == address
        assert claimed["MESSAGE_ID"] != begins["MESSAGE_ID"]
        control = wire.Control(address)
        name = "x\nPRIORITY=0\nMESSAGE_ID=%s" % ("0" * 32)
        assert control.ask(wire.field(wire.CLAIM, wire.field(1, name)))[1] != 0
        refused = journal.until("refused")
        assert refused["PRIORITY"] in "46" and "MESSAGE_ID" in refused
        assert "PRIORITY=0" not in refused and journal.log.read_text() == ""


def test_a_journal_that_stands_still_holds_up_nobody(tmp_path):
    """Nobody reads the socket until it is full, and the daemon continues. Entries that the socket
    does not accept are written as lines, in order."""
    with Journal(tmp_path) as journal:
        address = journal.address()
        assert run_command("create", "data", address).status == 0
        control, epoch = wire.Control(address), 1000
        while not journal.log.read_text():
            control.claim("data", epoch)
            epoch += 1
        assert journal.log.read_text().startswith("<6>store data: ")
        # The last claim comes after all others, in either place.
        seen, lines = [], []
        while epoch - 1 not in seen + lines:
            seen += journal.claims_now()
            lines = [int(n) for n in re.findall("claimed by .* epoch ([0-9]+)\n",
                                                journal.log.read_text())]
        seen += journal.claims_now()
        assert seen and sorted(seen + lines) == list(range(1000, epoch))
        # After the socket was read, it accepts entries again.
        control.claim("data", epoch)
        assert int(journal.until("claimed")["PERSEAS_EPOCH"]) == epoch


# Runs a journal in its own /run, and a daemon with the journal's stream as standard error, as
# systemd starts services; creates a store, and prints the journal as JSON.
IN_THE_JOURNAL = """
mount --make-rprivate / && mount -t tmpfs tmpfs /run
mkdir -p /run/systemd/journald.conf.d /run/log/journal
printf '[Journal]\\nStorage=volatile\\nAudit=no\\nReadKMsg=no\\n' \
    >/run/systemd/journald.conf.d/drill.conf
/lib/systemd/systemd-journald 2>"$2/journald" &
until [ -S /run/systemd/journal/socket ] && [ -S /run/systemd/journal/stdout ]; do sleep 0.05; done
systemd-cat sh -c 'JOURNAL_STREAM=$(stat -L -c %d:%i /proc/self/fd/2) exec "$0" "$@"' \
    "$1/perseasd" --listen 127.0.0.1:0 --memory-dir "$2/memory" --unsafe-memory-on-disk on \
    --port-file "$2/port" &
daemon=$!
until [ -s "$2/port" ]; do sleep 0.05; done
"$1/perseas" create bank "127.0.0.1:$(cat "$2/port")" >&2
kill $daemon && wait $daemon
until [ -n "$(journalctl -q "$3")" ]; do sleep 0.05; done
journalctl -o json "$3"
"""


@pytest.mark.needs("namespaces")
@pytest.mark.root("starts a journal of its own")
def test_the_journal_finds_entries_by_store_and_by_event(tmp_path):
    """Uses the real journal."""
    def found(match):
        folder = tmp_path / match.replace("=", "-")
        folder.mkdir()
        done = subprocess.run(["unshare", "--mount", "--pid", "--fork", "--kill-child",
                               "--mount-proc", "sh", "-euc", IN_THE_JOURNAL, "sh", BUILD, folder,
                               match], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              timeout=SECONDS, preexec_fn=die_with_parent)
        assert done.returncode == 0, done
        return [json.loads(line) for line in done.stdout.splitlines()]

    made, = found("PERSEAS_STORE=bank")
    assert made["PERSEAS_EVENT"] == "created" and made["MESSAGE"] == "store bank: created"
    assert made["PRIORITY"] == "6" and made["SYSLOG_IDENTIFIER"] == "perseasd"
    assert made["_TRANSPORT"] == "journal" and made["_COMM"] == "perseasd"
    again, = found("MESSAGE_ID=" + made["MESSAGE_ID"])
    assert again["PERSEAS_EVENT"] == "created"


def test_identifiers_are_those_that_are_promised():
    """Scripts and catalogs use them. Each event of the table exists."""
    table = dict(re.findall(r"\| `([a-z-]+)` \| `([0-9a-f]{32})`",
                            (TOP / "doc/operating.md").read_text()))
    source = (TOP / "server/host/log_journal.c").read_text()
    assert table == dict(re.findall(r'\{ "([a-z-]+)", "([0-9a-f]{32})" \}', source))
    assert table["claimed"] == "b30be0b0290148829a46c49f3df2d047"
    assert len(set(table.values())) == len(table)
    told = set(re.findall(r'"([a-z-]+)"', "".join(
        path.read_text() for path in (TOP / "server").rglob("*.c")
        if path.name != "log_journal.c")))
    assert set(table) <= told
