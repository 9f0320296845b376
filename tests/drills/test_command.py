"""The command `perseas` against real mirrors."""
import os
import re
import socket
import subprocess
import threading

import pytest

import wire
from binding import CREATE, Store
from drill import (BUILD, FAILURE, MIB, NO, OK, PARTLY, SECONDS, TOP, USAGE, fill, mirror_list,
                   status_of, wait_even, wait_for)

VERBS = ("create", "status", "ls", "recover", "verify", "snapshot", "restore", "history", "heap",
         "roster", "drop", "spill", "top", "doctor", "bench", "run", "move", "place", "drain",
         "help")
NOBODY = "127.0.0.1:1"


# --- the command line ---

@pytest.mark.parametrize("words, said", [
    ([], "do what?"),
    (["frobnicate"], "no command 'frobnicate'"),
    (["statsu", "s"], "is 'status' meant"),
    (["ls", "--mirors", NOBODY], "is --mirrors meant"),
    (["ls", "--zzzzzzzz"], "no option --zzzzzzzz; perseas --help"),
    (["ls", "-x"], "begin with two dashes"),
    (["ls", "store", "--mirrors", NOBODY], "one word too many"),
    (["status", "--mirrors", NOBODY], "which store?"),
    (["status", "a", "b", "--mirrors", NOBODY], "one word too many"),
    (["status", ".hidden", "--mirrors", NOBODY], "cannot name a store"),
    (["status", "x" * 64, "--mirrors", NOBODY], "cannot name a store"),
    (["status", "s", "--mirrors"], "needs a list of mirrors"),
    (["status", "s", "--mirrors", ""], "must be a list"),
    (["status", "s", "--mirrors", NOBODY, "--mirrors", NOBODY], "given twice"),
    (["status", "s", "--mirrors", "host:"], "write host:port"),
    (["status", "s", "--mirrors", NOBODY + "," + NOBODY], "twice"),
    (["status", "s", "--mirrors", ",".join("h%d:1" % i for i in range(17))], "more than 16"),
    (["status", "s", "--mirrors", NOBODY, "--json=yes"], "takes no value"),
    (["status", "s", "--mirrors", NOBODY, "--acks", "1"], "status takes no --acks"),
    (["bench", NOBODY, "--sizes", "8,,64"], "up to 16 numbers"),
    (["bench", NOBODY, "--sizes", "8,2M"], "up to 16 numbers"),
    (["bench", NOBODY, "--sizes", "8,"], "up to 16 numbers"),
    (["bench", NOBODY, "--sizes", ",".join(["8"] * 17)], "up to 16 numbers"),
    (["bench", NOBODY, "--seconds", "0.01"], "from 0.1 to 3600"),
    (["bench", NOBODY, "--seconds", "1.x"], "from 0.1 to 3600"),
    (["bench", NOBODY, "--threads", "65"], "from 1 to 64"),
    (["help", "--json"], "help takes no --json"),
    (["help", "frobnicate"], "no help on 'frobnicate'"),
    (["help", "ls", "status"], "one word too many"),
    (["status", "s", NOBODY, NOBODY], "one word too many"),
    (["create", "s", "--mirrors", NOBODY, "--acks", "0"], "from 1 to 16"),
    (["create", "s", "--mirrors", NOBODY, "--acks", "17"], "from 1 to 16"),
    (["create", "s", "--mirrors", NOBODY, "--acks", "two"], "from 1 to 16"),
    (["create", "s", "--mirrors", NOBODY, "--acks", "-1"], "from 1 to 16"),
    (["create", "s", "--mirrors", NOBODY, "--log-size", "1K"], "4K to 64G"),
    (["create", "s", "--mirrors", NOBODY, "--log-size", "65G"], "4K to 64G"),
    (["create", "s", "--mirrors", NOBODY, "--log-size", "1Q"], "4K to 64G"),
    (["create", "s", "--mirrors", NOBODY, "--log-size", "99999999999999999999"], "4K to 64G"),
    (["recover", "s", "--mirrors", NOBODY, "--accept-state", "3"], "7:12345"),
    (["recover", "s", "--mirrors", NOBODY, "--accept-state", "0:3"], "7:12345"),
    (["recover", "s", "--mirrors", NOBODY, "--accept-state", "3:4x"], "7:12345"),
    (["recover", "s", "--mirrors", NOBODY, "--to", "d", "--onto", NOBODY], "give one of them"),
    (["recover", "s", "--mirrors", NOBODY, "--as", "t"], "goes with --onto"),
    (["recover", "s", "--mirrors", NOBODY, "--acks", "1"], "goes with --onto"),
    (["recover", "s", "--mirrors", NOBODY, "--onto", NOBODY, "--as", "a/b"], "must be a name"),
    (["recover", "s", "--mirrors", NOBODY, "--onto", "host:"], "write host:port"),
    (["status", "s", "--mirrors", NOBODY, "--connect-timeout", "0"], "from 1 to 600000"),
    (["snapshot"], "--from MIRROR --to FILE"),
    (["snapshot", "s", "--from", NOBODY], "--from MIRROR --to FILE"),
    (["snapshot", "s", "--check", "f"], "stands alone"),
    (["snapshot", "s", "--from", "a:1,b:1", "--to", "f"], "name one"),
    (["snapshot", "s", "--from", NOBODY, "--to", "f", "--mirrors", NOBODY], "takes no --mirrors"),
    (["restore"], "which file?"),
    (["restore", "f"], "which store?"),
    (["restore", "f", "a/b", NOBODY], "cannot name a store"),
    (["restore", "f", "s", NOBODY, "more"], "one word too many"),
    (["history", "s", "--from", NOBODY, "--offset", "8"], "--segment"),
    (["history", "s", "--from", NOBODY, "--last", "0"], "a number from 1"),
    (["history", "s", "--from", NOBODY, "--segment", "a/b"], "a segment's name"),
    (["heap"], "which store?"),
    (["heap", "s", "x" * 49, "--from", NOBODY], "cannot name a heap"),
    (["heap", "s", "a/b", "--from", NOBODY], "cannot name a heap"),
    (["heap", "s", "h", "i", "--from", NOBODY], "one word too many"),
    (["heap", "s", "--from", "a:1,b:1"], "name one"),
    (["heap", "s", "--mirrors", NOBODY], "takes no --mirrors"),
    (["verify", "s", "--mirrors", NOBODY, "--repeat", "0"], "from 1 to 86400"),
    (["verify", "s", "--mirrors", NOBODY, "--repair", "--repeat", "1"], "goes without --repeat"),
    (["roster"], "which store?"),
    (["roster", "s", NOBODY, NOBODY], "one word too many"),
    (["roster", "s", NOBODY, "--acks", "2"], "goes with a change"),
    (["roster", "add", "s", NOBODY], "which mirror?"),
    (["roster", "add", "s", NOBODY, "a:1", "b:1"], "one word too many"),
    (["roster", "replace", "s", NOBODY, "a:1"], "which mirror?"),
    (["roster", "remove", "s", NOBODY], "which mirror?"),
    (["drop", "s"], "which mirrors?"),
    (["status", "s", "--mirrors", NOBODY, "--yes"], "takes no --yes"),
    (["spill"], "which mirrors?"),
    (["spill", "a:1,b:1"], "name one"),
    (["top", "s", "--mirrors", NOBODY], "one word too many"),
    (["top", "--mirrors", NOBODY, "--interval", "0.099"], "from 0.1 to 86400"),
    (["top", "--mirrors", NOBODY, "--interval", "86400.1"], "from 0.1 to 86400"),
    (["top", "--mirrors", NOBODY, "--interval", "0.1234"], "from 0.1 to 86400"),
    (["top", "--mirrors", NOBODY, "--interval", "1."], "from 0.1 to 86400"),
    (["ls", "--mirrors", NOBODY, "--once"], "ls takes no --once"),
])
def test_a_wrong_command_line_is_refused_with_a_sentence(perseas, words, said):
    """The command connects to nothing."""
    done = perseas(*words)
    assert done.status == USAGE, done
    assert done.err.startswith("perseas: ") and said in done.err, done
    assert done.out == ""


