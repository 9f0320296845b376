/*
 * perseas.hpp - transactions on memory that is mirrored on other nodes, in C++17. Programs include
 * it, and link libperseas; there is nothing else to link. doc/cpp.md is its guide.
 *
 *     perseas::store store("bank", mirrors, perseas::options().create());
 *     auto bank = store.make_root<struct bank>("accounts");
 *
 *     store.transact([&](perseas::transaction &tx) {
 *             tx.writable(bank->accounts[7]).balance += 5;
 *     });
 *
 * It is the C interface (perseas.h) with C++'s ways to say who owns what and what went wrong, and
 * holds no rule of its own about what survives: what the headers of C say of transactions, doubt,
 * threads and limits holds here. A function that may fail is there twice: x() throws
 * perseas::error, and try_x() returns a perseas::result; without exceptions (-fno-exceptions) only
 * the latter is.
 */
#ifndef PERSEAS_HPP
#define PERSEAS_HPP

#include "perseas/error.hpp"
#include "perseas/figures.hpp"
#include "perseas/heap.hpp"
#include "perseas/kept.hpp"
#include "perseas/options.hpp"
#include "perseas/p.hpp"
#include "perseas/pending.hpp"
#include "perseas/segment.hpp"
#include "perseas/span.hpp"
#include "perseas/standby.hpp"
#include "perseas/storable.hpp"
#include "perseas/store.hpp"
#include "perseas/transaction.hpp"

#endif
