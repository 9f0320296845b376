"""All faults together, on real daemons: stores with random n, W, segments and lengths of ranges,
over tcp, through relays and over shared memory, whose owners and mirrors are killed, stopped, cut
off, wiped, left without memory or descriptors, replaced and taken over, in random order. An oracle
outside of the system knows what was acknowledged, and another process compares every byte.

PERSEAS_TORTURE sets the seconds (10 by default; `make soak` uses half an hour), and PERSEAS_SEED
repeats the choices, but not the moments. The report is in build/results/torture.txt.
"""
import collections
import contextlib
import os
import resource
import struct
import time

from cluster import Cluster
from drill import BUILD, Daemon, log_of, run_command, status_of, wait_ownerless
from relay import Relay
from teller import ENDED, LOG, Refused, dice, random_moment, tellers, until  # noqa: F401

SECONDS = float(os.environ.get("PERSEAS_TORTURE", 10))
REPORT = BUILD / "results/torture.txt"
LIFE = 20  # seconds of a store; then another one follows, with other n and W
MOST_ACKED = 100                        # transactions between two faults
LAP = 400                               # transactions that overwrite most of the log
MOMENT, PAUSE = 0.02, 1.5               # seconds; the latter is longer than the heartbeat interval
WAYS = ("tcp", "relay", "shm")
FENCED = -10                            # PERSEAS_EFENCED
ENDURANCE = 5  # seconds for which an owner continues while mirrors come back
PATIENCE = 60                           # seconds until all is well again


