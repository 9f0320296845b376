/*
 * test_demand.c - recovery on demand with real mirrors, sockets and pages: what is touched before
 * it is here comes, from whom it may come, and how it ends where it may come from nobody
 * (proto/PROTOCOL.md, "Recovery on demand").
 */
#include "demand_rig.h"
#include "large_pages.h"

#include "../../client/command/ask/ask.h"
#include "../../client/demand/demand.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/syscall.h>

struct unit_fixture unit_fixture = { rig_setup_tcp, rig_teardown };

/* --- it comes --- */

/* Nothing has come when map returns. Then a page comes since it is touched. */
TEST(test_a_page_comes_when_it_is_touched, struct rig *rig)
{
	rig_begin(rig);
	assert_int_equal(rig_stat(rig).missing, SIZE);
	atomic_store(&rig_shut, false);
	for (uint64_t i = SIZE - 1; i > 4096; i -= 4001)
		assert_int_equal(rig_look(rig->bytes + i), rig_byte(i));
	assert_int_equal(perseas_wait_whole(rig->p, -1), 0);
	assert_int_equal(rig_stat(rig).missing, 0);
	assert_int_equal(rig_stat(rig).fetched, SIZE);
	assert_int_equal(rig_wrong(rig), 0);
}
TEST_ALSO(test_a_page_comes_when_it_is_touched, rig_setup_shm, rig_teardown);

/* How much the owner told the first mirror that it misses, as the command sees it. */
static uint64_t missing_told(struct rig *rig)
{
	struct perseas_options options = PERSEAS_OPTIONS_INIT;
	const Perseas__OwnerFigures *figures;
	struct ps_peers peers;
	uint64_t told = 0;

	options.connect_timeout_ms = 10000;
	assert_int_equal(ps_peers_open(&peers, rig->list, &options), PS_EXIT_OK);
	ps_peers_ask_all(&peers, ps_peers_list_request());
	assert_non_null(peers.replies[0]);
	assert_int_equal(peers.replies[0]->list->n_stores, 1);
	figures = peers.replies[0]->list->stores[0]->figures;
	if (figures)
		told = figures->missing;
	ps_peers_close(&peers);
	return told;
}

static void told_that(struct rig *rig, uint64_t expected)
{
	RIG_UNTIL(missing_told(rig) == expected);
}

/* All that was mapped; then nothing. */
TEST(test_mirrors_are_told_how_much_is_missing, struct rig *rig)
{
	rig_begin(rig);
	assert_true(rig_stat(rig).missing >= SIZE);
	told_that(rig, rig_stat(rig).missing);
	rig_fetch(rig);
	told_that(rig, 0);
}

/* Nobody touches anything, and it comes all the same; and that is told. */
TEST(test_the_rest_comes_by_itself, struct rig *rig)
{
	rig_begin(rig);
	assert_int_equal(perseas_wait_whole(rig->p, 10), PERSEAS_EUNREACHABLE);
	assert_non_null(strstr(perseas_message(rig->p), "are not here yet"));
	rig_fetch_unchanged(rig);
	RIG_UNTIL(rig->wholes > 0);
	assert_int_equal(rig->wholes, 1);
}

/* Transactions before all is here, and an unmap and a map: what was committed stays. */
TEST(test_transactions_go_on_meanwhile, struct rig *rig)
{
	rig_begin(rig);
	atomic_store(&rig_shut, false);
	assert_int_equal(rig_put(rig, 500000, 300, 77), 0);
	assert_int_equal(perseas_unmap(rig->p, rig->bytes), 0);
	atomic_store(&rig_shut, true);
	assert_int_equal(rig_map(rig), 0);
	assert_int_equal(perseas_unmap(rig->p, rig->bytes), 0);
	assert_int_equal(rig_map(rig), 0);
	atomic_store(&rig_shut, false);
	assert_int_equal(rig_look(rig->bytes + 500299), 77);
	assert_int_equal(rig_put(rig, 500000, 300, 78), 0);
	assert_int_equal(perseas_wait_whole(rig->p, -1), 0);
	for (uint64_t i = 0; i < SIZE; i++)
		assert_int_equal(rig->bytes[i], i >= 500000 && i < 500300 ? 78 : rig_byte(i));
}
TEST_ALSO(test_transactions_go_on_meanwhile, rig_setup_shm, rig_teardown);

