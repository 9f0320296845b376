/*
 * confirm.pml - confirmed reads ("Confirmed reads" in PROTOCOL.md): an owner that may have been replaced
 * asks mirrors whether its claim still stands. After core.pml.
 *
 * N mirrors, R = N-W+1, T = max(W, R), but N-1 at most. Owner 1 has the store open on all of them at the
 * start. Each other owner claims under its number as the epoch, opens, and has one transaction acknowledged.
 * Every owner may be confirmed at any time, as often as it likes. A mirror may lose its memory; then any open
 * owner makes it anew. Such a mirror, and one that is claimed after the open, may vote (JOIN) when T others
 * hold the owner's claim (I9).
 *
 * Property: if an owner is confirmed, no later owner had a transaction acknowledged before the call. So what
 * the owner reads from its memory is what a read at the time of the call gives.
 *
 * ASKED: a mirror is made anew only when T others hold the owner's claim, too, as the library does it.
 *
 * ACCEPT: an operator says that mirrors are gone, and an open needs no R of them, but W as always.
 *
 * A mirror answers a question at once: the time of an answer is all that matters. Left out: what mirrors
 * hold, changes of the roster, renewals, and the wait for the owner's own commits.
 */
#ifndef N
#define N 3
#endif
#ifndef W
#define W 2
#endif
#ifndef OWNERS
#define OWNERS 2
#endif
#ifndef LOSSES
#define LOSSES 1
#endif
#ifndef ASKED
#define ASKED 0
#endif
#ifndef ACCEPT
#define ACCEPT 0
#endif
#ifndef MISTAKE
#define MISTAKE 0
#endif
#ifndef COVER
#define COVER 0
#endif
#define R (N-W+1)
#define MAX (W>R -> W : R)
#define T (MAX>N-1 -> N-1 : MAX)
#define ALL ((1<<N)-1)
#define cover(n) assert(COVER!=n)

#if N==2
#define EACH(step) step(0) step(1)
#define those(is) (is(0)+2*is(1))
#else
#define EACH(step) step(0) step(1) step(2)
#define those(is) (is(0)+2*is(1)+4*is(2))
#endif
#define bits(v) (((v)&1)+(((v)>>1)&1)+(((v)>>2)&1))
#define in(v, x) (((v)>>(x))&1)
#define with(v, x) ((v)|(1<<(x)))
#define but(v, x) ((v)&(ALL-(1<<(x))))

typedef image {
	bool has, joining;
	byte prom       /* the promised epoch, which is its owner's number */
};
image m[N];
byte newest=1;          /* the last owner that had a transaction acknowledged */
byte losses;

#define mine(x) (m[x].has && m[x].prom==id)
#define owned those(mine)

#define can_claim(x) (m[x].has && m[x].prom<id)
/* What an earlier session over the same mirror proved is void. */
inline claim(x) {
	m[x].prom=id; votes=but(votes,x); answers=but(answers,x);
	if
	:: !open && !m[x].joining -> votes=with(votes,x)
	:: else
	fi;
	printf("owner %d claims %d\n", id, x)
}
#define can_open (!open && (votes&owned)==votes && bits(votes)>=W && (ACCEPT || bits(votes)>=R))

#define others_hold(x) (bits(but(owned,x))>=T)
#define can_make(x) (open && !m[x].has && (!ASKED || others_hold(x)))
inline make(x) {
	m[x].has=true; m[x].joining=true; m[x].prom=id;
	votes=but(votes,x); answers=but(answers,x);
	printf("owner %d makes %d anew\n", id, x)
}
#define can_join(x) (open && mine(x) && !in(votes,x) && others_hold(x))
inline join(x) {
	m[x].joining=false; votes=with(votes,x);
	if :: losses>0 -> cover(2) :: else fi;
	printf("%d votes for owner %d\n", x, id)
}

/* W take its transaction, one after the other. */
#define can_take(x) (open && !done && in(votes,x) && mine(x) && !in(took,x))
#define can_acknowledge (open && !done && bits(took)>=W)
inline acknowledge() {
	done=true; took=0;
	if :: newest<id -> newest=id :: else fi;
	printf("owner %d: a transaction is acknowledged\n", id)
}

