/*
 * cancel.pml - a change of the roster that can be taken back until it is decided. After roster.pml.
 *
 * A header holds the roster's rank (re, ve), st: 0 old, 1 joint, 2 new, and dd: the mark, by which
 * the change is decided. A change goes so:
 *  - joint: recorded on SEEN = n-T+1 of OLD; commits need W of both, from before it is told;
 *  - decided: when SEEN have it, and W1 of NEW have it and hold everything, the mark is recorded on
 *    W1 whole members of NEW; commits still need W of both;
 *  - new: when W1 whole members of NEW have the mark, the new roster alone counts; it is recorded.
 * The owner may take it back while it has sent the mark to nobody, and saw none when it opened: the
 * old roster alone counts at once, as a newer version. A claimer that sees a joint roster claims R
 * of both. Where one of those claimed has the mark it completes the change, and keeps the mark in
 * what it records; it writes to no mirror that leaves before W1 of NEW hold the state. Else it may complete the change or take it back: then the state is that of the
 * old roster, which is recorded as newer under its own epoch (CREC: on how many of OLD before it is
 * open). ADMIT=1: a change begins only while W1 of NEW and W0 of OLD are whole and connected.
 *
 * Bounds: of three mirrors the first owner does not reach one, where a run would not end in minutes
 * otherwise.
 *
 * Properties: what was acknowledged, or shown by an open, is in the state of every later open, and
 * never with other contents.
 *
 * With LOSSES mirrors lose their memory, and images are made anew, the new mirror's under another
 * id, as in roster.pml; what else that one shows is left out.
 *
 * FIVE: one of four mirrors is replaced, W = 3. The first owner has opened the store, has copied to
 * the new mirror, and no longer reaches DEAD. The second owner reaches the new mirror and two of the
 * old ones. The third owner begins once a transaction is acknowledged. Only the new mirror loses its
 * memory.
 */
#ifdef FIVE
#define M 5
#define ALL 31
#define OLD 15
#define NEW 23          /* 4 takes the place of 3 */
#define W0 3
#define OWNERS 3
#define POSTS 1
#define LOSSES 1
#define CANCEL 0
#define DEAD2 6
#define DEAD3 24
#define LOSABLE 16      /* images that may be lost */
#define OPEN 1
#define FIFTH(step) step(4)
#define FIFTH_OF(step) ; step(4)
#define COUNT_FIFTH(is) +16*is(4)
#else
#define M 4
#define ALL 15
#define LOSABLE ALL
#define OPEN 0
#define FIFTH(step)
#define FIFTH_OF(step)
#define COUNT_FIFTH(is)
#endif
#ifndef OLD
#define OLD 7           /* images 0, 1, 2 */
#endif
#ifndef W0
#define W0 2
#endif
#ifndef NEW
#define NEW 3           /* 2 is removed */
#endif
#ifndef W1
#define W1 W0
#endif
#ifndef OWNERS
#define OWNERS 2
#endif
#ifndef POSTS
#define POSTS 2
#endif
#ifndef DEAD
#define DEAD 0          /* images that the first owner never reaches */
#endif
#ifndef DEAD2
#define DEAD2 0         /* that the second one never reaches */
#endif
#ifndef DEAD3
#define DEAD3 0
#endif
#ifndef CANCEL
#define CANCEL 1
#endif
#ifndef ADMIT
#define ADMIT 0
#endif
#ifndef BEGINS
#define BEGINS 1        /* changes that are begun, in all */
#endif
#ifndef MISTAKE
#define MISTAKE 0
#endif
#ifndef COVER
#define COVER 0
#endif
#ifndef LOSSES
#define LOSSES 0
#endif
#define IDS (LOSSES>0)
#define FRESH (NEW&(ALL-OLD))   /* the new mirror */
#define F (FRESH==2 -> 1 : (FRESH==4 -> 2 : (FRESH==8 -> 3 : M-1)))
#define S 2
#define cover(n) assert(COVER!=n)
#define EACH(step) step(0) step(1) step(2) step(3) FIFTH(step)
#define bits(v) (((v)&1)+(((v)>>1)&1)+(((v)>>2)&1)+(((v)>>3)&1)+(((v)>>4)&1))
#define in(v, x) (((v)>>(x))&1)
#define with(v, x) ((v)|(1<<(x)))
#define but(v, x) ((v)&(ALL-(1<<(x))))
#define N0 bits(OLD)
#define N1 bits(NEW)
#define R0 (N0-W0+1)
#define R1 (N1-W1+1)
#define MAX0 (W0>R0 -> W0 : R0)
#define MAX1 (W1>R1 -> W1 : R1)
#define T0 (N0==1 -> 1 : (MAX0>N0-1 -> N0-1 : MAX0))
#define T1 (N1==1 -> 1 : (MAX1>N1-1 -> N1-1 : MAX1))
#define SEEN (N0+1-T0)
#define MEET (W0<T0 -> W0 : T0)
#ifndef CREC
#define CREC 0
#endif

