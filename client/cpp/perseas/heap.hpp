/*
 * heap.hpp - objects that transactions create and destroy, and a std::pmr resource over such
 * memory. perseas.hpp includes it. perseas_heap.h says what a heap is, and lists every error.
 *
 * An object's type is a number, because the next owner may be another program. A class defines its
 * number by a member `static constexpr std::uint64_t perseas_type`, or by perseas::type_number.
 */
#ifndef PERSEAS_CPP_HEAP_HPP
#define PERSEAS_CPP_HEAP_HPP

#include "storable.hpp"
#include "store.hpp"

#include <cstddef>
#include <cstdint>
#include <memory_resource>
#include <new>
#include <string>
#include <type_traits>
#include <utility>

#if PERSEAS_EXCEPTIONS
#include <exception>
#endif

namespace perseas
{

/* Options of a heap (perseas_heap_options). */
struct heap_options {
	bool create = true; /* create the heap if the store has none of that name */
	/* Accept segments at other addresses than recorded (PERSEAS_HEAP_MOVED). */
	bool moved = false;
	std::uint64_t first = 0; /* bytes for objects at first; 0 for 16 MiB */
	std::uint64_t most = 0;  /* bytes that the heap may grow to; 0 for no limit */
};

/* A heap of a store. Copies refer to the same heap, which ends with its store. Threads may share
 * it, each with a transaction of its own. */
class heap
{
    public:
	heap() noexcept = default;

	static result<heap> try_open(store &in, const std::string &name,
	                             const heap_options &how = {})
	{
		perseas_heap_options options = PERSEAS_HEAP_OPTIONS_INIT;
		perseas_heap_t *opened = nullptr;

		options.flags = (how.create ? std::uint32_t{ PERSEAS_HEAP_CREATE } : 0) |
		                (how.moved ? std::uint32_t{ PERSEAS_HEAP_MOVED } : 0);
		options.first = how.first;
		options.most = how.most;
		auto done = in.call([&](perseas_t *p) {
			return perseas_heap_open(p, name.c_str(), &options, &opened);
		});

		if (!done)
			return done.error();
		return heap(in.session_, opened);
	}

	/* Returns the heap for the C interface; nullptr if its store is not open. */
	perseas_heap_t *c() const noexcept { return session_.alive() ? heap_ : nullptr; }

	/* Creates a T from the arguments. Declares its bytes, so that this transaction may change
	 * them. */
	template <class T, class... Args>
	result<T *> try_make(transaction &tx, Args &&...args)
	{
		expect_object<T>();
		auto memory = try_allocate(tx, sizeof(T), type_number<T>::value);

		if (!memory)
			return memory.error();
		return construct_in<T>(tx, *memory, [&](void *at) {
			if constexpr (std::is_constructible_v<T, Args...>)
				return ::new (at) T(std::forward<Args>(args)...);
			else
				return ::new (at) T{ std::forward<Args>(args)... };
		});
	}
	/* Creates an array of `count` elements T{}. To free it, destroy its first element. */
	template <class T>
	result<span<T>> try_make_array(transaction &tx, std::size_t count)
	{
		expect_object<T>();
		if (count > SIZE_MAX / sizeof(T))
			return failure(errc::too_big,
			               "an array of more bytes than there are addresses");
		auto memory = try_allocate(tx, count * sizeof(T), type_number<T>::value);

		if (!memory)
			return memory.error();
		auto made = construct_in<T>(tx, *memory, [&](void *at) {
			T *first = static_cast<T *>(at);

			for (std::size_t i = 0; i < count; i++)
				::new (static_cast<void *>(first + i)) T{};
			return first;
		});

		return made ? result<span<T>>(span<T>(*made, count, tx.session_))
		            : result<span<T>>(made.error());
	}
	/* Resizes an array to `count` elements, in place or by copying it elsewhere. New elements
	 * are T{}. */
	template <class T>
	result<span<T>> try_resize_array(transaction &tx, span<const T> array, std::size_t count)
	{
		expect_object<T>();
		if (count > SIZE_MAX / sizeof(T))
			return failure(errc::too_big,
			               "an array of more bytes than there are addresses");
		auto memory = try_reallocate(tx, const_cast<T *>(array.address()),
		                             count * sizeof(T), type_number<T>::value);

		if (!memory)
			return memory.error();
		T *first = static_cast<T *>(*memory);

		for (std::size_t i = array.size(); i < count; i++)
			::new (static_cast<void *>(first + i)) T{};
		return span<T>(first, count, tx.session_);
	}
	/* Frees an object, or an array by its first element; nullptr does nothing. Calls no
	 * destructor, because the destructor of a storable T does nothing. */
	template <class T>
	result<void> try_destroy(transaction &tx, const T *object)
	{
		expect_object<T>();
		return try_free(tx, const_cast<T *>(object));
	}

