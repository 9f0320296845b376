"""Access rules and quotas of a daemon, over every fabric that runs here."""
import itertools
import os
import re
import signal

import pytest

import wire
from drill import NO, SECONDS, TOP, run_command, wait_for
from rules import DENIED, RIGHTS, SOMEBODIES, Rules, all_but, open_to_all, requests
from teller import LOG, pieces, tellers, until  # noqa: F401

DAEMON = 60                             # field of a reply: the id of the daemon that answers

ME = "uid:%d" % os.geteuid()            # the owner of these drills, over a Unix socket
EVERYTHING = "allow %s all" % ME


def marked(somebody):
    """Returns the identity as a parameter of a drill."""
    marks = [pytest.mark.root("comes as another user")] if somebody.uid else []
    return pytest.param(somebody, id=somebody.fabric, marks=marks)


@pytest.fixture(params=map(marked, SOMEBODIES))
def somebody(request):
    return request.param


@pytest.fixture
def rules(tmp_path):
    return Rules(tmp_path / "access", EVERYTHING)


@pytest.fixture
def mirror(request, mirrors, rules, tmp_path):
    """A mirror under these rules that other users can reach, over TLS if that is requested; its
    owner shares memory with it."""
    daemon, = mirrors(1, "tls" if "tls]" in request.node.name else "shm",
                      (*rules.options, "--unix-mode", "666", "--spill-dir",
                       str(tmp_path / "spill"), "--log-level", "debug"))
    daemon.fabric = "shm"
    open_to_all(daemon)
    return daemon


@pytest.fixture
def prey(tellers, mirror):
    """A store without an owner."""
    desk = tellers.desk()
    desk.open("prey", [mirror], "create", "log=65536")
    desk.ask("map", "a", 4096)
    desk.ask("publish")
    desk.transaction("a", 0, 4096, 5)
    desk.ask("close")
    return desk


def test_what_is_denied_leaves_everything_as_it_is(somebody, rules, mirror, tellers, prey):
    """Sends every request that needs a right as an identity with all other rights: for a store
    without an owner, for one whose owner commits, and for one that does not exist."""
    desk = tellers.desk()
    epoch, _ = desk.open("books", [mirror], "create", LOG)
    desk.books()
    desk.ask("start")
    desk.page.advances(50)
    quiet = {path: data for path, data in pieces([mirror]).items() if "books" not in str(path)}
    control, count = somebody.control(mirror), 0
    for right in RIGHTS:
        assert rules.put(mirror, EVERYTHING, all_but(somebody, right))
        for store in ("prey", "books", "none"):
            for body in requests(store, somebody.fabric == "shm")[right]:
                reply = control.ask(body)
                assert reply[1] == DENIED, (right, store, reply)
                sentence = reply[2].decode()
                assert sentence.startswith('%s lacks the right "%s"' % (somebody.name, right))
                assert set(reply) == {1, 2, DAEMON}     # no grant, no epoch
                count += 1
    assert count == 3 * sum(map(len, requests("x", False).values()))
    control.peer.close()
    desk.page.advances(50)
    k = int(desk.ask("halt"))
    figures = desk.figures()
    assert (figures["epoch"], figures["reconnects"], figures["in_doubt"]) == (epoch, 0, 0)
    assert desk.check() == k
    assert quiet == {path: data for path, data in pieces([mirror]).items()
                     if "books" not in str(path)}


def test_nobody_learns_whether_a_store_is_there(somebody, rules, mirror, prey):
    """Every denied request is refused with the same message whether or not the store exists, and
    lists omit the store."""
    assert rules.put(mirror, EVERYTHING, "allow %s read store other" % somebody.name)
    control = somebody.control(mirror)
    there, absent = (requests(store, False) for store in ("prey", "none"))
    for right in RIGHTS:
        for body, other in zip(there[right], absent[right]):
            reply, another = control.ask(body), control.ask(other)
            assert reply[2].replace(b"prey", b"none") == another[2]
            assert {**reply, 2: b""} == {**another, 2: b""}
    listed = wire.fields(control.ask(wire.field(1, b""))[4])
    assert 1 not in listed and listed.get(3, 0) == 0    # no store, no bytes
    control.peer.close()