def test_help_tells_of_every_verb_option_and_exit_status(perseas):
    """Asks for help with and without a verb, in any position."""
    whole = perseas("--help")
    exits = perseas("help", "exit-codes").out
    assert perseas("help").out == whole.out and exits.startswith("Exit status:")
    assert whole.status == OK and whole.err == ""
    for verb in VERBS:
        done = perseas(verb, "--help")
        assert done.status == OK and done.err == ""
        assert verb in whole.out and done.out.startswith("Usage: perseas " + verb)
        assert perseas("help", verb).out == done.out
        for text in (whole.out, done.out):
            assert exits in text
            assert "--connect-timeout MS" in text or verb == "help"
            assert all(len(line) <= 90 for line in text.splitlines())
    assert "--takeover" in perseas("--help", "recover").out
    assert "--takeover" not in perseas("status", "-h").out


# The options that nearly every verb has; LIST and MIRROR stand for --mirrors.
COMMON = {"--mirrors", "--mirror-timeout", "--connect-timeout", "--tls-cert", "--tls-key",
          "--tls-ca", "--tls-crl", "--version"}


@pytest.mark.parametrize("verb", VERBS)
def test_a_usage_names_every_option_of_its_verb(perseas, verb):
    usage, text = perseas(verb, "--help").out.split("\n\n", 1)
    options = set(re.findall(r"^  (--[a-z-]+)", text, re.M))
    assert "--version" in options
    assert options - COMMON == set(re.findall(r"--[a-z-]+", usage)) - COMMON


