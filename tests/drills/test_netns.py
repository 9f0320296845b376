"""The network of the drills cuts what it is told to, and nothing else."""
import itertools

from netns import network  # noqa: F401

NAMES = ("a", "b", "c")
PAIRS = set(itertools.permutations(NAMES, 2))


def reached(net):
    return {pair for pair in PAIRS if net.reaches(*pair)}


def test_every_node_reaches_every_other(network):  # noqa: F811
    """Nothing is cut."""
    assert reached(network(*NAMES)) == PAIRS


def test_one_direction_is_cut(network):  # noqa: F811
    """From a to b: the packets of b still arrive."""
    net = network(*NAMES)
    net.set_cuts([("a", "b")])
    assert reached(net) == PAIRS - {("a", "b")}
    net.heal()
    assert reached(net) == PAIRS


def test_groups_are_apart(network):  # noqa: F811
    """a and b on one side; then a alone."""
    net = network(*NAMES)
    net.partition([{"a", "b"}, {"c"}])
    assert reached(net) == {("a", "b"), ("b", "a")}
    net.partition([{"b", "c"}])
    assert reached(net) == {("b", "c"), ("c", "b")}
    net.heal()
    assert reached(net) == PAIRS
