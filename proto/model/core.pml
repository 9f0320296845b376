/*
 * core.pml - claims, the choice of the state, adoption, commits, and mirrors that lose their
 * memory: I4 to I9 of PROTOCOL.md on a fixed roster.
 *
 * A step at one mirror is atomic; steps of owners interleave at will. An owner may stop for ever
 * anywhere (its next step is never taken), and one that is fenced goes on until a mirror tells it.
 * What an owner decides, it decides by what mirrors told it before: a mirror may have lost its
 * memory, or promised more, since. A claimer whose session broke begins again, which is what
 * another owner does: here it just ends.
 *
 * Properties: what was acknowledged, or shown by an open, before a claimer asked the first mirror
 * to confirm is in the state that its open returns (it may be fenced while the others are asked),
 * is never acknowledged with other contents, and stays on W whole images less the copies of it that
 * were lost; two images with the same slot have the same contents.
 *
 * To ask a mirror whether a claim still stands (Confirm), and to be answered, is one step, or two or
 * three of their own: a request may then reach the mirror late, an answer may reach the owner late, and
 * an open owner may stop waiting and ask again (ASKING, below).
 *
 * Left out: rosters that change (roster.pml), steps within a resync, sessions that break without a
 * loss, several commits under way, image ids and spills; undo, data and slot as steps of their own
 * (the crash tests show those).
 *
 * Five mirrors are checked within a bound: all states of two owners, of which the first has the store
 * open on all mirrors at the start, with one transaction, and no memory lost; with a loss, 20 million
 * states were not all (the simulator's schedules lose memory with five mirrors, too).
 *
 * Without loss of generality, since mirrors and owners differ only by their numbers: the first
 * loss is mirror 0's, and owners are numbered by epoch (two of them may have the same).
 */
#ifndef N
#define N 3             /* mirrors: 1, 2, 3, or 5 */
#endif
#ifndef W
#define W 2
#endif
#ifndef OWNERS
#define OWNERS 2
#endif
#ifndef LOSSES
#define LOSSES 1        /* times a mirror loses its memory */
#endif
#ifndef MISTAKE
#define MISTAKE 0
#endif
#ifndef COVER
#define COVER 0
#endif
#ifndef START
#define START 0         /* 1: owner 1 is open already, on all mirrors */
#endif
#ifndef POSTS
#define POSTS S         /* transactions of one owner's */
#endif
#ifndef INPLACE
#define INPLACE 1       /* 0: no resync in place */
#endif
#ifndef ASKING
#define ASKING 0        /* 0: at once; 1: the answer may be late; 2: the request, too */
#endif
#ifndef MATCH
#define MATCH 0         /* what an answer counts for */
#endif
#define BY_ID 0         /* what was asked since the event; a request that timed out has none */
#define BY_KIND 1       /* the question that is asked now: late ones answer newer questions */
#define BEFORE 2        /* its own question, also where the event came after that */
#define R (N-W+1)
#define S 2             /* transactions of a history */
#define cover(n) assert(COVER!=n)

/* I9: how many others must acknowledge what an open owner claims or makes anew, and a claimer. */
#ifndef OTHERS
#define OTHERS ((W>R -> W : R) > N-1 -> N-1 : (W>R -> W : R))
#endif
#ifndef CLAIMER
#define CLAIMER (R>N-1 -> N-1 : R)
#endif

#if N==1
#define EACH(step) step(0)
#elif N==2
#define EACH(step) step(0) step(1)
#elif N==3
#define EACH(step) step(0) step(1) step(2)
#else
#define EACH(step) step(0) step(1) step(2) step(3) step(4)
#endif
#define bits(v) (((v)&1)+(((v)>>1)&1)+(((v)>>2)&1)+(((v)>>3)&1)+(((v)>>4)&1))
#define in(v, x) (((v)>>(x))&1)
#define with(v, x) ((v)|(1<<(x)))
#define but(v, x) ((v)&(31-(1<<(x))))