def test_help_shows_the_ports_that_are_taken(perseas):
    """The ports in its examples and in the daemon's help are the default port."""
    texts = [perseas("--help").out, run_daemon("--help").stdout]
    texts += [perseas(verb, "--help").out for verb in VERBS]
    ports = [set(re.findall(r"[\w\]]:(\d{4,5})\b", text)) for text in texts]
    assert ports[0] == ports[1] == {"7170"} and set().union(*ports) == {"7170"}


def test_the_units_socket_is_the_one_that_is_taken(perseas):
    """A command without mirrors, or with unix://, connects to the socket that perseasd.socket
    listens at."""
    unit = (TOP / "deploy/perseasd.socket").read_text()
    text = "".join(perseas("ls", "--help").out.split())
    address, path = re.findall(r"^ListenStream=(.*)$", unit, re.M)
    assert "allothersask" + address in text and "unix://isunix://" + path in text


def run_daemon(*words):
    return subprocess.run([BUILD / "perseasd", *words], stdout=subprocess.PIPE, text=True,
                          timeout=SECONDS)


def test_the_guide_has_the_same_table_of_exit_statuses(perseas):
    """The guide has each line of `perseas help exit-codes`, in order."""
    guide = (TOP / "doc/operating.md").read_text()
    text = re.sub(r"\n {5}", " ", perseas("help", "exit-codes").out)
    rows = re.findall(r"^  (\d)  (.*)$", text, re.M)
    assert [int(number) for number, _ in rows] == [OK, NO, USAGE, PARTLY, FAILURE]
    for number, meaning in rows:
        assert "| %s | %s |" % (number, meaning) in guide


def test_the_version_is_the_trees(perseas):
    """The version is that of the file VERSION at the top."""
    done = perseas("--version")
    assert (done.status, done.out) == (OK, (TOP / "VERSION").read_text().strip() + "\n")


def test_output_that_cannot_be_written_is_a_failure(perseas):
    """The disk is full."""
    with open("/dev/full", "w") as full:
        done = perseas("--help", stdout=full)
    assert done.status == FAILURE and "could not be written" in done.err, done


def test_options_may_stand_anywhere(perseas, mirrors):
    """Options before the verb, after it, and with an equals sign; words after "--" are not
    options."""
    daemons = mirrors(1)
    where = mirror_list(daemons)
    assert perseas("--mirrors=" + where, "create", "--acks", "1", "s").status == OK
    assert perseas("status", "--json", "--mirrors", where, "--", "s").json()["found"]


# --- which mirrors ---

