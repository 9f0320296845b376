/*
 * resync.pml - a mirror is copied while transactions go on, or mended after a takeover: I3, I6, I8
 * of PROTOCOL.md, and the steps that core.pml takes at once.
 *
 * X is the mirror that is copied; what happens at the others happens at once. The image is of two
 * chunks; odd transactions write both, even ones the first only. X's link takes transactions in
 * order, at most WINDOW of them under way, and between them chunks, each with what is committed
 * when it is posted: that may be more than was posted to X. All arrives write by write. A link may
 * break and a mirror be claimed by the next owner anywhere, an owner stop for ever anywhere.
 *
 * X may be copied whenever it comes back: in place where W others are connected and hold all that it
 * has, or it is joining already, else beside. In place it is sent what is due: what the owner changed
 * after X's slot, if the slot is the owner's; what was still due and what changed since, if a copy of
 * the owner broke; otherwise everything, or what differs: chunk by chunk X is compared with what is
 * committed, and what changed since the first comparison is due, too. The owner reads its map of changes at some time after the
 * link takes transactions, perhaps only after a break. A claimer that has W good ones mends it by a
 * delta: joining, range by range, slot, finish.
 *
 * Properties: a whole image that is claimed is a prefix; what was acknowledged, or shown by an
 * open, is in the state of every later open, and in no other contents.
 *
 * Left out: memory that is lost (core.pml), replay (ring.pml).
 */
#ifndef N
#define N 2             /* mirrors */
#endif
#ifndef W
#define W 1
#endif
#ifndef S
#define S 2             /* transactions, at most 2 */
#endif
#ifndef OWNERS
#define OWNERS 3
#endif
#ifndef BREAKS
#define BREAKS 1
#endif
#ifndef WINDOW
#define WINDOW 1
#endif
#ifndef MISTAKE
#define MISTAKE 0
#endif
#ifndef COVER
#define COVER 0
#endif
#define R (N-W+1)
#define X (N-1)
#define cover(n) assert(COVER!=n)

#if N==2
#define EACH(step) step(0) step(1)
#define OTHERS(step) step(0)
#define SURE has(0)
#define HOLD(s) ((done[0]>=(s))+((!rs || MISTAKE==6) && done[1]>=(s)))
#else
#define EACH(step) step(0) step(1) step(2)
#define OTHERS(step) step(0) step(1)
#define SURE (has(0)+has(1))
#define HOLD(s) ((done[0]>=(s))+(done[1]>=(s))+((!rs || MISTAKE==6) && done[2]>=(s)))
#endif
#define bits(v) (((v)&1)+(((v)>>1)&1)+(((v)>>2)&1))
#define in(v, x) (((v)>>(x))&1)
#define with(v, x) ((v)|(1<<(x)))
#define but(v, x) ((v)&(7-(1<<(x))))

/* What chunk c is after transaction k of a history: whose and which transaction wrote it last. */
#define writer(c, k) (((c)==1 && (k)%2==0 && (k)>0) -> (k)-1 : (k))
#define after(h, c, k) (writer(c,k)==0 -> 0 : (h[writer(c,k)]<<3)+writer(c,k))

typedef image {
	bool joining, harmless;
	byte ep, seq;           /* commit slot */
	byte ue, us, u[2];      /* the last undo record: epoch, seq, before */
	byte c[2];
	byte h[3]               /* what the slot stands for */
};
image m[N+1];                   /* m[N]: what is made beside X's image */
byte prom[N];
byte acked[3];
byte breaks;

#define mine(x) (prom[x]==id)
inline whole(x, k) {
	m[x].us=0; m[x].joining=false; m[x].harmless=false;
	m[x].c[0]=after(h,0,k); m[x].c[1]=after(h,1,k); stands(x,k); m[x].ep=id; m[x].seq=k
}
inline stands(x, k) {
	m[x].h[1]=(k>0 -> h[1] : 0); m[x].h[2]=(k>1 -> h[2] : 0)
}

/* I5. A joining image is left as it is. */
inline take(x) {
	prom[x]=id;
	if
	:: !m[x].joining || MISTAKE==1 ->
		if
		:: m[x].ue==m[x].ep && m[x].us==m[x].seq+1 ->
			m[x].c[0]=m[x].u[0]; m[x].c[1]=m[x].u[1]
		:: else
		fi;
		m[x].us=0;
		assert(m[x].c[0]==after(m[x].h,0,m[x].seq));
		assert(m[x].c[1]==after(m[x].h,1,m[x].seq))
	:: else
	fi;
	if :: x==X -> step=0; rs=false; bes=false; bulk=false; chunk=0; begun=false; blank(N) :: else fi
}
inline blank(x) {
	m[x].ep=0; m[x].seq=0; m[x].us=0; m[x].ue=0; m[x].u[0]=0; m[x].u[1]=0; m[x].c[0]=0;
	m[x].c[1]=0; m[x].h[1]=0; m[x].h[2]=0; m[x].joining=true; m[x].harmless=false
}