/* A joining mirror is not asked. */
#define is_asked(x) (in(votes,x) || (MISTAKE==2 && m[x].joining))
#define can_answer(x) (open && is_asked(x) && mine(x) && !in(answers,x) && (calling || MISTAKE==1))
#define is_confirmed (calling && bits(answers)>=(MISTAKE==3 -> W : R))
inline call() {
	calling=true; before=newest;
	if :: MISTAKE!=1 -> answers=0 :: else fi;
	printf("owner %d asks\n", id)
}
inline confirm() {
	assert(before<=id);
	if :: id==1 && OWNERS>1 && m[0].prom>1 -> cover(1) :: else fi;
	if :: id>1 -> cover(3) :: else fi;
	calling=false; before=0; answers=0;
	printf("owner %d is confirmed\n", id)
}

#define CLAIM(x)  :: d_step { can_claim(x) -> claim(x) }
#define MAKE(x)   :: d_step { can_make(x) -> make(x) }
#define JOIN(x)   :: d_step { can_join(x) -> join(x) }
#define TAKE(x)   :: d_step { can_take(x) -> took=with(took,x) }
#define ANSWER(x) :: d_step { can_answer(x) -> answers=with(answers,x); \
	printf("%d answers owner %d\n", x, id) }

proctype owner(byte id) {
	byte votes;             /* mirrors that count for it */
	byte took;              /* its transaction */
	byte answers;           /* mirrors that said that its claim stands */
	byte before;            /* the newest owner at its call */
	bool open, calling, done;

	if
	:: d_step { id==1 -> open=true; votes=ALL; done=true }
	:: else
	fi;
	do
	EACH(CLAIM)
	EACH(MAKE)
	EACH(JOIN)
	EACH(TAKE)
	EACH(ANSWER)
	:: d_step { can_open -> open=true }
	:: d_step { can_acknowledge -> acknowledge() }
	:: d_step { open && !calling -> call() }
	:: d_step { is_confirmed -> confirm() }
	od
}
inline lose(x) {
	losses++;
	m[x].has=false; m[x].joining=false; m[x].prom=0;
	printf("mirror %d loses its memory\n", x)
}
#define LOSE(x) :: d_step { losses<LOSSES && m[x].has -> lose(x) }

proctype weather() {
	do
	EACH(LOSE)
	od
}

init {
	byte i;

	atomic {
		do
		:: i<N -> m[i].has=true; m[i].prom=1; i++
		:: else -> break
		od;
		i=1;
		do
		:: i<=OWNERS -> run owner(i); i++
		:: else -> break
		od;
		i=0;
		if :: LOSSES>0 -> run weather() :: else fi
	}
}
/*
 * quick holds -DOWNERS=2: three, W=2, and one loss
 * full holds -DOWNERS=3 -DLOSSES=0: .. three owners
 * full holds -DOWNERS=3: .. and one loss
 * quick holds -DW=3: W=3
 * full holds -DW=3 -DLOSSES=2: .. and two losses
 * quick holds -DW=1 -DLOSSES=0 -DACCEPT=1: W=1, and an operator's open
 * quick holds -DN=2 -DW=2: two, W=2
 * quick event -DCOVER=1: an owner is confirmed while another one claims
 * quick event -DCOVER=2: a mirror that lost its memory votes again
 * quick event -DCOVER=3: the next owner is confirmed
 * quick found -DLOSSES=0 -DMISTAKE=1: an answer from before the call counts
 *   in the code: sim confirmed-early
 * quick found -DMISTAKE=2: a joining mirror counts
 *   in the code: sim confirmed-joining
 * quick holds -DASKED=1 -DMISTAKE=2: .. and others were asked before it was made
 * full holds -DASKED=1 -DMISTAKE=2 -DLOSSES=2: .. and two losses
 * full holds -DASKED=1 -DMISTAKE=2 -DW=3 -DLOSSES=2: .. and W=3
 * quick found -DW=1 -DLOSSES=0 -DACCEPT=1 -DMISTAKE=3: W of the answers are enough
 *   in the code: unit test_confirm test_r_counts_and_not_w
 */