def test_mirrors_come_from_the_environment(perseas, mirrors, monkeypatch):
    """Every command that takes a list uses the environment if no list is given; a given list has
    precedence."""
    daemons = mirrors(3)
    monkeypatch.setenv("PERSEAS_MIRRORS", mirror_list(daemons[:2]))
    assert perseas("create", "s", "--acks", "1").status == OK
    for words in (["ls"], ["status", "s"], ["roster", "s"], ["doctor"], ["recover", "s"]):
        done = perseas(*words)
        assert all(d.address in done.out for d in daemons[:2]), done
    for words in (["verify", "s"], ["bench", "--seconds", "0.1"]):
        done = perseas(*words)
        assert done.status == OK and done.err == "", done
    # status waits half a second for answers.
    wait_for(lambda: (done := perseas("top", "--once")).status == OK and done.err == "", SECONDS,
             "a look at mirrors that answer")
    done = perseas("ls", daemons[2].address)
    assert done.status == OK and daemons[0].address not in done.out, done
    done = perseas("history", "s")
    assert done.status == USAGE and "name one" in done.err, done
    monkeypatch.setenv("PERSEAS_MIRRORS", daemons[0].address)
    assert "0 shown" in perseas("history", "s").out


def test_a_change_of_the_roster_takes_its_list_from_the_environment(perseas, mirrors, monkeypatch):
    """The words after the store are then the mirrors to add and to remove."""
    daemons = mirrors(3)
    assert perseas("create", "s", mirrors=daemons[:2]).status == OK
    monkeypatch.setenv("PERSEAS_MIRRORS", mirror_list(daemons))
    assert perseas("roster", "add", "s", daemons[2].address).status == OK
    done = perseas("roster", "remove", "s", daemons[0].address)
    assert done.status == OK and done.out.splitlines()[0] == (
        "roster remove of store 's': OLD %s, LIST %s" % (daemons[0].address, mirror_list(daemons)))
    found = status_of("s", daemons[1:])["roster"]["members"]
    assert {m["address"] for m in found} == {d.address for d in daemons[1:]}
    monkeypatch.delenv("PERSEAS_MIRRORS")
    done = perseas("roster", "remove", "s", daemons[1].address)
    assert done.status == USAGE and "which mirror?" in done.err, done


def test_a_word_too_few_is_seen_before_a_change_is_ordered(perseas, mirrors, monkeypatch):
    """OLD was forgotten, so the command takes LIST for OLD and the environment's list for LIST. It
    says so, on stderr if a program reads the answer."""
    a, b = mirrors(2)
    assert perseas("create", "s", mirrors=[a]).status == OK
    monkeypatch.setenv("PERSEAS_MIRRORS", a.address)
    done = perseas("roster", "replace", "s", a.address, b.address, "--json")
    assert done.status == OK and done.json()["with"] == b.address, done
    assert done.err.splitlines()[0] == ("roster replace of store 's': OLD %s, NEW %s, LIST %s" % (
        a.address, b.address, a.address)), done


def test_a_measurement_names_the_mirrors_that_nobody_named(perseas, mirrors, monkeypatch):
    """The command names the mirrors of the environment before it loads them; it does not repeat
    those of a given list."""
    daemon, = mirrors(1)
    monkeypatch.setenv("PERSEAS_MIRRORS", daemon.address)
    loads = "no list is given: the commits load " + daemon.address
    words = ("bench", "--seconds", "0.1", "--sizes", "8")
    assert perseas(*words).out.splitlines()[0] == loads
    done = perseas(*words, "--json")
    assert done.err.splitlines() == [loads] and len(done.json()["sizes"]) == 1, done
    assert loads not in perseas(*words, daemon.address).out


def test_a_mirror_that_is_to_lose_something_is_named(perseas, mirrors, monkeypatch):
    """Commands that end a daemon or delete an image take no mirrors from the environment."""
    daemon, = mirrors(1)
    assert perseas("create", "s", mirrors=[daemon]).status == OK
    monkeypatch.setenv("PERSEAS_MIRRORS", daemon.address)
    for words in (["drop", "s", "--yes"], ["spill"]):
        done = perseas(*words)
        assert done.status == USAGE and "which mirrors?" in done.err, done
    assert perseas("status", "s").status == OK