typedef image {
	bool has, joining;
	byte prom, by;          /* promised epoch, and to whom */
	byte re, ve, st;        /* roster */
	bool dd;
	byte lists;             /* the id that its roster has for the new mirror */
	byte ep, seq;           /* commit slot */
	byte h[S+1]
};
image m[M];
byte acked[S+1];
byte begun;
byte losses;
byte bears, ids;                /* the id of the new mirror's image; how many there were */

#define mine(x) (m[x].has && m[x].prom==ep && m[x].by==id)
#define owned(s) ((s)&(mine(0)+2*mine(1)+4*mine(2)+8*mine(3) COUNT_FIFTH(mine)))
#define holds(s, r, k) (bits((s)&(r))>=(k))
#define ranks(x) (m[x].re*16+m[x].ve)
#define rank (re*16+ve)
#define listed (st==0 -> OLD : (st==2 -> NEW : OLD|NEW))
/* An image of the new mirror counts under the id that the roster lists. */
#define counted(s) ((s)&(ALL-(IDS && st!=0 && bears!=lists -> FRESH : 0)))
#define claims_of(s) ((st==2 || holds(s,OLD,R0)) && (st==0 || holds(s,NEW,R1)))
#define holders(s) ((st==2 || holds(s,OLD,W0) || (MISTAKE==14 && st==1 && holds(vis,OLD,SEEN))) && \
	(st==0 || holds(s,NEW,W1)))
#define reach(x) (!in((id==1 -> DEAD : (id==2 -> DEAD2 : DEAD3)),x))

inline forget() {
	dead=true; chose=false; st=0; re=0; ve=0; dd=false; seq=0; bep=0; h[1]=0; h[2]=0;
	cl=0; ex=0; gd=0; vis=0; dv=0; has_it=0; rc=0; late=0; may=0; lists=0;
	sawd=false; undid=false
}
#define can_claim(x) (m[x].has && ep>m[x].prom && reach(x))
inline claim(x) {
	m[x].prom=ep; m[x].by=id;
	printf("owner %d claims %d: epoch %d seq %d roster %d.%d state %d mark %d\n", id, x,
		m[x].ep, m[x].seq, m[x].re, m[x].ve, m[x].st, m[x].dd);
	if
	:: !open && (in(cl,x) || (chose && ranks(x)>rank)) -> forget()
	:: else ->
		gd=but(gd,x);
		if
		:: open && m[x].ep!=ep -> late=with(late,x)
		:: !open -> cl=with(cl,x)
		:: else
		fi;
		if
		:: !chose && ranks(x)>rank -> re=m[x].re; ve=m[x].ve; st=m[x].st; lists=m[x].lists
		:: else
		fi;
		if :: !chose -> sawd=sawd || (m[x].dd && m[x].st==1) :: else fi;
		if :: !chose && !m[x].joining -> ex=with(ex,x) :: else fi
	fi
}
#define broken (cl!=owned(cl))
#define touches (st==1 || holds(cl,listed,(st==0 -> T0 : T1)))
#define can_choose (!chose && !broken && claims_of(counted(ex)) && touches && \
	(st!=1 || (holds(cl,OLD,SEEN) && (!sawd || holds(cl,NEW,T1)))))
#define can_undo (!chose && !broken && st==1 && CANCEL && holds(ex,OLD,R0) && holds(cl,OLD,T0) && \
	(holds(counted(ex),NEW,R1) || MISTAKE==12) && (!sawd || MISTAKE==11))
