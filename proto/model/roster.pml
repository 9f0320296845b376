/*
 * roster.pml - changes of a roster while a store is in use: one mirror is added, removed or
 * replaced, also one that is dead where W = n.
 *
 * Images are numbered; OLD and NEW are the sets of those that the two rosters list. A header holds
 * (re, st): the epoch of the owner that changed the roster (0: nobody has), and how far the change
 * is: 0 old, 1 joint, 2 settled. The order of rosters is that of (re, st). A change goes so:
 *  - a new mirror is made and filled, and gets transactions, while no roster lists it;
 *  - the joint roster is recorded; from the first record on commits need W of both;
 *  - it is settled once SEEN members of the old roster hold it, and W of the new one hold it and
 *    every transaction; from then on commits need W of the new one;
 *  - the new roster alone is recorded.
 * A claimer goes by the newest roster that it saw: where that is joint it needs R of both, and W of
 * the new one and either W or SEEN of the old one. It begins again when a later claim shows a newer
 * one. So an owner that dies in between leaves a change that the next one completes, or does not
 * see and may forget.
 *
 * SEEN: an open touches at least T whole old images: max(R,W), or n-1 where an empty one may be
 * made anew (I9). SEEN = n-T+1 of them make every later open see the change.
 *
 * A mirror that is made anew, or that an open owner claims, is filled, and so counts, only while so
 * many others hold the owner's claim as an open touches (I9): they are asked after it was made, and
 * answer at once. With n = 2 and W = 2, SEEN is 1 where the operator says that the member that
 * leaves is gone for good: it must never come back.
 *
 * Bounds: of three mirrors with W = 2 the first owner does not reach the one that is replaced; with
 * all of them in reach a run does not end in minutes.
 *
 * Properties: what was acknowledged, or shown by an open, is in the state of every later open, and
 * never with other contents.
 *
 * Left out: what core.pml shows (knowledge that is out of date while an open is under way, resync
 * in place), and image ids: an image that no roster lists counts for nothing.
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
#ifndef DEAD
#define DEAD 0          /* images that the first owner never reaches */
#endif
#ifndef MISTAKE
#define MISTAKE 0
#endif
#ifndef COVER
#define COVER 0
#endif
#define M 4
#define S 2
#define cover(n) assert(COVER!=n)
#define EACH(step) step(0) step(1) step(2) step(3)
#define bits(v) (((v)&1)+(((v)>>1)&1)+(((v)>>2)&1)+(((v)>>3)&1))
#define in(v, x) (((v)>>(x))&1)
#define with(v, x) ((v)|(1<<(x)))
#define but(v, x) ((v)&(15-(1<<(x))))
#define N0 bits(OLD)
#define N1 bits(NEW)
#define R0 (N0-W0+1)
#define R1 (N1-W1+1)
#define MAX0 (W0>R0 -> W0 : R0)
#define MAX1 (W1>R1 -> W1 : R1)
#define OTHERS0 (MAX0>N0-1 -> N0-1 : MAX0)
#define OTHERS1 (MAX1>N1-1 -> N1-1 : MAX1)
#ifndef SEEN
#define SEEN (N0==1 -> 1 : N0+1-OTHERS0)
#endif

typedef image {
	bool has, joining;
	byte prom, by;          /* promised epoch, and to whom */
	byte re, st;            /* roster */
	byte ep, seq;           /* commit slot */
	byte h[S+1]
};
image m[M];
byte acked[S+1];
byte losses;

#define mine(x) (m[x].has && m[x].prom==ep && m[x].by==id)
#define owned(s) (bits((s)&(mine(0)+2*mine(1)+4*mine(2)+8*mine(3))))
#define newer(x) (m[x].re>re || (m[x].re==re && m[x].st>st))
#define listed (st==0 -> OLD : (st==2 -> NEW : OLD|NEW))
#define holds(s, r, k) (bits((s)&(r))>=(k))

/* R of the roster, of both while it is joint. */
#define claims_of(s) ((st==2 || holds(s,OLD,R0)) && (st==0 || holds(s,NEW,R1) || MISTAKE==1))
#define visible (holds(vis,OLD,SEEN) || (MISTAKE==2 && vis!=0))
/* W of the roster, of both while it is joint, of the new one once enough see it. */
#define holders(s) ((st==2 || holds(s,OLD,W0) || (st==1 && visible) || (MISTAKE==3 && st==1)) && \
	(st==0 || holds(s,NEW,W1) || (MISTAKE==4 && st==1)))
