"""Heaps and tables from Python: objects, roots, and a table that a program in C shares."""
import subprocess
import threading

import pytest

from drill import BUILD, SECONDS, TOP
import perseas


@pytest.fixture
def heap(store):
    return store.heap("h", create=True)


def test_objects_live_in_transactions(store, heap):
    with pytest.raises(KeyError):
        with store.transaction() as tx:
            heap.alloc(tx, 100)
            raise KeyError
    assert heap.objects() == []
    with store.transaction() as tx:
        made = heap.new(tx, b"hello", type=3)
        heap.set_root(tx, "first", made)
    found = heap.root("first", 3)
    assert found == made and found.size >= 5 and bytes(found.view[:5]) == b"hello"
    with store.transaction() as tx:
        tx.writable(found.view[0:1])[0] = ord("j")
        grown = heap.realloc(tx, found, 5000)
        heap.set_root(tx, "first", grown)
    assert bytes(heap.at(grown.address).view[:5]) == b"jello"
    assert list(grown.array("u1")[:2]) == [ord("j"), ord("e")]
    with pytest.raises(ValueError):
        grown.array("u1")[0] = 1
    with pytest.raises(perseas.ObjectError):
        heap.root("first", 4)
    assert heap.root("none") is None
    with store.transaction() as tx:
        heap.set_root(tx, "first", None)
        heap.free(tx, grown)
    assert heap.stat().objects == 0 and heap.objects(3) == []
    heap.check()


def test_a_heap_is_not_trimmed_under_a_view(store):
    """A pair of segments that came later is empty, but an array still looks at it."""
    heap = store.heap("small", create=True, first=65536)
    with store.transaction() as tx:
        heap.alloc(tx, 60000)
    with store.transaction() as tx:
        far = heap.alloc(tx, 60000)
    array = far.array("u1")
    with store.transaction() as tx:
        heap.free(tx, far)
    with pytest.raises(BufferError, match="views"):
        heap.trim()
    del array
    assert heap.trim() == 65536
    with pytest.raises(perseas.RangeError):
        far.view


def test_a_table_is_a_dict(store, heap):
    table = heap.table("t", key=str, value="<qd")
    table["ann"] = (1, 2.5)
    table["bob"] = (3, 4.5)
    table.update(cid=(5, 6.5))
    assert table["ann"] == (1, 2.5) and "bob" in table and len(table) == 3
    assert dict(table) == {"ann": (1, 2.5), "bob": (3, 4.5), "cid": (5, 6.5)}
    del table["bob"]
    assert table.get("bob") is None and sorted(table) == ["ann", "cid"]
    with pytest.raises(KeyError):
        del table["bob"]
    assert not table.insert("ann", (0, 0.0)) and table.insert("dan", (0, 0.0))
    assert table.pop("dan") == (0, 0.0)
    single = heap.table("s", value="<q")
    single[b"\0\xff"] = -1
    assert list(single.items()) == [(b"\0\xff", -1)]
    raw = heap.table("raw")
    raw["k"], raw[b""] = b"v" * 10000, "text"
    assert raw[b"k"] == b"v" * 10000 and raw[""] == b"text"
    for key, value in ((7, b""), ("k", 7), ("k", None)):
        with pytest.raises(TypeError):
            raw[key] = value
    heap.check()


def test_a_table_is_a_part_of_a_transaction(store, heap):
    table = heap.table("t")
    with pytest.raises(RuntimeError):
        with store.transaction() as tx:
            inside = table.within(tx)
            inside["a"] = b"1"
            assert inside["a"] == b"1" and len(inside) == 1
            raise RuntimeError
    assert "a" not in table
    with pytest.raises(perseas.EndedError):
        inside["a"]


def test_threads_share_a_table(store, heap):
    table = heap.table("t", key=str, value="<q")
    table["sum"] = 0

    def add(tx):
        inside = table.within(tx)
        inside["sum"] = inside["sum"] + 1

    threads = [threading.Thread(target=lambda: [store.transact(add) for _ in range(50)])
               for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(SECONDS)
    assert table["sum"] == 200


READER = r"""
#include "hash.h"
#include <stdio.h>
#include <string.h>

/* Prints what Python has put into the table, and puts an answer there. */
int main(int argc, char **argv)
{
	struct hash_bytes value, key = { "question", 8 }, answer = { "answer", 6 };
	perseas_heap_t *heap;
	struct hash hash;
	perseas_tx_t *tx;
	perseas_t *p;

	if (argc != 2 || perseas_open("s", argv[1], NULL, &p) ||
	    perseas_heap_open(p, "h", NULL, &heap) || hash_open(p, heap, "t", &hash) ||
	    perseas_begin(p, 0, &tx) || hash_get(tx, &hash, key, &value))
		return 1;
	printf("%.*s\n", (int)value.size, (const char *)value.at);
	if (hash_put(tx, &hash, answer, (struct hash_bytes){ "42", 2 }) || perseas_commit(tx, 0))
		return 1;
	return perseas_close(p) ? 1 : 0;
}
"""


def test_a_program_in_c_shares_the_table(address, tmp_path):
    source, binary = tmp_path / "reader.c", tmp_path / "reader"
    source.write_text(READER)
    subprocess.run(["gcc", "-I", str(TOP / "client"), "-I", str(TOP / "doc/examples"), str(source),
                    str(TOP / "doc/examples/hash.c"), "-o", str(binary), "-L", str(BUILD),
                    "-lperseas", "-Wl,-rpath," + str(BUILD)], check=True)
    with perseas.open("s", address, create=True) as store:
        store.heap("h", create=True).table("t")["question"] = b"what is it?"
    done = subprocess.run([str(binary), address], stdout=subprocess.PIPE, text=True,
                          timeout=SECONDS)
    assert (done.returncode, done.stdout) == (0, "what is it?\n")
    with perseas.open("s", address) as store:
        assert store.heap("h").table("t")["answer"] == b"42"
