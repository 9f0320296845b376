"""perseas-rxe on a kernel that has soft-RoCE, on devices of its own: the nodes stay as they are."""
import os
import pathlib
import re
import subprocess

import pytest

TOP = pathlib.Path(__file__).resolve().parents[3]
BUILD = pathlib.Path(os.environ.get("PERSEAS_BUILD", TOP / "build"))
SCRIPT = TOP / "deploy/perseas-rxe"
INFINIBAND = pathlib.Path("/sys/class/infiniband")
ADDRESS, NOBODY = "192.0.2.9", 65534
OK, FAILED, ROOT = 0, 1, 4


def sh(*words):
    subprocess.run([str(word) for word in words], check=True)


def rxe(*words, user=None, shell="busybox sh"):
    """Runs the script, in the shell that is quickest here; what became of it. The tree may lie
    where only root can read it."""
    return subprocess.run([*shell.split(), "-c", SCRIPT.read_text(), str(SCRIPT), *words],
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, timeout=60, user=user)


@pytest.fixture
def device():
    """A network device with an address; its link rxe9 goes with it."""
    sh("ip", "link", "add", "dummy9", "mtu", "4200", "type", "dummy")
    sh("ip", "link", "set", "dummy9", "up")
    sh("ip", "address", "add", ADDRESS + "/24", "dev", "dummy9")
    yield "dummy9"
    sh("ip", "link", "delete", "dummy9")


def links():
    return {path.name for path in INFINIBAND.iterdir()}


def gid_index(text):
    return int(re.search("rxe9: address %s, GID index ([0-9]+)" % re.escape(ADDRESS), text)[1])


def test_a_link_that_is_made_carries_rdma(device):
    """A device with an address and no RDMA: after `up`, writes go over it."""
    done = rxe("up", "--dev", device, "--name", "rxe9")
    assert done.returncode == OK, done.stdout
    attributes = INFINIBAND / "rxe9/ports/1/gid_attrs"
    index = gid_index(done.stdout)
    assert (attributes / "types" / str(index)).read_text() == "RoCE v2\n"
    assert (attributes / "ndevs" / str(index)).read_text() == "dummy9\n"
    sh(BUILD / "bench/limits", "--to", ADDRESS, "--from", ADDRESS, "--measure", "write",
       "--rounds", 1, "--seconds", 0.1)


def test_up_again_and_down_again_change_nothing(device):
    """Twice up is one link under its first name; twice down is none, and all is well."""
    before = links()
    assert rxe("up", "--dev", device, "--name", "rxe9").returncode == OK
    again = rxe("up", "--dev", device, "--name", "other")
    assert again.returncode == OK and "rxe9: device dummy9, state ACTIVE" in again.stdout
    assert links() == before | {"rxe9"}
    for said in ("rxe9 is removed", "there is nothing to remove"):
        done = rxe("down", "--name", "rxe9")
        assert done.returncode == OK and said in done.stdout
    assert links() == before


@pytest.mark.parametrize("shell", ["sh", "bash"])
def test_another_shell_does_the_same(device, shell):
    """sh is another program elsewhere."""
    for words, said in ((("up", "--dev", device, "--name", "rxe9"), "rxe9: address " + ADDRESS),
                        (("status",), "rxe1: address 10.5.0.1, GID index"),
                        (("down", "--name", "rxe9"), "rxe9 is removed")):
        done = rxe(*words, shell=shell)
        assert done.returncode == OK and said in done.stdout


def test_status_shows_every_link(device):
    """The machine's nodes and one more: a line with the address and the GID index of each."""
    rxe("up", "--dev", device, "--name", "rxe9")
    done = rxe("status", user=NOBODY)
    assert done.returncode == OK, done.stdout
    for link, name, address in (("rxe1", "n1", "10.5.0.1"), ("rxe9", "dummy9", ADDRESS)):
        assert "%s: device %s, state ACTIVE, RDMA MTU 4096" % (link, name) in done.stdout
        assert re.search("^%s: address %s, GID index [0-9]+ .RoCE v2.$" %
                         (link, re.escape(address)), done.stdout, re.M)
    assert "ulimit -l" in done.stdout