inline better(x) {
	if
	:: in(counted(ex)&listed,x) && (bep==255 || m[x].ep>bep || (m[x].ep==bep && m[x].seq>seq)) ->
		bep=m[x].ep; seq=m[x].seq; h[1]=m[x].h[1]; h[2]=m[x].h[2]
	:: else
	fi
}
inline choose() {
	chose=true; bep=255;
	better(0); better(1); better(2); better(3) FIFTH_OF(better); bep=0;
	/* It is its own change from here on. */
	if :: st==1 -> re=ep; ve=1; dd=(sawd && MISTAKE!=17) :: else fi
}
inline undo() {
	st=0; undid=true; chose=true; bep=255;
	better(0); better(1); better(2); better(3) FIFTH_OF(better); bep=0;
	re=ep; ve=1;
	printf("owner %d takes back what another began\n", id)
}

/* I9 in each roster that counts, for what is made anew, or claimed after the open. Before the change
 * is settled, the new mirror is made anew while MEET of OLD hold the claim: they meet the claims of
 * whoever completes the change without having seen the mark. The others are asked at once (ask.pml). */
#define settled(x) in((st==2 -> NEW : OLD),x)
#define joins(x) (open && !settled(x))
#define meets (st!=1 || holds(owned(ALL),OLD,MEET))
#define anew_old(x) (st==2 || (in(OLD,x) -> N0>1 && holds(owned(but(OLD,x)),ALL,T0) : meets))
#define anew_new(x) (!in(NEW,x) || st==0 || (N1>1 && holds(owned(but(NEW,x)),ALL,T1)))
#define allowed(x) (joins(x) -> meets : anew_old(x) && anew_new(x))
#define asked(x) (!in(late,x) || joins(x) || allowed(x))
/* Where a claimer saw the mark, the new roster may count alone somewhere. What it leaves on a mirror
 * that is to leave would outlive its claims, where one that stays loses its memory. */
#define may_write(x) (open || st!=1 || !dd || in(NEW,x) || holds(gd,NEW,W1) || MISTAKE==18)
#define can_adopt(x) (chose && mine(x) && !in(gd,x) && in(listed|NEW,x) && asked(x) && may_write(x) && \
	(in(listed,x) || open) && (m[x].joining || m[x].ep!=ep || m[x].seq<seq))
/* Made anew, the new mirror's image has another id, which the joint roster lists, as a newer one.
 * Once it is settled that is left out. */
#define unlisted(x) (IDS && in(FRESH,x) && (st==0 -> m[x].ep!=ep : bears!=lists))
inline new_id(x) {
	if
	:: st==2 -> bears=lists
	:: else -> ids++; bears=ids
	fi;
	if
	:: st==1 -> lists=ids; re=ep; ve++; vis=0; dv=0; has_it=with(0,x); rc=0
	:: else
	fi;
	m[x].re=re; m[x].ve=ve; m[x].st=st; m[x].dd=dd; m[x].lists=lists
}
inline adopt(x) {
	if :: unlisted(x) -> new_id(x) :: else fi;
	m[x].h[1]=(seq>0 -> h[1] : 0); m[x].h[2]=(seq>1 -> h[2] : 0);
	m[x].seq=seq; m[x].ep=ep; m[x].joining=false; gd=with(gd,x); late=but(late,x);
	printf("owner %d fills %d: epoch %d seq %d\n", id, x, ep, seq)
}
#define can_ask(x) (LOSSES>0 && open && !m[x].has && reach(x) && in(listed,x) && !unasked(x) && \
	allowed(x) && !in(may,x))
#define unasked(x) (!open || (!settled(x) && (st==0 || MISTAKE==19)))
#define may_make(x) (unasked(x) || in(may,x))
#define can_make(x) (!m[x].has && chose && may_make(x) && reach(x) && (open || LOSSES>0) && \
	(in(listed,x) -> (open || (claims_of(counted(ex)) && !broken)) : open && in(NEW,x)))
