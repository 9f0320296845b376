"""The drills' network cuts what it is told to, and nothing else."""
import itertools

from netns import network  # noqa: F401
from teller import SECONDS

NAMES = ("a", "b", "c")
PAIRS = set(itertools.permutations(NAMES, 2))


def reaches_only(net, pairs):
    """Checks that packets of these pairs arrive, however long it takes, and that no others do
    within a tenth of a second."""
    return all(net.reaches(*pair, seconds=SECONDS if pair in pairs else 0.1) == (pair in pairs)
               for pair in PAIRS)


def test_every_node_reaches_every_other(network):  # noqa: F811
    """Nothing is cut."""
    assert reaches_only(network(*NAMES), PAIRS)


def test_one_direction_is_cut(network):  # noqa: F811
    """From a to b only: packets of b still arrive."""
    net = network(*NAMES)
    net.set_cuts([("a", "b")])
    assert reaches_only(net, PAIRS - {("a", "b")})
    net.heal()
    assert reaches_only(net, PAIRS)


def test_groups_are_apart(network):  # noqa: F811
    """a and b on one side; then a alone."""
    net = network(*NAMES)
    net.partition([{"a", "b"}, {"c"}])
    assert reaches_only(net, {("a", "b"), ("b", "a")})
    net.partition([{"b", "c"}])
    assert reaches_only(net, {("b", "c"), ("c", "b")})
    net.heal()
    assert reaches_only(net, PAIRS)


def test_a_cable_is_out(network):  # noqa: F811
    """The node reaches nobody and nobody reaches it; the others are not affected. Then the cable is
    plugged in again."""
    net = network(*NAMES)
    net.pull("b")
    assert reaches_only(net, {("a", "c"), ("c", "a")})
    net.plug("b")
    assert reaches_only(net, PAIRS)