def test_the_rdma_mtu_is_what_the_device_says(device):
    """Device MTUs at the edges of RDMA's steps; ibv_devinfo tells the truth."""
    rxe("up", "--dev", device, "--name", "rxe9")
    for mtu in (1500, 2128, 4175, 4176):
        sh("ip", "link", "set", "dummy9", "mtu", mtu)
        info = subprocess.run(["ibv_devinfo", "-d", "rxe9"], stdout=subprocess.PIPE, text=True)
        active = re.search("active_mtu:\\s+([0-9]+)", info.stdout)[1]
        assert "RDMA MTU %s (the device's is %d)" % (active, mtu) in rxe("status").stdout
    sh("ip", "link", "set", "dummy9", "mtu", 1500)
    told = rxe("up", "--dev", device)
    assert told.returncode == OK and "note: an RDMA MTU of 4096 needs" in told.stdout


def test_the_device_of_the_default_route_is_taken(device):
    """No --dev: a host with one network."""
    sh("ip", "route", "add", "default", "dev", device)
    done = rxe("up", "--name", "rxe9")
    assert done.returncode == OK and "rxe9: device dummy9" in done.stdout


def test_a_device_that_cannot_do_it_is_refused(device):
    """No such device, one without an address, one that is down, lo: a sentence that says what to
    do, and no link."""
    before = links()
    sh("ip", "address", "flush", "dev", device)
    none = rxe("up", "--dev", device)
    assert none.returncode == FAILED and "dummy9 has no address" in none.stdout
    sh("ip", "address", "add", ADDRESS + "/24", "dev", "dummy9")
    sh("ip", "link", "set", "dummy9", "down")
    down = rxe("up", "--dev", device)
    assert down.returncode == FAILED and "ip link set dummy9 up" in down.stdout
    lo = rxe("up", "--dev", "lo")
    assert lo.returncode == FAILED and "on lo" in lo.stdout
    missing = rxe("up", "--dev", "eth77")
    assert missing.returncode == FAILED and "no network device 'eth77'" in missing.stdout
    assert links() == before


def test_a_name_that_is_taken_is_refused(device):
    """rxe1 is node 1's link: it stays that."""
    done = rxe("up", "--dev", device, "--name", "rxe1")
    assert done.returncode == FAILED and "already, on n1" in done.stdout
    assert (INFINIBAND / "rxe1/parent").read_text() == "n1\n"


def test_only_root_changes_links(device):
    """Somebody else calls up and down: told so, and nothing happens."""
    before = links()
    for words in (("up", "--dev", device), ("down",)):
        done = rxe(*words, user=NOBODY)
        assert done.returncode == ROOT and "only root" in done.stdout
    assert links() == before


def test_a_link_that_lost_its_address_is_not_well(device):
    """The address goes after the link was made: status says that the link is of no use."""
    rxe("up", "--dev", device, "--name", "rxe9")
    sh("ip", "address", "flush", "dev", device)
    done = rxe("status")
    assert done.returncode == FAILED and "not usable: rxe9;" in done.stdout


def test_an_address_of_ipv6_will_do(device):
    """A network without IPv4: the GID is the address itself, and no link-local one is shown."""
    sh("ip", "address", "flush", "dev", device)
    pathlib.Path("/proc/sys/net/ipv6/conf/dummy9/disable_ipv6").write_text("0")
    sh("ip", "address", "add", "2001:db8::9/64", "dev", device, "nodad")
    done = rxe("up", "--dev", device, "--name", "rxe9")
    assert done.returncode == OK, done.stdout
    assert "rxe9: address 2001:0db8:0000:0000:0000:0000:0000:0009, GID index" in done.stdout
    assert "fe80" not in done.stdout