	/* Returns the object that a root leads to; nullptr if the root does not exist. */
	template <class T>
	result<const T *> try_root(const std::string &name) const
	{
		void *at = nullptr;

		if (!session_.alive())
			return session_.refusal();
		auto done = session_.done(
			perseas_root(heap_, name.c_str(), type_number<T>::value, &at));

		return done ? result<const T *>(static_cast<const T *>(at))
		            : result<const T *>(done.error());
	}
	template <class T>
	result<void> try_set_root(transaction &tx, const std::string &name, const T *object)
	{
		expect_object<T>();
		return call_with(tx, [&](perseas_tx_t *c) {
			return perseas_root_set(c, heap_, name.c_str(), type_number<T>::value,
			                        const_cast<T *>(object));
		});
	}

	/* Allocates bytes of a type without a C++ class, and declares them. */
	result<void *> try_allocate(transaction &tx, std::size_t size, std::uint64_t type)
	{
		return allocate_by(tx, size, type, perseas_alloc);
	}
	/* Allocates bytes as try_allocate does, and sets all of them to zero. */
	result<void *> try_allocate_zeroed(transaction &tx, std::size_t size, std::uint64_t type)
	{
		return allocate_by(tx, size, type, perseas_zalloc);
	}
	/* Allocates bytes without declaring them: for objects that are larger than a transaction
	 * may be. */
	result<void *> try_reserve(transaction &tx, std::size_t size, std::uint64_t type)
	{
		return allocate_by(tx, size, type, perseas_reserve);
	}
	/* Resizes an object to `size` bytes, in place or by copying it elsewhere, and declares
	 * it. */
	result<void *> try_reallocate(transaction &tx, void *at, std::size_t size,
	                              std::uint64_t type)
	{
		void *to = nullptr;
		auto done = call_with(tx, [&](perseas_tx_t *c) {
			return perseas_realloc(c, heap_, at, size, type, &to);
		});

		return done ? result<void *>(to) : result<void *>(done.error());
	}
	result<void> try_free(transaction &tx, void *at)
	{
		return call_with(tx, [&](perseas_tx_t *c) { return perseas_free(c, heap_, at); });
	}

	/* Returns an object's size and type. */
	result<object_info> try_object(const void *at) const
	{
		object_info info{};

		if (!session_.alive())
			return session_.refusal();
		auto done = session_.done(perseas_object(heap_, at, &info));

		return done ? result<object_info>(info) : result<object_info>(done.error());
	}
	result<heap_status> try_stat() const
	{
		heap_status stat{};

		if (!session_.alive())
			return session_.refusal();
		auto done = session_.done(perseas_heap_stat(heap_, &stat));

		return done ? result<heap_status>(stat) : result<heap_status>(done.error());
	}
	result<void> try_check() const
	{
		return session_.alive() ? session_.done(perseas_heap_check(heap_))
		                        : result<void>(session_.refusal());
	}
	/* Gives empty segments back to the mirrors, but keeps `keep` bytes for objects. Returns the
	 * bytes for objects that were given back. */
	result<std::uint64_t> try_trim(std::uint64_t keep = 0)
	{
		std::uint64_t given = 0;

		if (!session_.alive())
			return session_.refusal();
		auto done = session_.done(perseas_heap_trim(heap_, keep, &given));

		return done ? result<std::uint64_t>(given) : result<std::uint64_t>(done.error());
	}

#if PERSEAS_EXCEPTIONS
	heap(store &in, const std::string &name, const heap_options &how = {})
	    : heap(try_open(in, name, how).value())
	{
	}
	template <class T, class... Args>
	T *make(transaction &tx, Args &&...args)
	{
		return try_make<T>(tx, std::forward<Args>(args)...).value();
	}
	template <class T>
	span<T> make_array(transaction &tx, std::size_t count)
	{
		return try_make_array<T>(tx, count).value();
	}
	template <class T>
	span<T> resize_array(transaction &tx, span<const T> array, std::size_t count)
	{
		return try_resize_array<T>(tx, array, count).value();
	}
	template <class T>
	void destroy(transaction &tx, const T *object)
	{
		try_destroy(tx, object).value();
	}
	template <class T>
	const T *root(const std::string &name) const
	{
		return try_root<T>(name).value();
	}
	template <class T>
	void set_root(transaction &tx, const std::string &name, const T *object)
	{
		try_set_root(tx, name, object).value();
	}
	object_info object(const void *at) const
	{
		return try_object(at).value();
	}
	heap_status stat() const
	{
		return try_stat().value();
	}
	void check() const
	{
		try_check().value();
	}
	std::uint64_t trim(std::uint64_t keep = 0)
	{
		return try_trim(keep).value();
	}