def test_what_is_not_said_of_a_mirror_is_the_default(perseas, monkeypatch):
    """The port, the socket and the mirror itself have defaults. The mirror is named whether or not
    it runs."""
    monkeypatch.delenv("PERSEAS_MIRRORS", raising=False)
    for words, named in ((["ls"], "127.0.0.1:7170"), (["status", "s"], "127.0.0.1:7170"),
                         (["history", "s"], "127.0.0.1:7170"),
                         (["ls", "localhost"], "localhost:7170"),
                         (["ls", "tcp://[::1]"], "tcp://[::1]:7170"),
                         (["ls", "unix://"], "unix:///run/perseas/socket")):
        done = perseas(*words)
        assert named in done.out + done.err and done.status != USAGE, done


# --- peers that are not mirrors ---

def serve(conversation):
    """Starts a loopback listener that passes its connections to conversation(). Returns (port,
    close)."""
    listener = socket.create_server(("127.0.0.1", 0))

    def run():
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with connection:
                try:
                    conversation(connection)
                except OSError:
                    pass

    thread = threading.Thread(target=run, daemon=True)
    thread.start()

    def close():
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join(10)
    return listener.getsockname()[1], close


HELLO = wire.control_hello()


def say(data):
    def conversation(connection):
        connection.sendall(data)
        connection.recv(1 << 16)
        connection.shutdown(socket.SHUT_WR)
        while connection.recv(1 << 16):
            pass
    return conversation


def silent(connection):
    while connection.recv(1 << 16):
        pass


def message(length, data):
    return HELLO + length.to_bytes(4, "little") + data


HOSTILE = [
    ("silence", silent, "said nothing in time"),
    ("an end", say(b""), "without a greeting"),
    ("another protocol", say(b"HTTP/1.1 400 Bad Request\r\n\r\n"), "is not a perseasd"),
    ("another version", say(b"PSSC" + (10).to_bytes(4, "little")), "speaks version 10"),
    ("a huge length", say(message(0xffffffff, b"")), "is it a perseasd"),
    ("garbage", say(message(16, b"\xff" * 16)), "not the reply that is due"),
    ("an empty success", say(message(2, b"\x08\x00")), "not the reply that is due"),
    ("an unknown status", say(message(2, b"\x08\x63")), "not the reply that is due"),
    ("a cut message", say(message(64, b"\x08")), "ended the connection"),
    ("another answer", say(message(2, b"\x32\x00")), "nothing that was asked"),
]


@pytest.mark.parametrize("conversation, said", [h[1:] for h in HOSTILE],
                         ids=[h[0] for h in HOSTILE])
@pytest.mark.parametrize("verb", ["ls", "status", "verify"])
def test_what_is_no_mirror_is_named_and_does_not_hide_the_others(perseas, mirrors, verb,
                                                                 conversation, said):
    """One real mirror with a store on one mirror, and a peer that breaks the protocol. The command
    waits for the full timeout only for a silent peer; an answer may arrive late."""
    daemons = mirrors(1)
    perseas("create", "s", mirrors=daemons)
    port, close = serve(conversation)
    words = [verb] if verb == "ls" else [verb, "s"]

    def asked():
        """Returns once the real mirror has answered in time."""
        done = perseas(*words, "--mirrors", "127.0.0.1:%d,%s" % (port, mirror_list(daemons)),
                       "--connect-timeout", 1500 if conversation is silent else 60000)
        return daemons[0].address not in done.err and done

    try:
        done = wait_for(asked, SECONDS, "an answer of the real mirror")
        assert said in done.err and "127.0.0.1:%d" % port in done.err, done
        assert done.status in (PARTLY, OK), done
        assert daemons[0].address in done.out or "1 of 1 mirrors" in done.out, done
        if verb == "ls":
            assert done.status == PARTLY
            assert (": another version\n" in done.out) == ("speaks version" in said), done
    finally:
        close()


# --- create ---

def test_create_makes_an_empty_store_on_every_mirror(perseas, mirrors):
    """Three mirrors, W = 3, a log of 64 KiB."""
    daemons = mirrors(3)
    assert perseas("create", "s", "--acks", "3", "--log-size", "64k", mirrors=daemons).status == OK
    told = status_of("s", daemons)
    assert told["roster"]["acks"] == 3 and told["roster"]["claims"] == 1
    assert told["log_size"] == 65536 and told["segments"] == []
    assert [m["state"] for m in told["mirrors"]] == ["consistent"] * 3


