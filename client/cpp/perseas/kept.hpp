/*
 * kept.hpp - standard containers that lie in mirrored memory, and live on in the next owner.
 * perseas.hpp includes it, where there are exceptions.
 *
 * A container of std::pmr keeps a pointer to its resource. The resource of a perseas::kept lies in
 * the segment, in front of what it gives: so that pointer is as good in the next owner as any other
 * into the segment, which keeps its address. What is not the same there is the resource's table of
 * virtual functions, and it is set anew by a transaction whenever the segment is opened.
 *
 * Containers store where they please. So their segment is changed only in transactions with
 * perseas::track, in which the library finds what was changed.
 */
#ifndef PERSEAS_CPP_KEPT_HPP
#define PERSEAS_CPP_KEPT_HPP

#include "store.hpp"

#if PERSEAS_EXCEPTIONS

#include <cstddef>
#include <cstdint>
#include <memory_resource>
#include <new>
#include <string>
#include <type_traits>
#include <utility>

namespace perseas
{

namespace detail
{

/*
 * The resource, at the beginning of its segment. Blocks are powers of two, from 16 bytes; those
 * that were given back are used again for the same size. So memory is never short of a block that
 * was given back, but sizes do not lend to each other.
 */
class arena final : public std::pmr::memory_resource
{
    public:
	static constexpr std::uint64_t magic = 0x616e657261707063; /* "cpparena" */
	static constexpr unsigned least = 4, classes = 41;

	/* What there is behind the pointer to the virtual functions. */
	struct books {
		std::uint64_t magic, size; /* bytes of the segment */
		std::uint64_t used;        /* of these, from the beginning */
		std::uint64_t object_size; /* of what is kept */
		session *of;               /* of this owner; set anew with the functions */
		std::uint64_t building;    /* 1: it is not published yet */
		void *free[classes];       /* lists of blocks */
	};
	static constexpr std::size_t ahead = 512; /* for all of that */

	books &kept() noexcept
	{
		return *std::launder(
			reinterpret_cast<books *>(reinterpret_cast<char *>(this) + 64));
	}
	char *base() noexcept { return reinterpret_cast<char *>(this); }

    private:
	static unsigned class_of(std::size_t bytes, std::size_t alignment) noexcept
	{
		unsigned at = least;

		while (at < least + classes &&
		       (std::size_t{ 1 } << at) < std::max(bytes, alignment))
			at++;
		return at;
	}

	void *do_allocate(std::size_t bytes, std::size_t alignment) override
	{
		books &b = kept();
		const unsigned at = class_of(bytes, alignment);

		if (!b.building && !b.of->tracking.load(std::memory_order_relaxed))
			raise({ errc::invalid_argument,
			        "what is kept may change only inside a transaction with "
			        "perseas::track: store.transact(fn, perseas::track)" });
		if (alignment > 64 || at >= least + classes)
			throw std::bad_alloc();
		if (void *block = b.free[at - least]) {
			b.free[at - least] = *static_cast<void **>(block);
			return block;
		}
		const std::uint64_t size = std::uint64_t{ 1 } << at;
		const std::uint64_t to = std::min<std::uint64_t>(size, 64) - 1;
		const std::uint64_t from = (b.used + to) & ~to;

		if (from > b.size || size > b.size - from)
			raise({ errc::limit,
			        "the segment of what is kept is full: it has " +
			                std::to_string(b.size) +
			                " bytes; make a larger one under another name" });
		b.used = from + size;
		return base() + from;
	}
	void do_deallocate(void *block, std::size_t bytes, std::size_t alignment) override
	{
		books &b = kept();
		void *&first = b.free[class_of(bytes, alignment) - least];

		*static_cast<void **>(block) = first;
		first = block;
	}
	bool do_is_equal(const std::pmr::memory_resource &other) const noexcept override
	{
		return this == &other;
	}
};

static_assert(sizeof(arena) <= 64 && 64 + sizeof(arena::books) <= arena::ahead);

} // namespace detail

/*
 * A T that lies in a segment of its own, with all that its containers allocate: T is a std::pmr
 * container, or a class of them that is made of a std::pmr::memory_resource *. The store is opened
 * with options().tracked(). T's destructor is never called.
 *
 *     perseas::kept<std::pmr::map<int, std::pmr::string>> names(store, "names", 1 << 20);
 *     store.transact([&](auto &tx) { names.writable(tx)[7] = "seven"; }, perseas::track);
 *
 * Whoever opens it must have compiled T to the same layout: the same standard library, and its
 * same ABI. Of a T of another size it is said (errc::size); other differences nobody sees. What T
 * keeps besides must be storable: no pointers out of the store, no std::function, no virtual
 * functions, no std::string or std::vector that are not of std::pmr.
 */
template <class T>
class kept
{
	static_assert(
		!std::is_polymorphic_v<T>,
		"perseas: T must have no virtual functions: the next owner has them elsewhere");
	static_assert(
		std::is_constructible_v<T, std::pmr::memory_resource *>,
		"perseas: T must be made of a std::pmr::memory_resource *, as std::pmr containers "
		"are");
	static_assert(alignof(T) <= 64, "perseas: what is kept is aligned to 64 bytes");