inline make(x) {
	m[x].has=true; m[x].prom=ep; m[x].by=id; m[x].joining=true; m[x].ep=0; m[x].seq=0;
	m[x].re=re; m[x].ve=ve; m[x].st=st; m[x].dd=dd; m[x].lists=lists;
	gd=but(gd,x); late=with(late,x); may=but(may,x); rc=with(rc,x);
	if :: !open -> cl=with(cl,x) :: else fi;
	if :: st==1 -> vis=but(vis,x); has_it=with(has_it,x) :: else fi;
	if :: st==1 && dd -> dv=with(dv,x) :: else fi;
	printf("owner %d makes %d\n", id, x)
}

#define whole(x) (mine(x) && !m[x].joining && m[x].ep==ep && in(gd,x))
#define wholes (whole(0)+2*whole(1)+4*whole(2)+8*whole(3) COUNT_FIFTH(whole))
#define can_begin (open && st==0 && begun<BEGINS && OLD!=NEW && holds(owned(ALL),OLD,SEEN) && \
	holds(wholes,NEW&(ALL-OLD),N1-bits(OLD&NEW)) && \
	(!ADMIT || (!inflight && holds(wholes,NEW,W1) && holds(wholes,OLD,W0))))
inline begin() {
	cover(9); begun++; re=ep; ve++; st=1; vis=0; dv=0; has_it=0; rc=0; lists=bears;
	printf("owner %d begins a change\n", id)
}
#define can_record(x) (chose && mine(x) && re>0 && ranks(x)<rank && may_write(x) && \
	(!dd || sawd || whole(x) || st!=1))
inline record(x) {
	m[x].re=re; m[x].ve=ve; m[x].st=st; m[x].dd=dd; m[x].lists=lists; rc=with(rc,x);
	if :: st==1 -> vis=with(vis,x); has_it=with(has_it,x) :: else fi;
	if :: st==1 && dd -> dv=with(dv,x) :: else fi;
	printf("owner %d records %d.%d state %d mark %d on %d\n", id, re, ve, st, dd, x)
}
/* Both, for an open owner and for a claimer that completes a change. */
#define can_decide (chose && st==1 && !dd && !inflight && holds(vis,OLD,SEEN) && \
	holds(counted(gd&has_it),NEW,W1))
#define can_settle (chose && st==1 && !inflight && \
	((dd && holds(vis,OLD,SEEN) && holds(counted(dv&gd),NEW,(MISTAKE==15 -> 1 : W1))) || \
	(MISTAKE==14 && holds(vis,OLD,SEEN) && holds(counted(gd&has_it),NEW,W1))))
inline settle() { st=2; ve++; dd=false; rc=0; cover(1); printf("owner %d settles\n", id) }
#define can_cancel (open && CANCEL && st==1 && \
	((!dd && !sawd) || (MISTAKE==13 && !sawd) || MISTAKE==16))
inline cancel() {
	st=0; ve++; dd=false; vis=0; dv=0; rc=0; cover(2);
	printf("owner %d takes the change back\n", id)
}

#define can_open (chose && !open && !broken && (st==2 || holds(ex,OLD,R0) || st==0) && \
	holders(gd) && \
	(!undid || holds(rc,OLD,CREC)))
inline returns() {
	printf("owner %d is open: seq %d, roster %d.%d state %d\n", id, seq, re, ve, st);
	if :: undid -> cover(3) :: else fi;
	if :: undid && acked[1]!=0 -> cover(4) :: else fi;
	if :: id==2 && (m[0].st==1 || m[1].st==1) -> cover(5) :: else fi;
	assert(acked[1]==0 || (seq>0 && h[1]==acked[1]));
	assert(acked[2]==0 || (seq>1 && h[2]==acked[2]));
	if :: seq>0 -> acked[1]=h[1] :: else fi;
	if :: seq>1 -> acked[2]=h[2] :: else fi;
	open=true; cl=0; ex=0
}
#define can_post (open && owned(ALL)!=0 && !inflight && seq<POSTS)
#define can_apply(x) (open && seq>0 && mine(x) && !m[x].joining && m[x].ep==ep && \
	m[x].seq+1==seq && !in(gd,x))
