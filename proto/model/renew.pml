/*
 * renew.pml - an owner that is open, and that finds a mirror promised to another, claims all of
 * them again under a higher epoch and goes on with what it has in memory: "Renewal" of PROTOCOL.md.
 *
 * Owner 1 is open with epoch 1 on all mirrors; the others are claimers as in core.pml (any of them
 * may stop for ever anywhere). A renewal is an open whose state is the owner's own memory:
 *  - no transaction is posted from its beginning to its end (what is under way under the old epoch
 *    may still land, and be acknowledged by W that completed it under the old promise);
 *  - R are claimed and examined, T before any is adopted (n = 3: T = max(R, W) or n-1), and confirm;
 *  - where a claimed image has a slot of an epoch that is above this owner's first one and not
 *    its own, somebody else adopted: the owner is fenced for good (STRICT=1), or: where the newest
 *    (epoch, seq) among them is (STRICT=0);
 *  - its memory, with what is in doubt, is adopted on W, and these confirm. Only then it goes on.
 * A renewal that meets another claim begins again with a higher epoch (RENEWALS) or ends.
 * The rest is core.pml, word for word:
 *
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
 * Left out: rosters that change (roster.pml), steps within a resync, sessions that break without a
 * loss, several commits under way, image ids and spills; undo, data and slot as steps of their own
 * (the crash tests show those).
 *
 * Without loss of generality, since mirrors and owners differ only by their numbers: the first
 * loss is mirror 0's, and owners are numbered by epoch (two of them may have the same).
 */
#ifndef N
#define N 3             /* mirrors */
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
#ifndef RENEWALS
#define RENEWALS 1
#endif
#ifndef STRICT
#define STRICT 1
#endif
#ifndef POSTS
#define POSTS S
#endif
#ifndef POSTS2
#define POSTS2 POSTS    /* of the others */
#endif
#ifndef INPLACE
#define INPLACE 0
#endif
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
#else
#define EACH(step) step(0) step(1) step(2)
#endif
#define bits(v) (((v)&1)+(((v)>>1)&1)+(((v)>>2)&1))
#define in(v, x) (((v)>>(x))&1)
#define with(v, x) ((v)|(1<<(x)))
#define but(v, x) ((v)&(7-(1<<(x))))

typedef image {
	bool has;               /* the store is there */
	bool joining;           /* not whole */
	bool harmless;          /* joining began in place while W others held everything (I8) */
	byte prom, by;          /* promised epoch, and to whom */
	byte ep, seq;           /* commit slot */
	bool ours;              /* .. which owner 1 wrote here: it remembers by image id */
	byte h[S+1]             /* h[s]: the owner that made transaction s */
};
image m[N];
byte acked[S+1];                /* whose transaction s was acknowledged or shown; 0: none */
byte lost[(S+1)*(OWNERS+1)];    /* copies of s, by its owner, that were lost */
byte losses;

/* Epochs of owner 1: 1, then odd ones (3, 5); claimers have 2, 3 or 4. A slot does not name its owner, and
 * two may have the same epoch: a slot is this owner's only where it wrote it to this very image. */
#define own(e) (id==1 && in(owns,e))
#define mine(x) (m[x].has && m[x].by==id && (m[x].prom==ep || (MISTAKE==24 && own(m[x].prom))))

/* I8: after every write that is none of a transaction's. */
#define copy(x) (m[x].has && !m[x].joining && m[x].seq>=k && m[x].h[k]==acked[k])
#if N==1
#define COPIES copy(0)
#elif N==2
#define COPIES (copy(0)+copy(1))
#else
#define COPIES (copy(0)+copy(1)+copy(2))
#endif
inline copies() {
	k=1;
	do
	:: k<=S -> assert(acked[k]==0 || COPIES+lost[k*(OWNERS+1)+acked[k]]>=W); k++
	:: else -> break
	od; k=0
}