typedef image {
	bool has;               /* the store is there */
	bool joining;           /* not whole */
	bool harmless;          /* joining began in place while W others held everything (I8) */
	byte prom, by;          /* promised epoch, and to whom */
	byte ep, seq;           /* commit slot */
	byte h[S+1]             /* h[s]: the owner that made transaction s */
};
image m[N];
byte acked[S+1];                /* whose transaction s was acknowledged or shown; 0: none */
byte lost[(S+1)*(OWNERS+1)];    /* copies of s, by its owner, that were lost */
byte losses;

#define mine(x) (m[x].has && m[x].prom==ep && m[x].by==id)

/* I8: after every write that is none of a transaction's. */
#define copy(x) (m[x].has && !m[x].joining && m[x].seq>=k && m[x].h[k]==acked[k])
#if N==1
#define COPIES copy(0)
#elif N==2
#define COPIES (copy(0)+copy(1))
#elif N==3
#define COPIES (copy(0)+copy(1)+copy(2))
#else
#define COPIES (copy(0)+copy(1)+copy(2)+copy(3)+copy(4))
#endif
inline copies() {
	k=1;
	do
	:: k<=S -> assert(acked[k]==0 || COPIES+lost[k*(OWNERS+1)+acked[k]]>=W); k++
	:: else -> break
	od; k=0
}

/* A claimed image is a candidate for the state: the highest (epoch, seq) wins (I6). */
inline examine(x) {
	if
	:: !m[x].joining || MISTAKE==1 ->
		if
		:: !some || m[x].ep>bep || (m[x].ep==bep && m[x].seq>seq) ->
			some=true; bep=m[x].ep; seq=m[x].seq;
			h[1]=m[x].h[1]; h[2]=m[x].h[2]
		:: else
		fi;
		ex=with(ex,x)
	:: m[x].joining && m[x].harmless && MISTAKE!=1 -> ex=with(ex,x)
	:: else
	fi
}
inline forget() {
	dead=true; some=false; adopted=false; seq=0; bep=0; h[1]=0; h[2]=0;
	cl=0; ex=0; gd=0; cf=0; wa=0; rq=0; yes=0; anew=0; must=0; made=false; sure=false
}

/* I5: the owner before is cut off. A mirror that was claimed before: that session broke. */
#define can_claim(x) (m[x].has && ep>m[x].prom && anew==0)
inline claim(x) {
	m[x].prom=ep; m[x].by=id;
	if
	:: !open && in(cl,x) && MISTAKE!=9 -> forget()
	:: else ->
		ex=but(ex,x); gd=but(gd,x);
		if
		:: open && MISTAKE!=13 -> anew=x+1; made=true; ask_again()
		:: open && MISTAKE==13 -> skip
		:: !open && MISTAKE==6 && ex!=0 -> cl=with(cl,x); ex=with(ex,x)
		:: !open && adopted && MISTAKE!=8 ->
			cl=with(cl,x); cover(1)
		:: else -> cl=with(cl,x); examine(x)
		fi;
		if :: !open -> sure=false; ask_again() :: else fi;
		printf("owner %d claims %d: epoch %d seq %d\n", id, x, m[x].ep, m[x].seq)
	fi
}

/* I7: only when all those examined, R or more, have confirmed since the last claim: else one of
 * them may have lost its memory, been made anew, and have helped to acknowledge what is overwritten
 * here. By its slot alone where the image is that state already, else by a copy beside it. An open
 * owner resyncs so, too. */
/* From here on only answers to what is asked from here on count. */
inline ask_again() {
	cf=0;
	if
	:: MATCH==BY_ID -> wa=0; rq=0; yes=0
	:: MATCH==BY_KIND -> wa=0
	:: else
	fi
}
#define stand (bits(ex)>=R && ((cf&ex)==ex || (MISTAKE==11 && bits(cf&ex)>=R)))
#define chosen ((some && bits(ex)>=R) || (MISTAKE==2 && bits(ex)>=1) || MISTAKE==7)
#define can_adopt(x) (mine(x) && !in(gd,x) && (open || chosen) && \
	(anew==0 || (anew==x+1 && may_fill(x))) && \
	(open || sure || anew!=0 || MISTAKE==12) && \
	!(open && !m[x].joining && m[x].ep==ep && m[x].seq>=seq))
