/*
 * roster.pml - changes of a roster while a store is in use: one mirror is added, removed or
 * replaced, also one that is dead where W = n.
 *
 * Images are numbered; OLD and NEW are the sets of those that the two rosters list. A header holds
 * (re, st): the epoch of the owner that changed the roster (0: nobody has), and how far the change
 * is: 0 old, 1 joint, 2 settled. The order of rosters is that of (re, st), then of the ids that
 * they list for the new mirror's image. A change goes so:
 *  - a new mirror is made and filled, and gets transactions, while no roster lists it;
 *  - the joint roster is recorded; from the first record on commits need W of both;
 *  - it is settled once SEEN members of the old roster hold it, and W of the new one hold it and
 *    every transaction; from then on commits need W of the new one;
 *  - the new roster alone is recorded.
 * A claimer goes by the newest roster that it saw: where that is joint it needs R of both, and W of
 * the new one and either W or SEEN of the old one, and records it under its own epoch. It begins
 * again when a later claim shows a newer one. So an owner that dies in between leaves a change that
 * the next one completes, or does not see and may forget.
 *
 * SEEN: an open that sees no change claims T old images before it adopts on any: max(R,W), or n-1
 * where an empty one may be made anew (I9). SEEN = n-T+1 of them make every later open see the
 * change, also one that adopts on fewer than W and then fails: here any owner may stop anywhere.
 *
 * A mirror of the roster that counts, made anew by an open owner, or claimed by one, is filled, and
 * so counts, only while so many others hold the owner's claim as an open touches (I9). They are
 * asked before it is made, after it was lost, and again before it is filled; they answer at once.
 * Until a change is settled, its new mirror is made anew without that, under another id: the joint
 * roster lists it from then on, and SEEN must hold that one, whatever they held before. With n = 2
 * and W = 2, SEEN is 1 where the operator says that the member that leaves is gone for good: it
 * must never come back.
 *
 * Bounds: of three mirrors with W = 2 the first owner does not reach the one that is replaced; with
 * all of them in reach a run does not end in minutes. Of three with W = 3, of which one is removed,
 * the second of three owners reaches two, so that it can adopt and not open; one transaction.
 *
 * Properties: what was acknowledged, or shown by an open, is in the state of every later open, and
 * never with other contents. An image that counts for a commit is listed by the newest roster of
 * its owner that is recorded: else no open would count it.
 *
 * Left out: what core.pml shows (knowledge that is out of date while an open is under way, resync
 * in place), and image ids, but for those that the new mirror has until the change is settled, in
 * runs with losses: an image that no roster lists counts for nothing.
 */
#ifndef OLD
#define OLD 7           /* images 0, 1, 2 */
#endif
#ifndef W0
#define W0 2
#endif
#ifndef NEW
#define NEW 11          /* 2 is replaced by 3 */
#endif
#ifndef W1
#define W1 W0
#endif
#ifndef OWNERS
#define OWNERS 2
#endif
#ifndef LOSSES
#define LOSSES 0
#endif
#ifndef POSTS
#define POSTS 2         /* transactions */
#endif
#ifndef DEAD
#define DEAD 0          /* images that the first owner never reaches */
#endif
#ifndef DEAD2
#define DEAD2 0         /* .. and the second one */
#endif
#ifndef MISTAKE
#define MISTAKE 0
#endif
#ifndef COVER
#define COVER 0
#endif
#define M 4
#define IDS (LOSSES>0)
#define S 2
#define cover(n) assert(COVER!=n)
#define EACH(step) step(0) step(1) step(2) step(3)
#define bits(v) (((v)&1)+(((v)>>1)&1)+(((v)>>2)&1)+(((v)>>3)&1))
#define in(v, x) (((v)>>(x))&1)
#define with(v, x) ((v)|(1<<(x)))
#define but(v, x) ((v)&(15-(1<<(x))))
#define FRESH (NEW&(15-OLD))    /* the new mirror */
#define F (FRESH==2 -> 1 : (FRESH==4 -> 2 : 3))
#define N0 bits(OLD)
#define N1 bits(NEW)
#define R0 (N0-W0+1)
#define R1 (N1-W1+1)
#define MAX0 (W0>R0 -> W0 : R0)
#define MAX1 (W1>R1 -> W1 : R1)
#define OTHERS0 (MAX0>N0-1 -> N0-1 : MAX0)
#define OTHERS1 (MAX1>N1-1 -> N1-1 : MAX1)
#define T0 (N0==1 -> 1 : (MISTAKE==10 -> R0 : OTHERS0))
#define T1 (N1==1 -> 1 : OTHERS1)
#ifndef SEEN
#define SEEN (N0+1-T0)
#endif