class Life:
    """One store: its mirrors, its owner, and the faults."""

    def __init__(self, stack, tellers, dice, tried):
        self.tellers, self.dice, self.tried = tellers, dice, tried
        self.n = dice.randrange(1, 6)
        self.w = dice.randrange(1, self.n + 1)
        self.options = [dice.choice(["ring=4194304", "ring=16777216"]),
                        "shape=%d" % dice.getrandbits(32)]
        cluster = stack.enter_context(Cluster(BUILD, self.n + 1))
        self.daemons = [Daemon(mirror, "tcp") for mirror in cluster.mirrors]
        self.ends = [self.end_of(stack, daemon) for daemon in self.daemons]
        self.members = list(range(self.n))
        self.acked = self.owners = 0
        tellers.close_ended()
        self.page = tellers.page()
        self.start_owner("create", "acks=%d" % self.w, LOG)

    def end_of(self, stack, daemon):
        """Returns the address that owners use for this mirror."""
        way = self.dice.choice(WAYS)
        if way == "relay":
            return stack.enter_context(Relay(daemon))
        return Daemon(daemon.mirror, way)

    def mirrors(self):
        return [self.ends[i] for i in self.members]

    def told(self):
        return "n = %d, W = %d, %s, %s" % (self.n, self.w, " ".join(self.options), ", ".join(
            end.fabric if isinstance(end, Daemon) else "relay" for end in self.mirrors()))

    # --- the owner ---

    def start_owner(self, *options):
        self.desk = self.tellers.desk(self.page)
        self.desk.open("books", self.mirrors(), *self.options, *options)
        self.desk.books()
        self.desk.ask("start")
        self.owners += 1

    def advance(self, count):
        goal = self.page.acked + count
        until(lambda: self.page.acked >= goal or self.page.phase == ENDED,
              "%d transactions" % count, PATIENCE)
        assert self.page.acked >= goal, "the owner's error %d" % self.page.error

    def heal(self):
        """Waits until every mirror of the roster is live. Mirrors beyond W may be slower than their
        owner as long as it does not pause."""
        def live():
            return self.desk.all_live(self.n) and self.are_whole()

        with contextlib.suppress(TimeoutError):
            until(live, "live mirrors", ENDURANCE)
            return
        self.tried["an owner waited for slow mirrors"] += 1
        with contextlib.suppress(Refused):
            self.desk.ask("halt")       # the commit was in doubt; the next flush tells
        try:
            until(live, "live mirrors", PATIENCE)
        except TimeoutError as error:
            raise AssertionError("%s: %s\n%s\n%s" % (error, self.told(), self.desk.states(),
                                                    self.desk.events()[-40:])) from error
        self.desk.ask("start")

    def are_whole(self):
        """Returns whether all mirrors of the roster themselves report an image and its owner. The
        owner reports a mirror as live until it has noticed its end."""
        told = status_of("books", self.mirrors())["mirrors"]
        return all(each.get("live") and each.get("state") == "consistent" for each in told)

    def verify(self):
        """Compares all bytes in another process. Returns the number of transactions."""
        return self.tellers.verify("books", self.mirrors(), self.page, *self.options)

    def next_owner(self):
        self.verify()
        wait_ownerless("books", self.mirrors())
        self.start_owner()
        self.heal()

    def outage(self):
        """Waits for a random time: some outages end before anybody notices, and some do not."""
        with contextlib.suppress(TimeoutError):
            until(lambda: self.page.phase == ENDED, "an owner that ends",
                  self.dice.uniform(0, PAUSE))

    # --- faults ---

    def spare(self):
        """Returns how many mirrors may be away while a store is opened, so that max(W, R) are
        left."""
        return self.n - max(self.w, self.n - self.w + 1)

    def some(self, most):
        """Returns 1 to `most` mirrors of the roster."""
        return self.dice.sample(self.members, self.dice.randrange(1, most + 1))

    def kill_owner(self):
        self.desk.kill9()
        self.next_owner()

    def kill_mirrors(self):
        killed = self.some(self.n)
        for i in killed:
            self.daemons[i].kill9()
        random_moment(self.dice, MOMENT)
        for i in killed:
            self.daemons[i].restart()
        self.heal()

    def kill_all(self):
        for process in self.dice.sample([self.desk, *(self.daemons[i] for i in self.members)],
                                        self.n + 1):
            process.kill9()
        for i in self.members:
            self.daemons[i].restart()
        self.next_owner()

    def stop_mirrors(self):
        stopped = self.some(self.n)
        for i in stopped:
            self.daemons[i].stop()
        self.outage()
        for i in stopped:
            self.daemons[i].cont()
        self.heal()

    def wipe(self):
        """Restarts a mirror's host without its memory. Others have what was acknowledged."""
        if self.n == 1:
            return
        lost = self.daemons[self.dice.choice(self.members)]
        lost.lose_memory()
        random_moment(self.dice, MOMENT)
        lost.restart()
        self.heal()

    def cut(self):
        relays = [end for end in self.mirrors() if isinstance(end, Relay)]
        for relay in relays:
            self.dice.choice([relay.drop, relay.hold])()
        self.outage()
        for relay in relays:
            relay.go()
        self.heal()

    def forge(self):
        """Stores bytes where the log looks for a record that this owner, or the next one, did not
        finish, and slots, headers and old log contents in the rest of the log. Then the owner ends,
        and perhaps all mirrors; or it continues until only mirrors that are away have these bytes
        in their logs."""
        try:
            self.desk.ask("halt")
            log = log_of(self.daemons[self.dice.choice(self.members)], "books")
            self.desk.ask("forge", self.dice.randrange(2), log)
            self.tried["a stored record lay in the log"] += 1
        except Refused:
            self.kill_owner()           # in doubt: the next owner decides
            return
        if self.dice.randrange(2):
            self.dice.choice([self.kill_owner, self.kill_all])()
            return
        self.desk.ask("start")
        self.change_places()

    def change_places(self):
        """Some mirrors are away while the log wraps around. They are back when the next owner opens
        the store, and as many others are away then."""
        away = self.some(self.spare()) if self.spare() else []
        for i in away:
            self.daemons[i].kill9()
        self.advance(LAP)
        self.desk.kill9()
        others = self.dice.sample(sorted(set(self.members) - set(away)), len(away))
        for i in others:
            self.daemons[i].kill9()
        for i in away:
            self.daemons[i].restart()
        self.verify()
        wait_ownerless("books", [self.ends[i] for i in self.members if i not in others])
        self.start_owner()
        for i in others:
            self.daemons[i].restart()
        self.heal()

    def take_over(self):
        """Takes the store over from a stopped owner. It resumes next to its successor, and mirrors
        may be wiped in between. What is acknowledged to it must be what the successor found."""
        old, before = self.desk, self.page
        old.stop()
        found = self.verify()
        self.page = self.tellers.page()
        self.page.memory[:] = before.memory[:]
        struct.pack_into("<q", self.page.memory, 8 * self.page.FIELDS.index("acked"), found)
        struct.pack_into("<q", self.page.memory, 8 * self.page.FIELDS.index("attempted"), found)
        self.start_owner("takeover")
        self.heal()
        if self.dice.random() < 0.5:
            self.wipe()
        self.advance(self.dice.randrange(1, MOST_ACKED))
        old.cont()
        until(lambda: before.phase == ENDED, "the end of a fenced owner", PATIENCE)
        assert before.error == FENCED
        old.kill9()
        assert before.acked <= found, "an owner that was replaced had transactions acknowledged"

    def replace(self):
        """Replaces a mirror of the roster by the one that is not in it."""
        new = (set(range(self.n + 1)) - set(self.members)).pop()
        old = self.dice.choice(self.members)
        ends = {self.ends[i].address: i for i in (*self.members, new)}
        done = run_command("roster", "replace", "books", self.ends[old].address,
                           self.ends[new].address, mirrors=self.mirrors())
        if done.status:  # the next owner completes the change, or does not know of it
            self.desk.kill9()
            self.verify()
        self.members = sorted(ends[address] for address in until(
            lambda: self.settled(ends), "the end of the change", PATIENCE))
        if done.status:
            self.start_owner("takeover")
        self.heal()
        gone = self.daemons[(set(range(self.n + 1)) - set(self.members)).pop()]
        gone.lose_memory()
        gone.restart()

    def settled(self, ends):
        """Returns the addresses of the roster if no change is in progress, else None."""
        done = run_command("roster", "books", "--json", mirrors=[self.ends[i] for i in
                                                                 ends.values()])
        if done.status != 0 or done.json()["next_roster"]:
            return None
        return [member["address"] for member in done.json()["roster"]["members"]]

    def crowd_memory(self):
        """Gives a mirror memory for its image only: a second copy does not fit."""
        daemon = self.daemons[self.dice.choice(self.members)]
        used = sum(path.stat().st_size for path in daemon.memory.rglob("*") if path.is_file())
        daemon.kill9()
        daemon.mirror.options += ["--max-memory", str(used + (64 << 10))]
        daemon.restart()
        self.advance(1) if self.n > self.w else random_moment(self.dice, MOMENT)
        daemon.kill9()
        del daemon.mirror.options[-2:]
        daemon.restart()
        self.heal()

    def take_descriptors(self):
        """Takes a mirror's descriptors away for a while."""
        daemon = self.daemons[self.dice.choice(self.members)]
        limits = resource.prlimit(daemon.pid, resource.RLIMIT_NOFILE)
        used = len(os.listdir("/proc/%d/fd" % daemon.pid))
        resource.prlimit(daemon.pid, resource.RLIMIT_NOFILE, (used, limits[1]))
        for end in self.mirrors():
            if isinstance(end, Relay):
                end.drop()
        self.outage()
        resource.prlimit(daemon.pid, resource.RLIMIT_NOFILE, limits)
        self.heal()

    def open_without(self):
        """An owner ends while some mirrors are away, and the next one works without them."""
        if not self.spare():
            return
        away = self.some(self.spare())
        for i in away:
            self.daemons[i].kill9()
        self.advance(1)
        self.desk.kill9()
        self.verify()
        wait_ownerless("books", [self.ends[i] for i in self.members if i not in away])
        self.start_owner()
        for i in away:
            self.daemons[i].restart()
        self.heal()

    def fault(self):
        kind = self.dice.choice([
            self.kill_owner, self.kill_mirrors, self.kill_all, self.stop_mirrors, self.wipe,
            self.cut, self.take_over, self.take_over, self.replace, self.crowd_memory,
            self.take_descriptors, self.open_without, self.change_places, self.forge])
        self.tried[kind.__name__] += 1
        self.advance(self.dice.randrange(1, MOST_ACKED))
        random_moment(self.dice, MOMENT)
        kind()

    def end(self):
        """Closes everything in order, and checks the contents."""
        self.advance(1)
        self.page.tell_to_stop()
        with contextlib.suppress(Refused):
            self.desk.ask("halt")
        self.desk.ask("close")
        assert self.verify() == self.page.acked
        for verb in "recover", "verify":
            done = run_command(verb, "books", mirrors=self.mirrors())
            assert done.status == 0, done


