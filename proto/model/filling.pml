/*
 * filling.pml - a store that a command fills, and what others do with it before and after ("Filling a
 * store" of PROTOCOL.md): the filler, which may be put to sleep anywhere and wake up later, an owner that
 * opens the store, and another filler, which removes what was not filled and makes its own store.
 *
 * A mirror's image: by (0: none, else whose making), prom (the promised epoch), seq (0: empty, 1: filled,
 * 2: the owner's transaction), adopted (the slot is the owner's), and marked, which only the first mistake
 * ever changes. The filler claims max(W, R), fills them one by one, and has filled the store once W hold
 * its claim and seq 1; it may claim anew once, as a renewal does, unless it meets the owner's slot. An owner goes by the newest state of R that it claimed. The other filler
 * does what the three steps of "Removing" say, then fills its own store. A step at one mirror is atomic.
 * A process that takes no more steps has stopped. A mirror may lose its memory (LOSS).
 *
 * Properties: what was filled, or shown by an open, is on W images of that store, less the copies that
 * were lost, and is not said to be removed; no open shows the empty store; no open of a store that was filled calls it unfinished,
 * unless W copies were lost; and the first filler writes to its own store only.
 *
 * Left out: the making itself (create.pml), late answers (core.pml), images that are made anew, mending,
 * and changes of the roster. The filler's roster has all N mirrors.
 *
 * quick holds -DN=2: two mirrors, W = 2
 * quick holds -DN=2 -DW=1: two mirrors, W = 1
 * quick holds -DOWNERS=0 -DLOSS=1: three mirrors, one that loses its memory; nobody opens the store
 * full holds -DN=3: three mirrors, W = 2
 * full holds -DN=2 -DLOSS=1: two mirrors, one that loses its memory
 * quick event -DN=2 -DW=1 -DCOVER=1: the store is opened while a late mirror has its mark
 * full event -DN=2 -DCOVER=2: it was filled before it could be removed
 * full event -DN=2 -DCOVER=3: a filler that wakes up finds another store
 * full event -DN=2 -DCOVER=4: a mirror refuses to remove an image, since the filler claimed it again
 * quick found -DN=2 -DMISTAKE=1: the mark is cleared in a second step, and counts until then
 *   in the code: sim marked
 * quick found -DN=2 -DW=1 -DMISTAKE=2: a late mirror's mark counts
 *   in the code: sim marked
 * quick found -DOWNERS=0 -DLOSS=1 -DMISTAKE=3: removed without every member's answer
 *   in the code: unit test_unfilled nothing_is_removed_unless_every_mirror_answers
 * full found -DN=2 -DMISTAKE=4: removed without claims
 *   in the code: unit test_unfilled what_was_filled_is_never_removed
 * quick found -DN=2 -DMISTAKE=5: removed over connections that lost their claims
 *   in the code: unit test_unfilled a_remover_that_wakes_up_removes_nothing_that_was_filled
 * full found -DN=2 -DMISTAKE=6: a filler that wakes up fills any store of the name
 *   in the code: unit test_unfilled a_filler_that_wakes_up_leaves_the_store_of_another_alone
 */
#ifndef N
#define N 3
#endif
#ifndef W
#define W 2
#endif
#ifndef LOSS
#define LOSS 0
#endif
#ifndef OWNERS
#define OWNERS 1        /* besides the fillers: at most one */
#endif
#ifndef MISTAKE
#define MISTAKE 0
#endif
#ifndef COVER
#define COVER 0
#endif
#define R (N-W+1)
#define MOST (W>R -> W : R)
#define cover(n) assert(COVER!=n)

#define bits(v) (((v)&1)+(((v)>>1)&1)+(((v)>>2)&1))
#define in(v, x) (((v)>>(x))&1)
#define with(v, x) ((v)|(1<<(x)))

typedef image { byte by, prom, seq; bool adopted, marked };
image m[3];             /* N of them */
byte acked, lost[3];    /* the last transaction of store 1; copies of each that were lost */
byte top, losses=LOSS;  /* the highest epoch that anybody claimed with */

