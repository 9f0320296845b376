"""Images that are damaged while their daemon is down: a changed byte, a missing piece, or one of
another size. The daemon refuses by name what it cannot trust, and serves the rest."""
import shutil

from drill import flip
from teller import LOG, dice, tellers, until  # noqa: F401

SLOTS = (0, 128)
SLOT_SIZE = 40


def make_stores(desk, daemon, names):
    """Creates small stores whose last transaction wrote 3 where the one before had written 2."""
    for name in names:
        desk.open(name, [daemon], "create", "log=4096")
        desk.ask("map", "a", 4096)
        desk.ask("publish")
        for byte in (1, 2, 3):
            desk.ask("begin")
            for offset in (0, 2048):
                desk.ask("range", "a", offset, 16)
                desk.ask("store", "a", offset, 16, byte)
            desk.ask("commit")
        desk.ask("close")


def names_of(count):
    """Returns names of equal length, so that the headers have equal length, too."""
    return ["bad-%04d" % number for number in range(count)]


def contents(desk, name, daemon):
    """Returns the bytes of the last transaction's two ranges, which must be of the same
    transaction."""
    desk.open(name, [daemon])
    desk.ask("map", "a", 0)
    first, second = desk.ask("load", "a", 15), desk.ask("load", "a", 2048)
    desk.ask("close")
    assert first == second
    return int(first)


def assert_damaged(desk, name, daemon):
    refused = desk.refused("open", name, daemon.address)
    assert refused.name == "PERSEAS_EDAMAGED", (name, str(refused))
    assert name in refused.text and daemon.address in refused.text


def header_length(path):
    """Returns the length of the header in the file; the rest is unused."""
    head = path.read_bytes()[:24]
    return len(head) + int.from_bytes(head[12:16], "little")


def is_of_later_format(path):
    """Returns whether the header file has a later format number, which follows eight constant
    bytes."""
    return int.from_bytes(path.read_bytes()[8:12], "little") > 1


def assert_left_alone(desk, name, daemon):
    """Checks that the store is refused as a later version's, and not as damaged."""
    assert "store %s: a later version of Perseas wrote it" % name in daemon.log()
    refused = desk.refused("open", name, daemon.address)
    assert refused.name == "PERSEAS_EVERSION", (name, str(refused))
    assert "a later version of Perseas wrote it" in refused.text, (name, str(refused))
    assert name in refused.text and daemon.address in refused.text


def test_a_header_with_any_byte_wrong_is_refused_by_name(mirrors, tellers, dice):
    """As many stores as a header has bytes, each with a different byte changed; one store is not
    damaged."""
    daemon, = mirrors(1)
    desk = tellers.desk()
    make_stores(desk, daemon, ["good-000"])
    names = names_of(header_length(daemon.memory / "good-000" / "header"))
    make_stores(desk, daemon, names)
    daemon.kill9()
    for at, name in enumerate(names):
        flip(daemon.memory / name / "header", at, dice.randrange(1, 256))
    daemon.restart()
    for name in names:
        if is_of_later_format(daemon.memory / name / "header"):
            assert_left_alone(desk, name, daemon)
            continue
        assert "store %s: its header is not valid" % name in daemon.log()
        assert_damaged(desk, name, daemon)
    assert contents(desk, "good-000", daemon) == 3
    assert daemon.running()


def test_a_slot_with_any_byte_wrong_gives_way_to_the_one_before(mirrors, tellers, dice):
    """In each store a different byte of the two commit slots is changed; the daemon must serve a
    consistent state."""
    daemon, = mirrors(1, "shm")
    desk = tellers.desk()
    names = names_of(len(SLOTS) * SLOT_SIZE)
    make_stores(desk, daemon, names)
    daemon.kill9()
    places = [slot + at for slot in SLOTS for at in range(SLOT_SIZE)]
    for name, place in zip(names, places):
        log, = (daemon.memory / name).glob("log.*")
        flip(log, place, dice.randrange(1, 256))
    daemon.restart()
    served = [contents(desk, name, daemon) for name in names]
    assert sorted(served) == [2] * SLOT_SIZE + [3] * SLOT_SIZE
    assert sorted(served[:SLOT_SIZE]) == served[:SLOT_SIZE]


def spoil_slots(folder):
    log, = folder.glob("log.*")
    for slot in SLOTS:
        flip(log, slot)


