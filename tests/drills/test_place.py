"""perseas place: chooses mirrors for new stores by where the daemons run."""
import pytest

from drill import FAILURE, NO, OK, PARTLY, USAGE, run_command


@pytest.fixture
def fleet(mirrors):
    """Four daemons: two in rack r1, one in each of r2 and r3."""
    daemons = []
    for number, rack in enumerate(("r1", "r1", "r2", "r3")):
        daemons += mirrors(1, options=("--boot-id", "%032x" % (number + 1), "--label",
                                       "host=h%d" % number, "--label", "rack=" + rack,
                                       "--max-memory", "64M"))
    return daemons


def test_no_two_mirrors_of_a_store_are_in_the_same_rack(fleet):
    """Its list can be passed to create unchanged; the next placement counts what that used."""
    first = run_command("place", mirrors=fleet)
    assert first.status == OK, first
    chosen = first.out.strip().split(",")
    assert len(chosen) == 3
    assert len({daemon.address for daemon in fleet[:2]} & set(chosen)) == 1
    made = run_command("create", "bank", first.out.strip())
    assert made.status == OK, made
    again = run_command("place", "--json", mirrors=fleet).json()
    assert again["placed"] and again["apart"] == "rack"
    assert [each["rack"] for each in again["mirrors"]].count("r1") == 1
    other, = {daemon.address for daemon in fleet[:2]} - set(chosen)
    assert again["mirrors"][0]["address"] == other, "the emptiest one comes first"


def test_two_in_one_domain_are_refused(fleet):
    """With the exit status, a sentence, and the same in JSON."""
    done = run_command("place", "--copies", 4, mirrors=fleet)
    assert done.status == NO and done.out == "", done
    assert "3 of 4 mirrors can be placed, no two in the same rack" in done.err
    told = run_command("place", "--copies", 4, "--json", mirrors=fleet)
    assert told.status == NO
    assert told.json()["placed"] is False and told.json()["error"] in told.err
    assert run_command("place", "--copies", 4, "--apart", "host", mirrors=fleet).status == OK
    done = run_command("place", "--apart", "zone", mirrors=fleet)
    assert done.status == NO and "4 of 4 daemons name no zone" in done.err, done
    done = run_command("place", "--size", "1G", mirrors=fleet)
    assert done.status == NO and "4 have no room" in done.err, done
    assert run_command("place", "--apart", "room", mirrors=fleet).status == USAGE


def test_daemons_without_labels_are_those_of_one_host(mirrors):
    """All of these daemons run on this host."""
    done = run_command("place", mirrors=mirrors(3))
    assert done.status == NO and "no two in the same host" in done.err, done


def test_who_does_not_answer_is_left_out_and_named(fleet):
    """Its rack is left out with it, if it was the only daemon there."""
    fleet[0].kill9()
    done = run_command("place", mirrors=fleet)
    assert done.status == PARTLY and len(done.out.strip().split(",")) == 3, done
    assert fleet[0].address in done.err and fleet[0].address not in done.out
    fleet[3].kill9()
    assert run_command("place", mirrors=fleet).status == NO
    for daemon in fleet[1:3]:
        daemon.kill9()
    assert run_command("place", mirrors=fleet).status == FAILURE


def test_more_daemons_than_a_store_may_have_mirrors(fleet):
    """They are asked in batches; a daemon given twice gets one image."""
    words = ",".join(daemon.address for daemon in fleet)
    nowhere = ",".join("127.0.0.1:%d" % port for port in range(1, 15))
    done = run_command("place", mirrors=nowhere + "," + words)
    assert done.status == PARTLY and len(set(done.out.strip().split(","))) == 3, done
    done = run_command("place", mirrors=",".join("127.0.0.1:%d" % port for port in range(1, 1100)))
    assert done.status == USAGE and "1024" in done.err, done


def test_containers_on_one_machine_are_one_host(mirrors):
    """Their labels name different hosts, but their boot ids are equal."""
    daemons = [mirrors(1, options=("--label", "host=c%d" % number))[0] for number in range(3)]
    done = run_command("place", "--copies", 2, mirrors=daemons)
    assert done.status == NO and done.out == "", done
    assert "2 run on the machine of another one, whatever their labels say" in done.err
    daemons += mirrors(1, options=("--label", "host=h", "--boot-id", "%032x" % 1))
    done = run_command("place", "--copies", 2, mirrors=daemons)
    assert done.status == OK and daemons[3].address in done.out, done
