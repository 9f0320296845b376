"""Which fabric an address leads to, and what is said when it cannot be RDMA, on soft-RoCE."""
import os
import subprocess

import pytest

import wire
from binding import CREATE, PerseasError, Store
from drill import BUILD, MIB, die_with_parent, fill, hosts, status_of, wait_for, wait_ownerless
from teller import LOG, tellers  # noqa: F401

# As a user without rights: root may pin what it likes.
PLAIN_USER = ("setpriv", "--bounding-set=-ipc_lock", "--inh-caps=-ipc_lock")


def fabrics(store, address):
    return [mirror["fabric"] for mirror in status_of(store, address)["mirrors"]]


def test_an_address_without_a_scheme_takes_rdma_where_both_ends_have_it(mirrors):
    """host:port, where the host's address is a device's."""
    daemon, = mirrors(1, "tcp")
    address = daemon.mirror.tcp
    with Store("s", address, flags=CREATE) as store:
        store.map("a", 4096)
        store.publish()
        store.write("a", 0, b"over rdma")
        assert fabrics("s", address) == ["rdma"]


def test_an_address_that_asks_for_tcp_gets_it(mirrors):
    daemon, = mirrors(1, "tcp")
    address = "tcp://" + daemon.mirror.tcp
    with Store("s", address, flags=CREATE) as store:
        store.map("a", 4096)
        assert fabrics("s", address) == ["tcp"]


def test_one_process_serves_a_store_over_every_fabric(mirrors, tellers):
    """Owners one after the other, and takeovers from one fabric to the next."""
    daemon, = mirrors(1, "tcp")
    ways = {"rdma": daemon.mirror.rdma, "tcp": "tcp://" + daemon.mirror.tcp,
            "shm": daemon.mirror.unix}
    desk, k = tellers.desk(), 0
    for number, (fabric, address) in enumerate([*ways.items()] * 2):
        desk.open("books", address, "create" if number == 0 else "takeover", LOG)
        assert desk.books() == desk.check() == k
        k = desk.run(50)
        assert fabrics("books", address) == [fabric]
        old, desk = desk, tellers.desk(page=desk.page)
        if number % 2:
            old.ask("close")
    desk.open("books", daemon.mirror.tcp, "takeover")
    assert desk.books() == desk.check() == k


def test_a_daemon_that_was_told_not_to_offers_none(mirrors):
    """--rdma off: host:port goes over tcp, rdma:// is refused with the reason."""
    daemon, = mirrors(1, "tcp", ["--rdma", "off"])
    with Store("s", daemon.mirror.tcp, flags=CREATE) as store:
        store.map("a", 4096)
        assert fabrics("s", daemon.mirror.tcp) == ["tcp"]
    wait_ownerless("s", daemon.mirror.tcp)
    with pytest.raises(PerseasError) as caught:
        Store("s", daemon.mirror.rdma)
    assert "--rdma off" in str(caught.value)


def test_a_store_is_not_made_where_one_mirror_offers_no_rdma(mirrors, perseas):
    """rdma:// everywhere, and one of three daemons has none: nothing is made anywhere."""
    daemons = mirrors(2, "tcp") + mirrors(1, "tcp", ["--rdma", "off"])
    addresses = ",".join(daemon.mirror.rdma for daemon in daemons)
    done = perseas("create", "s", mirrors=addresses)
    assert done.status != 0, done
    assert daemons[2].mirror.rdma in done.err and "--rdma off" in done.err, done
    assert perseas("ls", "--json", mirrors=daemons).out.count('"s"') == 0
    # Over TCP it is made; the two that have RDMA are enough to open it.
    assert perseas("create", "s", mirrors=daemons).status == 0
    with Store("s", addresses) as store:
        store.map("a", 4096)
        assert fabrics("s", addresses)[:2] == ["rdma", "rdma"]


def test_loopback_is_no_devices_address(mirrors, monkeypatch):
    """rdma://127.0.0.1 says so, 127.0.0.1 goes over tcp."""
    monkeypatch.setenv("PERSEAS_HOSTS", "127.0.0.1")
    daemon, = mirrors(1, "tcp")
    with Store("s", daemon.mirror.tcp, flags=CREATE) as store:
        store.map("a", 4096)
        assert fabrics("s", daemon.mirror.tcp) == ["tcp"]
    wait_ownerless("s", daemon.mirror.tcp)
    with pytest.raises(PerseasError) as caught:
        Store("s", daemon.mirror.rdma)
    assert "127.0.0.1" in str(caught.value) and "device" in str(caught.value)


