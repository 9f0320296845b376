/*
 * ring.pml - a mirror that comes back after a short break is given what it missed from the owner's
 * ring, and commits whose outcome is in doubt: I1 to I4 of PROTOCOL.md.
 *
 * Each transaction writes two places: one that all of them write (a), one of its own (h). Its chain
 * of undo record, the two and slot arrives write by write, and is sent from the ring as that is
 * when it arrives. Two commits may be under way. A link may break anywhere, which leaves any
 * prefix of what was posted, not all of whose completions the owner has seen; a mirror that is
 * claimed rolls back. The first owner is open at the beginning, the second takes over anywhere, and
 * a third one where OWNERS says so.
 *
 * A mirror that misses only transactions of the epoch that it stands at is sent them by the next
 * owner, record, data and slot of each, before it is adopted.
 *
 * A commit that times out is in doubt: no transaction is begun until W mirrors hold it (flush), and
 * nothing is undone. An owner that is fenced never learns more.
 *
 * Properties: an image that is claimed is a prefix of some history, never half a transaction; a
 * mirror holds what it acknowledged; what was acknowledged is in the state that the second owner
 * opens with, and in no other contents.
 *
 * Left out: memory that is lost (core.pml), the steps of a whole copy (resync.pml), the ring's
 * bytes (entries are of one size), and fabrics that stage nothing.
 */
#ifndef N
#define N 2             /* mirrors */
#endif
#ifndef W
#define W 1
#endif
#ifndef S
#define S 3             /* transactions */
#endif
#ifndef K
#define K 2             /* entries of the ring */
#endif
#ifndef BREAKS
#define BREAKS 2
#endif
#ifndef OWNERS
#define OWNERS 2
#endif
#ifndef MISTAKE
#define MISTAKE 0
#endif
#ifndef COVER
#define COVER 0
#endif
#define R (N-W+1)
#define cover(n) assert(COVER!=n)

#if N==2
#define EACH(step) step(0) step(1)
#define HOLD(s) ((done[0]>=(s))+(done[1]>=(s)))
#define ALL_OURS (ours(0) && ours(1))
#else
#define EACH(step) step(0) step(1) step(2)
#define HOLD(s) ((done[0]>=(s))+(done[1]>=(s))+(done[2]>=(s)))
#define ALL_OURS (ours(0) && ours(1) && ours(2))
#endif
#define bits(v) (((v)&1)+(((v)>>1)&1)+(((v)>>2)&1))
#define in(v, x) (((v)>>(x))&1)
#define with(v, x) ((v)|(1<<(x)))
#define but(v, x) ((v)&(7-(1<<(x))))

/* What transaction k of a history leaves in the place that all write. */
#define left(h, k) ((k)==0 -> 0 : (h[k]<<3)+(k))

typedef image {
	byte prom;              /* promised epoch; an epoch has one owner */
	byte ep, seq;           /* commit slot */
	byte ue, us, ub;        /* the undo record that was written last: epoch, seq, before */
	byte step;              /* writes of the next chain that arrived */
	byte a, h[S+1]
};
image m[N];
byte acked[S+1];                /* what transaction s was when it was acknowledged or shown */
byte breaks;

/* One more write of the chain of transaction nx[x] arrives, out of the entry that is there. */
#define sends(x) (in(up,x) || (MISTAKE==6 && in(old,x)))
#define can_arrive(x) (sends(x) && m[x].prom==id && nx[x]<=seq)
inline arrive(x) {
	c=ring[nx[x]%K];
	k=m[x].step;
	if :: MISTAKE==1 && k<2 -> k=1-k :: MISTAKE==2 && k>1 -> k=5-k :: else fi;
	if
	:: k==0 -> m[x].ue=id; m[x].us=c; m[x].ub=left(h,c-1)
	:: k==1 -> m[x].a=left(h,c)
	:: k==2 -> m[x].h[nx[x]]=(c==nx[x] -> h[c] : 15)
	:: k==3 -> m[x].ep=id; m[x].seq=c
	fi;
	if
	:: m[x].step==3 -> m[x].step=0; nx[x]++
	:: else -> m[x].step++
	fi;
	c=0; k=0
}