/* The owner's memory is the state, unless somebody else has adopted one. */
#define ours(x) (MISTAKE==26 || MISTAKE==27 -> own(m[x].ep) : m[x].ours)
#define others(x) (m[x].ep>1 && !ours(x))
inline look(x) {
	if
	:: !m[x].joining && others(x) && STRICT && MISTAKE!=20 -> forget()
	:: !m[x].joining && others(x) && !STRICT && MISTAKE!=20 ->
		ex=with(ex,x); if :: m[x].ep>fe -> fe=m[x].ep :: else fi
	:: !m[x].joining && (!others(x) || MISTAKE==20) ->
		ex=with(ex,x); if :: !others(x) && m[x].ep>bep -> bep=m[x].ep :: else fi
	:: m[x].joining && m[x].harmless -> ex=with(ex,x)
	:: else
	fi
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
	dead=true; renews=false; go=0; oep=0; fe=0; inflight=false; some=false; adopted=false;
	seq=0; bep=0; h[1]=0; h[2]=0;
	cl=0; ex=0; gd=0; cf=0; anew=0; must=0; made=false; sure=false
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
		:: open && MISTAKE!=13 && MISTAKE!=24 -> anew=x+1; made=true; cf=0
		:: open && (MISTAKE==13 || MISTAKE==24) -> skip
		:: !open && MISTAKE==6 && ex!=0 -> cl=with(cl,x); ex=with(ex,x)
		:: !open && adopted && MISTAKE!=8 ->
			cl=with(cl,x); cover(1)
		:: !open && !(adopted && MISTAKE!=8) && renews ->
			cl=with(cl,x); look(x)
		:: else -> cl=with(cl,x); examine(x)
		fi;
		if :: !open -> sure=false; cf=0 :: else fi;
		printf("owner %d claims %d: epoch %d seq %d\n", id, x, m[x].ep, m[x].seq)
	fi
}

/* I7: only when all those examined, R or more, have confirmed since the last claim: else one of
 * them may have lost its memory, been made anew, and have helped to acknowledge what is overwritten
 * here. By its slot alone where the image is that state already, else by a copy beside it. An open
 * owner resyncs so, too. */
#define stand ((bits(ex)>=R || (MISTAKE==21 && renews)) && \
	((cf&ex)==ex || (MISTAKE==22 && renews) || (MISTAKE==11 && bits(cf&ex)>=R)))
#define chosen ((some && bits(ex)>=R && (!renews || bep>=fe)) || \
	(MISTAKE==21 && renews && bits(ex)>=1) || (MISTAKE==2 && bits(ex)>=1) || MISTAKE==7)
#define can_adopt(x) (mine(x) && !in(gd,x) && (open || chosen) && \
	(anew==0 || (anew==x+1 && may_fill(x))) && \
	(open || sure || anew!=0 || MISTAKE==12) && \
	!(open && !m[x].joining && m[x].ep==ep && m[x].seq>=seq))
inline adopt(x) {
	adopted=!open; if :: id==1 -> owns=with(owns,ep) :: else fi;
	if
	:: !open && !m[x].joining && m[x].ep==bep && m[x].seq==seq && seq>0 ->
		assert(m[x].h[1]==h[1] && (seq<2 || m[x].h[2]==h[2]))
	:: else
	fi;
	m[x].h[1]=(seq>0 -> h[1] : 0); m[x].h[2]=(seq>1 -> h[2] : 0);
	m[x].seq=seq; m[x].ep=ep; m[x].ours=(id==1); m[x].joining=false; m[x].harmless=false;
	gd=with(gd,x); cf=0; anew=0; made=false; copies();
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
	made=true; cf=0;
	printf("owner %d makes %d anew\n", id, x)
}
#define can_drop (anew!=0 && ((!made && m[anew-1].has) || (made && !mine(anew-1))))

/* I6, I7: open returns once all those examined, R or more, and W of those adopted have confirmed
 * their claims. */
#define enough_good (bits(gd)>=W || (MISTAKE==23 && renews) || (MISTAKE==5 && bits(gd)>=1))
#define can_confirm(x) (mine(x) && !in(cf,x) && (anew!=0 || (!open && chosen && in(cl,x) && \
	(!sure || enough_good))))