typedef image {
	bool has, joining;
	byte prom, by;          /* promised epoch, and to whom */
	byte re, st;            /* roster */
	byte lists;             /* .. the id that it has for the new mirror */
	byte ep, seq;           /* commit slot */
	byte h[S+1]
};
image m[M];
byte acked[S+1];
byte losses;
byte bears, ids;                /* the id of the new mirror's image; how many there were */
hidden int newest;

#define mine(x) (m[x].has && m[x].prom==ep && m[x].by==id)
#define owned(s) (bits((s)&(mine(0)+2*mine(1)+4*mine(2)+8*mine(3))))
#define rank(r, s, l) ((r)*64+(s)*16+(l))
#define ranks(x) rank(m[x].re,m[x].st,m[x].lists)
#define newer(x) (ranks(x)>rank(re,st,lists))
/* An image of the new mirror counts under the id that the roster lists. */
#define counted(s) ((s)&(15-(IDS && bears!=lists -> FRESH : 0)))
#define listed (st==0 -> OLD : (st==2 -> NEW : OLD|NEW))
#define holds(s, r, k) (bits((s)&(r))>=(k))

/* R of the roster, of both while it is joint. */
#define claims_of(s) ((st==2 || holds(s,OLD,R0)) && (st==0 || holds(s,NEW,R1) || MISTAKE==1))
#define visible (holds(vis,OLD,SEEN) || (MISTAKE==2 && vis!=0))
#define has_claims claims_of(counted(ex))
/* W of the roster, of both while it is joint, of the new one once enough see it. */
#define holders(s) ((st==2 || holds(s,OLD,W0) || (st==1 && visible) || (MISTAKE==3 && st==1)) && \
	(st==0 || holds(s,NEW,W1) || (MISTAKE==4 && st==1)))
#define settling (st==1 && (visible || MISTAKE==3) && holds(gd&has_it,NEW,W1))
#define settling_now (settling || (MISTAKE==5 && st==1 && visible))

inline forget() {
	dead=true; chose=false; st=0; re=0; lists=0; seq=0; bep=0; h[1]=0; h[2]=0;
	cl=0; ex=0; gd=0; vis=0; has_it=0; late=0; may=0; goes_on=false
}

#define reach(x) (!in((id==1 -> DEAD : (id==2 -> DEAD2 : 0)),x))
#define can_claim(x) (m[x].has && ep>m[x].prom && reach(x))
inline claim(x) {
	m[x].prom=ep; m[x].by=id;
	printf("owner %d claims %d: epoch %d seq %d roster %d.%d\n", id, x, m[x].ep, m[x].seq,
		m[x].re, m[x].st);
	if
	:: !open && (in(cl,x) || (chose && newer(x))) -> forget()
	:: else ->
		if :: !open -> cl=with(cl,x) :: else fi;
		gd=but(gd,x);
		if :: open && m[x].ep!=ep -> late=with(late,x) :: else fi;
		if
		:: !chose && newer(x) && (MISTAKE!=6 || cl==with(0,x)) ->
			re=m[x].re; st=m[x].st; lists=m[x].lists
		:: else
		fi;
		if :: !chose && !m[x].joining -> ex=with(ex,x) :: else fi
	fi
}

/* I6: the highest (epoch, seq) of those that the newest roster lists. Where that is not joint, T of
 * it are claimed: else what is adopted could count for more than what a change, unseen, took. */
#define broken ((cl&15)!=(cl&(mine(0)+2*mine(1)+4*mine(2)+8*mine(3))))
#define touches (st==1 || holds(cl,listed,(st==0 -> T0 : T1)) || MISTAKE==8)
#define can_choose (!chose && !broken && has_claims && touches)
inline better(x) {
	if
	:: in(counted(ex)&listed,x) &&
		(bep==255 || m[x].ep>bep || (m[x].ep==bep && m[x].seq>seq)) ->
		bep=m[x].ep; seq=m[x].seq; h[1]=m[x].h[1]; h[2]=m[x].h[2]
	:: else
	fi
}
inline choose() {
	chose=true; bep=255;
	better(0); better(1); better(2); better(3);
	bep=(bep>0 -> 1 : 0);
	if :: st==1 -> re=ep; goes_on=true :: else fi
}

