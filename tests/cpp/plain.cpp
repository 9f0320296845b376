/*
 * plain.cpp - tests of client/cpp without exceptions (-fno-exceptions): whatever may fail returns a
 * perseas::result. tests/cpp/run.py starts it with a mirror.
 */
#include "checks.hpp"

namespace
{

using perseas::errc;
using perseas::result;
using perseas::store;
using perseas::transaction;

struct pair {
	static constexpr std::uint64_t perseas_type = 3;
	long first, second;
};

void test_transactions()
{
	auto opened = open_small("plain");

	CHECK(opened);
	store &s = *opened;
	auto r = s.try_make_root<pair>("pair", [](pair &made) { made.first = 10; });

	CHECK(r && (*r)->first == 10);
	const auto moved = s.try_transact([&](transaction &tx) -> result<long> {
		if (auto done = tx.try_set((*r)->first, 4); !done)
			return done.error();
		if (auto done = tx.try_set((*r)->second, 6); !done)
			return done.error();
		return (*r)->second;
	});

	CHECK(moved && *moved == 6 && !moved.code());
	CHECK_REFUSED(errc::range, "", s.try_transact([&](transaction &tx) {
		(void)tx.try_set((*r)->first, 0);
		return tx.try_set(*"elsewhere", 'c');
	}));
	CHECK((*r)->first == 4);
	auto tx = s.try_begin();

	CHECK(tx && tx->try_set((*r)->first, 1));
	CHECK(tx->try_abort());
	CHECK_REFUSED(errc::ended, "begin another", tx->try_commit());
	CHECK((*r)->first == 4);
	CHECK(std::move(opened).value().try_close());
}

void test_heap()
{
	auto s = open_small("plain-heap");
	auto h = perseas::heap::try_open(*s, "objects");

	CHECK(h);
	CHECK(s->try_transact([&](transaction &tx) -> result<void> {
		auto made = h->try_make<pair>(tx, 1, 2);

		if (!made)
			return made.error();
		return h->try_set_root(tx, "pair", *made);
	}));
	CHECK((*h->try_root<pair>("pair"))->second == 2);
	CHECK(h->try_check() && h->try_stat()->objects == 1);
}

void test_pending()
{
	auto s = open_small("plain-pending");
	auto n = s->try_make_root<long>("n");
	perseas::completions loop(*s);
	int called = 0;

	for (long i = 1; i < 5; i++) {
		auto tx = s->try_begin();

		CHECK(tx->try_set(**n, i));
		auto sent = tx->try_commit_token();

		CHECK(sent);
		loop.when(*sent, [&](const result<void> &done) { called += done.has_value(); });
	}
	while (loop.try_wait(std::chrono::milliseconds(1000)).value_or(false))
		;
	CHECK(called == 4);
}

/* What a store offers as a whole, and who waits for it. */
void test_owners()
{
	auto s = open_small("plain-owners");
	auto by = perseas::standby::try_begin("plain-owners", mirrors_at().mirrors);

	CHECK(by && by->try_fd() && by->try_mirrors());
	CHECK(s->try_mirrors()->size() == 1 && s->try_latency() && s->try_wait_whole());
	CHECK(s->try_open_transactions()->empty());
	CHECK_REFUSED(errc::invalid_argument, "",
	              s->try_change_roster(perseas::roster_change::cancel()));
	CHECK(s->try_close());
	auto next = by->try_wait();

	CHECK(next && next->try_stat()->epoch == 2);
	CHECK(by->try_cancel());
	CHECK_REFUSED(errc::cancelled, "", by->try_wait());
}

void test_failures()
{
	CHECK_REFUSED(errc::no_store, "nothing", store::try_open("nothing", mirrors_at().mirrors));
	CHECK(store().try_flush().code() == errc::invalid_argument);
}

} // namespace

int main(int argc, char **argv)
{
	checks_begin(argc, argv);
	test("transactions return results", test_transactions);
	test("heaps return results", test_heap);
	test("functions are called when mirrors hold a commit", test_pending);
	test("owners and standbys return results", test_owners);
	test("what fails says so", test_failures);
	return checks_end();
}
