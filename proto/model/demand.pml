/*
 * demand.pml - an owner that has opened a store without reading it, and fetches a page from a
 * mirror when the page is touched: "Recovery on demand" of PROTOCOL.md.
 *
 * Owner 1 is open with epoch 1, and one page is missing in its memory. A fetch is Status, Read and
 * Status at one mirror: three steps, with anything between them and before the page is filled. With
 * FETCHES=2 each of the two lanes has one. To look whether the page is missing and to fill it is one
 * step. With DISCARDS the application may discard the page, which is lost then.
 * Meanwhile the owner commits (to this page only while the page is here), unmaps and maps, takes a
 * mirror up again that fell behind, copies to one (in place, or beside) and renews its claims.
 * Owner 2 claims, mends, adopts and commits; it may stop for ever anywhere. A mirror applies what
 * was sent to it in order, and as late as it likes: the page's bytes first, then the slot.
 *
 * Property: a page is filled with what the last transaction of this owner left in it: never with
 * something older, with zeros, or with what another owner wrote.
 *
 * A page has the number of the transaction that wrote it; 0 is what an image has that was made
 * anew. Left out: what becomes of commits (core.pml, renew.pml), rosters that change, several
 * pages, and whole copies that a renewal takes from another mirror.
 */
#ifndef N
#define N 2             /* mirrors */
#endif
#ifndef W
#define W 1
#endif
#ifndef S
#define S 2             /* transactions of owner 1 */
#endif
#ifndef MAPS
#define MAPS 2          /* times it maps the segment */
#endif
#ifndef COPIES
#define COPIES 1        /* times a mirror is copied to */
#endif
#ifndef FETCHES
#define FETCHES 1       /* of the page at a time */
#endif
#ifndef RENEWALS
#define RENEWALS 1
#endif
#ifndef DISCARDS
#define DISCARDS 0
#endif
#ifndef MISTAKE
#define MISTAKE 0
#endif
#ifndef COVER
#define COVER 0
#endif
#define R (N-W+1)
#define FIRST 1         /* what the page holds when owner 1 opens */
#define STALE 8         /* .. on a mirror that has not followed */
#define OTHER 9         /* what owner 2 writes */
#define cover(n) assert(COVER!=n)

#if N==2
#define EACH(step) step(0) step(1)
#define count(of) (of(0)+of(1))
#else
#define EACH(step) step(0) step(1) step(2)
#define count(of) (of(0)+of(1)+of(2))
#endif
#define in(v, x) (((v)>>(x))&1)
#define with(v, x) ((v)|(1<<(x)))

typedef mirror {
	byte prom, own;         /* promised: epoch and owner */
	byte ep, seq;           /* the slot */
	byte v;                 /* the page */
	byte changed;           /* generation and rewrites */
	bool whole;
	bool link;              /* owner 1 has a session */
	bool ahead;             /* the page is that of the next transaction already */
	bool beside;            /* is copied to, beside what it has */
};
mirror m[N];

/* Owner 1. */
byte hist[S+1];                 /* the page after each transaction */
byte seq, epoch = 1, tried;     /* of which the last was posted; the epochs of its claims */
byte left;                      /* the last transaction when the segment was unmapped */
byte maps = 1, copies, renewals;
bool mapped = true, here, renews, fenced;
bool gone;                      /* the page was here, and is discarded */
byte claimed, adopted;          /* of a renewal */
byte claims2;                   /* mirrors that owner 2 has claimed */

/* The mirrors. */
#define sent(x) (m[x].link && m[x].own==1 && m[x].ep==epoch && m[x].seq<seq)
#define next(x) hist[m[x].seq+1]
#define WRITE(x) :: d_step { sent(x) && !m[x].ahead -> m[x].ahead=true; \
	m[x].v=(m[x].whole || next(x)!=hist[m[x].seq] -> next(x) : m[x].v) }
#define SLOT(x)  :: d_step { sent(x) && m[x].ahead -> m[x].seq++; m[x].ahead=false }
/* What was begun is put back when another claims, or the owner comes again. */
inline mend(x) {
	m[x].link=false;
	if
	:: m[x].ahead -> m[x].v=(m[x].whole -> hist[m[x].seq] : m[x].v); m[x].ahead=false
	:: else
	fi
}
proctype mirrors() {
	do
	EACH(WRITE)
	EACH(SLOT)
	od
}

/* Owner 2. */
#define has2(x) (in(claims2,x) && m[x].prom==e)
#define CLAIM2(x) :: d_step { !chosen && m[x].prom<e -> mend(x); m[x].prom=e; m[x].own=2; \
	claims2=with(claims2,x); m[x].beside=false }
#define STANDS(x) (has2(x) && m[x].whole)
#define TAKE(x) \
	if \
	:: STANDS(x) && (m[x].ep>bep || (m[x].ep==bep && m[x].seq>=bseq)) -> \
		bep=m[x].ep; bseq=m[x].seq; bv=m[x].v \
	:: else \
	fi;