/* I5: the session before is cut. A record is the unfinished transaction's by epoch and seq. */
inline take(x) {
	m[x].prom=id; m[x].step=0;
	if
	:: m[x].ue==m[x].ep && m[x].us==m[x].seq+1 && MISTAKE!=3 ->
		m[x].a=m[x].ub; m[x].h[m[x].us]=0; m[x].us=0
	:: else
	fi;
	assert(m[x].a==left(m[x].h,m[x].seq));
	k=1;
	do
	:: k<=S -> assert((m[x].h[k]!=0)==(k<=m[x].seq)); k++
	:: else -> break
	od; k=0
}

/* Whoever opens: R claims, the highest (epoch, seq) of them, W that hold it. */
#define can_claim(x) (!open && m[x].prom<id)
#define can_choose (!chose && bits(cl)>=R)
inline choose() {
	chose=true; k=0; c=0;
	do
	:: k<N ->
		if
		:: in(cl,k) && (c==0 || m[k].ep>m[c-1].ep ||
				(m[k].ep==m[c-1].ep && m[k].seq>m[c-1].seq)) -> c=k+1
		:: else
		fi; k++
	:: else -> break
	od;
	bep=m[c-1].ep; seq=m[c-1].seq; k=1;
	do
	:: k<=S -> h[k]=m[c-1].h[k]; k++
	:: else -> break
	od; c=0; k=0
}

/* Copied whole beside what is there, or only the slot, which comes to the same. */
#define can_copy(x) (chose && m[x].prom==id && !in(up,x) && (!open || in(stale,x)))
inline copy(x) {
	if
	:: m[x].ep==bep && m[x].seq==seq -> assert(m[x].a==left(h,seq))
	:: else
	fi;
	m[x].ep=id; m[x].seq=seq; m[x].a=left(h,seq); m[x].us=0; m[x].step=0; k=1;
	do
	:: k<=S -> m[x].h[k]=h[k]; k++
	:: else -> break
	od; k=0;
	up=with(up,x); stale=but(stale,x); nx[x]=seq+1; done[x]=seq;
	if :: open -> settle() :: else fi
}

/* What a mirror missed is sent, a write at a time: left() is what a transaction wrote, less what came
 * after it. */
#define same_epoch(x) (MISTAKE==12 || (h[m[x].seq+1]==m[x].ep && h[seq]==m[x].ep))
#define can_forward(x) (chose && !open && m[x].prom==id && !in(up,x) && m[x].seq<seq && \
	m[x].ep<id && same_epoch(x))
inline forward(x) {
	c=m[x].seq+1;
	if
	:: m[x].step==0 -> m[x].ue=h[c]; m[x].us=c; m[x].ub=left(h,c-1)
	:: m[x].step==1 -> m[x].a=(MISTAKE==11 -> left(h,seq) : left(h,c))
	:: m[x].step==2 -> m[x].h[c]=h[c]
	:: m[x].step==3 -> m[x].ep=h[c]; m[x].seq=c; cover(8)
	fi;
	m[x].step=(m[x].step+1)%4; c=0
}

/* Whose sessions broke meanwhile begins anew (I6), which is another owner here. */
#define ours(x) (!in(cl|up,x) || m[x].prom==id)
#define can_open (chose && !open && bits(up)>=W && ALL_OURS)
inline returns() {
	k=1;
	do
	:: k<=S ->
		assert(acked[k]==0 || h[k]==acked[k]);
		if :: h[k]!=0 && acked[k]==0 -> cover(5); acked[k]=h[k] :: else fi; k++
	:: else -> break
	od; k=0;
	if :: tried>seq -> cover(6) :: else fi;
	open=true; cl=0; bep=0; was=seq
}

/* The ring is overwritten only where no connected mirror needs it: one that lags is dropped when W
 * are left without it, else the commit waits. */
#define lags(x) (in(up,x) && seq>=K && done[x]<=seq-K)
#if N==2
#define laggards (lags(0)+2*lags(1))
#else
#define laggards (lags(0)+2*lags(1)+4*lags(2))
#endif
#define can_post (open && seq<S && seq<was+2 && (doubt==0 || MISTAKE==8) && \
	(laggards==0 || bits(up&(7-laggards))>=W || MISTAKE==5))