    public:
	/* Opens it, by a small transaction; or makes it, of `size` bytes from 4096, and publishes
	 * all segments that are mapped. */
	kept(store &in, const std::string &name, std::size_t size = 0)
	    : memory_(in.map<unsigned char>(name, size))
	{
		if (memory_.published())
			resume(in);
		else
			make(in);
	}

	const T &operator*() const
	{
		(void)memory_.data();
		return *object_;
	}
	const T *operator->() const { return &**this; }

	/* To change it in a transaction with track, until that ends. */
	T &writable(transaction &tx)
	{
		(void)memory_.data();
		if (!tx.open() || !has(tx.how(), mode::track) || tx.session_.s != arena_->kept().of)
			detail::raise(
				{ errc::invalid_argument,
			          "what is kept may change only inside a transaction of its store "
			          "with perseas::track: store.transact(fn, perseas::track)" });
		return *object_;
	}

	/* Bytes of the segment, and how many of them were ever used. */
	std::size_t size() const { return memory_.size(); }
	std::size_t used() const { return (**this, arena_->kept().used); }

    private:
	void *start() { return const_cast<unsigned char *>(memory_.data()); }
	T *place()
	{
		return reinterpret_cast<T *>(static_cast<char *>(start()) + detail::arena::ahead);
	}

	void make(store &in)
	{
		if (memory_.size() < 4096 || memory_.size() < detail::arena::ahead + sizeof(T)) {
			const std::string has = std::to_string(memory_.size());

			in.unmap(std::move(memory_));
			detail::raise(
				{ errc::size, has + " bytes are too few for what is kept: at least "
			                            "4096 are needed, and as many as T takes" });
		}
		arena_ = ::new (start()) detail::arena;
		::new (&arena_->kept()) detail::arena::books{ detail::arena::magic,
			                                      memory_.size(),
			                                      detail::arena::ahead + sizeof(T),
			                                      sizeof(T),
			                                      in.session_.s,
			                                      1,
			                                      {} };
		try {
			object_ = ::new (place())
				T(static_cast<std::pmr::memory_resource *>(arena_));
		} catch (...) {
			(void)in.try_unmap(std::move(memory_));
			throw;
		}
		arena_->kept().building = 0;
		in.publish();
	}

	/* The functions and the session are those of this process; all else is as it was. */
	void resume(store &in)
	{
		auto *books = reinterpret_cast<detail::arena::books *>(
			static_cast<char *>(start()) + 64);

		if (memory_.size() < 4096 || books->magic != detail::arena::magic)
			detail::raise(
				{ errc::invalid_argument,
			          "this segment is not of perseas::kept: take another name" });
		if (books->object_size != sizeof(T))
			detail::raise(
				{ errc::size,
			          "a T of " + std::to_string(books->object_size) +
			                  " bytes was kept, and this one has " +
			                  std::to_string(sizeof(T)) +
			                  ": open it by a program of the same T and library" });
		in.transact([&](transaction &tx) {
			tx.writable_bytes(start(), sizeof(detail::arena));
			tx.writable_bytes(&books->of, sizeof(books->of));
			arena_ = ::new (start()) detail::arena;
			arena_->kept().of = in.session_.s;
		});
		object_ = std::launder(place());
	}

	segment<unsigned char> memory_;
	detail::arena *arena_ = nullptr;
	T *object_ = nullptr;
};

} // namespace perseas

#endif

#endif