#define settling (st==1 && (visible || MISTAKE==3) && holds(gd&has_it,NEW,W1))
#define settling_now (settling || (MISTAKE==5 && st==1 && visible))

inline forget() {
	dead=true; chose=false; st=0; re=0; seq=0; bep=0; h[1]=0; h[2]=0;
	cl=0; ex=0; gd=0; vis=0; has_it=0; late=0
}

#define reach(x) (id!=1 || !in(DEAD,x))
#define can_claim(x) (m[x].has && ep>m[x].prom && reach(x))
inline claim(x) {
	m[x].prom=ep; m[x].by=id;
	printf("owner %d claims %d: epoch %d seq %d roster %d.%d\n", id, x, m[x].ep, m[x].seq,
		m[x].re, m[x].st);
	if
	:: !open && (in(cl,x) || (chose && newer(x) && MISTAKE!=6)) -> forget()
	:: else ->
		cl=with(cl,x); gd=but(gd,x);
		if :: open && m[x].ep!=ep && MISTAKE!=7 -> late=with(late,x) :: else fi;
		if
		:: !chose && newer(x) -> re=m[x].re; st=m[x].st
		:: else
		fi;
		if :: !chose && !m[x].joining -> ex=with(ex,x) :: else fi
	fi
}

/* I6: the highest (epoch, seq) of those that the newest roster lists. */
#define broken ((cl&15)!=(cl&(mine(0)+2*mine(1)+4*mine(2)+8*mine(3))))
#define can_choose (!chose && !broken && claims_of(ex))
inline better(x) {
	if
	:: in(ex&listed,x) && (bep==255 || m[x].ep>bep || (m[x].ep==bep && m[x].seq>seq)) ->
		bep=m[x].ep; seq=m[x].seq; h[1]=m[x].h[1]; h[2]=m[x].h[2]
	:: else
	fi
}
inline choose() {
	chose=true; bep=255;
	better(0); better(1); better(2); better(3);
	if :: m[0].re==re && m[0].st==st && in(cl,0) -> vis=with(vis,0) :: else fi;
	if :: m[1].re==re && m[1].st==st && in(cl,1) -> vis=with(vis,1) :: else fi;
	if :: m[2].re==re && m[2].st==st && in(cl,2) -> vis=with(vis,2) :: else fi;
	if :: m[3].re==re && m[3].st==st && in(cl,3) -> vis=with(vis,3) :: else fi;
	has_it=vis;
	bep=(bep>0 -> 1 : 0)
}

/* I7, and every later resync: whole, beside what there is. */
#define asked(x) (!in(late,x) || !in(listed,x) || (anew_old(x) && anew_new(x)))
#define can_adopt(x) (chose && mine(x) && !in(gd,x) && in(listed|NEW,x) && asked(x) && \
	(in(listed,x) || open) && \
	(m[x].joining || m[x].ep!=ep || m[x].seq<seq))
inline adopt(x) {
	m[x].h[1]=(seq>0 -> h[1] : 0); m[x].h[2]=(seq>1 -> h[2] : 0);
	m[x].seq=seq; m[x].ep=ep; m[x].joining=false; gd=with(gd,x); late=but(late,x);
	printf("owner %d fills %d: epoch %d seq %d\n", id, x, ep, seq)
}

/* I9 in each roster that counts; a new mirror, by an open owner. */
#define anew_old(x) (!in(OLD,x) || st==2 || owned(but(OLD,x))>=OTHERS0)
#define anew_new(x) (!in(NEW,x) || st==0 || owned(but(NEW,x))>=OTHERS1)
#define can_make(x) (!m[x].has && chose && (reach(x) || !in(OLD,x)) && \
	(in(listed,x) -> (open || (claims_of(ex) && !broken)) : open && in(NEW,x)))
inline make(x) {
	m[x].has=true; m[x].prom=ep; m[x].by=id; m[x].joining=true; m[x].ep=0; m[x].seq=0;
	m[x].re=re; m[x].st=st; cl=with(cl,x); gd=but(gd,x); late=with(late,x);
	vis=but(vis,x); has_it=with(has_it,x);
	printf("owner %d makes %d\n", id, x)
}

/* The owner begins a change; it, or a later one, records it on every mirror that it can. */
#define can_begin (open && re==0 && st==0 && OLD!=NEW && \
	(holds(gd,NEW,W1) || MISTAKE==4 || MISTAKE==5))
