/*
 * log.pml - the ring of one mirror, which is full of bytes that users stored: "The ring" of PROTOCOL.md,
 * its terminator and its bound.
 *
 * The ring has K cells of 64 bytes. A record takes one cell for its head, and a large one a second cell
 * for a before-image. One before-image is what a user chose: the head of any record that this model can have,
 * whose right half makes its checksum right. The others are zeros: the first stored record that is taken for
 * a record breaks a property, whatever else is stored. Every write arrives in halves of a cell, and the owner
 * may stop for ever after each half. A second owner claims the image at any time, rolls back,
 * adopts it, and goes on. A reader follows the log of the running image.
 *
 * Properties: a claim at any moment rolls back exactly the unfinished transaction, and never a stored
 * record; the reader never follows a stored record.
 *
 * OLD: owner 1 is of the version before, which writes no terminators. Then the first property holds from the
 * slot on with which owner 2 adopts the image.
 *
 * Left out: other mirrors, data of more than one write, and the contents of publishes.
 */
#ifndef MISTAKE
#define MISTAKE 0
#endif
#ifndef COVER
#define COVER 0
#endif
#ifndef OLD
#define OLD 0
#endif
#ifndef READER
#define READER 0
#endif
#ifndef S
#define S 5             /* transactions */
#endif
#define K 4             /* cells of the ring */
#define LIMIT 2         /* cells of the largest record */
#define STORED 128      /* in the right half of a head: a user made it */
#define cover(n) assert(COVER!=n)

/* The left half of a head: its seq, epoch (1 or 2) and whether it is large. The right half is the same
 * number, or STORED more. Half a head is no record. */
#define head(s, e, large) (4*(s)+2*((e)-1)+(large))
byte left[K], right[K];
byte slot_epoch=1, slot_seq, slot_next=1;
byte data, promised=1;
bool stored;            /* the user stored the head of a record */
bool safe;              /* owner 2 has adopted an image of the version before */

#define place(next, length) (K-(next)%K>=(length) -> (next) : (next)+K-(next)%K)
#define bound(next) (place(next, LIMIT)+LIMIT+1>K -> place(next, LIMIT)+LIMIT+1-K : 0)
#define begins_with(l, s, e) (((l)|1)==head(s, e, 1))
#define fits(l, at, next) (place(next, 1+((l)&1))==(at))
#define is_record(l, r, at, next, s, e) \
	(begins_with(l, s, e) && ((r)==(l) || (r)==(l)+STORED) && fits(l, at, next))
#define found_at(at) is_record(left[(at)%K], right[(at)%K], at, slot_next, slot_seq+1, slot_epoch)
#define lap(next) place(next, K)
#define is_stored(at) (right[(at)%K]>=STORED)

/* What a claim at this moment would find. */
#define finds_next found_at(slot_next)
#define finds_lap found_at(lap(slot_next))
inline check() {
	if
	:: OLD && !safe
	:: else ->
		assert(!(finds_next && is_stored(slot_next)));
		assert(!(finds_lap && is_stored(lap(slot_next))));
		assert(finds_next || finds_lap || data==slot_seq)
	fi
}

#define lives (promised==id)
#define terminates (!(OLD && id==1) && MISTAKE!=1)

/* One half of a cell arrives. */
#define ARRIVES(half, cell, value) atomic { lives -> half[(cell)%K]=value; check() }

inline terminate(cell) {
	if
	:: (cell)%K && terminates ->
		ARRIVES(left, cell, 0);
		if :: MISTAKE!=2 -> ARRIVES(right, cell, 0) :: else fi
	:: else
	fi
}

/* The user's before-image: zeros or, once, the head of a record. */
inline choose_image() {
	image=0;
	if
	:: large && !stored ->
		if
		:: image=0
		:: select(image : head(2, 1, 0)..head(S, 2, 1)); stored=true
		fi
	:: else
	fi
}

proctype owner(byte id) {
	byte at, image, large;

	if
	:: id==2 ->
		/* Claim: the promise first, then the roll-back. */
		atomic {
			promised=2;
			if :: finds_next || finds_lap -> data=slot_seq :: else fi;
			data=(OLD -> slot_seq : data);
			assert(data==slot_seq)
		}
		if :: MISTAKE!=3 -> terminate(slot_next) :: else fi;
		atomic { slot_epoch=2; safe=true; check() }
	:: else
	fi;
	do
	:: atomic { lives && slot_seq<S -> at=0; image=0; large=0 };
		if :: large=0 :: large=1 fi;
		choose_image();
		atomic { lives -> at=place(slot_next, 1+large) }
		ARRIVES(left, at, head(slot_seq+1, id, large));
		ARRIVES(right, at, head(slot_seq+1, id, large));
		if
		:: large ->
			ARRIVES(left, at+1, image);
			ARRIVES(right, at+1, (image -> image+STORED : 0))
		:: else
		fi;
		terminate(at+1+large);
		atomic { lives -> data=slot_seq+1; check() }
		atomic {
			lives -> slot_seq++; slot_next=at+1+large; check();
			if :: at>=K -> cover(1) :: else fi
		}
	od
}

/* Follows the log from the slot on, while epoch 1 lasts. */
proctype reader() {
	byte seq, next, now, at, l, r;

	atomic { slot_epoch==1 -> seq=slot_seq; next=slot_next }
	do
	:: atomic { slot_epoch==1 -> now=slot_seq }
		if :: at=next :: at=lap(next) fi;
		l=left[at%K];
		r=right[at%K];
		atomic {
			if
			:: slot_epoch==1 && is_record(l, r, at, next, seq+1, 1) &&
				(now>=seq || MISTAKE==4) && (at>=bound(slot_next) || MISTAKE==5) ->
				assert(r<STORED);
				seq++; next=at+1+(l&1);
				if :: at>=K -> cover(2) :: else fi
			:: else
			fi;
			at=0; l=0; r=0; now=0
		}
	od
}

init {
	atomic {
		run owner(1);
		if :: READER -> run reader() :: else -> run owner(2) fi
	}
}
/*
 * quick holds -DS=5: two owners
 * full holds -DOLD=1 -DS=5: the first owner writes no terminators
 * full holds -DREADER=1 -DS=5: a reader
 * full holds -DS=6: two owners, more transactions
 * full holds -DREADER=1 -DS=6: a reader, more transactions
 *
 * quick found -DMISTAKE=1 -DS=4: records have no terminator
 *   in the code: sim no-terminator
 * quick found -DMISTAKE=2 -DS=4: the terminator ends before the head that a user stored does
 *   in the code: unit test_forged test_zeros_follow_each_record
 * full found -DMISTAKE=3 -DOLD=1 -DS=4: an image is adopted without a terminator at its slot
 *   in the code: unit test_forged test_a_delta_leaves_no_stored_record_at_its_slot
 * full found -DMISTAKE=4 -DREADER=1 -DS=4: a reader follows a record before the terminator of the one before it
 *   in the code: unit test_log_forged no_record_is_followed_before_the_terminator_of_the_one_before_it
 * quick found -DMISTAKE=5 -DREADER=1 -DS=6: a reader follows a record that may be overwritten
 *   in the code: unit test_log_forged what_the_record_under_way_has_overwritten_is_not_followed
 *
 * quick event -DCOVER=1 -DS=4: the ring's next lap begins
 * quick event -DCOVER=2 -DREADER=1 -DS=5: the reader follows a record there
 */
