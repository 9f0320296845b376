"""Which data path an address leads to where there is no RDMA device: loopback is no device's."""
import pytest

from binding import CREATE, PerseasError, Store
from drill import fill, status_of, wait_ownerless


def test_rdma_that_is_not_to_be_had_is_refused_with_the_reason(mirrors):
    """The store is there, and is left as it was."""
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


@pytest.mark.parametrize("scheme", ["", "tcp://"], ids=["none", "tcp"])
def test_other_addresses_lead_over_tcp(mirrors, scheme):
    """With no scheme since there is nothing better, or as asked for."""
    daemon, = mirrors(1)
    address = scheme + daemon.mirror.tcp
    with Store("s", address, flags=CREATE) as store:
        store.map("a", 4096)
        assert [m["fabric"] for m in status_of("s", address)["mirrors"]] == ["tcp"]