#define can_record(x) (chose && mine(x) && st>0 && newer_here(x) && (open || claims_of(ex)))
#define newer_here(x) (m[x].re<re || (m[x].re==re && m[x].st<st))
inline record(x) {
	m[x].re=re; m[x].st=st; vis=with(vis,x); has_it=with(has_it,x);
	printf("owner %d records roster %d.%d on %d\n", id, re, st, x)
}
#define can_settle (open && !inflight && settling_now)
inline settle() {
	if :: !holds(gd,OLD,W0) -> cover(1) :: else fi;
	if :: re!=ep -> cover(2) :: else fi;
	st=2; printf("owner %d settles\n", id)
}

#define can_open (chose && !open && !broken && claims_of(ex) && holders(gd))
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

#define can_post (open && !inflight && seq<S)
#define can_apply(x) (open && seq>0 && mine(x) && !m[x].joining && m[x].ep==ep && \
	m[x].seq+1==seq && !in(gd,x))
inline apply(x) { m[x].h[seq]=h[seq]; m[x].seq=seq; gd=with(gd,x) }
#define can_return (inflight && holders(gd))
inline acknowledge() {
	if :: st==2 -> cover(6) :: else fi;
	assert(acked[seq]==0 || acked[seq]==id);
	acked[seq]=id; inflight=false;
	printf("owner %d: %d is acknowledged\n", id, seq)
}

#define CLAIM(x)   :: d_step { !dead && can_claim(x) -> claim(x) }
#define ADOPT(x)   :: d_step { !dead && can_adopt(x) -> adopt(x) }
#define MAKE(x)    :: d_step { !dead && can_make(x) -> make(x) }
#define RECORD(x)  :: d_step { !dead && can_record(x) -> record(x) }
#define APPLY(x)   :: d_step { !dead && can_apply(x) -> apply(x) }

proctype owner(byte id; byte ep) {
	byte seq, bep, h[S+1];
	byte re, st;    /* the newest roster that it knows */
	byte cl;        /* claimed */
	byte ex;        /* .. and examined */
	byte gd;        /* known to hold the state */
	byte vis;       /* known to hold the roster, with what they had before */
	byte has_it;    /* .. or since they were made */
	byte late;      /* made anew or claimed after the open: filled once enough others are asked */
	bool dead, chose, open, inflight;

	do
	EACH(CLAIM)
	EACH(ADOPT)
	EACH(MAKE)
	EACH(RECORD)
	EACH(APPLY)
	:: d_step { !dead && can_choose -> choose() }
	:: d_step { !dead && can_open -> returns() }
	:: d_step { !dead && can_begin -> re=ep; st=1; vis=0; has_it=0;
		printf("owner %d begins a change\n", id) }
	:: d_step { !dead && can_settle -> settle() }
	:: d_step { !dead && can_post -> seq++; h[seq]=id; inflight=true; gd=0 }
	:: d_step { !dead && can_return -> acknowledge() }
	od
}

inline lose(x) {
	losses++;
	m[x].has=false; m[x].joining=false; m[x].prom=0; m[x].by=0; m[x].re=0; m[x].st=0;
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
 * quick holds -DOLD=3 -DNEW=5 -DW0=2 -DSEEN=1: two mirrors, W = 2, a dead one replaced
 * full holds -DOLD=1 -DNEW=3 -DW0=1 -DW1=2 -DOWNERS=3: a second one is added
 * full holds -DOLD=3 -DNEW=1 -DW0=2 -DW1=1 -DOWNERS=3: one of two is removed
 * quick found -DOLD=3 -DNEW=5 -DW0=2 -DSEEN=1 -DLOSSES=1: .. it was called gone, and comes back
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
 * full found -DMISTAKE=6 -DW0=3 -DW1=2: a newer roster, seen late, is ignored
 *   in the code: sim late-roster
 * full found -DMISTAKE=7 -DOLD=3 -DNEW=3 -DW0=1 -DLOSSES=1 -DOWNERS=3: claimed late, nobody asked
 *   in the code: sim unasked
 * full holds -DOLD=3 -DNEW=3 -DW0=1 -DLOSSES=1 -DOWNERS=3: no change, others are asked (I9)
 * full event -DCOVER=1 -DW0=3 -DDEAD=4: settled without W of the old roster
 * full event -DCOVER=2 -DW0=2 -DDEAD=4: a second owner settles
 * quick event -DCOVER=3 -DOLD=3 -DNEW=5 -DW0=2 -DSEEN=1: opened without W of the old roster
 * full event -DCOVER=4 -DW0=2 -DDEAD=4: opened with the new roster alone
 * full event -DCOVER=5 -DW0=2 -DDEAD=4: opened in the middle, after a commit
 * full event -DCOVER=6 -DW0=2 -DDEAD=4: a commit by the new roster alone
 */