/* I6 */
#define can_claim(x) (!open && prom[x]<id)
inline examine(x) {
	cl=with(cl,x);
	if
	:: chose -> skip
	:: !chose && (!m[x].joining || MISTAKE==1) ->
		ex=with(ex,x);
		if
		:: best==0 || m[x].ep>bep || (m[x].ep==bep && m[x].seq>seq) ->
			best=1; bep=m[x].ep; seq=m[x].seq; h[1]=m[x].h[1]; h[2]=m[x].h[2]
		:: else
		fi
	:: !chose && m[x].joining && m[x].harmless && MISTAKE!=1 -> ex=with(ex,x); cover(1)
	:: else
	fi
}
#if N==2
#define OWN ((prom[0]==id)+2*(prom[1]==id))
#else
#define OWN ((prom[0]==id)+2*(prom[1]==id)+4*(prom[2]==id))
#endif
#define confirmed ((cl&OWN)==cl)
#define can_choose (!chose && best && bits(ex)>=R && confirmed)

/* I7. By its slot, or beside; X, where W are good without it, by a delta in place. */
#define can_adopt(x) (chose && !open && mine(x) && !in(up,x) && delta==0 && \
	(x!=X || bits(up)<W || m[x].joining || (m[x].ep==bep && m[x].seq==seq)))
inline adopt(x) {
	if
	:: !m[x].joining && m[x].ep==bep && m[x].seq==seq -> assert(m[x].h[1]==h[1] || seq==0)
	:: else
	fi;
	whole(x, seq); up=with(up,x); done[x]=seq
}
#define can_mend (chose && !open && mine(X) && !in(up,X) && bits(up)>=W && \
	(delta>0 || (!m[X].joining && (m[X].ep!=bep || m[X].seq!=seq))))
inline mend() {
	if
	:: delta==0 -> m[X].joining=(MISTAKE!=8); m[X].harmless=true
	:: delta==1 -> m[X].c[1]=after(h,1,seq); cover(2)
	:: delta==2 -> m[X].c[0]=after(h,0,seq)
	:: delta==3 -> m[X].ep=id; m[X].seq=seq; stands(X,seq)
	:: delta==4 -> m[X].joining=false; m[X].harmless=false; up=with(up,X); done[X]=seq
	fi;
	delta=(delta==4 -> 0 : delta+1)
}
#define can_open (chose && !open && delta==0 && bits(up)>=W && confirmed)
inline returns() {
	assert(acked[1]==0 || (seq>0 && h[1]==acked[1]));
	assert(acked[2]==0 || (seq>1 && h[2]==acked[2]));
	if :: seq>0 -> acked[1]=h[1] :: else fi;
	if :: seq>1 -> acked[2]=h[2] :: else fi;
	open=true; cl=0; ex=0; bep=0; best=0; was=seq; nx=seq+1; posted=seq; first=seq;
	stale=(!in(up,X) && mine(X))
}

/* I4: an image that is being copied holds nothing. */
#define can_return (open && was<seq && HOLD(was+1)>=W)
inline acknowledge() {
	was++;
	assert(acked[was]==0 || acked[was]==h[was]);
	acked[was]=h[was]
}
#define can_apply(x) (open && in(up,x) && mine(x) && m[x].seq<seq)
inline apply(x) { whole(x, m[x].seq+1); done[x]=m[x].seq }

/* X's link. */
#define T (bes -> N : X)
#define can_pump (open && in(up,X) && posted<seq && posted-(nx-1)<WINDOW)
#define can_arrive (open && in(up,X) && mine(X) && ((bulk && nx-1==place) || nx<=posted))
inline arrive() {
	if
	:: bulk && nx-1==place ->
		if :: sent<2 -> m[T].c[sent]=value; due=but(due,sent) :: else fi;
		bulk=false; value=0; sent=0;
		if
		:: slot -> m[T].ep=id; m[T].seq=nx-1; stands(T,nx-1); slot=false
		:: else
		fi
	:: else ->
		if
		:: step==0 -> m[T].ue=id; m[T].us=nx;
			m[T].u[0]=after(h,0,nx-1); m[T].u[1]=after(h,1,nx-1)
		:: step==1 -> m[T].c[0]=after(h,0,nx)
		:: step==2 -> m[T].c[1]=after(h,1,nx)
		:: step==3 -> m[T].ep=id; m[T].seq=nx; stands(T,nx); done[X]=nx; nx++
		fi;
		step=(step==3 -> 0 : step+1)
	fi
}

