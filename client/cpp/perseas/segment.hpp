/*
 * segment.hpp - memory of a store, as elements of a type. perseas.hpp includes it.
 *
 * Segments are read as const, and changed through transaction.writable, transaction.set or
 * perseas::p. So an assignment that no transaction has declared does not compile, unless it goes
 * through a pointer that lies in the segment. Each access checks that the store is still open, and
 * throws perseas::error if not (without exceptions it ends the program); so do the spans that a
 * segment returns. data(), begin() and references to elements are raw, for fast loops: using them
 * after the store was closed or the segment unmapped kills the process.
 */
#ifndef PERSEAS_CPP_SEGMENT_HPP
#define PERSEAS_CPP_SEGMENT_HPP

#include "session.hpp"
#include "span.hpp"
#include "storable.hpp"

#include <cstddef>
#include <utility>

namespace perseas
{

/* A mapped segment. Moving from it leaves it empty. Any thread may read it. */
template <class T>
class segment
{
    public:
	segment() noexcept = default;
	segment(segment &&other) noexcept
	    : session_(std::exchange(other.session_, {})), first_(other.first_),
	      count_(other.count_), published_(other.published_), moved_(other.moved_)
	{
	}
	segment &operator=(segment &&other) noexcept
	{
		session_ = std::exchange(other.session_, {});
		first_ = other.first_;
		count_ = other.count_;
		published_ = other.published_;
		moved_ = other.moved_;
		return *this;
	}

	std::size_t size() const noexcept { return count_; }
	/* Returns true if the segment existed before this process mapped it, so that it has
	 * contents. */
	bool published() const noexcept { return published_; }
	/* Returns by how many bytes the segment is mapped above its recorded address (map_at);
	 * negative if below. */
	std::ptrdiff_t moved() const noexcept { return moved_; }

	const T *data() const { return checked(); }
	const T &operator[](std::size_t at) const
	{
		const T *first = checked();

		if (__builtin_expect(at >= count_, 0))
			detail::raise({ errc::range, "element " + std::to_string(at) + " of " +
			                                     std::to_string(count_) +
			                                     " of a segment: there is none" });
		return first[at];
	}
	const T *begin() const { return checked(); }
	const T *end() const { return checked() + count_; }
	perseas::span<const T> span() const { return { checked(), count_, session_ }; }

	/* Returns the elements of a new segment, to be filled in before store.publish(), without a
	 * transaction. Fails if published() is true. */
	perseas::span<T> initial() const
	{
		T *first = checked();

		if (published_ || exists())
			detail::raise(
				{ errc::invalid_argument,
			          "the segment has contents that mirrors hold: change it by a "
			          "transaction" });
		return { first, count_, session_ };
	}

    protected:
	friend class store;

	segment(detail::session_ref session, T *first, std::size_t count, bool published,
	        std::ptrdiff_t moved) noexcept
	    : session_(session), first_(first), count_(count), published_(published), moved_(moved)
	{
	}

	/* Sets `info` to the store's description of the segment. Returns false if the segment is no
	 * longer mapped. */
	bool find(segment_info &info) const
	{
		for (unsigned i = 0; perseas_segment_at(session_.handle(), i, &info) == 0; i++)
			if (info.address == first_)
				return true;
		return false;
	}

	/* Returns true if the segment is published, whether by this process or by an earlier
	 * owner. */
	bool exists() const
	{
		segment_info info;

		return find(info) && info.published != 0;
	}

	T *checked() const
	{
		if (__builtin_expect(!session_.alive(), 0))
			detail::raise(session_.refusal());
		return first_;
	}

	detail::session_ref session_;
	T *first_ = nullptr;
	std::size_t count_ = 0;
	bool published_ = false;
	std::ptrdiff_t moved_ = 0;
};

/* A segment that holds one object. */
template <class T>
class root : public segment<T>
{
    public:
	root() noexcept = default;
	root(segment<T> &&of) noexcept : segment<T>(std::move(of)) {}

	const T &operator*() const { return *this->checked(); }
	const T *operator->() const { return this->checked(); }
};

} // namespace perseas

#endif
