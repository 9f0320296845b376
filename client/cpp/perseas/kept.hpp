/*
 * kept.hpp - standard containers that live in mirrored memory and survive into the next owner.
 * perseas.hpp includes it if exceptions are enabled.
 *
 * A std::pmr container keeps a pointer to its memory resource. The resource of a perseas::kept lies
 * at the beginning of the segment. Segments keep their addresses, so that pointer is valid in the
 * next owner, as is any other pointer into the segment. Only the resource's pointer to its virtual
 * functions is not; a transaction sets it whenever the segment is opened.
 *
 * Containers write wherever they like. So their segment is changed only in transactions with
 * perseas::track, in which the library finds the changes.
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
 * The memory resource at the beginning of a segment. Blocks are powers of two, from 16 bytes on. A
 * freed block is reused for the same size only: so a freed block always satisfies a request of its
 * size, but blocks of one size never become another.
 */
class arena final : public std::pmr::memory_resource
{
    public:
	static constexpr std::uint64_t magic = 0x616e657261707063; /* "cpparena" */
	static constexpr unsigned smallest_class = 4, classes = 41;

	/* The allocator's state, behind the pointer to the virtual functions. */
	struct header {
		std::uint64_t magic, size; /* bytes of the segment */
		std::uint64_t used;        /* bytes used so far, from the segment's beginning on */
		std::uint64_t object_size; /* sizeof(T) */
		/* Session of the current owner; set whenever the segment is opened. */
		session *of;
		std::uint64_t building; /* 1 while the segment is not published yet */
		void *free[classes];    /* lists of free blocks, by size */
	};
	/* Bytes reserved for the resource and its state. */
	static constexpr std::size_t ahead = 512;

	header &kept() noexcept
	{
		return *std::launder(
			reinterpret_cast<header *>(reinterpret_cast<char *>(this) + 64));
	}
	char *base() noexcept { return reinterpret_cast<char *>(this); }

    private:
	static unsigned size_class(std::size_t bytes, std::size_t alignment) noexcept
	{
		unsigned at = smallest_class;

		while (at < smallest_class + classes &&
		       (std::size_t{ 1 } << at) < std::max(bytes, alignment))
			at++;
		return at;
	}

	void *do_allocate(std::size_t bytes, std::size_t alignment) override
	{
		header &b = kept();
		const unsigned at = size_class(bytes, alignment);

		if (!b.building && !b.of->tracking.load(std::memory_order_relaxed))
			raise({ errc::invalid_argument,
			        "what is kept may change only inside a transaction with "
			        "perseas::track: store.transact(fn, perseas::track)" });
		if (alignment > 64 || at >= smallest_class + classes)
			throw std::bad_alloc();
		if (void *block = b.free[at - smallest_class]) {
			b.free[at - smallest_class] = *static_cast<void **>(block);
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
		header &b = kept();
		void *&first = b.free[size_class(bytes, alignment) - smallest_class];

		*static_cast<void **>(block) = first;
		first = block;
	}
	bool do_is_equal(const std::pmr::memory_resource &other) const noexcept override
	{
		return this == &other;
	}
};

static_assert(sizeof(arena) <= 64 && 64 + sizeof(arena::header) <= arena::ahead);

} // namespace detail

/*
 * A T in a segment of its own, with all memory that its containers allocate. T is a std::pmr
 * container, or a class of such containers that is constructible from a std::pmr::memory_resource
 * *. The store must be opened with options().tracked(). T's destructor is never called.
 *
 *     perseas::kept<std::pmr::map<int, std::pmr::string>> names(store, "names", 1 << 20);
 *     store.transact([&](auto &tx) { names.writable(tx)[7] = "seven"; }, perseas::track);
 *
 * Every program that opens the segment must have compiled T to the same layout: with the same
 * standard library and the same ABI. A T of another size is refused (errc::size); other differences
 * go unnoticed. Everything in T must be storable: no pointers out of the store, no std::function,
 * no virtual functions, no std::string or std::vector outside of std::pmr.
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
	/* Opens the segment, by a small transaction. If the store does not have it, creates it with
	 * `size` bytes, at least 4096, and publishes all mapped segments. */
	kept(store &in, const std::string &name, std::size_t size = 0)
	    : memory_(in.map<unsigned char>(name, size))
	{
		if (memory_.published())
			open_object(in);
		else
			create_object(in);
	}

	const T &operator*() const
	{
		(void)memory_.data();
		return *object_;
	}
	const T *operator->() const { return &**this; }

	/* Returns the object for changes by tx, a transaction with track, until that ends. */
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

	/* Return the size of the segment in bytes, and how many of these bytes were ever used. */
	std::size_t size() const { return memory_.size(); }
	std::size_t used() const { return (**this, arena_->kept().used); }

    private:
	void *start() { return const_cast<unsigned char *>(memory_.data()); }
	T *object_place()
	{
		return reinterpret_cast<T *>(static_cast<char *>(start()) + detail::arena::ahead);
	}

	void create_object(store &in)
	{
		if (memory_.size() < 4096 || memory_.size() < detail::arena::ahead + sizeof(T)) {
			const std::string has = std::to_string(memory_.size());

			in.unmap(std::move(memory_));
			detail::raise(
				{ errc::size, has + " bytes are too few for what is kept: at least "
			                            "4096 are needed, and as many as T takes" });
		}
		arena_ = ::new (start()) detail::arena;
		::new (&arena_->kept()) detail::arena::header{ detail::arena::magic,
			                                       memory_.size(),
			                                       detail::arena::ahead + sizeof(T),
			                                       sizeof(T),
			                                       in.session_.s,
			                                       1,
			                                       {} };
		try {
			object_ = ::new (object_place())
				T(static_cast<std::pmr::memory_resource *>(arena_));
		} catch (...) {
			(void)in.try_unmap(std::move(memory_));
			throw;
		}
		arena_->kept().building = 0;
		in.publish();
	}

	/* Sets the resource's pointer to its virtual functions, and its session, to those of this
	 * process. Everything else in the segment stays. */
	void open_object(store &in)
	{
		auto *header = reinterpret_cast<detail::arena::header *>(
			static_cast<char *>(start()) + 64);

		if (memory_.size() < 4096 || header->magic != detail::arena::magic)
			detail::raise(
				{ errc::invalid_argument,
			          "this segment is not of perseas::kept: take another name" });
		if (header->object_size != sizeof(T))
			detail::raise(
				{ errc::size,
			          "a T of " + std::to_string(header->object_size) +
			                  " bytes was kept, and this one has " +
			                  std::to_string(sizeof(T)) +
			                  ": open it by a program of the same T and library" });
		in.transact([&](transaction &tx) {
			tx.writable_bytes(start(), sizeof(detail::arena));
			tx.writable_bytes(&header->of, sizeof(header->of));
			arena_ = ::new (start()) detail::arena;
			arena_->kept().of = in.session_.s;
		});
		object_ = std::launder(object_place());
	}

	segment<unsigned char> memory_;
	detail::arena *arena_ = nullptr;
	T *object_ = nullptr;
};

} // namespace perseas

#endif

#endif
