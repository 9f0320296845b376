/*
 * shadow.pml - memory that is fetched on demand and compared with a copy of what is committed:
 * "Recovery on demand", with a shadow, of PROTOCOL.md. demand.pml says from whom bytes may come;
 * here they are of some state since the segment was mapped, and may be older than the last commit.
 *
 * One granule of two pages. The thread that fetches has an answer, puts it into the shadow, then
 * lets page after page be seen, and takes note of what came last: there may be memory for the first
 * page only, or for none, and it tries again. The application stores to what can be seen, and ends
 * each transaction by a commit or an abort. Another owner may fence it at any time: then nothing is
 * sent, and nothing more is asked for.
 *
 * Properties: a commit sends all that was stored; an abort leaves what is committed; what counts as
 * here has a shadow that is what is committed; and what cannot be seen is not touched.
 *
 * Left out: the mirrors, who keep what is sent (core.pml), other granules, and unmapping.
 */
#ifndef TXS
#define TXS 3           /* transactions */
#endif
#ifndef ASKS
#define ASKS 3          /* answers */
#endif
#ifndef MISTAKE
#define MISTAKE 0
#endif
#ifndef COVER
#define COVER 0
#endif
#define cover(n) assert(COVER!=n)
#define FIRST 1         /* what both pages hold at first */

byte com[2];            /* what is committed */
byte mem[2];
bool seen[2];
byte sh[2];             /* the shadow; 0: nothing has come */
byte here;              /* so many pages count as here */
bool filling;
byte fills;
bool fenced;

#define is_shadow(i) (here<=i || sh[i]==com[i])

inline look(i) {
	assert(seen[i]);        /* else the library waits with its lock */
	differs = (mem[i]!=sh[i])
}

/* With the lock: all of these in one step. */
inline send() {
	k=0;
	do
	:: k<here ->
		look(k);
		if
		:: differs ->
			sh[k]=mem[k]; com[k]=mem[k];
			if :: here<2 -> cover(1) :: else fi
		:: else
		fi;
		k++
	:: else -> break
	od;
	assert(!seen[0] || com[0]==mem[0]);
	assert(!seen[1] || com[1]==mem[1]);
	k=0; differs=false
}

inline put_back() {
	k=0;
	do
	:: k<here ->
		look(k);
		if
		:: differs ->
			mem[k]=sh[k];
			if :: fenced && here<2 -> cover(2) :: else fi
		:: else
		fi;
		k++
	:: else -> break
	od;
	assert(!seen[0] || com[0]==mem[0]);
	assert(!seen[1] || com[1]==mem[1]);
	k=0; differs=false
}

proctype application() {
	byte t, f, k;
	bool differs, sends;

	do
	:: t<TXS ->
		t++;
		do
		:: atomic { seen[0] -> mem[0]=FIRST+t }
		:: atomic { seen[1] -> mem[1]=FIRST+t }
		:: break
		od;
		if :: sends=true :: sends=false fi;
		d_step {
			f=fills;
			if
			:: filling && (mem[0]==FIRST+t || mem[1]==FIRST+t) -> cover(3)
			:: else
			fi
		};
		if
		:: MISTAKE!=1 -> (!filling || fills!=f)
		:: MISTAKE==1
		fi;
		d_step {
			if
			:: sends && !fenced -> send()
			:: else -> put_back()
			fi;
			sends=false
		}
	:: else -> break
	od
}

proctype fetch() {
	byte a[2];
	byte asks, i, from;

	do
	:: here<2 && asks<ASKS && !fenced ->
		asks++;
		/* Confirmed; it may be old when it is filled in. */
		d_step { a[0]=com[0]; a[1]=com[1] };
		d_step {
			from=(MISTAKE==4 -> 0 : here);
			filling=true; fills++;
			if :: here==1 && a[0]!=com[0] -> cover(4) :: else fi
		};
		if
		:: MISTAKE!=5 -> d_step { if :: from==0 -> sh[0]=a[0] :: else fi; sh[1]=a[1] }
		:: MISTAKE==5
		fi;
		i=from;
		do
		:: i<2 -> d_step { if :: !seen[i] -> mem[i]=a[i]; seen[i]=true :: else fi; i++ }
		:: break        /* there is no memory for the next one */
		od;
		if
		:: MISTAKE==5 ->
			d_step {
				if :: from==0 && i>0 -> sh[0]=a[0] :: else fi;
				if :: i>1 -> sh[1]=a[1] :: else fi
			}
		:: MISTAKE!=5
		fi;
		d_step {
			filling=false;
			here=(MISTAKE==2 && i<2 -> 0 : (MISTAKE==3 && i>0 -> 2 : (i>here -> i : here)));
			/* Else a copy to a mirror has other bytes. */
			assert(is_shadow(0) && is_shadow(1));
			a[0]=0; a[1]=0; i=0; from=0
		}
	:: else -> break
	od
}

proctype other() {
	if
	:: fenced=true
	:: true
	fi
}

init {
	atomic {
		com[0]=FIRST; com[1]=FIRST;
		run application(); run fetch(); run other()
	}
}
/*
 * quick holds -DTXS=2: two transactions
 * quick holds -DTXS=3: three
 * full holds -DTXS=4 -DASKS=5: more of both
 * quick found -DMISTAKE=1: who commits does not wait for what is being filled
 *   in the code: sim unsettled
 * quick found -DMISTAKE=2: what came by half does not count as here
 *   in the code: sim torn-missed
 * quick found -DMISTAKE=3: all of the granule counts as here when a part has come
 *   in the code: sim torn-whole
 * quick found -DMISTAKE=4: what has come gets older bytes again, in the shadow
 *   in the code: sim torn-again
 * quick holds -DMISTAKE=5: a page can be seen before it is in the shadow; the wait suffices
 * quick event -DCOVER=1: a part is committed while the rest is missing
 * quick event -DCOVER=2: .. put back by an owner that is fenced
 * quick event -DCOVER=3: stored to while it is filled
 * quick event -DCOVER=4: the rest of a granule comes with an answer that is older than its part
 */
