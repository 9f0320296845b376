# The lanes of `make check`. Every suite runs through tests/run.py, which keeps logs and counts in
# build/results and, where root calls, has an ordinary user run what is marked --user. The Makefile
# includes it. Suites with more to them have a file beside their tests: lint.mk, fuzz/, mutants/,
# rdma/, ../proto/model/.

.PHONY: check check-beside check-build check-clang check-unit check-sim check-crash check-drills \
	check-timing check-instructions check-install kills soak coverage

ALONE := build headers abi style unit instructions timing
# Drills mostly wait, and the virtual machines of rdma leave most of one processor free. Neither
# these nor what runs beside them measures time, and the latter gives way.
LAST := drills python rdma install
BESIDE := sim clang lint model crash fuzz cpp mutants
SUITES := $(ALONE) $(LAST) $(BESIDE)
each = for suite in $(1); do \
		$(RUN) --begin $$suite; \
		$(MAKE) --no-print-directory check-$$suite || $(RUN) --broken $$suite; \
		$(RUN) --end $$suite; \
	done
# Of what debuggers are told a sanitizer reads the lines alone, and the rest is a fifth of the work of
# this compiler.
SANITIZED := SANITIZE=address,undefined BUILD=build/sanitize CFLAGS="-O2 -g1"
RUN := $(PYTHON) tests/run.py

#: check           every suite; the last line sums up
check: export PERSEAS_SUITES = $(ALONE) / $(LAST) / $(BESIDE)
check:
	@deploy/deps.sh build test model rdma-test abi
	@tests/preflight.py
	@rm -rf build/results
	@$(call each,$(ALONE))
	@nice -n 15 $(MAKE) --no-print-directory check-beside & beside=$$!; \
		trap 'kill $$beside; exit 130' INT TERM; \
		$(call each,$(LAST)); wait $$beside || :
	@: one that was never reached has failed, too
	@for suite in $(SUITES); do $(RUN) --broken $$suite; done
	@$(RUN) --sum

check-beside:
	@$(call each,$(BESIDE))

check-build:
	@$(RUN) build --timeout 300 "gcc: $(SUBMAKE) BUILD=build CC=gcc everything" \
		"without rdma-core: tests/no_rdma.sh"

check-clang:
	@$(RUN) clang --timeout 900 "clang: $(SUBMAKE) BUILD=build/clang CC=$(CLANG) CFLAGS=-O0 everything"

# test_alloc puts its own malloc in the place that the sanitizer takes: plain only. So are test_litmus
# and test_biased, which are about the order in which two processors see stores: they keep both busy
# for longer with a sanitizer, and show less of that then. test_copy_away looks at each instruction.
# Those of WAITING wait for what takes real seconds. Only root can have the kernel keep huge pages.
PLAIN_ONLY := %/test_alloc %/test_litmus %/test_biased %/test_copy_away
ALL_UNIT_TESTS = $(UNIT_TESTS) \
	$(filter-out $(PLAIN_ONLY),$(UNIT_TESTS:$(BUILD)/%=build/sanitize/%))
ROOTS = $(filter %/test_huge_pages %/test_huge_warm,$(ALL_UNIT_TESTS))
WAITING := $(addprefix %/test_,contract_demand contract_env control_socket verbs_end_to_end)
check-unit:
	@$(SUBMAKE) tests
	@$(SUBMAKE) $(SANITIZED) tests
	@$(RUN) unit --timeout 120 --jobs 2 --user $(filter-out $(WAITING) $(ROOTS),$(ALL_UNIT_TESTS)) \
		$(addprefix --root ,$(ROOTS)) \
		$(addprefix --waiting ,$(filter $(WAITING),$(ALL_UNIT_TESTS)))

SCHEDULES := 1..3000 3001..6000 6001..9000 9001..12000
MIXED := 1000000..1000999
check-sim:
	@$(SUBMAKE) tests
	@$(SUBMAKE) $(SANITIZED) tests
	@: those that can take longest first, and equal parts after them
	@$(RUN) sim --timeout 1800 --jobs 2 --user "sim mistakes: $(SIM) --mistakes" \
		$(SIM:$(BUILD)/%=build/sanitize/%) $(foreach part,$(SCHEDULES),\
			"sim $(part): $(SIM) --full $(part)") \
		"sim mixed: $(SIM) --seeds $(MIXED)"

# Of owners that recover on demand; it prints how many of them fell while memory was missing.
KILLS := env PERSEAS_DEMAND_KILLS=500 $(PYTHON) -m pytest -q -s -p no:cacheprovider \
	tests/drills/test_demand.py -k are_killed