static void let_granules_come(struct ps_env_ops *ops)
{
	(void)ops;
	rig_pager.run = 1;
}

/* The kernel frees small pages one by one when a process is killed, and closes its connections only
 * then. What comes in granules is small at first. */
TEST(test_what_comes_lies_in_large_pages, struct rig *rig)
{
	const unsigned long refused = count_refused();

	rig->change = let_granules_come;
	rig_begin(rig);
	rig_fetch(rig);
	if (can_be_large())
		RIG_UNTIL(count_large(rig->bytes) >= SIZE / LARGE * LARGE ||
		          count_refused() != refused);
	assert_int_equal(rig_wrong(rig), 0);
}
TEST_ALSO(test_what_comes_lies_in_large_pages, rig_setup_shm, rig_teardown);

/* --- who waits --- */

static void *wait_whole(void *arg)
{
	struct rig *rig = arg;

	return (void *)(intptr_t)perseas_wait_whole(rig->p, INT64_MAX);
}

/* It waits until all memory is here, for as long as can be said. */
static pthread_t begin_wait(struct rig *rig)
{
	rig_begin(rig);
	return rig_begin_waiting(wait_whole, rig, &rig->p->demand->all_here);
}

TEST(test_the_longest_wait_ends_when_all_is_here, struct rig *rig)
{
	pthread_t thread = begin_wait(rig);

	atomic_store(&rig_shut, false);
	assert_int_equal(rig_join(thread), 0);
}

/* What is unmapped is not missed. */
TEST(test_an_unmap_ends_a_wait, struct rig *rig)
{
	pthread_t thread = begin_wait(rig);

	assert_int_equal(perseas_unmap(rig->p, rig->bytes), 0);
	assert_int_equal(rig_join(thread), 0);
}

/* It is told, though nothing comes any more. */
TEST(test_a_fence_ends_a_wait, struct rig *rig)
{
	pthread_t thread = begin_wait(rig);

	rig_be_fenced(rig);
	assert_int_equal(rig_join(thread), PERSEAS_EFENCED);
}

/* Granules count from the segment's first byte, wherever that lies: here the second is missing, and
 * nobody gives it any more. */
TEST(test_a_base_that_is_no_multiple_of_granules, struct rig *rig)
{
	uint8_t states[2] = { PS_GRANULE_HERE, PS_GRANULE_MISSING };
	struct ps_mapping odd = {
		.states = states, .count = 2, .missing_count = 1, .cover_state = 1
	};
	struct ps_demand *d;
	uint64_t start;

	rig_begin(rig);
	d = rig->p->demand;
	start = (UINT64_C(1) << 32) + PS_PAGE;
	odd.base = (uint8_t *)(uintptr_t)start;
	odd.size = 2 * d->ops->granule;
	pthread_mutex_lock(&d->lock);
	odd.generation = ++d->last_generation;
	odd.segment = UINT32_MAX;
	d->mappings[d->mapping_count++] = odd;
	d->is_fenced = true;
	pthread_mutex_unlock(&d->lock);
	assert_int_equal(ps_demand_await(rig->p, start, start + d->ops->granule), 0);
	assert_int_equal(ps_demand_await(rig->p, start, start + d->ops->granule + 1),
	                 PERSEAS_EFENCED);
	pthread_mutex_lock(&d->lock);
	d->mapping_count--;
	pthread_mutex_unlock(&d->lock);
}

static void *put(void *arg)
{
	struct rig *rig = arg;

	return (void *)(intptr_t)rig_put(rig, 0, 10, 5);
}

/* A set_range that waits for its page holds nothing that others need, in the checked mode too. */
TEST(test_who_waits_holds_up_nobody, struct rig *rig)
{
	pthread_t thread;
	perseas_tx_t *tx;

	atomic_store(&rig_shut, true);
	assert_int_equal(rig_open(rig, PERSEAS_TAKEOVER | PERSEAS_CHECK_OVERLAP,
	                          PERSEAS_RECOVERY_ON_DEMAND),
	                 0);
	assert_int_equal(rig_map(rig), 0);
	thread = rig_begin_waiting(put, rig, &rig->p->demand->changed);
	for (int i = 0; i < 300; i++) {
		assert_int_equal(perseas_begin(rig->p, 0, &tx), 0);
		assert_int_equal(perseas_abort(tx), 0);
		rig_stat(rig);
	}
	atomic_store(&rig_shut, false);
	assert_int_equal(rig_join(thread), 0);
	assert_int_equal(rig_look(rig->bytes + 9), 5);
}

