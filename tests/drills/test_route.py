"""Which data path an address uses on a host without an RDMA device: the loopback is not one's
address."""
import pytest

from binding import CREATE, PerseasError, Store
from drill import FAILURE, fill, mirror_list, status_of, wait_ownerless


def test_rdma_that_is_not_to_be_had_is_refused_with_the_reason(mirrors):
    """The store exists and is not changed."""
    daemon, = mirrors(1)
    fill("s", [daemon], {"a": b"kept" * 16})
    wait_ownerless("s", [daemon])
    with pytest.raises(PerseasError) as caught:
        Store("s", daemon.mirror.rdma)
    assert caught.value.name == "PERSEAS_ERDMA"
    assert daemon.mirror.tcp in str(caught.value) and "RDMA" in str(caught.value)
    with Store("s", daemon.mirror.tcp) as store:
        store.map("a", 0)
        assert store.read("a", 0, 8) == b"keptkept"


def test_a_store_that_could_not_be_opened_is_not_made(mirrors, perseas, monkeypatch):
    """This host has no RDMA, and one of two addresses requests it."""
    monkeypatch.setenv("PERSEAS_RDMA", "off")
    one, other = mirrors(2)
    done = perseas("create", "s", "--mirrors", "%s,%s" % (one.mirror.tcp, other.mirror.rdma))
    assert done.status == FAILURE and "RDMA" in done.err, done
    assert other.mirror.rdma + ": " in done.err and "tcp://" + other.mirror.tcp in done.err, done
    assert not any((daemon.memory / "s").exists() for daemon in (one, other))


def test_a_mirror_that_cannot_be_reached_as_asked_is_not_left_out(mirrors, monkeypatch):
    """One of three mirrors; the other two would be enough to open the store, but nothing is
    claimed."""
    daemons = mirrors(3)
    fill("s", daemons, {"a": b"kept"})
    before = status_of("s", daemons)["mirrors"]
    monkeypatch.setenv("PERSEAS_RDMA", "off")
    with pytest.raises(PerseasError) as caught:
        Store("s", "%s,%s" % (mirror_list(daemons[:2]), daemons[2].mirror.rdma))
    assert caught.value.name == "PERSEAS_ERDMA"
    assert status_of("s", daemons)["mirrors"] == before


@pytest.mark.parametrize("scheme", ["", "tcp://"], ids=["none", "tcp"])
def test_other_addresses_lead_over_tcp(mirrors, scheme):
    """Without a scheme because there is nothing better, or as requested."""
    daemon, = mirrors(1)
    address = scheme + daemon.mirror.tcp
    with Store("s", address, flags=CREATE) as store:
        store.map("a", 4096)
        assert [m["fabric"] for m in status_of("s", address)["mirrors"]] == ["tcp"]
