/*
 * counter.cpp - counts its runs: the README's program, in C++, on the same store.
 *
 *     counter LIST
 */
#include <perseas.hpp>

#include <iostream>

int main(int argc, char **argv)
{
	if (argc != 2)
		return 2;
	try {
		/* Makes the store when no mirror has it yet. */
		perseas::store store("counter", argv[1], perseas::options().create());
		auto runs = store.make_root<long>("counter"); /* zero the first time */

		store.transact([&](perseas::transaction &tx) {
			tx.writable(*runs) += 1;
		}); /* returns when a majority of the mirrors holds it */
		std::cout << "run " << *runs << std::endl;
		store.close();
	} catch (const perseas::error &e) {
		std::cerr << "counter: " << e.what() << std::endl;
		return 1;
	}
}
