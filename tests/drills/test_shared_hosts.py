"""Commands that place mirrors warn about mirrors on one host, which would be lost together."""
import pytest

from binding import Store
from drill import OK, at_hosts, fill, mirror_list, run_command


def warning(what, *daemons):
    return ("perseas: %s: mirrors %s and %s would be lost together; perseas roster replace puts "
            "one of them elsewhere\n" % (what, ", ".join(d.address for d in daemons[:-1]),
                                         daemons[-1].address))


def test_a_store_that_is_made_on_two_mirrors_of_a_host_is_warned_of(mirrors):
    """Each host with several mirrors is named, and hosts with one are not."""
    a, b, c, d, e = at_hosts(mirrors, "h1", "h2", "h1", "h2", "h3")
    done = run_command("create", "apart", mirrors=[a, b, e])
    assert done.status == OK and done.err == "", done
    done = run_command("create", "s", mirrors=[a, b, c, d, e])
    assert done.status == OK, done
    assert done.err == warning("host h1", a, c) + warning("host h2", b, d)
    assert run_command("create", "told", "--json", mirrors=[a, c]).json()["store"] == "told"


def test_one_rack_or_zone_is_not_warned_of(mirrors):
    """The mirrors of a store may be in one rack or zone."""
    daemons = [mirrors(1, options=("--boot-id", "%032x" % number, "--label", "host=h%d" % number,
                                   "--label", "rack=r", "--label", "zone=z"))[0]
               for number in (1, 2, 3)]
    done = run_command("create", "s", mirrors=daemons)
    assert done.status == OK and done.err == "", done


@pytest.mark.parametrize("owned", [False, True], ids=["no owner", "owner"])
def test_a_mirror_that_comes_to_a_host_with_another_one_is_warned_of(mirrors, owned):
    """A mirror is added, or replaces another one. Removing a mirror causes no warning."""
    a, b, c, d = at_hosts(mirrors, "h1", "h2", "h2", "h1")
    fill("s", [a, b], {"accounts": b"contents"})
    owner = Store("s", mirror_list([a, b])) if owned else None
    done = run_command("roster", "add", "s", mirror_list([a, b]), c.address)
    assert done.status == OK and done.err == warning("host h2", b, c), done
    done = run_command("roster", "replace", "s", mirror_list([a, b, c]), c.address, d.address)
    assert done.status == OK and done.err == warning("host h1", a, d), done
    done = run_command("roster", "remove", "s", mirror_list([a, b, d]), b.address)
    assert done.status == OK and done.err == "", done
    if owned:
        owner.close()


def test_mirrors_are_listed_with_their_labels(mirrors):
    """Mirrors report their labels with their stores."""
    daemon, = mirrors(1, options=("--label", "host=h1", "--label", "zone=z1"))
    assert ", host h1" not in run_command("ls", mirrors=[daemon]).out
    fill("s", [daemon], {"accounts": b"contents"})
    first = run_command("ls", mirrors=[daemon]).out.splitlines()[0]
    assert first.endswith(", host h1, zone z1"), first
    shown, = run_command("ls", "--json", mirrors=[daemon]).json()["mirrors"]
    assert [shown["stores"][0][name] for name in ("host", "rack", "zone")] == ["h1", None, "z1"]


def test_mirrors_of_a_store_on_one_host_are_listed_as_such(mirrors):
    a, b, c = at_hosts(mirrors, "h1", "h2", "h1")
    fill("s", [a, b, c], {"accounts": b"contents"})
    fill("apart", [a, b], {"accounts": b"contents"})
    note = "host h1: mirrors %s and %s would be lost together" % (a.address, c.address)
    lines = run_command("ls", mirrors=[a, b, c]).out.splitlines()
    assert [line.endswith(note) for line in lines if line.startswith("  s ")] == [True, False, True]
    assert not [line for line in lines if line.startswith("  apart ") and "lost" in line]
    shown = run_command("ls", "--json", mirrors=[a, b, c]).json()["mirrors"]
    assert [store["note"] for mirror in shown for store in mirror["stores"]
            if store["store"] == "s"] == [note, None, note]


def test_a_store_that_is_restored_to_one_host_is_warned_of(mirrors, tmp_path):
    a, b = at_hosts(mirrors, "h1", "h1")
    fill("s", [a, b], {"accounts": b"contents"})
    saved = run_command("snapshot", "s", "--from", a.address, "--to", tmp_path / "saved")
    assert saved.status == OK, saved
    done = run_command("restore", tmp_path / "saved", "again", mirror_list([a, b]))
    assert done.status == OK and warning("host h1", a, b) in done.err, done
    done = run_command("recover", "s", "--onto", mirror_list([a, b]), "--as", "other",
                       mirrors=[a, b])
    assert done.status == OK and warning("host h1", a, b) in done.err, done