inline apply(x) { m[x].h[seq]=h[seq]; m[x].seq=seq; gd=with(gd,x) }
#define can_return (inflight && holders(gd))
inline acknowledge() {
	if :: st==1 -> cover(7) :: else fi;
	if :: st==0 && begun>0 && re>0 -> cover(6) :: else fi;
	if :: begun>0 && id==1 -> cover(8) :: else fi;
	if :: st==2 && ids>0 && in(gd,F) -> cover(10) :: else fi;
	assert(acked[seq]==0 || acked[seq]==id);
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
	byte re, ve, st;        /* the newest roster that it knows */
	bool dd;                /* it is decided: the mark may be somewhere */
	byte cl;        /* claimed */
	byte ex;        /* claimed and examined */
	byte gd;        /* known to hold the state */
	byte vis;       /* known to hold the joint roster */
	byte dv;        /* known to hold it with the mark */
	byte rc;        /* known to hold what is the newest */
	byte lists;     /* the id that it has for the new mirror's image */
	byte has_it;    /* know the joint roster, with what they had or since they were made */
	byte may;       /* lost, and enough others were asked since: may be made anew */
	byte late;      /* made or claimed after the open */
	bool sawd;      /* the mark was seen */
	bool undid;
	bool dead, chose, open, inflight;

#ifdef FIVE
	if
	:: d_step { id==1 -> chose=true; open=true; gd=(OLD|FRESH)&(ALL-DEAD) }
	:: id==3 -> acked[1]!=0
	:: else
	fi;
#endif
	do
	EACH(CLAIM)
	EACH(ADOPT)
	EACH(ASK)
	EACH(MAKE)
	EACH(RECORD)
	EACH(APPLY)
	:: d_step { !dead && can_choose -> choose() }
	:: d_step { !dead && can_undo -> undo() }
	:: d_step { !dead && can_open -> returns() }
	:: d_step { !dead && can_begin -> begin() }
	:: d_step { !dead && can_decide && MISTAKE!=14 -> dd=true; ve++; rc=0 }
	:: d_step { !dead && can_settle -> settle() }
	:: d_step { !dead && can_cancel -> cancel() }
	:: d_step { !dead && can_post -> seq++; h[seq]=id; inflight=true; gd=0 }
	:: d_step { !dead && can_return -> acknowledge() }
	od
}
inline lose(x) {
	losses++;
	m[x].has=false; m[x].joining=false; m[x].prom=0; m[x].by=0;
	m[x].re=0; m[x].ve=0; m[x].st=0; m[x].dd=false; m[x].lists=0;
	if :: in(FRESH,x) -> bears=0 :: else fi;
	m[x].ep=0; m[x].seq=0; m[x].h[1]=0; m[x].h[2]=0;
	printf("mirror %d loses its memory\n", x)
}
#define LOSE(x) :: d_step { losses<LOSSES && m[x].has && in(LOSABLE,x) -> lose(x) }

proctype weather() {
	do
	EACH(LOSE)
	od
}

