/*
 * bank.cpp - transfers between the accounts of a bank, with commits that may be in doubt. It works
 * on the store of bank.c: either program can open it after the other.
 *
 *     bank LIST            transfers until SIGTERM
 *     bank LIST COUNT      so many transfers
 */
#include <perseas.hpp>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <iostream>
#include <numeric>
#include <random>
#include <thread>

/* begin types */
constexpr int count_of_accounts = 1000;

struct account {
	std::int64_t balance;
	char holder[24];
};

struct bank {
	account accounts[count_of_accounts];
	perseas::p<std::uint64_t> transfers;
};
/* end types */

static volatile std::sig_atomic_t stop;

extern "C" void on_signal(int)
{
	stop = 1; /* a signal handler must not call Perseas */
}

/* begin transfer */
/* Throws if the transfer was not made; with errc::in_doubt it was made here. */
static void transfer(perseas::store &store, const bank &b, int from, int to, std::int64_t amount)
{
	store.transact([&](perseas::transaction &tx) {
		tx.writable(b.accounts[from].balance) -= amount;
		tx.set(b.accounts[to].balance, b.accounts[to].balance + amount);
		b.transfers += 1;
	});
}
/* end transfer */

/* begin settle */
/* Waits for a commit in doubt, which is applied here and cannot be undone. Do not report it before
 * W mirrors hold it. */
static void settle(perseas::store &store, const perseas::error &doubt)
{
	std::cout << "in doubt: " << doubt.sentence() << std::endl;
	for (auto held = store.try_flush(); !held && !stop; held = store.try_flush())
		if (held.error().code() != perseas::errc::in_doubt)
			held.value(); /* throws: another owner has the store */
	std::cout << "held after all" << std::endl;
}
/* end settle */

/* begin work */
static void work(perseas::store &store, const bank &b, long count)
{
	std::minstd_rand dice;

	while (!stop && count-- != 0) {
		const int from = static_cast<int>(dice() % count_of_accounts);
		const int to = (from + 1 + static_cast<int>(dice() % (count_of_accounts - 1))) %
		               count_of_accounts;

		try {
			transfer(store, b, from, to, 1);
		} catch (const perseas::error &e) {
			if (e.code() == perseas::errc::in_doubt)
				settle(store, e);
			else if (e.code() != perseas::errc::blocked)
				throw; /* blocked: nothing was done, and the client may try again */
		}
		std::this_thread::sleep_for(std::chrono::milliseconds(2));
	}
}
/* end work */

static std::int64_t sum(const bank &b)
{
	std::int64_t all = 0;

	for (const auto &each : b.accounts)
		all += each.balance;
	return all;
}

int main(int argc, char **argv)
{
	if (argc < 2 || argc > 3)
		return 2;
	std::signal(SIGTERM, on_signal);
	try {
		/* begin open */
		perseas::store store("bank", argv[1],
		                     perseas::options().create().commit_timeout(
					     std::chrono::seconds(1)));
		/* Leaves existing contents unchanged. */
		auto b = store.make_root<bank>("accounts", [](bank &made) {
			for (auto &each : made.accounts)
				each.balance = 100;
		});
		/* end open */
		std::cout << "open, epoch " << store.stat().epoch << ", " << b->transfers
			  << " transfers so far" << std::endl;
		work(store, *b, argc > 2 ? std::atol(argv[2]) : -1);
		std::cout << b->transfers << " transfers, " << sum(*b) << " in all accounts"
			  << std::endl;
		store.close();
	} catch (const perseas::error &e) {
		std::cerr << "bank: " << e.what() << std::endl;
		return 1;
	}
}
