/*
 * spill.pml - mirrors that stop on purpose, write their image to a spill, and load it at their next
 * start: "Spill and load" of PROTOCOL.md, and the ids and rosters of I9.
 *
 * A stop cuts the sessions, then writes the spill; its memory may be there at the start, or not. A
 * start takes the memory if it is there, else it loads the spill, and gives the image a new id,
 * whose parent is the id of before, or that one's parent where the image's own roster does not list
 * it. Then the spill is removed, and only then the mirror serves. An owner counts an image that its
 * newest roster lists, or whose parent it lists, and records the new id: a claimer on W before its
 * open returns, a running owner on those that it reaches, and it counts meanwhile.
 *
 * RETURNS: a spill that was loaded and removed comes back in place of a memory that is lost (an old
 * disk, a copy): it must count for nothing. TOLD is who must have recorded an id before its image
 * counts: 0 as said above, 1 W mirrors always, 2 W others than the one itself. None of them is
 * enough: what protects is that a spill is removed, durably, before the mirror serves.
 *
 * Properties: what was acknowledged, or shown by an open, is in the state of every later open, and
 * in no other contents.
 *
 * Left out: empty mirrors that are made anew (core.pml), changes of the members (roster.pml), and
 * one spill that is loaded by two daemons at once (tests/sim/copied_spill.c).
 */
#ifndef N
#define N 2             /* mirrors */
#endif
#ifndef W
#define W 1
#endif
#ifndef OWNERS
#define OWNERS 2
#endif
#ifndef STOPS
#define STOPS 2
#endif
#ifndef RETURNS
#define RETURNS 0
#endif
#ifndef TOLD
#define TOLD 0
#endif
#ifndef MISTAKE
#define MISTAKE 0
#endif
#ifndef COVER
#define COVER 0
#endif
#define R (N-W+1)
#define S 2             /* transactions */
#define cover(n) assert(COVER!=n)

#if N==2
#define EACH(step) step(0) step(1)
#define LIVE ((sess[0]==id)+2*(sess[1]==id))
#else
#define EACH(step) step(0) step(1) step(2)
#define LIVE ((sess[0]==id)+2*(sess[1]==id)+4*(sess[2]==id))
#endif
#define bits(v) (((v)&1)+(((v)>>1)&1)+(((v)>>2)&1))
#define in(v, x) (((v)>>(x))&1)
#define with(v, x) ((v)|(1<<(x)))
#define but(v, x) ((v)&(7-(1<<(x))))

typedef ids { byte v[N] };
typedef image {
	byte id, par;           /* of the image; of mirror x by its makings, from 1; 0: none */
	byte re;                /* its roster: epoch and version .. */
	ids r;                  /* .. and the ids that it lists */
	byte prom;
	byte ep, seq, h[S+1]
};
image m[N], f[N];               /* memory and spill */
bool has[N], kept[N];           /* .. are there */
bool serves[N], loaded[N];         /* serves; loaded, and the spill is not removed yet */
byte sess[N];                   /* the owner whose session it is */
byte made[N];
byte acked[S+1];
byte stops, returns;

inline list(a, b) {
	a.v[0]=b.v[0]; a.v[1]=b.v[1];
#if N>2
	a.v[2]=b.v[2]
#endif
}
inline copy(a, b) {
	a.id=b.id; a.par=b.par; a.re=b.re; a.prom=b.prom; a.ep=b.ep; a.seq=b.seq;
	a.h[1]=b.h[1]; a.h[2]=b.h[2]; list(a.r, b.r)
}
/* The mirrors. A mistake: written first, and sessions go on until the daemon ends. */
inline spill(x) {
	copy(f[x], m[x]); kept[x]=true; stops++;
	printf("mirror %d spills: image %d, seq %d\n", x, m[x].id, m[x].seq);
	if
	:: MISTAKE!=1 -> stop(x)
	:: else
	fi
}
inline stop(x) { serves[x]=false; sess[x]=0; loaded[x]=false }
inline child(x) {
	if
	:: m[x].par==0 || m[x].r.v[x]==m[x].id -> m[x].par=m[x].id; made[x]++; m[x].id=made[x]
	:: else -> cover(1)     /* nobody is known to have recorded its id: it keeps both */
	fi
}
inline load(x) {
	copy(m[x], f[x]); has[x]=true; loaded[x]=true;
	child(x);
	printf("mirror %d loads: image %d of %d, seq %d\n", x, m[x].id, m[x].par, m[x].seq)
}
inline serve(x) {
	if :: kept[x] && !loaded[x] -> child(x) :: else fi;
	loaded[x]=false; serves[x]=true;
	if :: MISTAKE!=2 && MISTAKE!=3 -> kept[x]=false :: else fi
}
/* What was loaded once comes back, and the memory does not. */
inline comes_back(x) {
	returns++; serves[x]=false; sess[x]=0; has[x]=false; kept[x]=true;
	printf("mirror %d loses its memory, an old spill is there\n", x)
}

