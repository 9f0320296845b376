/*
 * refused.cpp - what must not compile, and what the compiler is to say then. With REFUSED each line
 * that ends in "says:" is an error with these words; without it the file compiles.
 * tests/cpp/compile.py sees to both.
 */
#include <perseas.hpp>

#include <string>
#include <vector>

struct good {
	static constexpr std::uint64_t perseas_type = 1;
	long value;
	good *next;
	perseas::p<long> counted;
};

struct with_virtual {
	virtual void function();
	long value;
};

class mixed
{
    public:
	long open;

	long closed() const { return closed_; }

    private:
	long closed_ = 0;
};

struct unnumbered {
	long value;
};

struct alignas(64) aligned {
	static constexpr std::uint64_t perseas_type = 2;
	long value;
};

struct reserved {
	static constexpr std::uint64_t perseas_type = PERSEAS_ANY_TYPE;
	long value;
};

void use(perseas::store &s, perseas::transaction &tx, perseas::heap &h, perseas::root<good> &r,
         perseas::segment<char[8]> &names)
{
	(void)s.map<good>("good");
	(void)h.make<good>(tx);
	tx.set(r->value, 5);
	r->counted = 5;
	(void)names;
}

#if REFUSED
void refused(perseas::store &s, perseas::transaction &tx, perseas::heap &h, perseas::root<good> &r,
             perseas::segment<char[8]> &names)
{
	using vector = std::vector<int>;
	good whole = *r;

	(void)s.map<std::string>("text");              /* says: mirrors hold its bytes */
	(void)s.make_root<std::vector<int>>("vector"); /* says: mirrors hold its bytes */
	(void)h.make<with_virtual>(tx);                /* says: mirrors hold its bytes */
	(void)s.map<mixed>("mixed");                   /* says: standard layout */
	(void)h.make<unnumbered>(tx); /* says: static constexpr std::uint64_t perseas_type */
	(void)h.make<aligned>(tx);    /* says: aligned to 16 bytes */
	(void)h.make<reserved>(tx);   /* says: PERSEAS_ANY_TYPE */
	(void)perseas::kept<vector>(s, "v", 4096); /* says: made of a std::pmr::memory_resource */
	(void)perseas::kept<with_virtual>(s, "virtual", 4096); /* says: no virtual functions */
	tx.set(names[0], "name");                              /* says: stores one object */
	r->value = 5;                                          /* says: read-only|const value */
	perseas::p<std::string> text;   /* says: p<T> is for a T that is trivially copyable */
	whole = *r;                     /* says: deleted */
	perseas::transaction copy = tx; /* says: deleted */
	s.try_flush();                  /* says: nodiscard|unused-result */
	(void)r->counted.operator->();  /* says: -> is for a p of a pointer */
	const auto there = [&](perseas::transaction &) -> const good & { return *r; };

	(void)s.transact_async(there); /* says: return a value, no reference */
}
#endif

int main() {}