/* It comes back after a break: from its slot, or to be copied whole. */
#define can_come_back (open && !in(up,X) && !stale && mine(X))
inline come_back() {
	take(X); up=with(up,X); nx=m[X].seq+1; posted=m[X].seq; done[X]=m[X].seq
}
#define as_it_was (!m[X].joining && m[X].ep==id)
#define can_late (open && prom[X]<id)

/* What is due: a bit for each chunk. `since`: what changed after it is not in `due` yet; DONE: the
 * map was read. `kept`: X's image keeps what it is sent. */
#define DONE 7
#define ours (m[X].ep==id || MISTAKE==10)
#define unknown (!ours || (m[X].joining && !kept))
inline plan() {
	if
	:: !m[X].joining && ours -> due=0; since=m[X].seq; cover(8)
	:: m[X].joining && ours && kept && MISTAKE!=11 ->
		if :: since!=DONE && since<m[X].seq -> cover(10) :: else fi;
		if :: since==DONE || since>m[X].seq || MISTAKE==15 -> since=m[X].seq :: else fi;
		if :: due==1 || due==2 -> cover(9) :: else fi
	:: m[X].joining && ours && kept && MISTAKE==11 -> due=0; since=m[X].seq
	:: else ->
		if
		:: compared==3 ->
			if :: due==1 || due==2 -> cover(11) :: else fi;
			if :: drawn<seq -> cover(12) :: else fi;
			since=(MISTAKE==17 -> DONE : drawn)
		:: else -> due=3; since=DONE
		fi
	fi;
	kept=true; compared=0; drawn=0
}
/* X stands still: it was claimed, and nothing is posted to it. */
#define can_draw (open && compared==0 && unknown && in_place && \
	((stale && mine(X)) || (MISTAKE==18 && !stale && !in(up,X))))
inline draw() { compared=1; drawn=seq; due=3; since=0; kept=false }
#define can_compare (open && compared>0 && compared<3 && \
	((stale && mine(X)) || (MISTAKE==18 && !in(up,X))))
inline compare() {
	if
	:: m[X].c[compared-1]==after(h,compared-1,seq) || (MISTAKE==16 && seq<S) ->
		due=but(due,compared-1)
	:: else
	fi;
	compared++
}
#define can_break_off (open && stale && compared>0 && breaks<BREAKS)
inline break_off() { breaks++; stale=false; compared=0; drawn=0; due=0 }
/* The last transaction of this owner, up to k, that changed chunk c. */
#define changed(c, k) (writer(c,k)>first -> writer(c,k) : 0)
inline read_map(k) {
	if :: changed(0,k)>since -> due=due|1 :: else fi;
	if :: changed(1,k)>since && MISTAKE!=12 -> due=due|2 :: else fi;
	since=DONE
}
#define can_read_map (open && rs && in(up,X) && since!=DONE)

/* I8: connected, and known to hold all that X may have acknowledged. */
#define has(x) (in(up,x) && (m[X].ep!=id || done[x]>=m[X].seq || MISTAKE==5))
#define in_place (m[X].joining || SURE>=W || MISTAKE==7)
#define can_begin (open && stale && mine(X) && (compared==0 || compared==3))
inline begin() {
	if
	:: in_place ->
		plan();
		if :: MISTAKE==13 && since!=DONE && seq>0 -> read_map(seq-1) :: else fi;
		m[X].harmless=(!m[X].joining || m[X].harmless); m[X].joining=true; m[X].us=0;
		if :: seq>was -> cover(3) :: else fi
	:: else -> blank(N); bes=true; due=3; since=DONE; kept=false; compared=0; drawn=0; cover(4)
	fi;
	up=with(up,X); stale=false; rs=true; posted=seq; nx=seq+1; began=seq; done[X]=0; chunk=0
}
#define can_send (open && rs && in(up,X) && !bulk && since==DONE)
#define can_copy (can_send && chunk<2 && in(due,chunk))
#define can_skip (can_send && chunk<2 && !in(due,chunk))
inline copy_chunk() {
	bulk=true; place=posted; until=seq; sent=chunk;
	slot=(!begun && seq==began); begun=true;
	value=(MISTAKE==4 && seq<S -> (id<<3)+seq+1 : after(h,chunk,seq));
	if :: posted<seq -> cover(5) :: else fi;
	if :: chunk==1 && seq>began -> cover(6) :: else fi;
	if :: MISTAKE==14 -> due=but(due,chunk) :: else fi;
	chunk++;
}
/* Nothing is due, so that no chunk brought a slot. */
#define can_post_slot (can_send && chunk==2 && !begun)
inline post_slot() {
	bulk=true; place=posted; until=seq; sent=2; slot=(seq==began); begun=true
}
#define can_finish (open && rs && in(up,X) && mine(X) && chunk==2 && begun && \
	(!bulk || MISTAKE==2) && (nx-1>=until || MISTAKE==3) && m[T].ep==id)