inline adopt(x) {
	adopted=!open;
	if
	:: !open && !m[x].joining && m[x].ep==bep && m[x].seq==seq && seq>0 ->
		assert(m[x].h[1]==h[1] && (seq<2 || m[x].h[2]==h[2]))
	:: else
	fi;
	m[x].h[1]=(seq>0 -> h[1] : 0); m[x].h[2]=(seq>1 -> h[2] : 0);
	m[x].seq=seq; m[x].ep=ep; m[x].joining=false; m[x].harmless=false;
	gd=with(gd,x); ask_again(); anew=0; made=false; copies();
	printf("owner %d adopts %d: epoch %d seq %d\n", id, x, ep, seq)
}

/* I8: in place, so the old image is gone. */
#define can_join(x) (INPLACE && open && mine(x) && \
	(anew==0 || (anew==x+1 && may_fill(x))) && !m[x].joining && m[x].seq!=seq && \
	!in(gd,x) && (bits(but(gd,x))>=W || MISTAKE==3))
inline join(x) { cover(2); m[x].joining=true; m[x].harmless=true; copies() }

/* I9: the loss is seen, the mirror gets an image that counts for nothing, then the others are asked
 * (asked before, they may be another's by the time that the image is there), then it is filled. A
 * mirror that an open owner claims late is as one made anew: it may have lost its memory since, and
 * have been made anew by another. */
/* A claimer makes none anew that it had claimed: that session broke. Where it had examined that one,
 * no open of its can end well; else it goes on without. */
#define can_see(x) (!m[x].has && anew==0 && (open || (chosen && !in(cl,x))))
#define can_make(x) (anew==x+1 && !made && !m[x].has)
#define may_fill(x) (made && (MISTAKE==4 || (open && bits(but(cf,x))>=OTHERS) || \
	(!open && bits(but(cf,x))>=CLAIMER && stand)))
#define can_sure (!open && !sure && anew==0 && chosen && \
	(stand || MISTAKE==2 || MISTAKE==7))
inline make(x) {
	if :: open -> cover(3) :: else -> cover(4) fi;
	m[x].has=true; m[x].prom=ep; m[x].by=id; m[x].joining=true;
	cl=with(cl,x); ex=but(ex,x); gd=but(gd,x);
	made=true; ask_again();
	printf("owner %d makes %d anew\n", id, x)
}
#define can_drop (anew!=0 && ((!made && m[anew-1].has) || (made && !mine(anew-1))))

/* I6, I7: open returns once all those examined, R or more, and W of those adopted have confirmed
 * their claims. */
#define enough_good (bits(gd)>=W || (MISTAKE==5 && bits(gd)>=1))
#define can_ask(x) ((ASKING!=0 || mine(x)) && !in(cf,x) && !in(wa,x) && !in(rq,x) && (anew!=0 || (!open && chosen && \
	in(cl,x) && (!sure || enough_good))))
/* The mirror answers: yes, or that it is another's, which ends the session's use here. */
inline answer(x) {
	rq=but(rq,x);
	if
	:: mine(x) -> yes=with(yes,x); printf("mirror %d answers owner %d: yes\n", x, id)
	:: !mine(x) && !(MATCH==BY_KIND && in(yes,x)) -> wa=but(wa,x)
	:: else
	fi
}
inline ask(x) {
	if
	:: (cf|wa)==0 -> must=(acked[1]==0 -> 0 : (acked[2]==0 -> 1 : 2))
	:: else
	fi;
	printf("owner %d asks %d\n", id, x);
	if
	:: ASKING==0 -> cf=with(cf,x)
	:: ASKING==1 -> wa=with(wa,x); answer(x)
	:: else -> wa=with(wa,x); rq=with(rq,x)
	fi
}
inline take(x) {
	wa=but(wa,x); cf=with(cf,x);
	if
	:: yes=but(yes,x)
	:: MATCH==BY_KIND       /* there were more that came late */
	fi;
	printf("owner %d takes %d's yes\n", id, x)
}
/* An open owner's sign of life, whose answer comes when nobody waits for it any more (BY_KIND), or
 * counts whenever it comes (BEFORE). */