init {
	byte i, e=1;

	atomic {
		do
		:: i<M ->
			m[i].has=in(OLD|(OPEN*FRESH),i);
			if
			:: OPEN && m[i].has -> m[i].prom=1; m[i].by=!in(DEAD,i); m[i].ep=1
			:: else
			fi;
			i++
		:: else -> break
		od;
		i=1;
		do
		:: i<=OWNERS -> run owner(i, e); i++; e++
		:: else -> break
		od;
		i=0; e=0;
		if :: LOSSES>0 -> run weather() :: else fi
	}
}
/*
 * full holds -DPOSTS=1 -DNEW=11 -DDEAD=4: three, W=2, a dead one replaced
 * full holds -DW0=3 -DNEW=11 -DDEAD=4 -DPOSTS=1: W=3, the first owner never open
 * full holds -DOLD=3 -DNEW=5 -DW0=2: two mirrors, one replaced
 * full holds -DOLD=1 -DNEW=3 -DW0=1 -DW1=2 -DOWNERS=3 -DPOSTS=1: a second one added, three owners
 * full holds -DOLD=3 -DNEW=1 -DW0=2 -DW1=1 -DOWNERS=3 -DPOSTS=1: one of two removed, three owners
 * full holds -DOLD=1 -DNEW=2 -DW0=1 -DOWNERS=3 -DPOSTS=1: the only one replaced, three owners
 * full holds -DOLD=1 -DNEW=2 -DW0=1 -DOWNERS=3 -DPOSTS=1 -DBEGINS=2: .. begun again after that
 * quick holds -DNEW=5 -DDEAD=4 -DDEAD2=4: a live one removed while another is dead
 * full holds -DOLD=1 -DNEW=2 -DW0=1 -DLOSSES=1: the only one replaced, and one loss
 * quick holds -DOLD=1 -DNEW=3 -DW0=1 -DW1=2 -DPOSTS=1 -DLOSSES=1: a second one added, and one loss
 * full holds -DOLD=3 -DNEW=1 -DW0=2 -DW1=1 -DPOSTS=1 -DLOSSES=1: one of two removed, and one loss
 * full holds -DOLD=3 -DNEW=5 -DW0=2 -DPOSTS=1 -DLOSSES=1: one of two replaced, and one loss
 * full holds -DNEW=5 -DDEAD=4 -DDEAD2=4 -DPOSTS=1 -DLOSSES=1: one of three removed, and one loss
 * full holds -DOWNERS=3 -DPOSTS=1 -DLOSSES=1 -DDEAD=4 -DDEAD2=2 -DCANCEL=0: .. by three owners
 * full holds -DOWNERS=3 -DPOSTS=1 -DLOSSES=1 -DDEAD=4 -DDEAD3=1 -DCANCEL=0: .. of other mirrors
 * full holds -DNEW=5 -DDEAD=4 -DDEAD2=4 -DCANCEL=0 -DCOVER=5: .. none may: no open ends
 * full holds -DNEW=5 -DDEAD=4 -DDEAD2=4 -DADMIT=1 -DCANCEL=0 -DCOVER=9: .. it is not begun
 * quick event -DNEW=5 -DDEAD=4 -DDEAD2=4 -DCOVER=4: .. the next one takes it back, after a commit
 * full event -DNEW=5 -DDEAD=4 -DDEAD2=4 -DCOVER=6: .. the owner takes it back and commits
 * full event -DW0=3 -DNEW=11 -DDEAD=4 -DPOSTS=1 -DCOVER=1: W=3: a change is settled
 * full found -DPOSTS=1 -DNEW=11 -DDEAD=4 -DMISTAKE=11: a claimer takes back what has the mark
 *   in the code: sim unmarked
 * full found -DPOSTS=1 -DNEW=11 -DDEAD=4 -DMISTAKE=12: taken back without R of the new roster
 *   in the code: unit test_roster_cancel test_not_without_r_of_the_new_roster
 * full found -DPOSTS=1 -DNEW=11 -DDEAD=4 -DMISTAKE=14: settled without a mark
 *   in the code: unit test_roster_cancel test_what_is_decided_is_completed
 * full found -DPOSTS=1 -DNEW=11 -DDEAD=4 -DMISTAKE=15: the mark on fewer than W1
 *   in the code: unit test_roster_cancel test_the_mark_counts_on_w_of_the_new_one
 * full found -DOLD=1 -DNEW=3 -DW0=1 -DW1=2 -DOWNERS=3 -DPOSTS=1 -DMISTAKE=16: its mark was seen
 *   in the code: unit test_roster_cancel test_the_mark_is_kept_by_who_sees_it
 * full found -DOLD=1 -DNEW=2 -DW0=1 -DOWNERS=3 -DPOSTS=1 -DMISTAKE=17: the mark is not kept
 *   in the code: unit test_roster_cancel test_the_mark_is_kept_by_who_sees_it
 * full found -DOWNERS=3 -DPOSTS=1 -DLOSSES=1 -DDEAD=4 -DDEAD2=2 -DCANCEL=0 -DMISTAKE=18: a leaving one too
 *   in the code: unit test_decided_roster what_is_acknowledged_after_an_open_that_failed_is_found
 * quick holds -DFIVE -DDEAD=9: one of four replaced, and the new one lost while two do not answer
 * full holds -DFIVE -DDEAD=1: .. while one does not answer
 * full event -DFIVE -DDEAD=1 -DCOVER=10: .. it is made anew, and a commit goes through it
 * quick found -DFIVE -DDEAD=9 -DMISTAKE=19: .. it is made anew and nobody is asked
 *   in the code: sim joint-unasked
 */