/* --- mirrors that die --- */

TEST(test_a_source_dies, struct rig *rig)
{
	rig_begin(rig);
	rig_kill(&rig->mirrors[0]);
	rig_fetch_unchanged(rig);
}
TEST_ALSO(test_a_source_dies, rig_setup_shm, rig_teardown);

/* It is stopped, and its connections stay: what it was asked for comes of the other. */
TEST(test_a_source_hangs, struct rig *rig)
{
	rig->patience_ms = 2000;
	rig_begin(rig);
	pthread_mutex_lock(&rig->p->demand->lock);
	rig->p->demand->answer_timeout_ns = PS_NEVER / 2;
	pthread_mutex_unlock(&rig->p->demand->lock);
	kill(rig->mirrors[0].pid, SIGSTOP);
	atomic_store(&rig_shut, false);
	assert_int_equal(perseas_wait_whole(rig->p, 20000), 0);
	assert_int_equal(rig_wrong(rig), 0);
}
TEST_ALSO(test_a_source_hangs, rig_setup_shm, rig_teardown);

static void *look_at_all(void *arg)
{
	return (void *)(uintptr_t)rig_wrong(arg);
}

static enum perseas_mirror_state state_of(struct rig *rig, unsigned index)
{
	struct perseas_mirror_stat stat = { 0 };

	assert_int_equal(perseas_mirror_stat(rig->p, index, &stat), 0);
	return stat.state;
}

/* The access waits, that is told, and it ends when they are back. What a mirror shared is readable
 * until the owner knows that it is gone. */
TEST(test_all_sources_die, struct rig *rig)
{
	pthread_t thread;

	rig_begin(rig);
	for (unsigned i = 0; i < MIRRORS; i++)
		rig_kill(&rig->mirrors[i]);
	for (unsigned i = 0; i < MIRRORS; i++)
		RIG_UNTIL(state_of(rig, i) != PERSEAS_MIRROR_LIVE);
	atomic_store(&rig_shut, false);
	pthread_create(&thread, NULL, look_at_all, rig);
	RIG_UNTIL(rig->waits > 0);
	assert_int_equal(rig->waits, 1);
	assert_true(rig_stat(rig).missing >= SIZE);
	for (unsigned i = 0; i < MIRRORS; i++)
		rig_start(&rig->mirrors[i]);
	assert_int_equal(rig_join(thread), 0);
}
TEST_ALSO(test_all_sources_die, rig_setup_shm, rig_teardown);

/* Their names lead to where they are not, when the store is opened, and to where they are then. */
TEST(test_mirrors_move, struct rig *rig)
{
	atomic_store(&rig_moved, true);
	rig_begin(rig);
	atomic_store(&rig_shut, false);
	RIG_UNTIL(rig->waits > 0);
	atomic_store(&rig_moved, false);
	assert_int_equal(perseas_wait_whole(rig->p, 20000), 0);
	assert_int_equal(rig_wrong(rig), 0);
}

/* One has lost its memory, and is made anew while memory is missing: from what comes of the other.
 * After that it alone is enough. */
TEST(test_a_mirror_is_copied_to_meanwhile, struct rig *rig)
{
	char memory[320];

	rig_begin(rig);
	rig_kill(&rig->mirrors[1]);
	snprintf(memory, sizeof(memory), "%s/memory", rig->mirrors[1].directory);
	unit_remove_folder(memory);
	rig_start(&rig->mirrors[1]);
	RIG_UNTIL(state_of(rig, 1) == PERSEAS_MIRROR_RESYNCING);
	atomic_store(&rig_shut, false);
	RIG_UNTIL(state_of(rig, 1) == PERSEAS_MIRROR_LIVE);
	assert_int_equal(perseas_unmap(rig->p, rig->bytes), 0);
	rig_kill(&rig->mirrors[0]);
	assert_int_equal(rig_map(rig), 0);
	assert_int_equal(rig_wrong(rig), 0);
}