inline finish() {
	if
	:: bes ->
		m[X].ep=m[N].ep; m[X].seq=m[N].seq; m[X].ue=m[N].ue; m[X].us=m[N].us;
		m[X].u[0]=m[N].u[0]; m[X].u[1]=m[N].u[1]; m[X].c[0]=m[N].c[0];
		m[X].c[1]=m[N].c[1]; m[X].h[1]=m[N].h[1]; m[X].h[2]=m[N].h[2]
	:: else
	fi;
	m[X].joining=false; m[X].harmless=false; blank(N);
	bes=false; rs=false; done[X]=nx-1; chunk=0; begun=false; until=0; began=0; place=0;
	due=0; since=0; kept=false;
	cover(7)
}
inline cut(x) {
	breaks++; up=but(up,x);
	if :: x==X && rs -> done[X]=0; rs=false; bes=false; bulk=false; chunk=0; begun=false;
		slot=false; value=0; until=0; began=0; place=0; sent=0;
		if :: !kept -> due=0; since=0 :: else fi
	:: else fi;
	if :: x==X -> step=0 :: else fi
}

#define CLAIM(x) :: d_step { can_claim(x) -> take(x); examine(x) }
#define ADOPT(x) :: d_step { can_adopt(x) -> adopt(x) }
#define APPLY(x) :: d_step { can_apply(x) -> apply(x) }
#define BREAK(x) :: d_step { open && in(up,x) && breaks<BREAKS -> cut(x) }
#define AGAIN(x) :: d_step { open && !in(up,x) && mine(x) && m[x].ep==id -> up=with(up,x) }

proctype owner(byte id) {
	byte seq, h[3], bep, best;
	byte cl, ex;    /* claimed, and of these counted */
	byte up;        /* connected */
	byte done[N];   /* known to be held */
	byte was;       /* up to which commits returned */
	bool chose, open;
	byte delta;     /* steps of it that are done */
	byte posted, nx, step;  /* X's link: posted, the next that arrives, writes of it that did */
	bool stale;     /* X is to be copied whole */
	bool rs, bes, begun;    /* .. is being copied, beside what it has, a chunk was posted */
	byte chunk, began, until;
	bool bulk, slot;        /* a chunk is under way, with a slot .. */
	byte place, value;      /* .. behind this transaction */
	byte sent;              /* which chunk it is; 2: none */
	byte first;             /* the seq with which it opened */
	byte due, since;
	bool kept;
	byte compared, drawn;   /* chunks of X that were compared, and 1; the seq when it began */

	if
	:: id==1 -> d_step { open=true; chose=true; up=(1<<N)-1; nx=1 }
	:: else
	fi;
	do
	EACH(CLAIM)
	EACH(ADOPT)
	OTHERS(APPLY)
	OTHERS(AGAIN)
	EACH(BREAK)
	:: d_step { can_choose -> chose=true }
	:: d_step { can_mend -> mend() }
	:: d_step { can_open -> returns() }
	:: d_step { open && seq<S -> seq++; h[seq]=id }
	:: d_step { can_return -> acknowledge() }
	:: d_step { can_pump -> posted++;
		if :: MISTAKE==9 && rs && chunk<2 && step==0 && nx==posted -> nx++ :: else fi }
	:: d_step { can_arrive -> arrive() }
	:: d_step { can_come_back && as_it_was -> come_back() }
	:: d_step { can_come_back -> take(X); stale=true }
	:: d_step { can_late -> take(X); stale=true }
	:: d_step { can_draw -> draw() }
	:: d_step { can_compare -> compare() }
	:: d_step { can_break_off -> break_off() }
	:: d_step { can_begin -> begin() }
	:: d_step { can_read_map -> read_map(seq) }
	:: d_step { can_copy -> copy_chunk() }
	:: d_step { can_skip -> chunk++ }
	:: d_step { can_post_slot -> post_slot() }
	:: d_step { can_finish -> finish() }
	od
}