def cut_log(folder):
    log, = folder.glob("log.*")
    log.write_bytes(log.read_bytes()[:-1])


def lengthen_segment(folder):
    segment, = folder.glob("segment-*")
    segment.write_bytes(segment.read_bytes() + b"x")


def empty_segment(folder):
    segment, = folder.glob("segment-*")
    segment.write_bytes(b"")


def remove_segment(folder):
    segment, = folder.glob("segment-*")
    segment.unlink()


def remove_log(folder):
    log, = folder.glob("log.*")
    log.unlink()


def cut_header(folder):
    header = folder / "header"
    header.write_bytes(header.read_bytes()[:header_length(header) - 1])


def swap_header(folder):
    """Replaces the header by an intact one of another store."""
    (folder / "header").write_bytes((folder.parent / "good-000" / "header").read_bytes())


DAMAGES = (spoil_slots, cut_log, lengthen_segment, empty_segment, remove_segment, remove_log,
           cut_header, swap_header)


def test_an_image_with_a_piece_wrong_is_refused_by_name(mirrors, tellers):
    """In each store a different piece is missing, too short, too long, or another store's."""
    daemon, = mirrors(1)
    desk = tellers.desk()
    names = names_of(len(DAMAGES))
    make_stores(desk, daemon, ["good-000"] + names)
    daemon.kill9()
    for damage, name in zip(DAMAGES, names):
        damage(daemon.memory / name)
    daemon.restart()
    for name in names:
        assert_damaged(desk, name, daemon)
    assert contents(desk, "good-000", daemon) == 3


def test_a_damaged_image_counts_for_nothing_until_it_is_removed(mirrors, tellers, fabric, perseas):
    """Both slots of one of three mirrors are damaged. Then its folder is removed, and it is copied
    from the others."""
    daemons = mirrors(3, fabric)
    desk = tellers.desk()
    desk.open("books", daemons, "create", LOG)
    desk.books()
    k = desk.run(200)
    desk.ask("close")
    daemons[1].kill9()
    spoil_slots(daemons[1].memory / "books")
    daemons[1].restart()
    desk.open("books", daemons)
    assert desk.books() == desk.check() == k
    assert "damaged" in desk.ask("report") and desk.states()[1] == ("lost", 0)
    k = desk.run(100)
    desk.ask("close")
    daemons[1].kill9()
    shutil.rmtree(daemons[1].memory / "books")
    daemons[1].restart()
    desk.open("books", daemons)
    until(lambda: desk.figures()["live"] == 3, "the copy to mirror 1")
    assert desk.books() == desk.check() == k
    desk.ask("close")
    assert perseas("verify", "books", mirrors=daemons).status == 0


def test_ls_and_doctor_name_an_image_that_is_not_served(mirrors, tellers, perseas):
    """One log is missing, another has no valid slot: nobody has claimed the stores yet. `status
    --all` tells what is wrong with each."""
    daemon, = mirrors(1)
    names = names_of(2)
    make_stores(tellers.desk(), daemon, names)
    daemon.kill9()
    remove_log(daemon.memory / names[0])
    spoil_slots(daemon.memory / names[1])
    daemon.restart()
    listed = perseas("ls", mirrors=[daemon]).out
    checked = perseas("doctor", mirrors=[daemon])
    assert listed.count("not served") == 2 and checked.status != 0
    for name in names:
        told = perseas("status", name, mirrors=[daemon])
        assert "damaged" in told.out + told.err
        assert name in checked.out
    told = perseas("status", "--all", mirrors=[daemon]).out
    for name in names:
        assert "%s: the image of store %s is damaged" % (daemon.address, name) in told, told


def test_status_names_an_image_that_could_not_be_opened(mirrors, tellers, perseas):
    """The daemon starts again with too few descriptors for all of its images."""
    daemons = one, _ = mirrors(2)
    desk = tellers.desk()
    names = names_of(16)
    for name in names:
        desk.open(name, daemons, "create", "log=4096")
        desk.ask("map", "a", 4096)
        desk.ask("publish")
        desk.ask("close")
    one.kill9()
    one.mirror.wrap = ["sh", "-c", 'ulimit -n 32; exec "$@"', "sh"]
    one.mirror.start()
    told = perseas("status", "--all", mirrors=daemons).out
    assert "could not be opened for lack of descriptors" in told, told
    assert "damaged" not in told, told