#: kills           500 kills in a row of owners that recover on demand, over tcp and over shm
kills:
	@$(SUBMAKE) all $(TELLER)
	@$(KILLS)

# What takes a night: more schedules and more kills in a row than check runs.
#: soak            100,000 simulated schedules, 500 kills in a row on each fabric, of owners that
#:                 recover on demand as well, half an hour of everything at once on random stores,
#:                 an hour of false alarms, a heap at random 5000 times, and a queue that is killed
#:                 at 1000 points of a step (two hours)
soak:
	@$(SUBMAKE) all tests
	@$(RUN) soak --timeout 7200 --jobs 2 "sim 1..50000: $(SIM) --full 1..50000" \
		"sim 50001..100000: $(SIM) --full 50001..100000" "sim mistakes: $(SIM) --mistakes" \
		"storm: env PERSEAS_STORM=500 $(PYTHON) -m pytest -q -p no:cacheprovider \
			tests/drills/test_storm.py" \
		"kills on demand: $(KILLS)" \
		"torture: env PERSEAS_TORTURE=1800 $(PYTHON) -m pytest -q -p no:cacheprovider \
			tests/drills/test_torture.py" \
		"false alarms: bench/alarms.py --build $(BUILD) --seconds 3600" \
		"heap at random: $(BUILD)/tests/unit/test_heap_random 1 5000" \
		"queue: env PERSEAS_QUEUE_KILLS=1000 $(PYTHON) -m pytest -q -p no:cacheprovider \
			tests/drills/test_queue.py"

check-crash:
	@$(SUBMAKE) tests
	@$(SUBMAKE) $(SANITIZED) tests
	@$(RUN) crash --timeout 900 --jobs 2 --user $(CRASH) $(CRASH:$(BUILD)/%=build/sanitize/%)

check-instructions:
	@$(SUBMAKE) all
	@$(RUN) instructions --timeout 300 --user "8 bytes over shm: bench/instructions.py --build $(BUILD)"

# CONTRIBUTING.md says what is root's, and what is alone.
DRILLS := $(PYTHON) -m pytest -q -rs -p no:cacheprovider tests/drills
check-drills:
	@$(SUBMAKE) all $(TELLER)
	@$(RUN) drills --timeout 1200 --user "drills: $(DRILLS) -m 'not timing and not root'" \
		--root "as root: $(DRILLS) -m 'not timing and root'"

check-timing:
	@$(SUBMAKE) all $(TELLER) python
	@$(RUN) timing --timeout 1200 --user "drills: $(DRILLS) -m 'timing and not root'" \
		--root "as root: $(DRILLS) -m 'timing and root'"

# The tarball is built, tested and installed by itself, and a program compiles against what it
# installed.
check-install:
	@$(RUN) install --timeout 600 tests/install.sh

# Which lines and branches the tests reach. What ends by kill -9 leaves no counts.
COVERED := build/coverage/build
COUNTING := CC=gcc BUILD=$(COVERED) CFLAGS="-O1 -g --coverage -fprofile-update=atomic"
COVERED_DRILLS ?= tests/drills
LCOV := lcov --quiet --rc lcov_branch_coverage=1

#: coverage        lines and branches that the tests reach, in build/coverage/index.html
coverage:
	@deploy/deps.sh build test coverage
	@$(SUBMAKE) $(COUNTING) all tests
	@find $(COVERED) -name '*.gcda' -delete
	@$(RUN) coverage --timeout 900 --jobs 2 $(UNIT_TESTS:$(BUILD)/%=$(COVERED)/%) \
		"sim: $(COVERED)/tests/sim/sim --full 1..400" "crash: $(COVERED)/tests/crash/crash" \
		"drills: env PERSEAS_COVERAGE=1 PERSEAS_BUILD=$(abspath $(COVERED)) $(PYTHON) -m pytest -q \
			-p no:cacheprovider $(COVERED_DRILLS)" || :
	@: Perl warns of lcov itself
	@$(LCOV) --capture --directory $(COVERED)/obj --output-file build/coverage/all.info \
		2>build/coverage/log || { cat build/coverage/log; exit 1; }
	@$(LCOV) --extract build/coverage/all.info --output-file build/coverage/own.info \
		'$(CURDIR)/proto/*' '$(CURDIR)/client/*' '$(CURDIR)/server/*'
	@genhtml --quiet --branch-coverage --prefix '$(CURDIR)' --output-directory build/coverage \
		build/coverage/own.info
	@$(PYTHON) tests/coverage.py build/coverage/own.info
	@echo build/coverage/index.html