inline post() {
	if
	:: laggards!=0 && MISTAKE!=5 -> cover(1); old=old|laggards; up=up&(7-laggards)
	:: else
	fi;
	if
	:: MISTAKE==8 && doubt!=0 -> h[seq]=id+2; doubt=0
	:: else -> seq++; h[seq]=id
	fi;
	ring[seq%K]=seq;
	if :: id==1 -> tried=seq :: else fi
}

/* What completed is seen later, or never. */
#define can_poll(x) (open && in(up,x) && done[x]<nx[x]-1)
inline poll(x) { done[x]=nx[x]-1; settle() }
inline settle() {
	if
	:: doubt!=0 && HOLD(doubt)>=W ->
		cover(2);
		do
		:: was<doubt -> was++; acknowledge(was)
		:: else -> break
		od; doubt=0
	:: else
	fi
}
inline acknowledge(s) {
	assert(acked[s]==0 || acked[s]==h[s]);
	acked[s]=h[s]
}
#define can_return (open && was<seq && doubt==0 && HOLD(was+1)>=(MISTAKE==9 -> 1 : W))
#define can_time_out (open && was<seq && doubt==0)

#define can_break(x) (open && breaks<BREAKS && in(up,x))
#define can_return_to(x) (open && !in(up,x) && !in(stale,x) && !in(fenced,x))
#define replayable(x) (m[x].seq>=seq || (m[x].seq+1>first && m[x].seq+K>=seq))

/* Claimed again for the same owner: it goes on from the mirror's slot, by seq. */
inline come_back(x) {
	old=but(old,x);
	if
	:: m[x].prom>id ->
		fenced=with(fenced,x);
		if :: N-bits(fenced)<W -> forget() :: else fi
	:: else ->
		take(x);
		if
		:: m[x].ep!=id && MISTAKE!=7 -> stale=with(stale,x)
		:: m[x].ep==id || MISTAKE==7 ->
			assert(m[x].ep!=id || (m[x].seq>=done[x] && m[x].seq<=seq));
			if
			:: replayable(x) || MISTAKE==10 ->
				if :: m[x].seq>done[x] -> cover(3) :: else fi;
				if :: m[x].seq<seq -> cover(7) :: else fi;
				up=with(up,x);
				nx[x]=(MISTAKE==4 -> done[x] : m[x].seq)+1;
				if :: m[x].seq>done[x] && MISTAKE!=4 -> done[x]=m[x].seq :: else fi;
				settle()
			:: else -> cover(4); stale=with(stale,x)
			fi
		fi
	fi
}
inline forget() {
	dead=true; open=false; up=0; stale=0; doubt=0; fenced=0; old=0; seq=0; was=0; first=0; k=0;
	do :: k<N -> nx[k]=0; done[k]=0; k++ :: else -> break od; k=1;
	do :: k<=S -> h[k]=0; k++ :: else -> break od; k=0;
	do :: k<K -> ring[k]=0; k++ :: else -> break od; k=0
}

#define CLAIM(x)  :: d_step { !dead && can_claim(x) -> take(x); \
	if :: !chose -> cl=with(cl,x) :: else fi }
#define LATE(x)   :: d_step { !dead && open && m[x].prom<id -> take(x); stale=with(stale,x) }
#define COPY(x)   :: d_step { !dead && can_copy(x) -> copy(x) }
#define SEND(x)   :: d_step { !dead && can_forward(x) -> forward(x) }
#define ARRIVE(x) :: d_step { !dead && can_arrive(x) -> arrive(x) }
#define POLL(x)   :: d_step { !dead && can_poll(x) -> poll(x) }
#define BREAK(x)  :: d_step { !dead && can_break(x) -> breaks++; old=with(old,x); up=but(up,x) }
#define BACK(x)   :: d_step { !dead && can_return_to(x) -> come_back(x) }

byte tried;                     /* what the first owner posted */