def test_a_store_outlives_its_mirrors_daemons(perseas, mirrors):
    """One daemon is terminated, the other killed; both restart on the same ports."""
    daemons = mirrors(2)
    fill("s", daemons, {"accounts": b"contents"})
    before = status_of("s", daemons)
    assert daemons[0].terminate() == 0
    daemons[1].kill9()
    for daemon in daemons:
        daemon.restart()
    assert status_of("s", daemons) == before
    assert perseas("verify", "s", mirrors=daemons).status == OK


def test_create_refuses_a_name_that_is_taken(perseas, mirrors):
    """One of two mirrors has a store of this name."""
    daemons = mirrors(2)
    assert perseas("create", "s", mirrors=daemons[:1]).status == OK
    done = perseas("create", "s", mirrors=daemons)
    assert done.status == NO and "has a store 's' already" in done.err, done


def test_create_needs_all_mirrors_and_leaves_nothing_behind(perseas, mirrors):
    """One of three mirrors is down; one of two has no room; W exceeds the number of mirrors."""
    daemons = mirrors(3)
    small = mirrors(1, options=["--max-memory", "4M"])
    daemons[2].kill9()
    down = perseas("create", "s", mirrors=daemons)
    assert down.status == FAILURE and daemons[2].address in down.err, down
    full = perseas("create", "s", mirrors=daemons[:2] + small)
    assert full.status == NO and small[0].address in full.err, full
    assert perseas("create", "s", "--acks", "3", mirrors=daemons[:2]).status == USAGE
    told = perseas("ls", "--json", mirrors=daemons[:2] + small).json()
    assert [m["stores"] for m in told["mirrors"]] == [[], [], []]


# --- ls ---

def test_ls_tells_what_each_mirror_has(perseas, mirrors):
    """Two stores on one mirror, one on the other, which has a memory limit."""
    first, = mirrors(1)
    second, = mirrors(1, options=["--max-memory", "64M"])
    perseas("create", "a", "--log-size", "8K", mirrors=[first])
    perseas("create", "b", "--log-size", "8K", mirrors=[first, second])
    done = perseas("ls", "--json", mirrors=[first, second])
    one, two = done.json()["mirrors"]
    assert done.status == OK
    assert sorted(s["store"] for s in one["stores"]) == ["a", "b"]
    assert [s["store"] for s in two["stores"]] == ["b"]
    assert (one["memory_limit"], two["memory_limit"]) == (0, 64 * MIB)
    assert two["version"] == (TOP / "VERSION").read_text().strip()
    text = perseas("ls", mirrors=[first, second])
    assert text.status == OK and "of 64.0 MiB" in text.out and "no --max-memory" in text.out, text


def test_ls_says_who_does_not_answer(perseas, mirrors):
    """One of two mirrors is down, then both."""
    daemons = mirrors(2)
    daemons[0].kill9()
    done = perseas("ls", "--json", mirrors=daemons)
    assert done.status == PARTLY and "is perseasd running there?" in done.err, done
    assert [m["reachable"] for m in done.json()["mirrors"]] == [False, True]
    daemons[1].kill9()
    assert perseas("ls", mirrors=daemons).status == FAILURE


def test_json_stays_json_whatever_an_address_has_in_it(perseas):
    """A path with quotes, a backslash, a non-ASCII letter, and bytes that are not UTF-8."""
    path = b'unix:///nowhere/"q"\\\xc3\xa9\xff\xed\xa0\x80'
    done = perseas("ls", "--json", mirrors=os.fsdecode(path))
    assert done.json()["mirrors"][0]["address"] == 'unix:///nowhere/"q"\\\u00e9' + "\ufffd" * 4


# --- status ---

def test_status_shows_a_live_owner_and_does_not_fence_it(perseas, mirrors, fabric):
    """The owner has a segment, and commits before and after."""
    daemons = mirrors(2, fabric)
    with Store("s", mirror_list(daemons), flags=CREATE) as store:
        address = store.map("accounts", 4096)
        store.publish()
        store.write("accounts", 0, b"before")
        told = status_of("s", daemons)
        text = perseas("status", "s", mirrors=daemons)
        store.write("accounts", 0, b"after!")
        wait_even("s", daemons)
    assert told["live"] and told["newest"] == {"epoch": 1, "seq": 2}
    for mirror in told["mirrors"]:
        assert mirror["live"] and mirror["fabric"] == fabric
        assert mirror["promised_epoch"] == 1 and mirror["lag"] == 0 and mirror["listed"]
    segment, = told["segments"]
    assert re.fullmatch("[0-9a-f]{32}", segment.pop("random_id"))
    assert segment == {"name": "accounts", "id": 0, "size": 4096, "born": 1,
                       "address": hex(address), "published": True}
    assert text.status == OK and "live owner: from" in text.out and hex(address) in text.out
    told = status_of("s", daemons)
    assert not told["live"] and told["newest"]["seq"] == 3