inline confirm(x) {
	if :: cf==0 -> must=(acked[1]==0 -> 0 : (acked[2]==0 -> 1 : 2)) :: else fi;
	cf=with(cf,x)
}
#define can_open (!open && anew==0 && chosen && \
	(stand || MISTAKE==2 || MISTAKE==7 || MISTAKE==9) && \
	(bits(cf&gd)>=W || (MISTAKE==23 && renews && bits(cf&gd)>=1) || (MISTAKE==5 && bits(cf&gd)>=1)))
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
	if :: renews -> cover(8); if :: acked[1]==1 && seq==1 -> cover(9) :: else fi :: else fi;
	if :: renews && inflight -> cover(10) :: else fi;
	renews=false; go=0; oep=0; fe=0; inflight=false;
	open=true; later=(bep>0); must=0; cf=0; ex=0; cl=0; bep=0; some=false; adopted=false;
	printf("owner %d is open: seq %d\n", id, seq)
}

/* I3, I4 */
#define can_post (open && !inflight && anew==0 && seq<(id==1 -> POSTS : POSTS2))
#define can_apply(x) (open && seq>0 && m[x].has && !m[x].joining && (MISTAKE==10 || mine(x)) && \
	m[x].seq+1==seq && !in(gd,x) && (m[x].ep==ep || MISTAKE==10))
inline apply(x) {
	m[x].h[seq]=h[seq];
	if
	:: mine(x) -> m[x].seq=seq; gd=with(gd,x)
	:: else -> copies()
	fi
}
/* What was posted before the renewal, on its way still. */
#define can_land(x) (renews && inflight && m[x].has && !m[x].joining && m[x].prom==oep && \
	m[x].by==id && m[x].ep==oep && m[x].seq+1==seq && !in(go,x))
inline land(x) { m[x].h[seq]=h[seq]; m[x].seq=seq; go=with(go,x); copies() }
#define can_renew (id==1 && open && anew==0 && renewals<RENEWALS)
inline renew() {
	renewals++;
	if
	:: MISTAKE==24 -> skip
	:: else ->
		open=false; renews=true; oep=ep; go=(inflight -> gd : 0); cl=0; ex=0; gd=0; cf=0;
		adopted=false; sure=false; some=true; bep=1; must=0
	fi;
	ep=1+2*renewals; if :: MISTAKE==26 || MISTAKE==24 -> owns=with(owns,ep) :: else fi;
	printf("owner 1 renews: epoch %d\n", ep)
}
#define again (renews && !dead && renewals<RENEWALS)
#define can_return (inflight && (bits(gd)>=W || bits(go)>=W || (MISTAKE==25 && bits(gd|go)>=W)) && \
	(open || bits(go)>=W || MISTAKE==25))
inline acknowledge() {
	assert(acked[seq]==0 || acked[seq]==id);
	if :: later -> cover(7) :: else fi;
	acked[seq]=id; inflight=false; go=0; copies();
	printf("owner %d: %d is acknowledged\n", id, seq)
}

#define CLAIM(x)   :: d_step { !dead && can_claim(x) -> claim(x) }
#define ADOPT(x)   :: d_step { !dead && can_adopt(x) -> adopt(x) }
#define JOIN(x)    :: d_step { !dead && can_join(x) -> join(x) }
#define SEE(x)     :: d_step { !dead && can_see(x) -> anew=x+1; cf=0 }
#define MAKE(x)    :: d_step { !dead && can_make(x) -> make(x) }
#define CONFIRM(x) :: d_step { !dead && can_confirm(x) -> confirm(x) }
#define LAND(x)    :: d_step { !dead && can_land(x) -> land(x) }
#define APPLY(x)   :: d_step { !dead && can_apply(x) -> apply(x) }

