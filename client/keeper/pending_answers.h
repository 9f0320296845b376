/*
 * pending_answers.h - answers that are pending while no thread waits for them. Each pending answer
 * names the function that takes it: for a heartbeat (heartbeat.c), for a roster that was told
 * (roster_telling.c), or for a question to several mirrors, whose asker goes on once enough have
 * answered. A stopped mirror delays only the work that needs its answer. Callers hold admin.
 */
#ifndef PERSEAS_CLIENT_PENDING_ANSWERS_H
#define PERSEAS_CLIENT_PENDING_ANSWERS_H

#include "../core/handle.h"

/* Sends a request to mirror `m` without waiting. `pending` says which function takes the answer.
 * Returns false if the mirror cannot be asked now. */
bool ps_pending_send_request(struct perseas *p, struct ps_mirror *m,
                             const Perseas__Request *request, struct ps_pending_answer pending);

/* Returns how many pending answers of mirror `m` the function `handler` is to get. */
unsigned ps_pending_count_for_handler(const struct ps_mirror *m, ps_answer_handler *handler);

/* Waits until until_ns for the oldest pending answer of mirror `m`, and gives it to its taker.
 * Returns 0, or an error code if the connection is over. Then all pending answers are dropped. */
int ps_pending_take_answer(struct perseas *p, struct ps_mirror *m, uint64_t until_ns,
                           struct ps_error *error);

/* Gives the answers that have come, from all mirrors, to their takers. Ends the connection of a
 * mirror whose answer is overdue; the keeper notices that. */
void ps_pending_take_all_answers(struct perseas *p, uint64_t now);

/* Drops the pending answers of mirror `m` because its session ended with error `why`. */
void ps_pending_drop_answers(struct perseas *p, struct ps_mirror *m, const struct ps_error *why);

/* Returns true if mirror `m` has left a request unanswered for so long that nothing should wait
 * for it, nor ask it more. Its session ends when the request times out. Caller does not hold
 * p->lock. */
bool ps_pending_is_overdue(struct perseas *p, const struct ps_mirror *m);

/* Returns true if a mirror of `set` owes so many answers that it cannot be asked now. That passes:
 * the answers come, or the mirror is found overdue. */
bool ps_pending_is_any_full(struct perseas *p, uint32_t set);

/* Sends one request to the mirrors of `set` that can be asked, and collects their answers in
 * *question, which must live until it is forgotten or asked again. Answers to what was asked before
 * are dropped. A caller that needs the answer of a slow mirror first checks
 * ps_pending_is_any_full().
 *
 * ps_question_ask_claim_confirmations asks whether this owner's claim stands. */
void ps_question_ask(struct perseas *p, struct ps_question *question, uint32_t set,
                     const Perseas__Request *request);
void ps_question_ask_claim_confirmations(struct perseas *p, struct ps_question *question,
                                         uint32_t set);
void ps_question_forget(struct ps_question *question);

/* Returns true if all answers have come, or the question timed out. */
bool ps_question_is_over(struct perseas *p, const struct ps_question *question);

/* Returns true if the mirror is connected over version `version` of the protocol or a later one. */
bool ps_mirror_has_version(const struct perseas *p, const struct ps_mirror *m, unsigned version);

#endif