#define copy(x, k) (m[x].by==1 && m[x].seq>=k)
#define copies(k) assert(acked<k || copy(0, k)+copy(1, k)+copy(2, k)+lost[k]>=W)
#define check() copies(1); copies(2)

/* Chooses a mirror that is not in the set. */
#define CHOOSE(set) if :: !in(set, 0) -> x=0 :: !in(set, 1) -> x=1 :: N==3 && !in(set, 2) -> x=2 fi

proctype filler() {
	byte x, e, cl, up, k;
	bool again;

claims:
	atomic { top++; e=top; cl=0; up=0 };
	k=0;
	do
	:: k<N ->
		atomic { CHOOSE(k==0 -> 0 : up);
			up=with(up, x); k++;
			if
			:: m[x].by==1 && m[x].adopted -> goto over
			:: (m[x].by==1 || (MISTAKE==6 && m[x].by!=0)) && m[x].prom<e && !m[x].adopted ->
				m[x].prom=e; cl=with(cl, x)
			:: m[x].by==3 -> cover(3)
			:: else
			fi }
	:: bits(cl)>=MOST -> break
	:: k==N && bits(cl)<MOST -> goto over
	od;
	up=0;
	do
	:: bits(up)<W && bits(cl & ~up)>0 ->
		atomic { if
			:: in(cl, 0) && !in(up, 0) -> x=0
			:: in(cl, 1) && !in(up, 1) -> x=1
			:: in(cl, 2) && !in(up, 2) -> x=2
			fi;
			if
			:: m[x].by!=0 && m[x].prom==e ->
				assert(m[x].by==1);
				m[x].seq=1; up=with(up, x)
			:: else -> cl=cl & ~(1<<x)
			fi }
	:: bits(up)>=W -> break
	:: bits(up)<W && !again -> again=true; goto claims
	:: bits(up)<W && bits(cl & ~up)==0 -> goto over
	od;
	atomic { if :: acked==0 -> acked=1 :: else fi; check() };
#if MISTAKE==1
	m[0].marked=false; m[1].marked=false; m[2].marked=false;
#endif
over:	skip
}

/* The state of R that stand; unfinished: nobody may open it. */
#define is_void(x) (in(cl, x) && (MISTAKE==1 -> m[x].marked : m[x].seq==0))
#define stands(x) (!in(cl, x) || (m[x].by==1 && m[x].prom==e))
inline judge() {
	seq=0;
	if :: in(cl, 0) && m[0].seq>seq -> seq=m[0].seq :: else fi;
	if :: in(cl, 1) && m[1].seq>seq -> seq=m[1].seq :: else fi;
	if :: in(cl, 2) && m[2].seq>seq -> seq=m[2].seq :: else fi;
	unfinished=(MISTAKE==1 || MISTAKE==2 -> is_void(0) || is_void(1) || is_void(2) : seq==0)
}

proctype owner() {
	byte x, e, cl, up, asked, seq;
	bool unfinished;

	atomic { top++; e=top };
	do
	:: bits(cl)<R && asked!=(1<<N)-1 ->
		atomic { CHOOSE(asked); asked=with(asked, x);
			if
			:: m[x].by==1 && m[x].prom<e -> m[x].prom=e; cl=with(cl, x)
			:: else
			fi }
	:: bits(cl)>=R -> break
	:: asked==(1<<N)-1 && bits(cl)<R -> goto over
	od;
	atomic {
		if :: !(stands(0) && stands(1) && stands(2)) -> goto over :: else fi;
		judge();
		assert(!unfinished || acked==0 || lost[1]>=W);
		if :: unfinished -> goto over :: else fi;
		assert(seq>0) };
	/* Those of R adopt, then others that it claims late and copies to. */
	asked=0;
	do
	:: bits(up)<W && asked!=(1<<N)-1 ->
		atomic { CHOOSE(asked); asked=with(asked, x);
			if
			:: m[x].by==1 && (in(cl, x) -> m[x].prom==e : m[x].prom<e) ->
				m[x].prom=e; m[x].seq=seq; m[x].adopted=true; up=with(up, x); cl=with(cl, x)
			:: else
			fi }
	:: bits(up)>=W -> break
	:: asked==(1<<N)-1 && bits(up)<W -> goto over
	od;
	atomic {
		if :: !(stands(0) && stands(1) && stands(2)) -> goto over :: else fi;
		if :: acked<seq -> acked=seq :: else fi;
		if :: m[0].seq==0 || m[1].seq==0 -> cover(1) :: else fi;
		check() };
	asked=up; up=0;
	do
	:: asked!=0 && bits(up)<W ->
		atomic { x=((asked & 1) -> 0 : ((asked & 2) -> 1 : 2)); asked=asked & ~(1<<x);
			if
			:: m[x].by==1 && m[x].prom==e -> m[x].seq=2; up=with(up, x)
			:: else -> goto over
			fi }
	:: bits(up)>=W -> break
	:: asked==0 && bits(up)<W -> goto over
	od;
	atomic { acked=2; check() };
over:	skip
}

