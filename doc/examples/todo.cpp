/*
 * todo.cpp - a list of objects in the heap, with commits that an event loop waits for.
 *
 *     todo LIST TASK...
 */
#include <perseas.hpp>

#include <cstring>
#include <iostream>

/* begin types */
struct task {
	static constexpr std::uint64_t perseas_type = 1;

	const task *next; /* in the same heap, where objects keep their addresses */
	char what[40];
};
/* end types */

int main(int argc, char **argv)
{
	if (argc < 2)
		return 2;
	try {
		/* begin heap */
		perseas::store store("todo", argv[1], perseas::options().create());
		perseas::heap heap(store, "tasks");
		perseas::completions loop(store);

		for (int i = 2; i < argc; i++) {
			auto sent = store.transact_async([&](perseas::transaction &tx) {
				task *made = heap.make<task>(tx);

				made->next = heap.root<task>("first");
				std::strncpy(made->what, argv[i], sizeof(made->what) - 1);
				heap.set_root(tx, "first", made);
			});

			loop.when(sent.token(), [=](const perseas::result<void> &held) {
				std::cout << (held ? "held: " : "lost: ") << argv[i] << "\n";
			});
		}
		while (loop.wait(std::chrono::seconds(1))) /* or poll loop.fd(), and dispatch() */
			;
		for (const task *each = heap.root<task>("first"); each; each = each->next)
			std::cout << each->what << "\n";
		/* end heap */
	} catch (const perseas::error &e) {
		std::cerr << "todo: " << e.what() << std::endl;
		return 1;
	}
}