/* I7, and every later resync: whole, beside what there is. */
#define settled(x) in((st==2 -> NEW : OLD),x)
#define allowed(x) (MISTAKE==7 || (open && !settled(x)) || (anew_old(x) && anew_new(x)))
#define asked(x) (!in(late,x) || allowed(x))
#define can_adopt(x) (chose && mine(x) && !in(gd,x) && in(listed|NEW,x) && asked(x) && \
	(in(listed,x) || open) && \
	(m[x].joining || m[x].ep!=ep || m[x].seq<seq))
/* Made anew, the new mirror's image has another id: the roster that is joint lists that one, and is
 * newer than what was recorded. Once it is settled that is left out. */
#define unlisted(x) (IDS && in(FRESH,x) && (st==0 -> m[x].ep!=ep : bears!=lists))
inline new_id(x) {
	if
	:: st==2 -> bears=lists
	:: else -> ids++; bears=ids
	fi;
	if
	:: st==1 && (MISTAKE!=9 || !open) ->
		if :: open -> cover(7) :: else fi;
		lists=ids; re=ep; vis=0; has_it=with(0,x)
	:: else
	fi;
	m[x].re=re; m[x].st=st; m[x].lists=lists
}
inline adopt(x) {
	if :: unlisted(x) -> new_id(x) :: else fi;
	m[x].h[1]=(seq>0 -> h[1] : 0); m[x].h[2]=(seq>1 -> h[2] : 0);
	m[x].seq=seq; m[x].ep=ep; m[x].joining=false; gd=with(gd,x); late=but(late,x);
	printf("owner %d fills %d: epoch %d seq %d\n", id, x, ep, seq)
}

/* I9 in each roster that counts; a new mirror, by an open owner. */
#define anew_old(x) (!in(OLD,x) || st==2 || (N0>1 && \
	owned(but(OLD,x))>=(MISTAKE==10 && !open -> R0 : OTHERS0)))
#define anew_new(x) (!in(NEW,x) || st==0 || (N1>1 && owned(but(NEW,x))>=OTHERS1))
#define can_ask(x) (open && !m[x].has && reach(x) && settled(x) && allowed(x) && !in(may,x))
#define may_make(x) (!open || !settled(x) || in(may,x) || MISTAKE==7)
#define can_make(x) (!m[x].has && chose && may_make(x) && (reach(x) || !in(OLD,x)) && \
	(in(listed,x) -> (open || (has_claims && !broken)) : open && in(NEW,x)))
inline make(x) {
	m[x].has=true; m[x].prom=ep; m[x].by=id; m[x].joining=true; m[x].ep=0; m[x].seq=0;
	m[x].re=re; m[x].st=st; m[x].lists=lists; gd=but(gd,x); late=with(late,x); may=but(may,x);
	if :: !open -> cl=with(cl,x) :: else fi;
	if :: st==1 -> vis=but(vis,x); has_it=with(has_it,x) :: else fi;
	printf("owner %d makes %d\n", id, x)
}

/* The owner begins a change; it, or a later one, records it on every mirror that it can. */
#define can_begin (open && re==0 && st==0 && OLD!=NEW && \
	(FRESH==0 || (mine(F) && !m[F].joining && m[F].ep==ep)))
#define can_record(x) (chose && mine(x) && st>0 && newer_here(x) && (open || has_claims))
#define newer_here(x) (ranks(x)<rank(re,st,lists))
inline record(x) {
	m[x].re=re; m[x].st=st; m[x].lists=lists;
	if :: st==1 -> vis=with(vis,x); has_it=with(has_it,x) :: else fi;
	printf("owner %d records roster %d.%d on %d\n", id, re, st, x)
}
#define can_settle (open && !inflight && settling_now)
inline settle() {
	if :: !holds(gd,OLD,W0) -> cover(1) :: else fi;
	if :: goes_on -> cover(2) :: else fi;
	st=2; vis=0; has_it=0; printf("owner %d settles\n", id)
}