/* --- another owner --- */

static int take_over(struct rig *rig)
{
	uint64_t done;

	atomic_store(&rig_shut, false);
	if (rig_open(rig, PERSEAS_TAKEOVER, 0) || rig_map(rig))
		return 1;
	for (done = 0; done < SIZE; done += 4096)
		if (rig_put(rig, done, 1, 255))
			return 1;
	perseas_close(rig->p);
	return 0;
}

static void *look_at_one(void *arg)
{
	return (void *)(intptr_t)rig_look(arg);
}

/* What a transaction's begin returns. */
static int begins(struct rig *rig)
{
	perseas_tx_t *tx;
	int rc = perseas_begin(rig->p, 0, &tx);

	if (!rc)
		perseas_abort(tx);
	return rc;
}

/* Neither who waits already nor who comes later sees a byte, though mirrors give them. */
TEST(test_a_later_state_is_never_seen, struct rig *rig)
{
	pthread_t thread;

	rig_begin(rig);
	pthread_create(&thread, NULL, look_at_one, rig->bytes + 100);
	assert_int_equal(rig_by_another(rig, take_over), 0);
	atomic_store(&rig_shut, false);
	assert_int_equal(rig_join(thread), -1);
	for (uint64_t i = 0; i < SIZE; i += 1000)
		assert_int_equal(rig_look(rig->bytes + i), -1);
	RIG_UNTIL(begins(rig) == PERSEAS_EFENCED);
	assert_int_equal(perseas_wait_whole(rig->p, -1), PERSEAS_EFENCED);
}
TEST_ALSO(test_a_later_state_is_never_seen, rig_setup_shm, rig_teardown);

/* A transaction that is open when another owner comes: set_range waits, and says it. */
TEST(test_set_range_says_that_it_is_fenced, struct rig *rig)
{
	perseas_tx_t *tx;

	rig_begin(rig);
	assert_int_equal(perseas_begin(rig->p, 0, &tx), 0);
	assert_int_equal(rig_by_another(rig, take_over), 0);
	assert_int_equal(perseas_set_range(tx, rig->bytes + 7, 3), PERSEAS_EFENCED);
	assert_int_equal(perseas_abort(tx), 0);
}

/* --- what an application does --- */

static int close_everything(struct rig *rig)
{
	rig_begin(rig);
	if (syscall(__NR_close_range, 3, ~0U, 0))
		return 1;
	atomic_store(&rig_shut, false);
	return rig_wrong(rig) != 0;
}

/* closefrom(): the thread has descriptors of its own, so that no page becomes zeros. */
TEST(test_descriptors_are_closed, struct rig *rig)
{
	assert_int_equal(rig_by_another(rig, close_everything), 0);
}
TEST_ALSO(test_descriptors_are_closed, rig_setup_shm, rig_teardown);

static int seen_by_peer(struct rig *rig)
{
	int ends[2], high;
	char byte;

	/* Below and above those that the thread has. */
	if (pipe(ends) || (high = fcntl(ends[1], F_DUPFD, 200)) < 0)
		return 1;
	rig_begin(rig);
	close(ends[1]);
	close(high);
	return read(ends[0], &byte, 1) != 0;
}

/* What the application closes is closed: the thread keeps no copy. */
TEST(test_descriptors_are_not_kept, struct rig *rig)
{
	assert_int_equal(rig_by_another(rig, seen_by_peer), 0);
}
TEST_ALSO(test_descriptors_are_not_kept, rig_setup_shm, rig_teardown);

/* What was here and is discarded is lost: an older state must not take its place. */
TEST(test_a_page_is_discarded, struct rig *rig)
{
	rig_begin(rig);
	atomic_store(&rig_shut, false);
	assert_int_equal(rig_put(rig, 8192, 100, 9), 0);
	assert_int_equal(perseas_wait_whole(rig->p, -1), 0);
	assert_int_equal(madvise(rig->bytes + 8192, 4096, MADV_DONTNEED), 0);
	assert_int_equal(rig_look(rig->bytes + 8192), -1);
	assert_int_equal(rig_look(rig->bytes + 4096), rig_byte(4096));
	assert_int_equal(rig_look(rig->bytes + 12288), rig_byte(12288));
}