@pytest.mark.parametrize("options", [["--rdma-order", "phased"], ["--rdma-flush", "on"]],
                         ids=["phased", "flush"])
def test_phases_and_flushes_keep_a_store_right(mirrors, tellers, options, perseas):
    """For networks that reorder, and memory that lasts: slower, and as right."""
    daemons = mirrors(3, "rdma", options)
    page = tellers.page()
    for _ in range(3):
        owner = tellers.run("books", daemons, "create", LOG, "acks=2", page=page)
        owner.advances(100)
        owner.kill9()
        assert page.acked <= tellers.verify("books", daemons, page) <= page.acked + 1
    assert perseas("verify", "books", mirrors=daemons).status == 0


def limited(limit, *words):
    """A command line that may pin so many bytes."""
    return [*PLAIN_USER, "prlimit", "--memlock=%d:%d" % (limit, limit), *map(str, words)]


def test_an_owner_that_may_not_pin_its_ring_is_told_the_limit(mirrors):
    """rdma:// names RLIMIT_MEMLOCK; host:port goes on over tcp."""
    daemon, = mirrors(1, "tcp")
    fill("s", [daemon], {"a": b"kept" * 1024})
    wait_ownerless("s", daemon.mirror.tcp)
    line = limited(64 << 10, BUILD / "perseas", "recover", "s", "--to", "/tmp/recovered",
                   "--mirrors")
    run = dict(stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
               text=True, timeout=60, preexec_fn=die_with_parent)
    done = subprocess.run(line + [daemon.mirror.rdma], **run)
    assert done.returncode != 0 and "RLIMIT_MEMLOCK is 65536 bytes" in done.stdout, done.stdout
    done = subprocess.run(line + [daemon.mirror.tcp], **run)
    assert done.returncode == 0, done.stdout


def test_a_daemon_that_may_not_pin_an_image_tells_the_limit(mirrors, tmp_path):
    """rdma:// names RLIMIT_MEMLOCK of the mirror; host:port goes on over tcp."""
    port_file = tmp_path / "port"
    host = hosts(1)[0]
    line = limited(8 * MIB, BUILD / "perseasd", "--listen", "%s:0" % host, "--plaintext",
                   "anywhere", "--memory-dir", tmp_path / "memory", "--port-file", port_file)
    log = open(tmp_path / "log", "wb")
    process = subprocess.Popen(line, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                               preexec_fn=die_with_parent)
    try:
        wait_for(lambda: port_file.exists() and port_file.read_text().strip(), 20, "a daemon")
        address = "%s:%s" % (host, port_file.read_text().strip())
        with Store("s", address, flags=CREATE) as store:
            store.map("a", 4096)
            assert fabrics("s", address) == ["tcp"]
        wait_ownerless("s", address)
        with pytest.raises(PerseasError) as caught:
            Store("s", "rdma://" + address)
        assert "RLIMIT_MEMLOCK is %d bytes" % (8 * MIB) in str(caught.value)
    finally:
        process.kill()
        process.wait()
        log.close()


def test_a_mirror_without_rdma_says_why_in_its_grant(mirrors):
    """What a peer by hand is told."""
    daemon, = mirrors(1, "tcp", ["--rdma", "off"])
    fill("s", [daemon], {"a": bytes(64)})
    keys = wire.Control(daemon.mirror.tcp).keys("s", 50)
    assert keys.port == 0 and "--rdma off" in keys.trouble
    assert all((region.address, region.key) == (0, 0) for region in keys.regions.values())


def test_an_owner_whose_rdma_is_switched_off_goes_over_tcp(mirrors):
    """PERSEAS_RDMA=off in its environment."""
    daemon, = mirrors(1, "tcp")
    fill("s", [daemon], {"a": b"kept" * 1024})
    wait_ownerless("s", daemon.mirror.tcp)
    env = dict(os.environ, PERSEAS_RDMA="off")
    line = [str(BUILD / "perseas"), "recover", "s", "--to", "/tmp/recovered-off", "--mirrors"]
    run = dict(stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
               text=True, timeout=60, preexec_fn=die_with_parent, env=env)
    done = subprocess.run(line + [daemon.mirror.rdma], **run)
    assert done.returncode != 0 and "PERSEAS_RDMA" in done.stdout, done.stdout
    assert subprocess.run(line + [daemon.mirror.tcp], **run).returncode == 0
