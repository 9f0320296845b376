/*
 * warm.pml - a standby that keeps a copy of one page, by what it reads from one mirror, and uses
 * it when it opens the store: "A copy that follows" of PROTOCOL.md.
 *
 * Mirror M is followed. Another mirror is there only to hold a prefix of its own: what is chosen
 * at a takeover is the state of either one. The owner commits; its session with M breaks, and is
 * taken up again, or M is copied to in place. Another owner may take the store before the standby
 * does. The standby reads in rounds: the page, the slot, the log, the mirror's status, each a step
 * with anything between them. It may open the store after any of them.
 *
 * Property: where the standby uses the page of its copy, it is the page of the state that was
 * chosen.
 *
 * A page has the number of the transaction that wrote it. Left out: how the state is chosen, what
 * becomes of commits (core.pml), and several pages: each of them has a copy of its own.
 */
#ifndef S
#define S 3             /* transactions */
#endif
#ifndef RING
#define RING 2          /* records that the log of M has room for */
#endif
#ifndef COPIES
#define COPIES 1        /* times M is copied to in place */
#endif
#ifndef BREAKS
#define BREAKS 1        /* times the owner's session with M breaks */
#endif
#ifndef OTHERS
#define OTHERS 1        /* owners before the standby */
#endif
#ifndef DROPS
#define DROPS 0         /* times the standby begins again */
#endif
#ifndef MISTAKE
#define MISTAKE 0
#endif
#ifndef COVER
#define COVER 0
#endif
#define cover(n) assert(COVER!=n)

/* What the owner has posted: the page after each transaction, whether that one wrote it, and whose
 * it was. */
byte val[S+1], ep[S+1];
bool wr[S+1];
byte seq = 1, epoch = 1, owners, breaks;

/* M: its slot, its page, and the log, of which the last RING records are there. */
byte mseq = 1, mep = 1, mv, top = 1, le[S+2], changed, chunk, copies;
bool lw[S+2], rec, ahead, whole = true, link = true;
byte nseq = 1;          /* the other mirror's slot */
bool over;              /* the standby has opened the store */

/* M takes what was posted to it, in order. */
#define NEXT (mseq+1)
proctype mirrors() {
	do
	:: d_step { link && !over && mseq<seq && !rec -> rec=true; le[NEXT]=ep[NEXT];
		lw[NEXT]=wr[NEXT]; top=(NEXT>top -> NEXT : top) }
	:: d_step { link && !over && rec && !ahead -> ahead=true; mv=(wr[NEXT] -> val[NEXT] : mv) }
	:: d_step { link && !over && ahead -> mseq++; mep=epoch; rec=false; ahead=false }
	:: d_step { !over && nseq<seq -> nseq++ }
	od
}

/* What was begun is put back. */
inline mend() {
	changed++; mv=(ahead && whole && lw[NEXT] -> val[mseq] : mv); rec=false; ahead=false
}

/* Everything of M is made that of the chosen state, and its log, too. */
inline give() {
	mv=val[seq]; mseq=seq; mep=epoch; top=seq; k=0;
	do
	:: k<=seq -> le[k]=ep[k]; lw[k]=wr[k]; k++
	:: else -> break
	od;
	k=0
}

/* Either mirror's state, which is a prefix of what was posted. */
#define choose(at_m) seq=(at_m && whole -> mseq : nseq)

/* Another owner. */
inline next_owner(at_m) {
	owners++; link=false; mend(); choose(at_m);
	epoch++; changed++; give(); nseq=seq; whole=true; link=true
}

proctype owner() {
	byte k;

	do
	:: d_step { !over && seq<S -> seq++; ep[seq]=epoch; wr[seq]=true; val[seq]=8*epoch+seq }
	:: d_step { !over && seq<S -> seq++; ep[seq]=epoch; wr[seq]=false; val[seq]=val[seq-1] }
	:: d_step { !over && link && breaks<BREAKS -> breaks++; link=false }
	:: d_step { !over && !link && whole -> mend(); link=true }
	/* In place: no record tells of it. The records come last. */
	:: d_step { !over && !link && whole && copies<COPIES -> copies++; mend(); whole=false; chunk=0 }
	:: d_step { !over && !whole -> mv=val[seq]; chunk=seq }
	:: d_step { !over && !whole && chunk==seq -> give(); whole=true; link=true }
	:: d_step { !over && owners<OTHERS -> next_owner(true) }
	:: d_step { !over && owners<OTHERS -> next_owner(false) }
	od
}

/* The standby. */
byte cv, since, a, f, e, base, pe;      /* the copy, and by which slot it is proven */
bool clean, begun;
byte drops;

inline drop() { clean=false; begun=false; cv=0; since=0; a=0; f=0; e=0; base=0; pe=0 }

