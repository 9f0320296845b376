/*
 * checks.hpp - what the test programs of the C++ binding share: tests with a name, and checks that
 * say where they failed. A program calls `test` for each, and returns checks_end().
 */
#ifndef PERSEAS_TESTS_CPP_CHECKS_HPP
#define PERSEAS_TESTS_CPP_CHECKS_HPP

#include <perseas.hpp>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>

struct checks {
	int tests = 0, failed = 0;
	bool good = true;
};

inline checks &so_far()
{
	static checks all;

	return all;
}

inline void check_at(bool good, const char *what, const char *file, int line)
{
	if (good)
		return;
	std::printf("# %s:%d: %s\n", file, line, what);
	so_far().good = false;
}

#define CHECK(condition) check_at(static_cast<bool>(condition), #condition, __FILE__, __LINE__)

/* A sentence that has these words in it. */
inline void check_says(const std::string &sentence, const char *words, int line)
{
	if (sentence.find(words) != std::string::npos)
		return;
	std::printf("# line %d: '%s' does not say '%s'\n", line, sentence.c_str(), words);
	so_far().good = false;
}

/* It fails with this code, and says so. */
#define CHECK_REFUSED(expected, words, expression)                                \
	do {                                                                      \
		auto refused_ = (expression);                                     \
		CHECK(!refused_);                                                 \
		if (!refused_) {                                                  \
			CHECK(refused_.error().code() == (expected));             \
			check_says(refused_.error().sentence(), words, __LINE__); \
		}                                                                 \
	} while (0)

#if PERSEAS_EXCEPTIONS
#define CHECK_THROWS(expected, words, ...)                         \
	do {                                                       \
		bool threw_ = false;                               \
		try {                                              \
			__VA_ARGS__;                               \
		} catch (const perseas::error &e) {                \
			threw_ = true;                             \
			CHECK(e.code() == (expected));             \
			check_says(e.sentence(), words, __LINE__); \
		}                                                  \
		CHECK(threw_);                                     \
	} while (0)
#endif

template <class F>
void test(const char *name, F &&fn)
{
	checks &all = so_far();

	all.good = true;
#if PERSEAS_EXCEPTIONS
	try {
		fn();
	} catch (const std::exception &e) {
		std::printf("# it threw: %s\n", e.what());
		all.good = false;
	}
#else
	fn();
#endif
	all.tests++;
	all.failed += !all.good;
	std::printf("%sok %d - %s\n", all.good ? "" : "not ", all.tests, name);
	std::fflush(stdout);
}

inline int checks_end()
{
	std::printf("1..%d\n", so_far().tests);
	return so_far().failed ? 1 : 0;
}

/* The mirror, as the program's arguments say it: over shared memory, over tcp, and its process; and
 * another one, which no store has at first. */
struct place {
	std::string mirrors, tcp;
	int mirror = 0;
	std::string second;
};

inline place &mirrors_at()
{
	static place at;

	return at;
}

inline void checks_begin(int argc, char **argv)
{
	if (argc < 5) {
		std::fprintf(stderr, "usage: %s UNIX TCP PID UNIX\n", argv[0]);
		std::exit(2);
	}
	mirrors_at() = { argv[1], argv[2], std::atoi(argv[3]), argv[4] };
}

/* The mirror hangs, in all of its threads when this returns, until mirror_continue(). */
inline void mirror_stop()
{
	const std::string tasks = "/proc/" + std::to_string(mirrors_at().mirror) + "/task";
	bool all = false;

	kill(mirrors_at().mirror, SIGSTOP);
	while (!all) {
		all = true;
		for (const auto &each : std::filesystem::directory_iterator(tasks)) {
			std::string line;

			std::getline(std::ifstream(each.path() / "stat"), line);
			all &= line.find(") T ") != std::string::npos;
		}
	}
}

inline void mirror_continue()
{
	kill(mirrors_at().mirror, SIGCONT);
}

/* Small enough for many of them. */
inline perseas::options small()
{
	return perseas::options().create().log_size(64 << 10).ring_size(256 << 10);
}

inline perseas::result<perseas::store> open_small(const char *name)
{
	return perseas::store::try_open(name, mirrors_at().mirrors, small());
}

#endif
