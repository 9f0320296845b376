/*
 * p.hpp - members whose assignment declares itself, and the thread's current transaction, to which
 * they are declared. This is the only part of the binding that depends on the thread.
 * transaction.set and transaction.writable do the same with an explicit transaction. perseas.hpp
 * includes it.
 */
#ifndef PERSEAS_CPP_P_HPP
#define PERSEAS_CPP_P_HPP

#include "storable.hpp"
#include "transaction.hpp"

#include <type_traits>
#include <utility>

namespace perseas
{

#if PERSEAS_EXCEPTIONS

namespace detail
{
/* Only perseas::p reads it. */
inline thread_local transaction *current = nullptr;
} // namespace detail

/*
 * While a scope exists, assignments to perseas::p in this thread are declared to its transaction,
 * which must not be moved or destroyed. store::transact makes a scope. It must end in the thread
 * that made it: no co_await while it exists.
 */
class scope
{
    public:
	explicit scope(transaction &tx) noexcept : before_(std::exchange(detail::current, &tx)) {}
	~scope() { detail::current = before_; }
	scope(const scope &) = delete;
	scope &operator=(const scope &) = delete;

    private:
	transaction *before_;
};

namespace detail
{

inline transaction &current_transaction()
{
	if (!current)
		raise({ errc::invalid_argument,
		        "no transaction is current in this thread, to which an assignment to a "
		        "perseas::p could be declared: assign inside of store.transact, make a "
		        "perseas::scope, or use transaction.set" });
	return *current;
}

} // namespace detail

/*
 * A member of an object in mirrored memory whose assignment declares itself, to the thread's
 * current transaction (perseas::scope). It has the size of a T and reads like a T. It can be
 * assigned through a const object, as roots and segments return. A copy of an object is not
 * mirrored: assigning to its members fails (errc::range).
 *
 * A struct that contains a p cannot be assigned as a whole, because that would not be declared; so
 * it stays trivially copyable. To assign from a p that is not const, use get().
 */
template <class T>
class p
{
	static_assert(std::is_trivially_copyable_v<T> && std::is_standard_layout_v<T>,
	              "perseas: p<T> is for a T that is trivially copyable and of standard layout");

    public:
	p() = default;
	constexpr p(const T &value) noexcept : value_(value) {}
	p(const p &) = default;
	p &operator=(const p &) = delete;

	constexpr operator const T &() const noexcept { return value_; }
	constexpr const T &get() const noexcept { return value_; }
	/* Compiles only if T is a pointer. */
	constexpr const T &operator->() const noexcept
	{
		static_assert(std::is_pointer_v<T>, "perseas: -> is for a p of a pointer");
		return value_;
	}

	p &operator=(const T &value)
	{
		detail::current_transaction().set(value_, value);
		return *this;
	}
	const p &operator=(const T &value) const
	{
		detail::current_transaction().set(value_, value);
		return *this;
	}
	template <class U>
	const p &operator+=(const U &other) const
	{
		return *this = static_cast<T>(value_ + other);
	}
	template <class U>
	const p &operator-=(const U &other) const
	{
		return *this = static_cast<T>(value_ - other);
	}
	template <class U>
	const p &operator*=(const U &other) const
	{
		return *this = static_cast<T>(value_ * other);
	}
	template <class U>
	const p &operator/=(const U &other) const
	{
		return *this = static_cast<T>(value_ / other);
	}
	template <class U>
	const p &operator%=(const U &other) const
	{
		return *this = static_cast<T>(value_ % other);
	}
	template <class U>
	const p &operator|=(const U &other) const
	{
		return *this = static_cast<T>(value_ | other);
	}
	template <class U>
	const p &operator&=(const U &other) const
	{
		return *this = static_cast<T>(value_ & other);
	}
	template <class U>
	const p &operator^=(const U &other) const
	{
		return *this = static_cast<T>(value_ ^ other);
	}
	const p &operator++() const { return *this += 1; }
	const p &operator--() const { return *this -= 1; }
	T operator++(int) const
	{
		const T before = value_;

		*this += 1;
		return before;
	}
	T operator--(int) const
	{
		const T before = value_;

		*this -= 1;
		return before;
	}

    private:
	T value_;
};

#endif

} // namespace perseas

#endif