#define ADOPT2(x) :: d_step { chosen && has2(x) && m[x].ep<e -> m[x].ep=e; m[x].seq=bseq; \
	m[x].v=bv; m[x].whole=true; m[x].changed++ }
#define COMMIT2(x) :: d_step { chosen && has2(x) && m[x].ep==e && m[x].v!=OTHER -> m[x].v=OTHER }
proctype other() {
	byte e, bep, bseq, bv;
	bool chosen;

	d_step { e=epoch+1 };
	do
	EACH(CLAIM2)
	:: d_step { !chosen && count(STANDS)>=R -> EACH(TAKE) chosen=true }
	EACH(ADOPT2)
	EACH(COMMIT2)
	od
}

/* Owner 1 goes on. */
#define LIVE(x) (m[x].link && m[x].own==1 && m[x].prom==epoch && m[x].ep==epoch && m[x].whole)
#define others(x) (count(LIVE)-LIVE(x))
#define BREAK(x) :: d_step { m[x].link -> mend(x) }
#define CAN_COPY(x) (copies<COPIES && m[x].own==1 && m[x].prom==epoch && !m[x].link)
#define RESUME(x) :: d_step { !m[x].link && m[x].own==1 && m[x].prom==epoch && m[x].ep==epoch && \
	m[x].whole && !m[x].beside && !renews -> m[x].link=true }
#define JOIN(x)   :: d_step { CAN_COPY(x) && m[x].whole && !m[x].beside && others(x)>=W && !renews \
	-> copies++; m[x].whole=false; m[x].changed++; m[x].v=0; m[x].seq=seq; m[x].link=true }
#define BESIDE(x) :: d_step { CAN_COPY(x) && m[x].whole && !m[x].beside && !renews -> \
	copies++; m[x].beside=true }
/* All memory is here, or, of a segment that is not mapped, on another mirror. */
#define all_is_here ((here && !gone) || MISTAKE==5)
#define CAN_END(x) ((m[x].beside || (!m[x].whole && m[x].link && m[x].seq==seq)) && \
	m[x].own==1 && m[x].prom==epoch && !renews)
#define END(x) :: d_step { CAN_END(x) && (mapped -> all_is_here : others(x)>0) -> \
	m[x].v=(mapped && !here -> 0 : hist[seq]); m[x].ep=epoch; m[x].seq=seq; m[x].whole=true; \
	m[x].beside=false; m[x].changed++; m[x].link=true }

/* A renewal: R are claimed, and none of them has the slot of another owner. */
#define MINE(x) (in(claimed,x) && m[x].prom==tried && m[x].own==1)
#define FOREIGN(x) (in(claimed,x) && m[x].ep>epoch)
#define DONE(x) (in(adopted,x) && m[x].prom==tried && m[x].own==1)
#define LOST(x) (m[x].own==2)
#define CLAIM1(x) :: d_step { renews && m[x].prom<tried -> mend(x); m[x].prom=tried; m[x].own=1; \
	m[x].beside=false; claimed=with(claimed,x) }
#define ADOPT1(x) :: d_step { renews && count(MINE)>=R && count(FOREIGN)==0 && MINE(x) && \
	!in(adopted,x) && m[x].whole && m[x].ep==epoch -> m[x].v=hist[seq]; m[x].seq=seq; \
	m[x].ep=tried; m[x].link=true; adopted=with(adopted,x) }
/* Whole copies, where the others are too few. */
#define COPY1(x)  :: d_step { renews && count(MINE)>=R && count(FOREIGN)==0 && MINE(x) && \
	!in(adopted,x) && (here || MISTAKE==6) -> m[x].v=(here -> hist[seq] : 0); m[x].seq=seq; \
	m[x].ep=tried; m[x].whole=true; m[x].changed++; m[x].link=true; adopted=with(adopted,x) }

inline commit() {
	seq++; hist[seq]=hist[seq-1];
	if
	:: mapped && here && !gone -> hist[seq]=FIRST+seq
	:: true
	fi
}
proctype owner() {
	do
	EACH(BREAK)
	EACH(RESUME)
	EACH(JOIN)
	EACH(BESIDE)
	EACH(END)
	:: d_step { seq<S && !renews && !fenced -> commit() }
	:: d_step { mapped && maps<MAPS -> mapped=false; here=false; gone=false; left=seq }
	:: d_step { !mapped -> mapped=true; maps++ }
	:: d_step { MISTAKE==7 && here -> here=false }
	:: d_step { DISCARDS && here && !gone -> gone=true }
	:: d_step { !renews && !fenced && renewals<RENEWALS && count(LOST)>0 ->
		renewals++; renews=true; tried=epoch+2; claimed=0; adopted=0 }
	EACH(CLAIM1)
	EACH(ADOPT1)
	EACH(COPY1)
	:: d_step { renews && count(FOREIGN)>0 -> renews=false; fenced=true }
	:: d_step { renews && count(DONE)>=W && count(MINE)>=R -> renews=false; epoch=tried }
	od
}