/* What M's log has of this epoch behind the last record that was followed. */
inline follow() {
	do
	:: f+1<=top && f+1+RING>top && le[f+1]==e -> f++;
		if
		:: lw[f] -> touched=f
		:: else
		fi
	:: else -> break
	od;
	k=0
}

/* Opens the store: the state is chosen, and the records back to the slot of the copy are read. */
inline open(at_m) {
	d_step {
		over=true;
		mv=(ahead && whole && lw[NEXT] -> val[mseq] : mv); rec=false; ahead=false;
		choose(at_m);
		uses=begun && clean && a<=seq && (ep[a]==pe || MISTAKE==6);
		k=a+1;
		do
		:: uses && k<=seq -> uses=!wr[k] || MISTAKE==5; k++
		:: else -> break
		od;
		if
		:: uses -> assert(cv==val[seq]);
			if :: seq>a -> cover(1) :: else fi;
			if :: reread -> cover(2) :: else fi;
			if :: owners>0 -> cover(3) :: else fi;
			if :: copies>0 -> cover(4) :: else fi;
			if :: f>a -> cover(5) :: else fi
		:: else
		fi
	}
}

proctype standby() {
	byte now, v, touched, k;
	bool reading, uses, reread;

again:	if
	:: d_step { !begun && whole && drops<=DROPS -> drops++; begun=true; base=changed; a=mseq; e=mep;
		f=a; since=a; pe=le[a] }
	:: open(true); goto done
	:: open(false); goto done
	fi;
	do
	/* Nothing of a round counts before its end: so it is as if none were under way. */
	:: open(true); goto done
	:: open(false); goto done
	:: true ->
		d_step { reading=!clean && (since<=a || MISTAKE==2); v=(reading -> mv : 0) };
		d_step { now=mseq; k=mep };
		if :: d_step { k!=e -> drop() }; goto fall :: else fi;
		d_step { k=0; touched=0; follow() };
		/* The slot tells whether there were more. */
		d_step { now=mseq; k=mep };
		if :: d_step { k!=e -> drop() }; goto fall :: else fi;
		d_step { k=0; follow() };
		if
		:: d_step { f<now && MISTAKE==3 -> f=now }
		:: d_step { f<now && MISTAKE!=3 -> drop() }; goto fall
		:: else
		fi;
		if
		:: d_step { (changed!=base || !whole) && MISTAKE!=4 -> drop() }; goto fall
		:: else
		fi;
		d_step {
			if
			:: touched && !(reading && MISTAKE==1) -> reread=reread || clean; clean=false;
				since=touched; reading=false
			:: else
			fi;
			if
			:: reading -> cv=v; clean=true
			:: else
			fi;
			/* What is followed has one epoch. */
			pe=(now>a -> e : pe); a=now; now=0; v=0; touched=0; reading=false
		}
	od;
fall:	skip;
	d_step { now=0; v=0; touched=0; k=0; reading=false };
	goto again;
done:	skip
}

init {
	atomic {
		ep[1]=1; wr[1]=true; val[1]=1; val[0]=1; mv=1; le[1]=1; lw[1]=true;
		run mirrors(); run owner(); run standby()
	}
}
/*
 * quick holds -DCOPIES=0 -DBREAKS=0: two transactions behind the first, and another owner
 * full holds -DS=3: .. a break of the link, and M is copied to
 * full holds -DDROPS=1 -DCOPIES=0: .. and the standby may begin again
 * full holds -DRING=1 -DCOPIES=2 -DOTHERS=0: a log with room for one record, and two copies
 * quick found -DMISTAKE=1: what was read is used although a record behind it names it
 *   in the code: unit test_warm_pages a_page_that_changed_meanwhile_is_not_right
 * quick found -DMISTAKE=2: a page is read again before the slot covers what changed it
 *   in the code: unit test_warm_pages a_page_is_read_when_a_slot_covers_it
 * full found -DMISTAKE=3 -DRING=1: a lap of the log is not noticed
 *   in the code: unit test_warm a_lap_ends_a_copy
 * quick found -DMISTAKE=4: the mirror's counter of changes is not compared
 *   in the code: unit test_warm what_is_no_transaction_ends_a_copy
 * quick found -DMISTAKE=5: the records since the copy's slot are not looked at
 *   in the code: unit test_warm what_changed_since_comes_from_mirrors
 * quick found -DMISTAKE=6: the copy's own record is not compared with what was chosen
 *   in the code: unit test_warm a_copy_of_another_history_is_not_used
 * quick event -DCOVER=1: used, with transactions since that wrote elsewhere
 * quick event -DCOVER=2: .. after a page was read again
 * quick event -DCOVER=3: .. after another owner
 * quick event -DCOVER=4: .. after the mirror was copied to
 * full event -DCOVER=5: .. while the log had a record that no slot covered
 */