#define can_beat(x) (MATCH!=BY_ID && open && mine(x) && !in(yes,x) && !in(rq,x) && !in(wa,x))
/* A claimer begins again then, over new connections: it just ends here. */
inline late(x) {
	wa=but(wa,x);
	if :: MATCH!=BY_KIND -> rq=but(rq,x); yes=but(yes,x) :: else fi;
	printf("owner %d waits no longer for %d\n", id, x)
}
#define can_open (!open && anew==0 && chosen && \
	(stand || MISTAKE==2 || MISTAKE==7 || MISTAKE==9) && \
	(bits(cf&gd)>=W || (MISTAKE==5 && bits(cf&gd)>=1)))
inline returns() {
	if :: bep>0 -> cover(5) :: else fi;
	if :: losses>0 -> cover(6) :: else fi;
	k=1;
	do
	:: k<=S ->
		assert(k>must || k<=seq);
		assert(acked[k]==0 || k>seq || h[k]==acked[k]);
		if :: k<=seq && acked[k]==0 -> acked[k]=h[k] :: else fi; k++
	:: else -> break
	od; k=0;
	open=true; later=(bep>0); must=0; ask_again(); ex=0; cl=0; bep=0; some=false; adopted=false;
	printf("owner %d is open: seq %d\n", id, seq)
}

/* I3, I4 */
#define can_post (open && !inflight && anew==0 && seq<POSTS)
#define can_apply(x) (open && seq>0 && m[x].has && !m[x].joining && (MISTAKE==10 || mine(x)) && \
	m[x].seq+1==seq && !in(gd,x) && (m[x].ep==ep || MISTAKE==10))
inline apply(x) {
	m[x].h[seq]=h[seq];
	if
	:: mine(x) -> m[x].seq=seq; gd=with(gd,x)
	:: else -> copies()
	fi
}
#define can_return (inflight && bits(gd)>=W)
inline acknowledge() {
	assert(acked[seq]==0 || acked[seq]==id);
	if :: later -> cover(7) :: else fi;
	acked[seq]=id; inflight=false; copies();
	printf("owner %d: %d is acknowledged\n", id, seq)
}

#define CLAIM(x)   :: d_step { !dead && can_claim(x) -> claim(x) }
#define ADOPT(x)   :: d_step { !dead && can_adopt(x) -> adopt(x) }
#define JOIN(x)    :: d_step { !dead && can_join(x) -> join(x) }
#define SEE(x)     :: d_step { !dead && can_see(x) -> anew=x+1; ask_again() }
#define MAKE(x)    :: d_step { !dead && can_make(x) -> make(x) }
#define ASK(x)     :: d_step { !dead && can_ask(x) -> ask(x) }
#define ANSWER(x)  :: d_step { !dead && in(rq,x) -> answer(x) }
#define TAKE(x)    :: d_step { !dead && in(wa,x) && in(yes,x) -> take(x) }
#define BEAT(x)    :: d_step { !dead && can_beat(x) -> yes=with(yes,x);\
	if :: MATCH==BEFORE -> wa=with(wa,x) :: else fi;\
	printf("mirror %d answers a sign of life of %d, late\n", x, id)}
#define LATE(x)    :: d_step { !dead && open && in(wa,x) && (in(rq,x) || in(yes,x)) && \
	MATCH==BY_KIND -> late(x) }
#define APPLY(x)   :: d_step { !dead && can_apply(x) -> apply(x) }

