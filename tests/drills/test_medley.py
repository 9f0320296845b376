"""Features besides plain transactions, over every fabric: commits that do not wait, savepoints,
serial transactions, locks, objects, checked writes and tracked writes (medley.h)."""
import subprocess
import time

from drill import mirror_list, process_state, rounds, tied
from teller import LOG, SECONDS, TELLER, Process, dice, tellers, until  # noqa: F401

ROUNDS = rounds(8)
BOUND_MS = 50  # as in medley.c
ANSWERED = "tcp", "tls"  # by the mirror's process


def words(mode, page, daemons, *options):
    return [mode, "medley", mirror_list(daemons), page.path, *options]


def check(mode, page, daemons, *options):
    """Runs the check of the next owner, which must succeed."""
    done = subprocess.run(**tied([TELLER, *words(mode, page, daemons, *options)]),
                          stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                          timeout=SECONDS)
    assert done.returncode == 0, done.stderr


def expect(owner, line):
    assert owner.process.stdout.readline() == line, owner.process.stderr.read()


def hold_back(owner, page, daemons, fabric):
    """On fabrics where a stopped mirror cannot answer, stops two mirrors until a commit has waited
    longer than the bound. Returns how many ms the longest commit took."""
    if fabric in ANSWERED:
        for daemon in daemons[:2]:
            daemon.stop()
        seen = [None, 0]

        def waits():
            """Returns True if the owner has slept in one commit for twice the bound."""
            now = page.attempted if process_state(owner.pid) == "S" else None
            if now is None or now != seen[0]:
                seen[:] = now, time.monotonic()
            return now is not None and time.monotonic() - seen[1] > 2 * BOUND_MS / 1000

        until(waits, "a commit that waits")
        for daemon in daemons[:2]:
            daemon.cont()
    assert owner.running(), owner.process.stderr.read()
    owner.process.stdin.write("\n")
    owner.process.stdin.flush()
    return int(owner.process.stdout.readline() or owner.process.stderr.read())


def test_all_that_an_owner_used_is_what_the_next_one_finds(mirrors, tellers, fabric):  # noqa: F811
    """The owner uses one feature after the other, each with its option; then kill -9."""
    daemons, page = mirrors(3, fabric), tellers.page()
    owner = tellers._keep(Process(page, words("medley", page, daemons, LOG, "acks=2"),
                                  stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, text=True))
    expect(owner, "bounded\n")
    longest = hold_back(owner, page, daemons, fabric)
    assert longest >= BOUND_MS or fabric not in ANSWERED
    expect(owner, "done\n")
    owner.kill9()
    check("medley", page, daemons, "check")


def test_the_objects_of_a_killed_owner_are_those_of_its_transactions(
        mirrors, tellers, dice, fabric):  # noqa: F811
    """The owner is killed while it allocates and frees, in turn with commits that wait and that do
    not. Everything acknowledged is there, and nothing that was not begun."""
    daemons, page = mirrors(3, fabric), tellers.page()
    for number in range(ROUNDS):
        how = ["unwaited"] if number % 2 else []
        owner = tellers._keep(Process(page, words("objects", page, daemons, "create", "takeover",
                                                  LOG, "acks=2", *how),
                                      stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True))
        goal = page.acked + dice.randrange(1, 200)
        until(lambda: page.acked >= goal or not owner.running(), "transactions")
        assert owner.running(), owner.process.stderr.read()
        owner.kill9()
        acked, attempted = page.acked, page.attempted
        check("objects", page, daemons, "takeover", "transactions=0")
        assert acked <= page.found <= (attempted if how else acked + 1)
