/*
 * session.hpp - tracks whether a store can still be used: whether it is open, whether this process
 * opened it, and whether the process is exiting. Every object that a program gets from a store
 * refers to a session, and checks it before each call of the library. perseas.hpp includes it;
 * programs do not use it. Sessions are never freed, so that objects that outlive their store can
 * find that out.
 */
#ifndef PERSEAS_CPP_SESSION_HPP
#define PERSEAS_CPP_SESSION_HPP

#include "error.hpp"

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <pthread.h>

namespace perseas::detail
{

/* Why a store cannot be used. */
enum class gone : int { closed, forked, exiting };

/* An open store. Its memory is reused by a later session with another id. */
struct session {
	/* Unique id while the store is open; 0 once it is closed. */
	std::atomic<std::uint64_t> id{ 0 };
	std::atomic<gone> why{ gone::closed };
	std::atomic<bool> used{ true };      /* false once the session may be reused */
	std::atomic<bool> tracking{ false }; /* a transaction with track is open */
	perseas_t *handle = nullptr;
	std::function<void(const event &)> on_event;
	/* Keeps functions alive that the library calls while the store is open, such as
	 * on_event. */
	std::shared_ptr<const void> keeps;
	session *next = nullptr; /* next in the list of all sessions ever made */
};

inline std::atomic<session *> sessions{ nullptr };
inline std::atomic<std::uint64_t> session_ids{ 0 };
inline std::atomic<bool> process_exits{ false };

/* Makes all open stores unusable. A child of fork calls it, so it only stores to memory. */
inline void abandon_all(gone why) noexcept
{
	for (session *each = sessions.load(); each; each = each->next) {
		if (!each->id.load())
			continue;
		each->why.store(why);
		each->id.store(0);
	}
}

inline void after_fork() noexcept
{
	abandon_all(gone::forked);
}

/*
 * Makes all stores unusable when the process exits. It is created when the first store is opened.
 * So it is destroyed after stores that were opened in their constructors, and before everything
 * that was constructed earlier: a global store that was opened in main is never closed. That is as
 * safe as a crash, and safer than calling the library, or OpenSSL, after their cleanup.
 */
struct process_watch {
	process_watch() { pthread_atfork(nullptr, nullptr, after_fork); }
	~process_watch()
	{
		process_exits.store(true);
		abandon_all(gone::exiting);
	}
};

/* Returns an unused session, or a new one. */
inline session *session_take()
{
	for (session *each = sessions.load(); each; each = each->next)
		if (!each->used.load() && !each->used.exchange(true))
			return each;
	session *made = new session;

	made->next = sessions.load();
	while (!sessions.compare_exchange_weak(made->next, made))
		;
	return made;
}

inline void session_put(session *s)
{
	s->handle = nullptr;
	s->on_event = nullptr;
	s->keeps = nullptr;
	s->tracking.store(false);
	s->used.store(false);
}

/* The session of objects without a store. */
inline session no_session;

/* The result if an object cannot be used, so that the library was not called. Other results are 0
 * and the library's codes. */
inline constexpr int refused = 1;

/* A reference to a store that notices when that store is closed. */
struct session_ref {
	session *s = &no_session;
	std::uint64_t id = UINT64_MAX; /* no session has this id */

	bool alive() const noexcept { return s->id.load(std::memory_order_acquire) == id; }
	perseas_t *handle() const noexcept { return s->handle; }

	/* Returns the failure of a call to a store that is not alive: the reason and what to do. */
	[[gnu::cold, gnu::noinline]] failure refusal() const
	{
		if (s == &no_session)
			return { errc::invalid_argument,
				 "this store was never opened, or was moved from: "
				 "use the object that it was moved to" };
		const gone why = s->id.load() ? gone::closed : s->why.load();

		if (why == gone::forked)
			return { errc::invalid_argument,
				 "this store belongs to the parent process: a child of fork opens "
				 "its own, or calls exec" };
		if (why == gone::exiting)
			return {
				errc::invalid_argument,
				"the process is exiting: close stores that are globals before main "
				"returns"
			};
		return {
			errc::invalid_argument,
			"the store was closed: open it again, and take from it again what is used"
		};
	}
	[[gnu::cold, gnu::noinline]] failure why(int rc) const
	{
		return rc == refused ? refusal() : failure::last(handle(), rc);
	}

	/* Converts a code that the library returned to a result. */
	result<void> done(int rc) const
	{
		if (__builtin_expect(rc == 0, 1))
			return {};
		return why(rc);
	}
};

inline void watch_process()
{
	static process_watch watch;
}

inline session_ref session_begin(session *s, perseas_t *p)
{
	watch_process();
	const std::uint64_t id = session_ids.fetch_add(1) + 1;

	s->handle = p;
	s->why.store(gone::closed);
	s->id.store(id);
	return { s, id };
}

} // namespace perseas::detail

#endif
