"""Two stores with one name, on mirrors of one list. Any client that may create stores can create
the second one; no command must mistake either for the other."""
import pytest

from binding import CREATE, Store
from drill import NO, PARTLY, fill, mirror_list, run_command, status_of

TWO = "the mirrors hold two different stores named 'bank'"


@pytest.fixture
def mixed(mirrors):
    """The mirrors of a store in use, and those of a newer one that has more mirrors and an owner.
    Each address of the list leads to one of them."""
    used, more = mirrors(2), mirrors(3)
    fill("bank", used, {"a": bytes(64)})
    with Store("bank", mirror_list(more), flags=CREATE):
        yield used, more


@pytest.mark.parametrize("words, status", [
    ("verify bank", PARTLY), ("roster bank", NO),
    ("move bank --mirrors {list} anywhere", NO), ("roster remove bank {list} {more}", NO),
    ("roster remove bank {list} {more} --dry-run", NO), ("roster raise bank", NO)])
def test_no_command_chooses_between_two_stores(mixed, perseas, words, status):
    """Whichever store has more mirrors, or a live owner that would carry out orders."""
    used, more = mixed
    both = mirror_list([*used, *more])
    rest = {} if "{list}" in words else {"mirrors": both}
    done = perseas(*words.format(list=both, more=more[0].address).split(), **rest)
    assert done.status == status and TWO in done.err and not done.out, done
    for daemons, count in ((used, 2), (more, 3)):
        assert len(status_of("bank", daemons)["roster"]["members"]) == count


def test_a_list_of_all_stores_tells_two_of_one_name_apart(mixed):
    """Each line has the store's id, and the mirrors by which other commands find that store."""
    used, more = mixed
    fill("other", used, {"a": bytes(64)})
    done = run_command("status", "--all", mirrors=[*used, *more])
    lines = [line for line in done.out.splitlines() if line.startswith("bank ")]
    assert len(lines) == 2, done
    for daemons in mixed:
        store, = {store["store_id"]: store for store in run_command(
            "status", "--all", "--json", mirrors=daemons).json()["stores"]
                  if store["store"] == "bank"}.values()
        assert "another store has this name" not in (store["trouble"] or "")
        said = "another store has this name: this one has the id %s; to use it, name only its " \
            "mirrors %s" % (store["store_id"], mirror_list(daemons))
        assert [said in line for line in lines].count(True) == 1, (said, lines)
    other, = [line for line in done.out.splitlines() if line.startswith("other ")]
    assert "another store" not in other