#define can_open (chose && !open && !broken && has_claims && holders(gd))
inline returns() {
	if :: st==1 && !holds(gd,OLD,W0) -> cover(3) :: else fi;
	if :: st==2 -> cover(4) :: else fi;
	if :: acked[1]!=0 && st==1 -> cover(5) :: else fi;
	printf("owner %d is open: seq %d, roster %d.%d\n", id, seq, re, st);
	assert(acked[1]==0 || (seq>0 && h[1]==acked[1]));
	assert(acked[2]==0 || (seq>1 && h[2]==acked[2]));
	if :: seq>0 -> acked[1]=h[1] :: else fi;
	if :: seq>1 -> acked[2]=h[2] :: else fi;
	open=true; cl=0; ex=0; bep=0
}

#define can_post (open && owned(15)>0 && !inflight && seq<POSTS)
#define can_apply(x) (open && seq>0 && mine(x) && !m[x].joining && m[x].ep==ep && \
	m[x].seq+1==seq && !in(gd,x))
inline apply(x) { m[x].h[seq]=h[seq]; m[x].seq=seq; gd=with(gd,x) }
#define can_return (inflight && holders(gd))

/* Of those that this owner recorded, the newest one. */
inline look(x) { if :: m[x].has && ranks(x)>newest -> newest=ranks(x) :: else fi }
inline is_listed() {
	newest=0;
	look(0); look(1); look(2); look(3);
	assert(!IDS || st==0 || !in(gd&FRESH,F) || !mine(F) || newest/64!=re || newest%16==bears)
}
inline acknowledge() {
	if :: st==2 -> cover(6) :: else fi;
	assert(acked[seq]==0 || acked[seq]==id);
	is_listed();
	acked[seq]=id; inflight=false;
	printf("owner %d: %d is acknowledged\n", id, seq)
}

#define CLAIM(x)   :: d_step { !dead && can_claim(x) -> claim(x) }
#define ADOPT(x)   :: d_step { !dead && can_adopt(x) -> adopt(x) }
#define ASK(x)     :: d_step { !dead && can_ask(x) -> may=with(may,x) }
#define MAKE(x)    :: d_step { !dead && can_make(x) -> make(x) }
#define RECORD(x)  :: d_step { !dead && can_record(x) -> record(x) }
#define APPLY(x)   :: d_step { !dead && can_apply(x) -> apply(x) }

proctype owner(byte id; byte ep) {
	byte seq, bep, h[S+1];
	byte re, st, lists;     /* the newest roster that it knows */
	byte cl;        /* claimed */
	byte ex;        /* .. and examined */
	byte gd;        /* known to hold the state */
	byte vis;       /* known to hold the roster, with what they had before */
	byte has_it;    /* .. or since they were made */
	byte late;      /* made anew or claimed after the open: filled once others are asked */
	byte may;       /* lost, and enough others were asked since: may be made anew */
	bool goes_on;   /* with a change that another began */
	bool dead, chose, open, inflight;

	do
	EACH(CLAIM)
	EACH(ADOPT)
	EACH(ASK)
	EACH(MAKE)
	EACH(RECORD)
	EACH(APPLY)
	:: d_step { !dead && can_choose -> choose() }
	:: d_step { !dead && can_open -> returns() }
	:: d_step { !dead && can_begin -> re=ep; st=1; lists=bears; vis=0; has_it=0;
		printf("owner %d begins a change\n", id) }
	:: d_step { !dead && can_settle -> settle() }
	:: d_step { !dead && can_post -> seq++; h[seq]=id; inflight=true; gd=0 }
	:: d_step { !dead && can_return -> acknowledge() }
	od
}

inline lose(x) {
	losses++;
	m[x].has=false; m[x].joining=false; m[x].prom=0; m[x].by=0;
	m[x].re=0; m[x].st=0; m[x].lists=0;
	if :: in(FRESH,x) -> bears=0 :: else fi;
	m[x].ep=0; m[x].seq=0; m[x].h[1]=0; m[x].h[2]=0;
	printf("mirror %d loses its memory\n", x)
}
#define LOSE(x) :: d_step { losses<LOSSES && m[x].has -> lose(x) }

proctype weather() {
	do
	EACH(LOSE)
	od
}