/* A fetch of the page. What is asked for is noted before the first answer. */
#define promised(x, e) (m[x].own==1 && m[x].prom==e)
#define is_whole(x) (m[x].whole || MISTAKE==3)
#define holds(x) (m[x].ep==e && (m[x].seq>=l || MISTAKE==2))
#define is_missing (!here || MISTAKE==12)
#define fits (mapped && !fenced && (map==maps || MISTAKE==9))
#define ASK(x) :: d_step { !here && mapped && !fenced && (!renews || MISTAKE==10) -> \
	from=x; e=epoch; l=left; map=maps }
inline fill() {
	assert(v==hist[seq]);
	here=true;
	gone=false;
	if :: m[from].seq<seq -> cover(1) :: else fi;
	if :: e>1 -> cover(2) :: else fi;
	if :: m[from].beside -> cover(3) :: else fi;
	if :: claims2!=0 -> cover(4) :: else fi;
	if :: maps>1 && l>0 -> cover(5) :: else fi
}
proctype fetch() {
	byte from, e, l, map, changed, v;

again:	if
	EACH(ASK)
	fi;
	/* Status. */
	if
	:: d_step { promised(from, e) && is_whole(from) && (holds(from) || MISTAKE==4) ->
		changed=m[from].changed }
	:: d_step { else -> from=0; e=0; l=0; map=0 }; goto again
	fi;
	d_step { v=m[from].v };         /* Read */
	/* Status. */
	if
	:: d_step { (promised(from, e) || MISTAKE==1) && is_whole(from) &&
		(changed==m[from].changed || MISTAKE==8 || MISTAKE==1) }
	:: else -> goto drop
	fi;
	if
	:: d_step { MISTAKE!=11 && is_missing && fits -> fill() }
	:: MISTAKE==11 && is_missing && fits ->
		/* The kernel keeps a page that it has. */
		if
		:: d_step { (!here || gone) && fits -> fill() }
		:: else
		fi
	:: else
	fi;
drop:	skip;
	d_step { from=0; e=0; l=0; map=0; changed=0; v=0 };
	goto again
}

init {
	atomic {
		hist[0]=FIRST;
		m[0].prom=1; m[0].own=1; m[0].ep=1; m[0].v=FIRST; m[0].whole=true; m[0].link=true;
		m[1].prom=1; m[1].own=1; m[1].whole=true; m[1].v=STALE;
		if
		:: m[1].ep=1; m[1].v=FIRST; m[1].link=true
		:: W<N
		fi;
#if N>2
		m[2].prom=1; m[2].own=1; m[2].ep=1; m[2].v=FIRST; m[2].whole=true; m[2].link=true;
#endif
		run mirrors(); run owner(); run other(); run fetch();
#if FETCHES>1
		run fetch();
#endif
	}
}
/*
 * quick holds -DW=1: two mirrors, one is enough
 * full holds -DW=2: both are needed
 * full holds -DFETCHES=2 -DRENEWALS=0: both lanes fetch the page at a time
 * full holds -DFETCHES=2 -DRENEWALS=0 -DDISCARDS=1 -DCOPIES=0: .. and it is discarded
 * full holds -DN=3 -DW=2 -DMAPS=1: three mirrors
 * quick found -DMISTAKE=1: the promise is not looked at again after the Read
 *   in the code: sim later
 * quick found -DMISTAKE=2: what the mirror held when the segment was unmapped is not looked at
 *   in the code: sim lags
 * quick found -DMISTAKE=3: an image that is not whole gives pages
 *   in the code: sim half
 * quick found -DMISTAKE=4: the slot is not looked at
 *   in the code: unit test_source test_it_is_not_adopted
 * quick found -DMISTAKE=5: a mirror is copied to while the page is missing
 *   in the code: sim unfetched
 * quick found -DMISTAKE=6: .. by a renewal
 *   in the code: sim renewed
 * quick found -DMISTAKE=7: a page that was discarded is fetched again
 *   in the code: unit test_demand test_a_page_is_discarded
 * full found -DMISTAKE=9 -DFETCHES=2 -DRENEWALS=0: an answer fills another mapping
 *   in the code: sim outlives
 * full found -DMISTAKE=11 -DFETCHES=2 -DRENEWALS=0 -DDISCARDS=1: a lane looks, and fills later
 *   in the code: sim discarded
 * full found -DMISTAKE=12 -DFETCHES=2 -DRENEWALS=0: what one lane has filled, the other fills again
 *   in the code: sim filled-again
 * full holds -DMISTAKE=8: generations are not compared; the mapping's number and the slot suffice
 * full holds -DMISTAKE=10: a renewal goes on meanwhile; the promise and the slot suffice
 * full event -DCOVER=1: filled by a mirror that lags
 * full event -DCOVER=2: .. after a renewal
 * full event -DCOVER=3: .. by an image that is copied to beside
 * full event -DCOVER=4: .. while another owner has a mirror
 * full event -DCOVER=5: .. in a second mapping
 */
