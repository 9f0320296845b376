/*
 * due.h - answers of mirrors that nobody waits for. Each of them says who takes it: a sign of life
 * (heartbeat.c), rosters that are told (roster_telling.c), or a question to several mirrors at
 * once, for who goes on when enough of them have answered. So a mirror that is stopped holds up
 * nothing but what needs its answer. Admin.
 */
#ifndef PERSEAS_CLIENT_DUE_H
#define PERSEAS_CLIENT_DUE_H

#include "../core/handle.h"

/* Sends a request whose answer `due` takes. False: not to this mirror, or not now. */
bool ps_due_ask(struct perseas *p, struct ps_mirror *m, const Perseas__Request *request,
                struct ps_due due);

/* Returns how many answers are due that this one takes. */
unsigned ps_due_count(const struct ps_mirror *m, ps_taker *take);

/* Has the answer that is due before any other from this mirror taken. 0; or a code: the connection
 * is over, and no answer is due any more. */
int ps_due_take(struct perseas *p, struct ps_mirror *m, uint64_t until_ns, struct ps_error *error);

/* The same, from every mirror, for all that are there. The connection of one whose answer is not
 * there in time ends: who watches sessions finds that. */
void ps_dues_take(struct perseas *p, uint64_t now);

/* Its session is over, for this reason: its answers will not come. */
void ps_dues_drop(struct perseas *p, struct ps_mirror *m, const struct ps_error *why);

/* Has it left a request unanswered for so long that nothing should wait for it? It is not asked
 * what others are asked; when the time of that request is over, its session ends. Not under the
 * lock. */
bool ps_silent(struct perseas *p, const struct ps_mirror *m);

/* Are so many answers of one of these due that it cannot be asked now? They come, or it is found to
 * be silent. */
bool ps_dues_full(struct perseas *p, uint32_t set);

/*
 * The same request to those mirrors of a set that it makes sense to ask. Their answers come into
 * *question, which must last until it is forgotten or asked anew: what was asked before is answered
 * to nobody. Who must not do without the answer of one that is slow looks at ps_dues_full first.
 */
void ps_question_ask(struct perseas *p, struct ps_question *question, uint32_t set,
                     const Perseas__Request *request);
void ps_question_confirm(struct perseas *p, struct ps_question *question, uint32_t set);
void ps_question_forget(struct ps_question *question);

/* Will no answer change it any more, or is its time over? */
bool ps_question_over(struct perseas *p, const struct ps_question *question);

/* Returns true if the mirror is connected and this version of the protocol, or a later one, is
 * spoken with it. */
bool ps_mirror_speaks(const struct perseas *p, const struct ps_mirror *m, unsigned version);

#endif
