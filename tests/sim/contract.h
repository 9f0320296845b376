/*
 * contract.h - the simulator's env, fabrics and pager on the stages of the contracts of env.h,
 * fabric.h and demand.h (all in client/core), for tests/unit/test_contract_env.c,
 * test_contract_fabric_sim.c and test_contract_demand_sim.c.
 *
 * What the world can do and this env cannot: run out of descriptors or memory, send a message in
 * pieces (each arrives whole; the data path's do not), greet in another version or refuse TLS, send
 * signs of life (hearing.c knows without them who is silent), wake
 * threads on two processors at once (`barrier` has nothing to do), and fail to spawn.
 *
 * What the pager of the world can do and this one cannot:
 * - Missing memory holds nobody up who touches it, and gives nobody SIGBUS: it has what no mirror
 *   has. So `fault` tells of nobody, `refuse` only counts, and who touches memory in a schedule
 *   must ask for it first.
 * - A page that was here cannot be discarded, nor the pager's descriptors be closed.
 * - `begin`, `cover`, `fill` and `look_up` cannot fail, and there is no `limit`. `hire` fails now
 *   and then.
 * - `fill` puts its bytes over what is there, where the world's leaves a page that is here; and not
 *   at once for everybody, but no other thread runs meanwhile. It knows no pages, so that nothing
 *   behind the end of a segment becomes zeros.
 *
 * What the fabrics of the world can do and these cannot, by the clauses of client/core/fabric.h:
 * - F3: `stream` ends, where a mirror of the world may answer that it promised another owner.
 * - F5: a write outside of its region fails the schedule: the library must never post one.
 * - F6: no device copies from its queue what is not in the ring; sources are always read later.
 * - F10: regions are not checked; a mirror's store logic grants none that cannot be.
 * - F20: memory that is mapped is never cut short under who reads it; `stream` has a peek, too, as
 *   a device might, so that what is posted may come between the slot and the bytes.
 * - F14: a read is answered whole, so that none has its time renewed.
 * - F16: no fabric has beats; the end of the control connection tells.
 * - Completions are neither lost nor refused by a device, writes of one group overtake each other
 *   only by going out in the other order, `shared` stores in one order that all see, and its
 *   memory is never cut short.
 */
#ifndef PERSEAS_SIM_CONTRACT_H
#define PERSEAS_SIM_CONTRACT_H

#include "world.h"

/* Runs a clause, in a world of its own; clause_broken says what did not hold. */
void sim_contract(unsigned clause);

/* Runs the clause on the fabric `stream` or `shared`, which makes the mistake (of enum sim_mistake;
 * 0: none). clause_broken has the result. */
void sim_contract_fabric(unsigned clause, bool shared, int mistake);

/* Runs the clause of recovery on demand; clause_broken has the result. */
void sim_contract_demand(unsigned clause);

/* The world of one clause, with so many mirrors. The caller adds one owner, whose application runs
 * the clause; sim_contract_end runs the owner to its end, and frees the world. */
void sim_contract_begin(struct sim_world *w, unsigned mirrors);
void sim_contract_end(struct sim_world *w);

#endif
