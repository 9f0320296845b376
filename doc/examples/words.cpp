/*
 * words.cpp - counts words in a standard container that survives in the store.
 *
 *     words LIST WORD...
 */
#include <perseas.hpp>

#include <iostream>
#include <map>
#include <string>

int main(int argc, char **argv)
{
	if (argc < 2)
		return 2;
	try {
		/* begin kept */
		using table = std::pmr::map<std::pmr::string, long, std::less<>>;
		perseas::store store("words", argv[1], perseas::options().create().tracked());
		perseas::kept<table> words(store, "words", 1 << 20);

		store.transact(
			[&](perseas::transaction &tx) {
				for (int i = 2; i < argc; i++)
					words.writable(tx)[argv[i]]++;
			},
			perseas::track);
		for (const auto &[word, count] : *words)
			std::cout << word << " " << count << "\n";
		/* end kept */
	} catch (const perseas::error &e) {
		std::cerr << "words: " << e.what() << std::endl;
		return 1;
	}
}