#define SPILL(x) :: d_step { serves[x] && stops<STOPS && made[x]<4 -> spill(x) }
#define STOP(x)  :: d_step { MISTAKE==1 && serves[x] && kept[x] -> \
	serves[x]=false; sess[x]=0; has[x]=false }
#define LOAD(x)  :: d_step { !serves[x] && kept[x] && !loaded[x] && (!has[x] || MISTAKE==3) -> \
	load(x) }
#define SERVE(x) :: d_step { !serves[x] && has[x] && (MISTAKE!=3 || !kept[x] || loaded[x]) && \
	(made[x]<4 || !kept[x] || loaded[x]) -> serve(x) }
/* The host ends, also in the middle of a start. */
#define END(x)   :: d_step { !serves[x] && has[x] && made[x]<4 -> loaded[x]=false; has[x]=false }
#define BACK(x)  :: d_step { serves[x] && returns<RETURNS && f[x].id!=0 && made[x]<4 -> \
	comes_back(x) }
/* A crash of the host, which loses what no spill has; a mistake's spill is still there. */
#define CRASH(x) :: d_step { (MISTAKE==2 || MISTAKE==3) && serves[x] && kept[x] && stops<STOPS -> \
	stops++; serves[x]=false; sess[x]=0; has[x]=(MISTAKE==3) }

proctype mirrors() {
	do
	EACH(SPILL)
	EACH(STOP)
	EACH(LOAD)
	EACH(SERVE)
	EACH(END)
	EACH(BACK)
	EACH(CRASH)
	od
}

/* Owners. */
#define listed(x) (r.v[x]==m[x].id || (m[x].par!=0 && r.v[x]==m[x].par))
#define can_claim(x) (!chose && serves[x] && has[x] && m[x].prom<id && !in(cl,x))
inline claim(x) {
	m[x].prom=id; sess[x]=id; cl=with(cl,x);
	printf("owner %d claims %d: image %d of %d, epoch %d seq %d, its roster %d lists %d\n", id,
		x, m[x].id, m[x].par, m[x].ep, m[x].seq, m[x].re, m[x].r.v[x]);
	if :: m[x].re>re -> re=m[x].re; list(r, m[x].r) :: else fi
}
#define counts(x) (in(cl,x) && listed(x))
#if N==2
#define COUNTED (counts(0)+2*counts(1))
#else
#define COUNTED (counts(0)+2*counts(1)+4*counts(2))
#endif
#define can_choose (!chose && (cl&LIVE)==cl && bits(COUNTED)>=R)
inline better(x) {
	if
	:: counts(x) && (!chose || m[x].ep>bep || (m[x].ep==bep && m[x].seq>seq)) ->
		chose=true; bep=m[x].ep; seq=m[x].seq; h[1]=m[x].h[1]; h[2]=m[x].h[2]
	:: else
	fi
}
inline choose() {
	ex=COUNTED;
	better(0); better(1);
#if N>2
	better(2)
#endif
}

/* A new id is taken up, then recorded. */
#define can_rename(x) (chose && sess[x]==id && r.v[x]!=m[x].id && listed(x))
inline rename(x) {
	r.v[x]=m[x].id; re=(re/8==id -> re+1 : id*8); rec=0; pend=with(pend,x);
	if :: open -> cover(2) :: else -> cover(3) fi
}
#define can_record(x) (chose && sess[x]==id && m[x].re<re && re/8==id)
#define alone(x) ((bits(but(rec,x))<W)<<x)
#if N==2
#define far (alone(0)|alone(1))
#else
#define far (alone(0)|alone(1)|alone(2))
#endif
inline record(x) {
	m[x].re=re; list(m[x].r, r); rec=with(rec,x);
	printf("owner %d records roster %d on %d\n", id, re, x);
	if :: bits(rec)>=W && TOLD<2 -> pend=0 :: else fi;
	if :: TOLD==2 -> pend=pend&far :: else fi
}
#define can_adopt(x) (chose && !open && sess[x]==id && !in(gd,x) && r.v[x]==m[x].id)
inline adopt(x) {
	m[x].h[1]=(seq>0 -> h[1] : 0); m[x].h[2]=(seq>1 -> h[2] : 0); m[x].ep=id; m[x].seq=seq;
	gd=with(gd,x)
}
#define can_open (chose && !open && (cl&LIVE)==cl && pend==0 && bits(gd&LIVE)>=W)
inline opens() {
	assert(acked[1]==0 || (seq>0 && h[1]==acked[1]));
	assert(acked[2]==0 || (seq>1 && h[2]==acked[2]));
	if :: seq>0 -> acked[1]=h[1] :: else fi;
	if :: seq>1 -> acked[2]=h[2] :: else fi;
	open=true; cl=0; ex=0; bep=0;
	printf("owner %d is open: seq %d\n", id, seq)
}