proctype owner(byte id; byte ep) {
	byte k, seq, bep, anew, must, h[S+1];
	byte cl;        /* claimed */
	byte ex;        /* .. and examined before the first adoption */
	byte gd;        /* known to hold the state */
	byte cf;        /* have confirmed their claims since that was needed */
	byte wa, rq, yes;       /* waits for an answer; request, answer that is under way */
	bool dead, some, adopted, open, later, inflight, made;
	bool sure;      /* those examined have confirmed since the last claim */

	if
	:: START && id==1 -> open=true
	:: else
	fi;
	do
	EACH(CLAIM)
	EACH(ADOPT)
	EACH(JOIN)
	EACH(SEE)
	EACH(MAKE)
	EACH(ASK)
	EACH(ANSWER)
	EACH(TAKE)
	EACH(BEAT)
	EACH(LATE)
	EACH(APPLY)
	:: d_step { !dead && can_drop -> anew=0; made=false; ask_again() }
	:: d_step { !dead && can_sure -> sure=true; ask_again() }
	:: d_step { !dead && can_open -> returns() }
	:: d_step { !dead && can_post -> seq++; h[seq]=id; inflight=true; gd=0; ask_again() }
	:: d_step { !dead && can_return -> acknowledge() }
	od
}

inline lose(x) {
	losses++; k=1;
	do
	:: k<=S ->
		if
		:: !m[x].joining && m[x].seq>=k -> lost[k*(OWNERS+1)+m[x].h[k]]++
		:: else
		fi; k++
	:: else -> break
	od; k=0;
	m[x].has=false; m[x].joining=false; m[x].harmless=false; m[x].prom=0; m[x].by=0;
	m[x].ep=0; m[x].seq=0; m[x].h[1]=0; m[x].h[2]=0;
	printf("mirror %d loses its memory\n", x)
}
#define LOSE(x) :: d_step { losses<LOSSES && m[x].has && (losses>0 || x==0) -> lose(x) }

proctype weather() {
	byte k;

	do
	EACH(LOSE)
	od
}