def test_status_shows_how_far_a_mirror_is_behind(perseas, mirrors):
    """One of three mirrors was down for five transactions; the owner has ended since."""
    daemons = mirrors(3)
    with Store("s", mirror_list(daemons), flags=CREATE) as store:
        store.map("accounts", 4096)
        store.publish()
        wait_even("s", daemons)
        daemons[1].kill9()
        for number in range(5):
            store.write("accounts", number, b"x")
        wait_even("s", [daemons[0], daemons[2]])
    assert perseas("status", "s", mirrors=daemons).status == PARTLY
    daemons[1].restart()
    told = status_of("s", daemons)
    assert [m["lag"] for m in told["mirrors"]] == [0, 5, 0]


def test_status_tells_a_missing_store_from_a_missing_mirror(perseas, mirrors):
    """A mirror that lost its memory answers; one that is down does not."""
    daemons = mirrors(3)
    other, = mirrors(1)
    perseas("create", "s", mirrors=daemons)
    daemons[0].lose_memory()
    daemons[0].restart()
    done = perseas("status", "s", "--json", mirrors=daemons)
    assert done.status == OK, done
    assert [m["has_store"] for m in done.json()["mirrors"]] == [False, True, True]
    assert [m["seen"] for m in done.json()["roster"]["members"]] == [False, True, True]
    assert "no such store" in perseas("status", "s", mirrors=daemons).out
    absent = perseas("status", "s", mirrors=[other])
    assert absent.status == NO and "no mirror has a store 's'" in absent.err, absent
    assert perseas("status", "s", mirrors=[other, daemons[0]]).status == NO
    daemons[0].kill9()
    assert perseas("status", "s", mirrors=[other, daemons[0]]).status == PARTLY
    assert perseas("status", "s", mirrors=daemons[:1]).status == FAILURE
    assert not perseas("status", "s", "--json", mirrors=[other]).json()["found"]


def test_status_points_out_another_store_of_the_same_name(perseas, mirrors):
    """Two mirrors have one store. A third has an image of another store with the same name, which
    needs R = 2 of its three mirrors."""
    daemons, away = mirrors(3), mirrors(2)
    perseas("create", "s", mirrors=daemons[:2])
    perseas("create", "s", mirrors=[daemons[2], *away])
    for each in away:
        each.kill9()
    told = status_of("s", daemons)
    assert [m["same_store"] for m in told["mirrors"] if m["has_store"]] == [True, True, False]
    assert "another store of this name" in perseas("status", "s", mirrors=daemons).out


def test_status_chooses_neither_of_two_stores_of_the_same_name(perseas, mirrors):
    """Both stores can be opened; which one has the lower id is random."""
    daemons = mirrors(3)
    perseas("create", "s", mirrors=daemons[:2])
    perseas("create", "s", mirrors=daemons[2:])
    told = status_of("s", daemons)
    assert [m["same_store"] for m in told["mirrors"]] in ([True, True, False], [False, False, True])
    assert "two different stores" in perseas("status", "s", mirrors=daemons).err


def test_a_mirror_that_hangs_does_not_hang_the_command(perseas, mirrors):
    """One of two mirrors is stopped with SIGSTOP; the kernel still accepts its connections."""
    daemons = mirrors(2)
    perseas("create", "s", mirrors=daemons)
    daemons[0].stop()

    def asked():
        done = perseas("status", "s", "--connect-timeout", "300", mirrors=daemons)
        return daemons[1].address not in done.err and done

    done = wait_for(asked, SECONDS, "an answer of the other mirror")
    daemons[0].cont()
    assert done.status == PARTLY and daemons[0].address in done.err, done
