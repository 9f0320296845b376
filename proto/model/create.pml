/*
 * create.pml - creators of a store of one name, on mirrors that hold at most one making of it.
 *
 * A mirror's image: by (0: none, else whose making), st: 1 creating, 2 consistent. Create replaces
 * nothing; the mirrors are asked one after the other, in the roster's order. When all have granted
 * Create, Settle goes to the roster's first member: its yes decides; then to the next, up to the first
 * that does not say yes. The create has succeeded once W said yes. Where the first one refuses or does
 * not answer, the making is withdrawn: every member of its roster is looked at; where none has it
 * consistent, it is abandoned at one after the other, in the roster's order, up to the first that has it
 * consistent or does not answer. Who finds another making that is creating withdraws it so before it
 * makes its own. One that was decided is settled at the others, too: first again at the one that had it,
 * then in the roster's order, up to the first that does not say yes.
 *
 * A creator may stop for ever anywhere (STOP). Of its requests LATE get no answer, and are carried out
 * later, at any time, or never: it goes on without knowing. A mirror may lose its memory (LOSS). Both
 * name the same mirrors, 0 .. N-1; ORDER=1: the second one's roster is in the other order.
 * RULE 0 is the code as it was: Create replaces what is creating; Settle on all; one that says yes is
 * enough; Abandon when a Create was refused. RULE 1: as 0, but all must settle; else Abandon on all.
 *
 * Properties: at most one create succeeds; where a mirror settles an image, all N have that making, or
 * lost it; when both are over, none stopped, and all was answered, no image of one that failed is left;
 * and once a last creator has been there that does not stop, when nothing is under way any more, there
 * is its own store, or one that was decided, on all that have not lost it; and not its own where
 * another one had succeeded.
 *
 * Left out: that an owner opens the store meanwhile (its completion is that of a creator that finds it
 * decided), and rosters of other mirrors.
 *
 * quick holds -DSTOP=1: two creators that may stop, two mirrors
 * quick holds -DN=3 -DSTOP=1: three mirrors
 * quick holds -DN=3 -DSTOP=1 -DORDER=1: three mirrors, named in another order
 * full holds -DLATE=2 -DSTOP=1: two requests that come late
 * quick holds -DLOSS=1 -DLATE=1: one of two mirrors loses its memory
 * full holds -DN=3 -DLATE=2 -DORDER=1: three mirrors, two requests that come late
 * full holds -DN=3 -DLATE=1 -DLOSS=1 -DSTOP=1: three mirrors, one that loses its memory
 * quick event -DN=3 -DLATE=1 -DLOSS=1 -DCOVER=1: a making is withdrawn after its first mirror lost it
 * quick event -DN=3 -DLATE=1 -DCOVER=2: a creator finds its own making decided, after no answer
 * quick found -DRULE=0 -DBOTH: Create replaces, and one Settle is enough: both succeed
 *   in the code: sim replaced
 * quick holds -DRULE=1 -DBOTH: all must settle: at most one succeeds
 * quick found -DRULE=1: and what is consistent stays behind
 *   in the code: sim replaced
 * quick found -DMISTAKE=1: withdrawn elsewhere than at the first member first
 *   in the code: sim not-first
 * quick found -DMISTAKE=2: settled in another order
 *   in the code: sim undecided
 * quick found -DLATE=1 -DMISTAKE=3: abandoned elsewhere after a Settle without an answer
 *   in the code: sim unanswered
 * quick found -DN=3 -DLOSS=1 -DSTOP=1 -DMISTAKE=4: a create succeeds that fewer than W settled
 *   in the code: unit test_create a_create_that_fewer_than_w_know_of_fails
 * quick found -DN=3 -DLOSS=1 -DLATE=1 -DMISTAKE=5: settled after one that gave no answer
 *   in the code: unit test_create what_gives_no_answer_ends_the_settling
 */
