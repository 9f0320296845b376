/*
 * objects.cpp - tests of client/cpp: objects of a heap, and standard containers in mirrored memory.
 * tests/cpp/run.py starts it with a mirror.
 */
#include "checks.hpp"

#include <algorithm>
#include <stdexcept>
#include <unordered_map>
#include <vector>

namespace
{

using perseas::errc;
using perseas::store;
using perseas::transaction;

struct node {
	static constexpr std::uint64_t perseas_type = 1;
	node *next;
	int value;
};

struct fussy {
	static constexpr std::uint64_t perseas_type = 2;
	explicit fussy(int n)
	{
		if (n < 0)
			throw std::invalid_argument("negative");
		value = n;
	}
	int value;
};

void test_heap()
{
	store s = open_small("heap").value();
	perseas::heap h(s, "objects");

	s.transact([&](transaction &tx) {
		node *second = h.make<node>(tx, nullptr, 2);

		h.set_root(tx, "list", h.make<node>(tx, second, 1));
	});
	const node *list = h.root<node>("list");

	CHECK(list && list->value == 1 && list->next->value == 2);
	/* A constructor that throws leaves nothing behind, even if the transaction goes on. */
	s.transact([&](transaction &tx) {
		try {
			h.make<fussy>(tx, -1);
		} catch (const std::invalid_argument &) {
		}
		h.make<fussy>(tx, 5);
	});
	CHECK(h.stat().objects == 3);
	int sum = 0;

	h.walk<node>([&](const node &each) { sum += each.value; });
	CHECK(sum == 3);
	sum = 0;
	h.walk<node>([&](const node &) { return ++sum < 1; });
	CHECK(sum == 1);
	bool thrown = false;

	try {
		h.walk<fussy>([](const fussy &each) { throw each.value; });
	} catch (int value) {
		thrown = value == 5;
	}
	CHECK(thrown);
	s.transact([&](transaction &tx) {
		const auto many = h.make_array<node>(tx, 100);

		CHECK(many.size() == 100 && many[99].next == nullptr);
		many[99].value = 4;
		h.destroy(tx, many.data());
		h.destroy(tx, list->next);
		tx.writable(*list).next = nullptr;
	});
	h.check();
	CHECK_THROWS(errc::object, "", h.root<fussy>("list"));
	CHECK(h.root<node>("none") == nullptr);
	s.close();
	s = open_small("heap").value();
	h = perseas::heap(s, "objects");
	CHECK(h.root<node>("list")->value == 1 && h.stat().objects == 2);
	CHECK(h.trim() == 0);
}

/* Objects without a C++ type, and arrays that become longer. */
void test_raw_objects()
{
	store s("raw", mirrors_at().mirrors, small());
	perseas::heap h(s, "objects");
	void *large = nullptr;

	s.transact([&](transaction &tx) {
		char *zeros = static_cast<char *>(h.try_allocate_zeroed(tx, 100, 7).value());

		CHECK(std::count(zeros, zeros + 100, 0) == 100);
		zeros[99] = 'z';
		char *longer = static_cast<char *>(h.try_reallocate(tx, zeros, 5000, 7).value());

		CHECK(longer[99] == 'z');
		CHECK(h.object(longer).size >= 5000 && h.object(longer).type == 7);
		CHECK_REFUSED(errc::object, "", h.try_reallocate(tx, longer, 9, 8));
		/* More than the log has room for: it is declared piece by piece. */
		CHECK_REFUSED(errc::too_big, "", h.try_allocate(tx, 1 << 20, 7));
		large = h.try_reserve(tx, 1 << 20, 7).value();
		auto nodes = h.make_array<node>(tx, 2);

		nodes[1].value = 5;
		nodes = h.resize_array<node>(tx, nodes, 1000);
		CHECK(nodes.size() == 1000 && nodes[1].value == 5 && nodes[999].value == 0);
		CHECK_REFUSED(errc::too_big, "", h.try_resize_array<node>(tx, nodes, SIZE_MAX));
		CHECK(!h.root<node>("none"));
	});
	s.transact([&](transaction &tx) { tx.set(static_cast<char *>(large)[1 << 19], 'm'); });
	CHECK_REFUSED(errc::object, "", h.try_object(&large));
	h.check();
	CHECK(h.stat().objects == 3);
	s.close();
	CHECK_REFUSED(errc::invalid_argument, "open it again", h.try_object(large));
}

/* A std::pmr container of a transaction, in memory of the heap. */
void test_heap_resource()
{
	store s = open_small("resource").value();
	perseas::heap h(s, "objects");

	s.transact([&](transaction &tx) {
		perseas::heap_resource memory(tx, h, 9);
		std::pmr::vector<std::pmr::string> words(&memory);

		for (int i = 0; i < 50; i++)
			words.emplace_back("a word that is too long to lie in the string itself");
		CHECK(words.back().size() == 51);
		bool refused = false;

		try {
			(void)memory.allocate(64, 64);
		} catch (const std::bad_alloc &) {
			refused = true;
		}
		CHECK(refused);
	});
	CHECK(h.stat().objects == 0);
	h.check();
}

struct tables {
	explicit tables(std::pmr::memory_resource *memory) : by_name(memory), log(memory) {}
	std::pmr::unordered_map<std::pmr::string, int> by_name;
	std::pmr::vector<std::pmr::string> log;
};

store open_tracked(const char *name)
{
	return store(name, mirrors_at().mirrors, small().log_size(1 << 20).tracked());
}

/* Whole containers live on, and an exception puts them back. */
void test_kept()
{
	store s = open_tracked("kept");
	{
		perseas::kept<tables> t(s, "tables", 1 << 20);

		s.transact(
			[&](transaction &tx) {
				tables &w = t.writable(tx);

				for (int i = 0; i < 100; i++)
					w.by_name[std::pmr::string("the number of a long name ") +
				                  std::to_string(i).c_str()] = i;
				w.log.emplace_back("begun");
			},
			perseas::track);
		bool thrown = false;

		try {
			s.transact(
				[&](transaction &tx) {
					t.writable(tx).by_name.clear();
					t.writable(tx).log.clear();
					throw 1;
				},
				perseas::track);
		} catch (int) {
			thrown = true;
		}
		CHECK(thrown && t->by_name.size() == 100 && t->log.size() == 1);
	}
	for (int again = 0; again < 2; again++) {
		s.close();
		s = open_tracked("kept");
		perseas::kept<tables> t(s, "tables");

		CHECK(t->by_name.at("the number of a long name 42") == 42);
		s.transact(
			[&](transaction &tx) {
				t.writable(tx).log.emplace_back(
					"a line that needs memory of its own");
				t.writable(tx).by_name.erase("the number of a long name 7");
			},
			perseas::track);
		CHECK(t->log.size() == 2u + static_cast<unsigned>(again) &&
		      t->by_name.size() == 99);
	}
}

/* Blocks that were given back are used again, and a segment that is full says so. */
void test_kept_memory()
{
	store s = open_tracked("full");
	perseas::kept<std::pmr::vector<char>> t(s, "t", 64 << 10);
	const auto fill = [&](std::size_t bytes) {
		s.transact(
			[&](transaction &tx) {
				t.writable(tx).resize(bytes);
				t.writable(tx).resize(0);
				t.writable(tx).shrink_to_fit();
			},
			perseas::track);
	};

	fill(8 << 10);
	const std::size_t used = t.used();

	for (int i = 0; i < 20; i++)
		fill(8 << 10);
	CHECK(t.used() == used && t.size() == 64 << 10);
	CHECK_THROWS(errc::limit, "65536 bytes", fill(64 << 10));
	CHECK(t->empty());
}

} // namespace

int main(int argc, char **argv)
{
	checks_begin(argc, argv);
	test("objects of a heap are made and destroyed", test_heap);
	test("objects have sizes, and change them", test_raw_objects);
	test("a pmr container takes memory of a heap", test_heap_resource);
	test("standard containers are kept", test_kept);
	test("memory of what is kept is used again", test_kept_memory);
	return checks_end();
}