init {
	byte i;

	atomic {
		do :: i<N -> prom[i]=1; m[i].ep=1; i++ :: else -> break od;
		blank(N);
		i=1;
		do :: i<=OWNERS -> run owner(i); i++ :: else -> break od;
		i=0
	}
}
/*
 * full holds -DW=1 -DOWNERS=2: two mirrors, one is enough
 * quick holds -DW=2 -DS=1: two mirrors, both needed
 * full holds -DW=2: .. and more transactions
 * full holds -DW=1 -DS=1: two mirrors, one is enough, three owners
 * full holds -DW=1 -DOWNERS=2 -DBREAKS=2: .. and more that breaks
 * full holds -DN=3 -DW=2 -DOWNERS=2: three mirrors
 * quick found -DMISTAKE=1 -DW=1: an image that joins is taken for a state (I6)
 *   in the code: sim whole
 * full found -DMISTAKE=2 -DW=1: called whole before the last chunk arrived
 *   in the code: sim unfinished
 * quick found -DMISTAKE=3 -DW=1: .. before the transactions that it holds did
 *   in the code: sim unawaited
 * full found -DMISTAKE=4 -DW=1: a chunk shows what an open transaction wrote
 *   in the code: sim uncommitted
 * full found -DMISTAKE=5 -DW=1 -DOWNERS=2 -DBREAKS=3: connected, not holding (I8)
 *   in the code: sim connected
 * full found -DMISTAKE=6 -DW=1: it acknowledges before it is whole (I4)
 *   in the code: sim votes
 * quick found -DMISTAKE=7 -DW=1 -DS=1: the last copy is overwritten in place (I8)
 *   in the code: sim in-place
 * full found -DMISTAKE=8 -DW=1 -DS=1: a delta without joining first
 *   in the code: sim unjoined
 * full found -DMISTAKE=9 -DW=1: what is posted between two chunks is not sent
 *   in the code: sim between
 * full found -DMISTAKE=10 -DW=1: another owner's slot is taken for this one's
 *   in the code: sim any-slot
 * quick found -DMISTAKE=11 -DW=1 -DOWNERS=2 -DBREAKS=2: a half-made copy is taken for a state
 *   in the code: sim half-is-base
 * full found -DMISTAKE=12 -DW=1: what a transaction changed is not noted
 *   in the code: sim unmarked-span
 * quick found -DMISTAKE=13 -DW=1: what to send is chosen before the stream
 *   in the code: sim listed-early
 * quick found -DMISTAKE=14 -DW=1 -DOWNERS=2 -DBREAKS=2: a posted chunk is not sent again after a break
 *   in the code: sim due-dropped
 * full found -DMISTAKE=15 -DW=1 -DOWNERS=2 -DBREAKS=2: what a break left unread of the map is forgotten
 *   in the code: unit test_unsent_granules test_a_broken_comparison_begins_again
 * quick found -DMISTAKE=16 -DW=1 -DOWNERS=2: what an open transaction stored is compared
 *   in the code: unit test_digests open_transactions_are_not_compared
 * quick found -DMISTAKE=17 -DW=1 -DOWNERS=2: what changed since it was compared is not sent
 *   in the code: sim digest-stale
 * full found -DMISTAKE=18 -DN=3 -DW=2 -DOWNERS=2: it is compared before it is claimed
 *   in the code: unit test_digests digests_count_within_a_session
 * quick event -DCOVER=11 -DW=1 -DOWNERS=2: only what differs is sent
 * quick event -DCOVER=12 -DW=1 -DOWNERS=2: .. and transactions came meanwhile
 * full event -DCOVER=8 -DW=1: only what changed is sent
 * full event -DCOVER=9 -DW=1 -DOWNERS=2 -DBREAKS=2: a copy goes on after a break
 * full event -DCOVER=10 -DW=1 -DOWNERS=2 -DBREAKS=2: .. and its map was not read to the end
 * full event -DCOVER=1 -DN=3 -DW=2 -DOWNERS=2: a joining image helps to R
 * full event -DCOVER=2 -DW=1: a delta is under way
 * full event -DCOVER=3 -DW=1: a resync in place, while commits are under way
 * full event -DCOVER=4 -DW=1: a resync beside
 * full event -DCOVER=5 -DW=1: a chunk has more than the link was given
 * quick event -DCOVER=6 -DW=1: transactions come between two chunks
 * full event -DCOVER=7 -DW=1: a mirror is whole again
 */