/* A running owner takes a mirror up again: the image that it knew, or one loaded from it. */
#define can_resume(x) (open && serves[x] && has[x] && sess[x]!=id && m[x].prom==id && \
	m[x].ep==id && listed(x))
#define can_apply(x) (open && sess[x]==id && m[x].ep==id && m[x].seq<seq && r.v[x]==m[x].id)
inline apply(x) {
	m[x].seq++; m[x].h[m[x].seq]=h[m[x].seq];
	if :: m[x].seq==seq -> gd=with(gd,x) :: else fi
}
#define standing (TOLD==0 && open -> gd : gd&(7-pend))
#define can_return (inflight && bits(standing)>=W)
inline acknowledge() {
	assert(acked[seq]==0 || acked[seq]==id);
	acked[seq]=id; inflight=false;
	printf("owner %d: %d is acknowledged, on %d\n", id, seq, standing);
	if :: stops>0 -> cover(4) :: else fi;
	if :: pend!=0 -> cover(5) :: else fi
}

#define CLAIM(x)  :: d_step { can_claim(x) -> claim(x) }
#define RENAME(x) :: d_step { can_rename(x) -> rename(x) }
#define RECORD(x) :: d_step { can_record(x) -> record(x) }
#define ADOPT(x)  :: d_step { can_adopt(x) -> adopt(x) }
#define RESUME(x) :: d_step { can_resume(x) -> sess[x]=id }
#define APPLY(x)  :: d_step { can_apply(x) -> apply(x) }

proctype owner(byte id) {
	byte seq, bep, h[S+1];
	byte re;
	ids r;          /* its roster */
	byte cl, ex;    /* claimed, and of these counted */
	byte gd;        /* known to hold the state */
	byte rec;       /* known to have recorded the roster */
	byte pend;      /* images whose ids are not recorded as they should be */
	bool chose, open, inflight;

	if
	:: id==1 -> d_step { chose=true; open=true; re=8; list(r, m[0].r) }
	:: else
	fi;
	do
	EACH(CLAIM)
	EACH(RENAME)
	EACH(RECORD)
	EACH(ADOPT)
	EACH(RESUME)
	EACH(APPLY)
	:: d_step { can_choose -> choose() }
	:: d_step { can_open -> opens() }
	:: d_step { open && !inflight && seq<S -> seq++; h[seq]=id; inflight=true; gd=0 }
	:: d_step { can_return -> acknowledge() }
	od
}

init {
	byte i;

	atomic {
		do
		:: i<N ->
			m[i].id=1; m[i].prom=1; m[i].ep=1; m[i].re=8; m[i].r.v[0]=1; m[i].r.v[1]=1;
#if N>2
			m[i].r.v[2]=1;
#endif
			has[i]=true; serves[i]=true; sess[i]=1; made[i]=1; i++
		:: else -> break
		od;
		i=1;
		do :: i<=OWNERS -> run owner(i); i++ :: else -> break od;
		i=0;
		run mirrors()
	}
}
/*
 * quick holds -DW=2: two mirrors, both needed
 * full holds -DW=1: two mirrors, one is enough
 * full holds -DN=3 -DW=2 -DSTOPS=1: three mirrors
 * full found -DN=3 -DW=2 -DRETURNS=1 -DTOLD=2 -DSTOPS=1: an old spill comes back, W others knew
 *   in the code: sim old-spill
 * full found -DN=3 -DW=2 -DRETURNS=1 -DTOLD=0 -DSTOPS=1: .. counted at once
 *   in the code: sim old-spill
 * quick found -DN=3 -DW=2 -DRETURNS=1 -DTOLD=1 -DSTOPS=1: .. W knew, itself one of them
 *   in the code: sim old-spill
 * quick found -DMISTAKE=1 -DW=2: spilled before the sessions are cut
 *   in the code: sim spilled-early
 * quick found -DMISTAKE=2 -DW=1: a spill that is loaded is not removed
 *   in the code: sim old-spill
 * full found -DMISTAKE=3 -DW=1: .. and wins over the memory
 *   in the code: sim spill-wins
 * full event -DCOVER=1 -DW=2: loaded twice, and no owner came between
 * quick event -DCOVER=2 -DW=2: a running owner takes up a new id
 * full event -DCOVER=3 -DW=2: a claimer does
 * full event -DCOVER=4 -DW=2: a commit after a stop
 * full event -DCOVER=5 -DW=2: .. while an id is not recorded
 */