def test_the_library_and_the_command_name_what_is_missing(somebody, rules, mirror, tellers, prey):
    """Tests an anonymous client, one with a certificate, and root, who has no special rights."""
    address = somebody.address(mirror)
    name = somebody.name if somebody.uid is None else "uid:0"
    for right, line in (("read", "allow * own"), ("own", "allow * read"),
                        ("recover", "allow * own,read")):
        assert rules.put(mirror, line)
        refused = tellers.desk().refused("open", "prey", address, "takeover")
        assert refused.name == "PERSEAS_EDENIED"
        assert '%s lacks the right "%s" on store prey' % (name, right) in refused.text
    assert rules.put(mirror, "allow uid:1 read")
    done = run_command("status", "prey", mirrors=address)
    assert done.status == NO and 'lacks the right "read" on store prey' in done.err
    done = run_command("drop", "prey", address, "--yes")
    assert done.status == NO and "lacks the right" in done.err


# The rights that each command needs, as deploy/access.md documents. AT is the mirror, NEW a name
# that no store has.
COMMANDS = {
    "status prey --mirrors AT": "read",
    "verify prey --mirrors AT": "read",
    "history prey --from AT": "read",
    "snapshot prey --from AT --to FILE": "read",
    "roster prey AT": "read",
    "recover prey --mirrors AT": "read own",
    "recover prey --mirrors AT --takeover": "read own recover",
    "create fresh --mirrors AT --log-size 4096": "create read",
    "create low --mirrors AT --log-size 4096 --level 0": "create read",
    "roster raise low AT": "read own",
    "restore FILE NEW AT": "create read own",
    "drop fresh AT --yes": "read admin",
    "spill AT": "admin",
}


def test_each_command_takes_the_rights_that_are_documented(rules, mirror, prey, tmp_path):
    """With all of its rights a command works. Without any one of them it is refused with the name
    of that right, and changes nothing."""
    names = itertools.count()

    def run(command):
        said = {"AT": mirror.mirror.tcp, "FILE": tmp_path / "file", "NEW": "new%d" % next(names)}
        return run_command(*(said.get(word, word) for word in command.split()))

    for command, rights in COMMANDS.items():
        for missing in rights.split():
            rest = " ".join(right for right in rights.split() if right != missing)
            lines = ["allow anonymous " + rest.replace(" ", ",")] if rest else []
            assert rules.put(mirror, EVERYTHING, *lines)
            before = set(pieces([mirror]))
            done = run(command)
            assert done.status == NO, (command, missing, done)
            assert set(pieces([mirror])) == before, (command, missing)
            assert 'anonymous lacks the right "%s"' % missing in done.err, (command, missing)
        assert rules.put(mirror, EVERYTHING, "allow anonymous " + rights.replace(" ", ","))
        done = run(command)
        assert done.status == 0, (command, done)


def test_an_owner_that_may_no_longer_own_is_cut_at_once(somebody, rules, mirror, tellers):
    """The owner commits while it loses the right. It sees the mirror as disconnected, and
    reconnects when it has the right again. The next permitted owner finds every acknowledged
    transaction."""
    shared = somebody.fabric == "shm"
    own, other = somebody.address(mirror), mirror.mirror.tcp if shared else mirror.address
    lines = {own: EVERYTHING, other: "allow anonymous all"} if shared else \
        {own: "allow %s all" % somebody.name, other: EVERYTHING}
    assert rules.put(mirror, *lines.values())
    owner = tellers.run("books", own, "create", LOG)
    owner.advances(100)
    assert rules.put(mirror, lines[other], "# " + lines[own])
    log = mirror.log()
    assert "store books: the session of" in log[:log.rindex("are in force")]
    until(lambda: mirror.log().count('lacks the right "read"') > 1, "an owner that is denied")
    acked = owner.page.acked
    assert rules.put(mirror, *lines.values())
    owner.advances(100)
    assert rules.put(mirror, lines[other], "# " + lines[own])
    assert owner.running() and owner.page.acked >= acked + 100
    assert tellers.verify("books", other, owner.page) >= owner.page.acked