	/* Calls fn(const T &) for each committed object of the type. If fn returns a bool, false
	 * ends the walk. An exception ends it and propagates. */
	template <class T, class F>
	void walk(F &&fn) const
	{
		walker<F> call_with{ fn, nullptr };

		if (!session_.alive())
			detail::raise(session_.refusal());
		const int rc = perseas_heap_walk(heap_, type_number<T>::value,
		                                 walker<F>::template step<T>, &call_with);

		if (call_with.thrown)
			std::rethrow_exception(call_with.thrown);
		if (rc < 0)
			session_.done(rc).value();
	}
#endif

    private:
	heap(detail::session_ref session, perseas_heap_t *opened) noexcept
	    : session_(session), heap_(opened)
	{
	}

	template <class T>
	static constexpr void expect_object()
	{
		detail::expect_storable<T>();
		static_assert(alignof(T) <= 16,
		              "perseas: objects of a heap are aligned to 16 bytes");
		static_assert(type_number<T>::value != PERSEAS_ANY_TYPE,
		              "perseas: no object can be of type PERSEAS_ANY_TYPE");
	}

	using allocator = int(perseas_tx_t *, perseas_heap_t *, std::size_t, std::uint64_t,
	                      void **);

	result<void *> allocate_by(transaction &tx, std::size_t size, std::uint64_t type,
	                           allocator *by)
	{
		void *at = nullptr;
		auto done = call_with(tx, [&](perseas_tx_t *c) {
			return by(c, heap_, size, type, &at);
		});

		return done ? result<void *>(at) : result<void *>(done.error());
	}

	/* Calls function(transaction). Checks first that transaction and heap are of the same open
	 * store, which the library cannot check. */
	template <class F>
	result<void> call_with(transaction &tx, F &&function)
	{
		if (!session_.alive())
			return session_.refusal();
		if (tx.tx_ && tx.session_.alive() && tx.session_.s != session_.s)
			return failure(
				errc::invalid_argument,
				"the transaction is of another store than the heap: begin one in "
				"the heap's store");
		return tx.to_result(tx.call([&] { return function(tx.tx_); }));
	}

	/* Constructs objects in allocated memory, and frees it if a constructor throws. */
	template <class T, class F>
	result<T *> construct_in(transaction &tx, void *memory, F &&construct)
	{
#if PERSEAS_EXCEPTIONS
		try {
			return construct(memory);
		} catch (...) {
			(void)try_free(tx, memory);
			throw;
		}
#else
		(void)tx;
		return construct(memory);
#endif
	}

#if PERSEAS_EXCEPTIONS
	/* Carries an exception of fn past the library's C code, through which no exception may
	 * propagate. */
	template <class F>
	struct walker {
		F &fn;
		std::exception_ptr thrown;

		template <class T>
		static int step(void *arg, const struct ::perseas_object *object) noexcept
		{
			walker &self = *static_cast<walker *>(arg);
			const T &each = *static_cast<const T *>(object->addr);

			try {
				if constexpr (std::is_convertible_v<decltype(self.fn(each)), bool>)
					return self.fn(each) ? 0 : 1;
				else
					return self.fn(each), 0;
			} catch (...) {
				self.thrown = std::current_exception();
				return 1;
			}
		}
	};
#endif

	detail::session_ref session_;
	perseas_heap_t *heap_ = nullptr;
};

#if PERSEAS_EXCEPTIONS

/*
 * A std::pmr::memory_resource over a heap, for as long as a transaction is open. Its memory is
 * declared and may be written in that transaction. Blocks are objects of the given type. An
 * alignment above 16 bytes fails with std::bad_alloc, everything else with perseas::error.
 *
 * A container that uses it keeps a pointer to it. So the container must end first, and must not be
 * stored: perseas::kept is for that. A block that is given back after the transaction has committed
 * stays allocated in the heap.
 */
class heap_resource final : public std::pmr::memory_resource
{
    public:
	heap_resource(transaction &tx, heap &of, std::uint64_t type) noexcept
	    : tx_(tx), heap_(of), type_(type)
	{
	}

    private:
	void *do_allocate(std::size_t bytes, std::size_t alignment) override
	{
		if (alignment > 16)
			throw std::bad_alloc();
		return heap_.try_allocate(tx_, bytes, type_).value();
	}
	void do_deallocate(void *at, std::size_t, std::size_t) override
	{
		(void)heap_.try_free(tx_, at);
	}
	bool do_is_equal(const std::pmr::memory_resource &other) const noexcept override
	{
		return this == &other;
	}

	transaction &tx_;
	heap &heap_;
	std::uint64_t type_;
};

#endif

} // namespace perseas

#endif