proctype owner(byte id; byte ep) {
	byte k, seq, bep, anew, must, h[S+1];
	byte cl;        /* claimed */
	byte ex;        /* .. and examined before the first adoption */
	byte gd;        /* known to hold the state */
	byte cf;        /* have confirmed their claims since that was needed */
	byte renewals, owns=2, oep, go, fe;     /* owns: this owner's epochs */
	bool renews;
	bool dead, some, adopted, open, later, inflight, made;
	bool sure;      /* those examined have confirmed since the last claim */

	if :: id==1 -> open=true :: else fi;
	do
	EACH(CLAIM)
	EACH(ADOPT)
	EACH(JOIN)
	EACH(SEE)
	EACH(MAKE)
	EACH(CONFIRM)
	EACH(APPLY)
	EACH(LAND)
	:: d_step { !dead && can_renew -> renew() }
	:: d_step { again -> renewals++; ep=1+2*renewals;
		if :: MISTAKE==26 -> owns=with(owns,ep) :: else fi; cl=0; ex=0; gd=0; cf=0; adopted=false; sure=false; bep=1; fe=0; must=0; printf("owner 1 begins its renewal again\n") }
	:: d_step { !dead && can_drop -> anew=0; made=false; cf=0 }
	:: d_step { !dead && can_sure -> sure=true; cf=0 }
	:: d_step { !dead && can_open -> returns() }
	:: d_step { !dead && can_post -> seq++; h[seq]=id; inflight=true; gd=0; cf=0 }
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
	m[x].ep=0; m[x].ours=false; m[x].seq=0; m[x].h[1]=0; m[x].h[2]=0;
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
	byte i;

	atomic {
		do :: i<N -> m[i].has=true; m[i].prom=1; m[i].by=1; m[i].ep=1; i++ :: else -> break od;
		i=0;
		run owner(1, 1);
		if :: run owner(2, 2) :: run owner(2, 3) :: RENEWALS>1 -> run owner(2, 4) fi;
		if
		:: OWNERS>2 -> if :: run owner(3, 2) :: run owner(3, 3) :: run owner(3, 4) fi
		:: else
		fi;
		run weather()
	}
}
/*
 * quick holds -DLOSSES=0 -DPOSTS2=1: one rival
 * full holds -DLOSSES=1 -DPOSTS2=1: one rival, one loss
 * full holds -DLOSSES=1 -DPOSTS2=1 -DSTRICT=0: fenced only by a newest slot that is another's
 * full holds -DLOSSES=0 -DRENEWALS=2 -DPOSTS2=1: renewed twice, or begun again
 * full holds -DLOSSES=0 -DW=3 -DPOSTS2=1: every mirror has every transaction
 * full holds -DN=2 -DW=2 -DLOSSES=1 -DPOSTS2=1 -DRENEWALS=2: two mirrors, one loss, renewed twice
 * full holds -DN=2 -DW=1 -DOWNERS=3 -DLOSSES=1 -DPOSTS2=1: two mirrors, one is enough, two rivals
 * quick found -DLOSSES=0 -DPOSTS2=1 -DMISTAKE=20: a slot that another adopted is ignored
 *   in the code: unit test_renew test_an_adopted_store_is_anothers
 * quick found -DLOSSES=0 -DPOSTS2=1 -DMISTAKE=21: fewer than R claimed
 *   in the code: unit test_renew test_fewer_than_r_decide_nothing
 * full found -DLOSSES=1 -DPOSTS=1 -DPOSTS2=1 -DMISTAKE=22: nobody confirms before the first adoption
 *   in the code: unit test_renew test_all_confirm_before_the_first_adoption
 * quick found -DLOSSES=0 -DPOSTS2=1 -DMISTAKE=23: goes on before W have adopted
 *   in the code: unit test_renew test_it_goes_on_with_w_only
 * quick found -DLOSSES=0 -DPOSTS2=1 -DMISTAKE=24: only the mirror that fences is claimed again
 *   in the code: unit test_renew test_all_confirm_before_the_first_adoption
 * full found -DLOSSES=0 -DRENEWALS=2 -DPOSTS2=1 -DMISTAKE=26: an epoch that was only tried is its own
 *   in the code: unit test_renew test_an_epoch_that_was_only_tried_is_not_its_own
 * full found -DN=2 -DW=2 -DOWNERS=3 -DLOSSES=1 -DPOSTS2=1 -DRENEWALS=2 -DMISTAKE=27: or written elsewhere
 *   in the code: unit test_renew test_an_epoch_that_it_wrote_elsewhere_is_not_its_own
 * quick event -DLOSSES=0 -DPOSTS2=1 -DCOVER=10: goes on with what was in doubt
 */