def report(dice, tried, lives):
    rows = [("PERSEAS_SEED", dice.began_with), ("seconds", "%g" % SECONDS),
            ("stores", len(lives)), ("transactions acknowledged", sum(each[1] for each in lives)),
            ("owners", sum(each[2] for each in lives)), ("faults", tried.total())]
    rows += [("  " + kind, count) for kind, count in sorted(tried.items())]
    text = "".join("%-34s %s\n" % row for row in rows)
    REPORT.parent.mkdir(parents=True, exist_ok=True)
    REPORT.write_text(text)
    print(text)


def test_nothing_acknowledged_is_lost_in_a_torture(tellers, dice):  # noqa: F811
    """Runs one store after the other until the time is over. At its end every byte of each is
    right."""
    tried, lives = collections.Counter(), []
    until_then = time.monotonic() + SECONDS
    try:
        while not lives or time.monotonic() < until_then:
            with contextlib.ExitStack() as stack:
                life = Life(stack, tellers, dice, tried)
                print(life.told())
                over = min(until_then, time.monotonic() + LIFE)
                while time.monotonic() < over:
                    life.fault()
                life.end()
                lives.append((life.told(), life.page.acked, life.owners))
                tellers.tidy_up()
    finally:
        report(dice, tried, lives)
    assert tried.total()