init {
	byte i, e=1;

	atomic {
		do
		:: i<N -> m[i].has=true; if :: START -> m[i].prom=1; m[i].by=1; m[i].ep=1 :: else fi; i++
		:: else -> break
		od;
		i=1;
		do
		:: i<=OWNERS ->
			run owner(i, e); i++;
			if :: e++ :: !(START && i==2) -> skip fi
		:: else -> break
		od;
		i=0; e=0;
		run weather()
	}
}
/*
 * quick holds -DLOSSES=0: three mirrors
 * full holds -DLOSSES=1: three mirrors, one loss
 * full holds -DW=3 -DLOSSES=2: every mirror has every transaction, two losses
 * full holds -DW=3 -DLOSSES=1: every mirror has every transaction
 * full holds -DW=1 -DLOSSES=1: one mirror is enough
 * full holds -DN=2 -DW=2 -DLOSSES=1 -DOWNERS=3: two mirrors, three owners
 * full holds -DN=2 -DW=1 -DLOSSES=1 -DOWNERS=3: two mirrors, three owners
 * full holds -DN=2 -DW=2 -DLOSSES=2 -DOWNERS=3 -DPOSTS=1: two mirrors, three owners, two losses
 * quick holds -DSTART=1 -DLOSSES=1 -DPOSTS=1 -DINPLACE=0 -DASKING=1: answers may be late, one loss
 * full holds -DSTART=1 -DLOSSES=1 -DPOSTS=1 -DINPLACE=0 -DASKING=2: requests and answers may be late
 * full holds -DN=2 -DW=2 -DLOSSES=1 -DOWNERS=3 -DPOSTS=1 -DASKING=1: two mirrors, three owners, late
 * full holds -DN=5 -DW=2 -DSTART=1 -DLOSSES=0 -DPOSTS=1 -DINPLACE=0: five mirrors, of which two are enough
 * full holds -DN=5 -DW=3 -DSTART=1 -DLOSSES=0 -DPOSTS=1: five mirrors
 * full holds -DN=5 -DW=4 -DSTART=1 -DLOSSES=0 -DPOSTS=1: five mirrors, four have every transaction
 * full holds -DN=5 -DW=5 -DSTART=1 -DLOSSES=0 -DPOSTS=1: five mirrors, all have every transaction
 * quick found -DN=5 -DW=3 -DSTART=1 -DLOSSES=0 -DPOSTS=1 -DMISTAKE=5: open returns before W of five (I7)
 *   in the code: sim unadopted
 * full found -DN=5 -DW=3 -DSTART=1 -DLOSSES=0 -DPOSTS=1 -DMISTAKE=2: fewer than R of five claimed (I6)
 *   in the code: sim few
 * full found -DN=5 -DW=3 -DSTART=1 -DLOSSES=0 -DPOSTS=1 -DMISTAKE=6: not all R of five are examined (I6)
 *   in the code: sim unexamined
 * full hunted -DSTART=1 -DLOSSES=1 -DPOSTS=1 -DINPLACE=0 -DASKING=1 -DMATCH=BY_KIND: late answers (I9)
 *   in the code: sim by-kind
 * full hunted -DSTART=1 -DLOSSES=1 -DPOSTS=1 -DINPLACE=0 -DASKING=1 -DMATCH=BEFORE: asked before (I9)
 *   in the code: unit test_asked what_was_asked_before_counts_for_nothing
 * full found -DMISTAKE=1 -DLOSSES=1: an image that is not whole is taken for the state (I6)
 *   in the code: sim whole
 * full found -DMISTAKE=2 -DW=1 -DLOSSES=0: fewer than R claimed (I6)
 *   in the code: sim few
 * quick found -DMISTAKE=3 -DLOSSES=0: a needed copy is overwritten in place (I8)
 *   in the code: sim in-place
 * full found -DMISTAKE=4 -DLOSSES=1: a mirror is made anew by one that may be fenced (I9)
 *   in the code: sim unasked
 * quick found -DMISTAKE=5 -DLOSSES=0: open returns before W have adopted (I7)
 *   in the code: sim unadopted
 * full found -DMISTAKE=6 -DLOSSES=0: not all R claimed are examined (I6)
 *   in the code: sim unexamined
 * full found -DMISTAKE=7 -DLOSSES=1: R not counted when open returns (I6)
 *   in the code: sim unconfirmed
 * quick found -DMISTAKE=8 -DN=2 -DW=2 -DLOSSES=0 -DOWNERS=3: chosen anew after an adoption (I6)
 *   in the code: sim changed
 * full found -DMISTAKE=9 -DN=2 -DW=2 -DLOSSES=1 -DOWNERS=3: a broken session's candidate (I6)
 *   in the code: sim kept
 * full found -DMISTAKE=10 -DLOSSES=0: a fenced owner's write lands (I5)
 *   in the code: sim lands
 * full found -DMISTAKE=12 -DLOSSES=1: adopted without asking again (I6)
 *   in the code: sim unconfirmed
 * full found -DMISTAKE=13 -DN=2 -DW=1 -DOWNERS=3: claimed late, nobody asked (I9)
 *   in the code: sim unasked
 * quick found -DMISTAKE=11 -DN=2 -DW=2 -DOWNERS=3: the state's own mirror need not confirm (I6)
 *   in the code: sim own
 * full found -DW=3 -DLOSSES=2 -DOTHERS=1: R others are enough for an open owner where W = n (I9)
 *   in the code: sim unasked
 * full event -DCOVER=1 -DN=2 -DW=2 -DOWNERS=3: a mirror claimed late is mended
 * full event -DCOVER=2 -DN=2 -DW=1 -DOWNERS=3: a resync in place
 * quick event -DCOVER=3 -DN=2 -DW=2 -DOWNERS=3: an owner makes a mirror anew
 * full event -DCOVER=4 -DN=2 -DW=2 -DOWNERS=3: a claimer does
 * full event -DCOVER=5 -DN=2 -DW=2 -DOWNERS=3: an open after another
 * full event -DCOVER=6 -DN=2 -DW=2 -DOWNERS=3: an open after a loss
 * full event -DCOVER=7 -DN=2 -DW=2 -DOWNERS=3: a commit by a second owner
 */