def test_an_empty_file_cuts_nobody(rules, mirror, tellers):
    """If the file is truncated by mistake, the present owner stays connected. Denying everybody
    needs an explicit rule, and the log counts the clients that it disconnects."""
    owner = tellers.run("books", mirror.address, "create", LOG)
    owner.advances(50)
    for lines in ([], ["# " + EVERYTHING], ["limit * stores 4"]):
        assert not rules.put(mirror, *lines)
        assert 'write "deny *"' in mirror.log()
        owner.advances(50)
    assert "the session of" not in mirror.log() and "access-cut" not in mirror.log()
    assert rules.put(mirror, "deny *")
    assert "lost their session by the new access rules: 1." in mirror.log()
    until(lambda: mirror.log().count('lacks the right "read"') > 1, "an owner that is denied")
    assert rules.put(mirror, EVERYTHING)
    owner.advances(50)


def test_wrong_rules_change_nothing(rules, mirror, prey):
    """The previous rules stay in force; a daemon does not start with wrong rules."""
    assert not rules.put(mirror, "allow * all", "allow %s everything" % ME)
    assert "%s, line 2: \"everything\" is no right" % rules.path in mirror.log()
    assert run_command("status", "prey", mirrors=[mirror]).status == 0
    assert run_command("status", "prey", mirrors=mirror.mirror.tcp).status == NO
    mirror.kill9()
    with pytest.raises(RuntimeError) as failed:
        mirror.mirror.start()
    assert "line 2" in str(failed.value)


def test_the_documents_examples_are_rules(rules, mirror):
    """The examples are tried with users and groups of this host."""
    for name in ("doc/installing.md", "deploy/access.md"):
        lines = re.findall(r"^    ((?:allow|limit|#) .*)$", (TOP / name).read_text(), re.M)
        lines = [re.sub(r"\b(user|group):\w+", r"\1:root", line) for line in lines
                 if "WHO" not in line]
        assert sum("cert:" in line or "user:" in line for line in lines) >= 2
        assert rules.put(mirror, *lines), mirror.log()


def test_a_daemon_without_rules_goes_on_after_a_hangup(mirrors, tellers):
    """SIGHUP rereads nothing."""
    daemon, = mirrors(1)
    os.kill(daemon.pid, signal.SIGHUP)
    tellers.desk().open("books", [daemon], "create", "log=4096")
    assert daemon.running()


def test_a_hangup_says_what_is_not_read_again(mirrors):
    """After changing --max-memory in the configuration, the operator is told that it is not in
    force."""
    daemon, = mirrors(1)
    os.kill(daemon.pid, signal.SIGHUP)
    wait_for(lambda: "--max-memory" in daemon.log(), SECONDS, "a line about SIGHUP")
    assert "restart the daemon" in daemon.log()


def test_a_quota_is_named_and_survives_a_restart(rules, mirror, tellers):
    """Quotas for the stores and for the bytes that one user created."""
    assert rules.put(mirror, EVERYTHING, "limit %s stores 2 memory 64K sessions 1" % ME)
    first, second = tellers.desk(), tellers.desk()
    first.open("one", [mirror], "create", "log=4096")
    refused = second.refused("open", "two", mirror.address, "create", "log=4096")
    assert refused.name == "PERSEAS_ELIMIT" and '"sessions"' in refused.text
    refused = first.refused("map", "large", 60 << 10)
    assert refused.name == "PERSEAS_EMIRRORMEM" and '"memory"' in refused.text
    first.ask("map", "small", 4096)
    first.ask("publish")
    first.ask("close")
    mirror.restart()
    refused = second.refused("open", "three", mirror.address, "create", "log=4096")
    assert refused.name == "PERSEAS_ELIMIT" and '"stores"' in refused.text
    second.open("one", [mirror])
