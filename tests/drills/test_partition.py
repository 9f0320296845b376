"""Two owners and three mirrors, each in its own network namespace, under every partition of the
network: never do both owners commit, and nothing acknowledged is lost."""
import itertools

import pytest

from cluster import Cluster, Mirror
from drill import BUILD, Daemon, run_command
from netns import network  # noqa: F401
from teller import LOG, tellers, until  # noqa: F401

pytestmark = pytest.mark.night("27 partitions, of a second each")

MIRRORS = ("m0", "m1", "m2")
OWNERS = ("a", "b")
ACKS = 2
EFENCED = -10
# Timeouts for a partition that lasts a second, not minutes. An open has longer, unless it must be
# refused.
TIMES = ("connect-ms=300", "commit-ms=200")
REFUSED_SOON = "open-ms=1000"
# Each mirror is on the side of the owner, of its rival, or of neither.
SHAPES = list(itertools.product(("owner", "rival", None), repeat=len(MIRRORS)))
SOME = 20                               # transactions


class Field:
    """The nodes, the mirrors, an owner that commits, and the node of its rival."""

    def __init__(self, net, daemons, tellers):  # noqa: F811
        self.net, self.daemons, self.tellers = net, daemons, tellers
        self.home, self.other = OWNERS
        self.owner, self.rival = self.desk(self.home), None
        self.owner.open("books", daemons, "create", "acks=%d" % ACKS, LOG, *TIMES)
        self.owner.books()
        self.owner.ask("start")

    def desk(self, node):
        with self.net[node].inside():
            return self.tellers.desk()

    def groups(self, shape):
        """Returns the groups of the partition: the owner's side, and the rival's."""
        return [{node, *(m for m, side in zip(MIRRORS, shape) if side == who)}
                for node, who in ((self.home, "owner"), (self.other, "rival"))]

    def owner_commits(self):
        self.owner.page.advances(SOME)

    def owner_is_in_doubt(self, near):
        """Waits until the owner's commit is in doubt and the mirrors that it reaches have taken
        everything it sent: a mirror that lagged makes earlier transactions durable as late as that.
        Returns what was acknowledged until then."""
        def doubts():
            held = [seq for _, seq in self.owner.states()]
            figures = self.owner.figures()
            return figures["in_doubt"] == 1 and all(held[i] == figures["seq"] for i in near)

        until(doubts, "a commit in doubt")
        return self.owner.page.acked

    def rival_opens(self):
        self.rival = self.desk(self.other)
        self.rival.open("books", self.daemons, "takeover", *TIMES)
        page = self.owner.page
        assert page.acked <= self.rival.books() == self.rival.check() <= page.attempted
        self.rival.run(SOME)

    def rival_is_refused(self):
        self.rival = self.desk(self.other)
        refused = self.rival.refused("open", "books", ",".join(d.address for d in self.daemons),
                                     "takeover", REFUSED_SOON, *TIMES)
        assert refused.name in ("PERSEAS_EQUORUM", "PERSEAS_EUNREACHABLE"), str(refused)
        self.rival.exit()

    def owner_is_fenced(self, promised):
        """The owner learns that it is fenced. Everything acknowledged to it is in the rival's
        store, including what mirrors had when their answers were cut off. The rival is the owner
        then."""
        page = self.owner.page
        until(lambda: page.error == EFENCED, "a fenced owner")
        assert promised <= page.acked <= self.rival.page.found <= promised + 1
        self.owner.kill9()
        self.owner, self.home, self.other = self.rival, self.other, self.home
        self.owner.ask("start")

    def settles(self):
        """Waits until the owner commits on all mirrors again."""
        self.owner_commits()
        until(lambda: self.owner.all_live(len(MIRRORS)), "live mirrors: %s" % self.owner.states())

    def cut(self, near, enough_for_rival):
        """Checks what may happen during a partition, and after it was healed. `near` are the
        mirrors that the owner reaches and that reach it."""
        enough_for_owner = len(near) >= ACKS
        if enough_for_owner:
            self.owner_commits()
        else:
            promised = self.owner_is_in_doubt(near)
        if enough_for_rival:
            self.rival_opens()
        else:
            self.rival_is_refused()
        if enough_for_owner:
            self.owner_commits()
        else:
            assert self.owner.page.acked == promised
        self.net.heal()
        if enough_for_rival:
            self.owner_is_fenced(promised)
        self.settles()

    def end(self):
        """Checks every byte on every mirror."""
        self.owner.ask("halt")
        assert self.owner.check() == self.owner.page.acked
        self.owner.settle()
        self.owner.ask("close")
        with self.net[self.home].inside():
            assert self.tellers.verify("books", self.daemons, self.owner.page) == \
                self.owner.page.acked
            assert run_command("verify", "books", mirrors=self.daemons).status == 0


@pytest.fixture
def field(network, tellers):  # noqa: F811
    net = network(*MIRRORS, *OWNERS)
    with Cluster(BUILD, 0) as cluster:
        for index, name in enumerate(MIRRORS):
            mirror = Mirror(cluster.build / "perseasd", cluster.folder, index, [],
                            net[name].address)
            cluster.mirrors.append(mirror)
            with net[name].inside():
                mirror.start()
        yield Field(net, [Daemon(mirror, "tcp") for mirror in cluster.mirrors], tellers)


def test_in_a_partition_of_every_shape_one_owner_commits_at_most(field):
    """All 27 partitions, one after the other, on one store. The owner that commits continues into
    the next."""
    for shape in SHAPES:
        field.net.partition(field.groups(shape))
        field.cut([i for i, side in enumerate(shape) if side == "owner"],
                  shape.count("rival") >= ACKS)
    field.end()


@pytest.mark.parametrize("cut", range(1, len(MIRRORS) + 1))
@pytest.mark.parametrize("way", ["there", "back"])
def test_cut_in_one_direction_one_owner_commits_at_most(field, way, cut):
    """The owner's packets do not reach `cut` mirrors, or theirs do not reach it."""
    pairs = [(field.home, mirror) for mirror in MIRRORS[:cut]]
    field.net.set_cuts(pairs if way == "there" else [pair[::-1] for pair in pairs])
    if len(MIRRORS) - cut >= ACKS:
        field.owner_commits()
        field.net.heal()
        field.settles()
    else:
        field.cut(range(cut, len(MIRRORS)), True)
    field.end()
