/*
 * cpp.cpp - runs a transaction of 8 bytes through the C interface, or through each of the ways that
 * the C++ binding has for it. bench/cpp.py runs it under callgrind, which counts the instructions
 * inside perseas_counted. Every way reads the root once, before its loop.
 *
 *     cpp MIRRORS STORE WAY COUNT
 *     cpp MIRRORS STORE WAY -          runs as many transactions as each line of input says, and
 *                                      prints the seconds that they took (bench/languages.py)
 */
#include <perseas.hpp>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <string>

namespace
{

constexpr unsigned numbers = 1024, warm = 200;

struct row {
	perseas::p<std::uint64_t> at[numbers];
};

/* Returns the index of the number that transaction i changes. */
unsigned place(unsigned i)
{
	return i * 37 % numbers;
}

bool in_c(perseas::store &s, const perseas::root<row> &r, unsigned count)
{
	auto *at = const_cast<std::uint64_t *>(&r->at[0].get());
	perseas_t *p = s.c();

	for (unsigned i = 0; i < count; i++) {
		std::uint64_t *to = at + place(i);
		perseas_tx_t *tx;

		if (perseas_begin(p, 0, &tx) || perseas_set_range(tx, to, sizeof(*to)))
			return false;
		*to += i;
		if (perseas_commit(tx, 0))
			return false;
	}
	return true;
}

bool by_set(perseas::store &s, const perseas::root<row> &r, unsigned count)
{
	const row &b = *r;

	for (unsigned i = 0; i < count; i++)
		s.transact([&](perseas::transaction &tx) {
			const auto &to = b.at[place(i)].get();

			tx.set(to, to + i);
		});
	return true;
}

bool by_writable(perseas::store &s, const perseas::root<row> &r, unsigned count)
{
	const row &b = *r;

	for (unsigned i = 0; i < count; i++)
		s.transact(
			[&](perseas::transaction &tx) { tx.writable(b.at[place(i)].get()) += i; });
	return true;
}

bool by_p(perseas::store &s, const perseas::root<row> &r, unsigned count)
{
	const row &b = *r;

	for (unsigned i = 0; i < count; i++)
		s.transact([&](perseas::transaction &) { b.at[place(i)] += i; });
	return true;
}

bool by_hand(perseas::store &s, const perseas::root<row> &r, unsigned count)
{
	const row &b = *r;

	for (unsigned i = 0; i < count; i++) {
		perseas::transaction tx(s);

		tx.writable(b.at[place(i)].get()) += i;
		tx.commit();
	}
	return true;
}

bool by_result(perseas::store &s, const perseas::root<row> &r, unsigned count)
{
	const row &b = *r;

	for (unsigned i = 0; i < count; i++) {
		const auto done = s.try_transact([&](perseas::transaction &tx) {
			const auto &to = b.at[place(i)].get();

			return tx.try_set(to, to + i);
		});

		if (!done)
			return false;
	}
	return true;
}

using way = bool (*)(perseas::store &, const perseas::root<row> &, unsigned);

way way_named(const std::string &name)
{
	return name == "c"          ? in_c
	       : name == "set"      ? by_set
	       : name == "writable" ? by_writable
	       : name == "p"        ? by_p
	       : name == "hand"     ? by_hand
	       : name == "result"   ? by_result
	                            : nullptr;
}

} // namespace

/* callgrind counts the instructions in this function; its own call is the same for all ways. */
extern "C" __attribute__((noinline)) bool
perseas_counted(way go, perseas::store &s, const perseas::root<row> &r, unsigned count)
{
	return go(s, r, count);
}

static bool take_turns(way go, perseas::store &s, const perseas::root<row> &r)
{
	unsigned count = 0;

	while (std::cin >> count) {
		const auto began = std::chrono::steady_clock::now();

		if (!go(s, r, count))
			return false;
		const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;

		std::printf("%.9f\n", took.count());
		std::fflush(stdout);
	}
	return true;
}

int main(int argc, char **argv)
{
	const way go = argc == 5 ? way_named(argv[3]) : nullptr;

	if (!go)
		return 2;
	try {
		perseas::store s(argv[2], argv[1], perseas::options().create());
		auto r = s.make_root<row>("row");

		if (std::string(argv[4]) == "-")
			return take_turns(go, s, r) ? 0 : 1;
		return go(s, r, warm) && perseas_counted(go, s, r,
		                                         static_cast<unsigned>(std::atoi(argv[4])))
		               ? 0
		               : 1;
	} catch (const perseas::error &e) {
		std::fprintf(stderr, "cpp: %s\n", e.what());
		return 1;
	}
}