#ifndef N
#define N 2
#endif
#ifndef W
#define W 2
#endif
#ifndef RULE
#define RULE 2
#endif
#ifndef STOP
#define STOP 0
#endif
#ifndef LATE
#define LATE 0
#endif
#ifndef LOSS
#define LOSS 0
#endif
#ifndef ORDER
#define ORDER 0
#endif
#ifndef MISTAKE
#define MISTAKE 0
#endif
#ifndef COVER
#define COVER 0
#endif
#define cover(n) assert(COVER!=n)
typedef image { byte by, st, lost };   /* lost: a bit for each making that was lost here */
image m[N];
byte won[4];    /* 1: succeeded, 2: failed, 3: stopped, or does not know */
byte late=LATE, losses=LOSS;
bool over3;
/* What is under way without anybody who waits: a bit for each mirror, for each making. */
byte to_create[4], to_settle[4], to_abandon[4];
#define place(w,i) ((ORDER && (w)==2) -> N-1-(i) : (i))
#define bit(x) (1<<(x))
#define has(w,x) (m[x].by==w || (m[x].lost & bit(w)))
#define complete(w) (has(w,0) && has(w,N-1) && (N<3 || has(w,1)))
#define none(w) (m[0].by!=w && m[N-1].by!=w && (N<3 || m[1].by!=w))

/* One request at one mirror. ok: it was granted; told: its answer came. */
inline do_create(w, x) {
	if
	:: RULE<2 && m[x].st<2 -> m[x].by=w; m[x].st=1; ok=true
	:: RULE==2 && m[x].st==0 -> m[x].by=w; m[x].st=1; ok=true
	:: else -> ok=false
	fi
}
inline do_settle(w, x) {
	if
	:: m[x].by==w && m[x].st>0 -> m[x].st=2; ok=true; assert(RULE<2 || complete(w))
	:: else -> ok=false
	fi
}
inline do_abandon(w, x) {
	if
	:: m[x].by==w && m[x].st==1 -> m[x].st=0; m[x].by=0
	:: else
	fi;
	ok=!(m[x].by==w && m[x].st==2)
}
inline create_at(w, x) {
	atomic { if
	:: do_create(w, x); told=true
	:: late>0 && id<3 -> late--; to_create[w]=to_create[w] | bit(x); ok=false; told=false
	fi }
}
inline settle_at(w, x) {
	atomic { if
	:: do_settle(w, x); told=true
	:: late>0 && id<3 -> late--; to_settle[w]=to_settle[w] | bit(x); ok=false; told=false
	fi }
}
inline abandon_at(w, x) {
	atomic { if
	:: do_abandon(w, x); told=true
	:: late>0 && id<3 -> late--; to_abandon[w]=to_abandon[w] | bit(x); ok=false; told=false
	fi }
}
#define STEP if :: STOP && id<3 -> won[id]=3; goto over :: skip fi

/* decided: it was too late. told: all that had to answer did. */
inline withdraw(w) {
	decided=false; k=0; told=true;
	do
	:: k<N && !decided -> STEP; d=k; atomic { x=place(w,k); decided=(m[x].by==w && m[x].st==2) }; k++
	:: else -> break
	od;
	k=((MISTAKE==1 || (MISTAKE==3 && w==id)) -> 1 : 0);
	do
	:: k<N && !decided && told -> STEP; d=k; abandon_at(w, place(w,k)); decided=told && !ok; k++
	:: else -> break
	od;
	if
	:: !decided && told && (m[place(w,0)].lost & bit(w)) -> cover(1)
	:: else
	fi;
	if
	:: decided -> complete_all(w)
	:: else
	fi
}
/* Member d has it consistent, and must have it still. yes: how many say so before the first that does
 * not. */
inline complete_all(w) {
	k=0; yes=0;
	STEP; settle_at(w, place(w,d));
	do
	:: k<N && ok ->
		STEP;
		if
		:: k!=d -> settle_at(w, place(w,k))
		:: else
		fi;
		yes=yes+ok; k++
	:: else -> break
	od
}