static atomic_bool bulk_is_held;

static int answer_faults(struct ps_pager *pager, unsigned which, struct ps_fetch_answer *fetched)
{
	if (ps_source_lane(which) == PS_BULK_LANE && atomic_load(&bulk_is_held))
		return 0;
	return ps_pager_uffd.answer(pager, which, fetched);
}

static void hold_bulk(struct ps_env_ops *ops)
{
	(void)ops;
	rig_pager.answer = answer_faults;
	rig_pager.second_request_after_ns = PS_NEVER;
}

/* The bulk lane has an older state of it in hand while the fault lane brings it, and it is changed
 * and discarded: the kernel would take the bytes. */
TEST(test_a_page_is_discarded_that_both_lanes_fetch, struct rig *rig)
{
	rig->change = hold_bulk;
	atomic_store(&bulk_is_held, true);
	rig_begin(rig);
	atomic_store(&rig_shut, false);
	assert_int_equal(rig_put(rig, 8192, 100, 9), 0);
	assert_int_equal(madvise(rig->bytes + 8192, 4096, MADV_DONTNEED), 0);
	atomic_store(&bulk_is_held, false);
	assert_int_equal(perseas_wait_whole(rig->p, PATIENCE), 0);
	assert_int_equal(rig_look(rig->bytes + 8192), -1);
	assert_int_equal(rig_look(rig->bytes + 4096), rig_byte(4096));
}
TEST_ALSO(test_a_page_is_discarded_that_both_lanes_fetch, rig_setup_shm, rig_teardown);

TEST(test_what_cannot_be_served_is_refused, struct rig *rig)
{
	assert_int_equal(rig_open(rig, PERSEAS_SALVAGE, PERSEAS_RECOVERY_ON_DEMAND),
	                 PERSEAS_EINVAL);
	assert_non_null(strstr(perseas_message(NULL), "PERSEAS_SALVAGE adopts no mirror"));
	assert_non_null(strstr(perseas_message(NULL), "PERSEAS_RECOVERY_READ_FIRST"));
	assert_int_equal(rig_open(rig, 0, 2), PERSEAS_EINVAL);
}

static int deny_and_read(struct rig *rig)
{
	struct sock_filter rules[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_userfaultfd, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog program = { sizeof(rules) / sizeof(rules[0]), rules };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) ||
	    rig_open(rig, PERSEAS_TAKEOVER, PERSEAS_RECOVERY_ON_DEMAND) || rig_map(rig))
		return 1;
	if (!strstr(perseas_report(rig->p), "memory is read first: this process may not use"))
		return 2;
	return rig_stat(rig).missing || perseas_wait_whole(rig->p, 0) || rig_wrong(rig) ? 3 : 0;
}

/* As under Docker's rules for system calls. */
TEST(test_without_userfaultfd_memory_is_read_first, struct rig *rig)
{
	assert_int_equal(rig_by_another(rig, deny_and_read), 0);
}

/* A system call that is given missing memory: it waits, or fails and that was said. */
static int write_what_is_missing(struct rig *rig)
{
	int ends[2];
	ssize_t n;

	if (setuid(65534) && geteuid() == 0)
		return 1;
	rig_begin(rig);
	if (pipe(ends))
		return 2;
	n = write(ends[1], rig->bytes, 1);
	if (n >= 0 || errno != EFAULT)
		return 3;
	return strstr(perseas_report(rig->p), "fail with EFAULT") ? 0 : 4;
}

/* As an ordinary user, who may not handle faults of the kernel. */
TEST(test_a_system_call_on_missing_memory_fails, struct rig *rig)
{
	char setting = '0';
	FILE *file = fopen("/proc/sys/vm/unprivileged_userfaultfd", "r");

	if (file) {
		assert_int_equal(fread(&setting, 1, 1, file), 1);
		fclose(file);
	}
	if (setting == '1')
		skip();
	assert_int_equal(rig_by_another(rig, write_what_is_missing), 0);
}
