/*
 * readings.cpp - stores readings of sensors, in the records that readings.c and readings.py use.
 *
 *     readings LIST COUNT      checks the stored readings, and adds COUNT
 */
#include <perseas.hpp>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>

/* begin types */
struct reading {
	static constexpr std::uint64_t perseas_type = 1;

	std::uint64_t at;
	std::int32_t celsius;
	std::uint8_t flags;
	char sensor[11];
	std::array<double, 4> values;
};

struct readings {
	perseas::p<std::uint64_t> count; /* has the size of a std::uint64_t */
	reading rows[10000];
};
/* end types */

static reading reading_of(std::uint64_t number)
{
	reading made = { 1000003 * number,
		         static_cast<std::int32_t>(number % 100) - 50,
		         static_cast<std::uint8_t>(number),
		         {},
		         {} };
	const int shown = static_cast<int>(number % 1000000);

	(void)std::snprintf(made.sensor, sizeof(made.sensor), "s%06d", shown);
	for (unsigned i = 0; i < made.values.size(); i++)
		made.values[i] = static_cast<double>(number) + 0.25 * i;
	return made;
}

static bool same(const reading &a, const reading &b)
{
	return a.at == b.at && a.celsius == b.celsius && a.flags == b.flags &&
	       std::strncmp(a.sensor, b.sensor, sizeof(a.sensor)) == 0 && a.values == b.values;
}

/* begin check */
/* Checks every row, and the object that the root "last" leads to. */
static bool check(const perseas::heap &heap, const readings &all)
{
	const reading *last = heap.root<reading>("last");

	for (std::uint64_t i = 0; i < all.count; i++)
		if (!same(all.rows[i], reading_of(i)))
			return false;
	return all.count == 0u ? !last : last && same(*last, all.rows[all.count - 1]);
}
/* end check */

/* begin add */
static void add(perseas::store &store, perseas::heap &heap, const readings &all)
{
	store.transact([&](perseas::transaction &tx) {
		const reading made = reading_of(all.count);

		tx.set(all.rows[all.count], made);
		heap.destroy(tx, heap.root<reading>("last"));
		heap.set_root(tx, "last", heap.make<reading>(tx, made));
		tx.set(all.count, all.count + 1);
	});
}
/* end add */

int main(int argc, char **argv)
{
	if (argc != 3)
		return 2;
	try {
		perseas::store store("readings", argv[1], perseas::options().create());
		auto all = store.make_root<readings>("readings");
		perseas::heap heap(store, "objects");

		if (!check(heap, *all)) {
			std::cerr << "readings: they are not what was kept" << std::endl;
			return 1;
		}
		std::cout << all->count << " readings, and all are right" << std::endl;
		for (long left = std::atol(argv[2]); left > 0 && all->count < 10000u; left--) {
			add(store, heap, *all);
			std::cout << "kept " << all->count << std::endl;
		}
		store.close();
	} catch (const perseas::error &e) {
		std::cerr << "readings: " << e.what() << std::endl;
		return 1;
	}
}