proctype creator(byte id) {
	byte i, k, d, x, w, yes;
	bool ok, told, decided;

	i=0;
	do
	:: i<N ->
		STEP;
		atomic { x=place(id,i); w=(m[x].st==1 -> m[x].by : 0); ok=(m[x].st!=2) };
		if
		:: !ok -> won[id]=2; goto over
		:: ok && w!=0 && w!=id && RULE==2 ->
			withdraw(w);
			if :: decided || !told -> won[id]=2; goto over :: else fi
		:: else
		fi;
		i++
	:: else -> break
	od;
	i=0; yes=0; ok=true;
	do
	:: i<N && (ok || RULE<2) -> STEP; create_at(id, place(id,i)); yes=yes+ok; i++
	:: else -> break
	od;
	if :: yes<N -> goto abandon :: else fi;
	i=0; yes=0; ok=true;
	do
	:: i<N ->
		STEP; settle_at(id, (MISTAKE==2 -> N-1-place(id,i) : place(id,i))); yes=yes+ok;
		if
		:: !ok && RULE==2 && i==0 ->
			if :: MISTAKE==3 && !told -> goto abandon_others :: else fi;
			withdraw(id);
			if
			:: decided -> cover(2); break
			:: else -> won[id]=(told -> 2 : 3); goto over
			fi
		:: !ok && RULE==2 && i>0 && MISTAKE!=5 -> break
		:: else
		fi;
		i++
	:: else -> break
	od;
	if
	:: (RULE==0 && yes>0) || (RULE==1 && yes==N) || (RULE==2 && (yes>=W || MISTAKE==4)) ->
		won[id]=1; goto over
	:: RULE==2 && yes<W -> won[id]=3; goto over
	:: else
	fi;
abandon:
	i=0;
	do
	:: i<N -> STEP; abandon_at(id, place(id,i)); i++
	:: else -> break
	od;
	won[id]=2; goto over;
abandon_others:
	i=1;
	do
	:: i<N -> STEP; abandon_at(id, place(id,i)); i++
	:: else -> break
	od;
	won[id]=2;
over:	skip
}

/* What is under way is carried out, or lost; memory is lost. */
#define EACH(step) step(1,0); step(1,N-1); step(2,0); step(2,N-1); if :: N==3 -> step(1,1); step(2,1) :: else fi
proctype net() {
	byte w, x;
	bool ok;

	do
	:: atomic { (to_create[1]|to_create[2]|to_settle[1]|to_settle[2]|to_abandon[1]|to_abandon[2]) ->
		if :: w=1 :: w=2 fi;
		if :: x=0 :: x=N-1 :: N==3 -> x=1 fi;
		if
		:: to_create[w] & bit(x) -> to_create[w]=to_create[w] & ~bit(x);
			if :: do_create(w, x) :: skip fi
		:: to_settle[w] & bit(x) -> to_settle[w]=to_settle[w] & ~bit(x);
			if :: do_settle(w, x) :: skip fi
		:: to_abandon[w] & bit(x) -> to_abandon[w]=to_abandon[w] & ~bit(x);
			if :: do_abandon(w, x) :: skip fi
		:: else
		fi;
		ok=false; w=0; x=0 }
	:: atomic { losses>0 && !over3 -> losses--;
		if :: x=0 :: x=N-1 :: N==3 -> x=1 fi;
		m[x].lost=m[x].lost | (m[x].by>0 -> bit(m[x].by) : 0);
		m[x].by=0; m[x].st=0; x=0 }
	:: over3 -> break
	od
}
init {
	atomic { run creator(1); run creator(2); if :: LATE+LOSS>0 -> run net() :: else fi };
	(won[1]!=0 && won[2]!=0);
	assert(!(won[1]==1 && won[2]==1));
#ifndef BOTH    /* -DBOTH: only whether both can succeed */
	assert(LATE+LOSS>0 || won[1]!=2 || none(1));
	assert(LATE+LOSS>0 || won[2]!=2 || none(2));
	/* Somebody comes later, alone, when nothing is under way any more and nothing is lost. */
	atomic { !(to_create[1]|to_create[2]|to_settle[1]|to_settle[2]|to_abandon[1]|to_abandon[2]) ->
		losses=0; run creator(3) };
	(won[3]!=0);
	over3=true;
	assert(won[3]==1 || complete(1) || complete(2));
	assert(won[3]!=1 || complete(3));
	assert(won[3]!=1 || (won[1]!=1 && won[2]!=1))
#endif
}
