/*
 * perseas.hpp - transactions on memory that is mirrored on other nodes, for C++17. Programs include
 * this header and link libperseas, nothing else. The guide is doc/cpp.md.
 *
 *     perseas::store store("bank", mirrors, perseas::options().create());
 *     auto bank = store.make_root<struct bank>("accounts");
 *
 *     store.transact([&](perseas::transaction &tx) {
 *             tx.writable(bank->accounts[7]).balance += 5;
 *     });
 *
 * It is the C interface (perseas.h) with C++'s ways to express ownership and errors. It adds no
 * rule of its own about what survives a failure: what the C headers say about transactions, doubt,
 * threads and limits holds here. Each function that may fail exists twice: x() throws
 * perseas::error, and try_x() returns a perseas::result. Without exceptions (-fno-exceptions) only
 * try_x() exists.
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