/* Status, Claim, Drop. there: members that have an image. */
#define looks_filled(x) (m[x].seq>0 && (MISTAKE!=1 || !m[x].marked))
proctype remover() {
	byte x, e, k, there, unheard;

	k=0;
	do
	:: k<N ->
		atomic { x=k; k++;
			if
			:: m[x].by==1 && looks_filled(x) && MISTAKE!=2 -> cover(2); goto over
			:: m[x].by==1 && looks_filled(x) && MISTAKE==2 -> there=with(there, x)
			:: m[x].by==1 && !looks_filled(x) -> there=with(there, x)
			:: m[x].by!=1
			:: MISTAKE==3 && unheard+R<N -> unheard++
			fi }
	:: else -> break
	od;
	if :: there==0 -> goto over :: else fi;
	/* The mark of one member is enough for this mistake. */
	if :: MISTAKE==2 && !(in(there, 0) && m[0].seq==0) && !(in(there, 1) && m[1].seq==0) -> goto over
	:: else fi;
	atomic { top++; e=top };
	k=0;
	do
	:: k<N && MISTAKE!=4 ->
		atomic { x=k; k++;
			if
			:: !in(there, x)
			:: in(there, x) && m[x].by==1 && m[x].prom<e &&
				(MISTAKE==2 || !looks_filled(x)) -> m[x].prom=e
			:: else -> goto over
			fi }
	:: else -> break
	od;
	k=0;
	do
	:: k<N ->
		atomic { x=k; k++;
			if
			:: !in(there, x)
			:: in(there, x) && m[x].by==1 &&
				(m[x].prom==e || MISTAKE==4 || MISTAKE==5) ->
				m[x].by=0; m[x].seq=0; m[x].prom=0; check()
			:: in(there, x) && m[x].by==1 && m[x].prom!=e &&
				MISTAKE!=4 && MISTAKE!=5 -> cover(4); goto over
			:: in(there, x) && m[x].by!=1 -> goto over
			fi }
	:: else -> break
	od;
	/* The store is said to be removed. */
	assert(acked==0 || lost[1]>=W);
	/* Its own store, where nothing else is. */
	atomic {
		if :: m[0].by!=0 || m[1].by!=0 || m[2].by!=0 -> goto over :: else fi;
		m[0].by=3; m[1].by=3; m[2].by=(N==3 -> 3 : 0) };
over:	skip
}

#define LOSE(x) m[x].by==1 && losses>0 -> atomic { losses--; \
	lost[1]=lost[1]+(m[x].seq>=1); lost[2]=lost[2]+(m[x].seq>=2); \
	m[x].by=0; m[x].seq=0; m[x].prom=0 }
proctype loss() { if :: LOSE(0) :: LOSE(1) :: LOSE(2) fi }

init {
	atomic {
		m[0].by=1; m[1].by=1; m[2].by=(N==3 -> 1 : 0);
		m[0].marked=true; m[1].marked=true; m[2].marked=true;
		run filler(); run remover();
		if :: OWNERS>0 -> run owner() :: else fi;
		if :: LOSS>0 -> run loss() :: else fi
	}
}