proctype owner(byte id) {
	byte seq, h[S+1], ring[K], k, c, bep;
	byte first;     /* seq of the ring's beginning */
	byte nx[N];     /* whose chain arrives next */
	byte done[N];   /* known to be held */
	byte up;        /* connected: all that is posted goes there */
	byte old;       /* links that broke here, and were not taken up again */
	byte stale;     /* claimed, to be copied whole */
	byte fenced, cl;
	byte was;       /* up to which commits returned */
	byte doubt;
	bool dead, open, chose;

	if
	:: id==1 -> d_step { open=true; chose=true; up=(1<<N)-1; first=1;
		do :: k<N -> nx[k]=1; k++ :: else -> break od; k=0 }
	:: else
	fi;
	do
	EACH(CLAIM)
	EACH(COPY)
	EACH(SEND)
	EACH(ARRIVE)
	EACH(POLL)
	EACH(BREAK)
	EACH(BACK)
	:: d_step { !dead && can_choose -> choose() }
	:: d_step { !dead && can_open -> returns(); first=seq+1 }
	:: d_step { !dead && can_post -> post() }
	:: d_step { !dead && can_return -> was++; acknowledge(was) }
	:: d_step { !dead && can_time_out -> doubt=seq }
	od
}

init {
	byte i;

	atomic {
		do :: i<N -> m[i].prom=1; m[i].ep=1; i++ :: else -> break od;
		i=0;
		run owner(1); run owner(2);
		if :: OWNERS>2 -> run owner(3) :: else fi
	}
}
/*
 * quick holds -DW=2 -DBREAKS=1: two mirrors, both needed, a link breaks
 * full holds -DW=2: .. two of them do
 * full holds -DW=1: two mirrors, one is enough
 * full holds -DW=2 -DBREAKS=0 -DS=2 -DOWNERS=3: two mirrors, both needed, three owners
 * full holds -DW=1 -DBREAKS=0 -DS=2 -DOWNERS=3: two mirrors, one is enough, three owners
 * quick found -DMISTAKE=1 -DW=1: a byte arrives before its undo record (I1)
 *   in the code: sim undo-last
 * full found -DMISTAKE=2 -DW=1: a slot before the last byte (I2)
 *   in the code: sim slot-first
 * full found -DMISTAKE=3 -DW=1: a claim does not roll back
 *   in the code: sim not-undone
 * quick found -DMISTAKE=4 -DW=1: replayed from what had completed, not from the mirror's slot (I3)
 *   in the code: sim again
 * quick found -DMISTAKE=5 -DW=1: the ring is overwritten where a connected mirror needs it
 *   in the code: sim reused
 * full found -DMISTAKE=6 -DW=1: a link that was dropped still sends from the ring
 *   in the code: sim dropped
 * full found -DMISTAKE=7 -DW=1: another's image is replayed onto
 *   in the code: sim foreign
 * quick found -DMISTAKE=8 -DW=2: what timed out is taken for not applied
 *   in the code: sim redone
 * full found -DMISTAKE=9 -DW=2: returned before W hold it (I4)
 *   in the code: sim early
 * full found -DMISTAKE=10 -DW=1: replayed from what the ring no longer holds
 *   in the code: sim lapped
 * full found -DMISTAKE=11 -DW=2 -DBREAKS=0 -DS=2 -DOWNERS=3: a missed one is sent with what came later
 *   in the code: sim together
 * full found -DMISTAKE=12 -DN=3 -DW=2 -DBREAKS=0 -DS=2 -DOWNERS=3: what another owner did is sent as missed
 *   in the code: sim parted
 * full event -DCOVER=1 -DW=1: a mirror that lags is dropped
 * full event -DCOVER=2 -DW=2: a doubt is ended by what completes
 * quick event -DCOVER=3 -DW=1: a mirror comes back with more than was known
 * full event -DCOVER=4 -DW=1: .. that missed more than the ring holds
 * full event -DCOVER=5 -DW=1: the next owner shows what was in doubt
 * full event -DCOVER=6 -DW=1: .. or does not have it
 * full event -DCOVER=7 -DW=1: what was missed is replayed
 * full event -DCOVER=8 -DW=2 -DBREAKS=0 -DS=2 -DOWNERS=3: .. is sent by the next owner
 */
