/*
 * session.hpp - who may still use a store: whether it is open, whether this process opened it, and
 * whether the process is about to end. Everything that a program holds of a store refers to a
 * session, and asks it before each call of the library. perseas.hpp includes it; programs do not
 * use it. It must never free a session: what outlives its store finds out here that it did.
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

/* One store that is open. Its memory is used again by a later one, with another id. */
struct session {
	std::atomic<std::uint64_t> id{ 0 }; /* 0: it is closed */
	std::atomic<gone> why{ gone::closed };
	std::atomic<bool> used{ true };
	std::atomic<bool> tracking{ false }; /* a transaction with track is open */
	perseas_t *handle = nullptr;
	std::function<void(const event &)> on_event;
	std::shared_ptr<const void> keeps; /* what the library calls while it is open */
	session *next = nullptr;           /* of all that there ever were */
};

inline std::atomic<session *> sessions{ nullptr };
inline std::atomic<std::uint64_t> session_ids{ 0 };
inline std::atomic<bool> process_exits{ false };

/* No store that is open now can be used any more. A child of fork calls it, so it only stores to
 * memory. */
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
 * It is made when the first store is opened, so it is destroyed after stores that were opened in
 * their constructors, and before whatever was made earlier: a store that is a global and was opened
 * in main is closed by nobody then. That is as safe as a crash, and safer than to use the
 * library, or OpenSSL, when they have tidied up.
 */
struct process_watch {
	process_watch() { pthread_atfork(nullptr, nullptr, after_fork); }
	~process_watch()
	{
		process_exits.store(true);
		abandon_all(gone::exiting);
	}
};

/* A session that nobody uses. */
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

/* What belongs to no store. */
inline session no_session;

/* What a call came to: 0, a code of the library, or this: it was not even called. */
inline constexpr int refused = 1;

/* A store, as it was when somebody got to know it. */
struct session_ref {
	session *s = &no_session;
	std::uint64_t id = UINT64_MAX; /* which no session ever has */

	bool alive() const noexcept { return s->id.load(std::memory_order_acquire) == id; }
	perseas_t *handle() const noexcept { return s->handle; }

	/* Why it is not alive, as the failure of what somebody wanted of it. */
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

	/* The result of a call of the library. */
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