init {
	byte i, e=1;

	atomic {
		do :: i<M -> m[i].has=in(OLD,i); i++ :: else -> break od;
		i=1;
		do
		:: i<=OWNERS ->
			run owner(i, e); i++; e++
		:: else -> break
		od;
		i=0; e=0;
		if :: LOSSES>0 -> run weather() :: else fi
	}
}
/*
 * full holds -DW0=2 -DDEAD=4: three mirrors, W = 2, a dead one replaced
 * full holds -DW0=3: W = 3, a dead one replaced
 * full holds -DW0=3 -DDEAD=4 -DLOSSES=1: .. and one loss, the first owner never open
 * full holds -DW0=2 -DNEW=3: one of three removed
 * full holds -DW0=3 -DNEW=6 -DW1=1 -DOWNERS=3 -DPOSTS=1 -DDEAD2=4: W from 3 to 1, an open fails
 * full holds -DW0=3 -DNEW=6 -DW1=1 -DOWNERS=3 -DPOSTS=1 -DDEAD2=1: .. one of other two mirrors
 * full holds -DW0=3 -DNEW=6 -DW1=1 -DOWNERS=3 -DPOSTS=1 -DDEAD2=4 -DLOSSES=1: .. and one loss
 * quick holds -DOLD=1 -DNEW=2 -DW0=1 -DLOSSES=1: the only one replaced, and one loss
 * full holds -DOLD=3 -DNEW=5 -DW0=2 -DLOSSES=1: two mirrors, W = 2, one replaced, and one loss
 * quick holds -DOLD=3 -DNEW=5 -DW0=2 -DSEEN=1: two mirrors, W = 2, a dead one replaced
 * full holds -DOLD=1 -DNEW=3 -DW0=1 -DW1=2 -DOWNERS=3: a second one is added
 * full holds -DOLD=3 -DNEW=1 -DW0=2 -DW1=1 -DOWNERS=3: one of two is removed
 * full found -DOLD=3 -DNEW=5 -DW0=2 -DSEEN=1 -DLOSSES=1: .. it was called gone, and comes back
 *   in the code: sim gone
 * full found -DMISTAKE=1 -DW0=2 -DDEAD=4: R of the old roster only
 *   in the code: sim old-claims
 * full found -DMISTAKE=2 -DW0=2: seen by fewer
 *   in the code: sim few-see
 * full found -DMISTAKE=3 -DW0=2 -DDEAD=4: settled before enough see it
 *   in the code: sim alone
 * full found -DMISTAKE=4 -DW0=2 -DDEAD=4: W of the old roster only, while it is joint
 *   in the code: sim old-acks
 * quick found -DMISTAKE=5 -DOLD=3 -DNEW=5 -DW0=2 -DSEEN=1: settled, W do not hold everything
 *   in the code: sim behind
 * full found -DMISTAKE=6 -DOLD=3 -DNEW=5 -DW0=2 -DSEEN=1: one newer than the first is ignored
 *   in the code: sim late-roster
 * full found -DMISTAKE=7 -DOLD=3 -DNEW=3 -DW0=1 -DLOSSES=1 -DOWNERS=3: nobody is asked (I9)
 *   in the code: sim unasked
 * full found -DMISTAKE=8 -DW0=3 -DNEW=6 -DW1=1 -DOWNERS=3 -DPOSTS=1 -DDEAD2=4: adopted on R alone
 *   in the code: sim untouched
 * quick found -DMISTAKE=9 -DOLD=1 -DNEW=2 -DW0=1 -DLOSSES=1: made anew, the id not listed
 *   in the code: sim joint-anew
 * full found -DMISTAKE=10 -DW0=3 -DSEEN=2 -DDEAD2=8 -DLOSSES=2 -DPOSTS=1: W = n, anew with R claimed
 *   in the code: unit test_mend test_not_made_anew_with_too_few_others
 * full holds -DOLD=3 -DNEW=3 -DW0=1 -DLOSSES=1 -DOWNERS=3: no change, others are asked (I9)
 * full event -DCOVER=1 -DW0=3 -DDEAD=4: settled without W of the old roster
 * full event -DCOVER=2 -DW0=2 -DDEAD=4: a second owner settles
 * quick event -DCOVER=3 -DOLD=3 -DNEW=5 -DW0=2 -DSEEN=1: opened without W of the old roster
 * full event -DCOVER=4 -DW0=2 -DDEAD=4: opened with the new roster alone
 * full event -DCOVER=5 -DW0=2 -DDEAD=4: opened in the middle, after a commit
 * full event -DCOVER=6 -DW0=2 -DDEAD=4: a commit by the new roster alone
 * full event -DCOVER=7 -DOLD=3 -DNEW=5 -DW0=2 -DLOSSES=1: made anew while both rosters count
 */
