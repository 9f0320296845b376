# The measurement programs in bench/, and the targets that run them. The Makefile includes this file.
# No target here tests anything, and nothing installed depends on it.

# --- programs ----------------------------------------------------------------------------

# Programs, and objects that need rdma-core. The other objects are shared by all programs.
BENCH_MAINS := debit_credit reopen worker limits_verbs compare threads \
	host_limits relay found objects inserts oo7 turns events two_lanes
RAW_OBJ := $(call objects,bench/raw_*verbs.c)
# Objects shared with the command, which also measures, and with the option parser.
COMMON_OBJ := $(BUILD)/obj/client/command/bench/histogram.o $(addprefix $(BUILD)/obj/proto/base/,json.o \
	log_linear.o number.o options.o text.o)
BENCH_OBJ := $(COMMON_OBJ) $(filter-out $(RAW_OBJ) $(BENCH_MAINS:%=$(BUILD)/obj/bench/%.o),$(call \
	objects,bench/*.c))
BENCH_ARCHIVE := $(BUILD)/libbench.a
# The drivers of other transaction systems need those systems: PEERS=0 leaves them out.
PEERS ?= 1
PEERS_OBJ := $(if $(filter 1,$(PEERS)),$(call objects,bench/peers/*.c))
INSERTS_OBJ := $(addprefix $(BUILD)/obj/,bench/inserts.o doc/examples/hash.o)
PEERS_LIBS := $(if $(PEERS_OBJ),-llmdb -lsqlite3 -ldb-5.3 -lhiredis)
BENCHES := $(addprefix $(BUILD)/bench/,debit-credit compare reopen worker threads found objects inserts oo7 events \
	host-limits relay turns two-lanes $(if $(RAW_OBJ),limits))

.PHONY: benches benches-peers
benches: $(BENCHES)
benches-peers: $(addprefix $(BUILD)/bench/,compare-peers inserts-peers oo7-peers)

$(BENCH_ARCHIVE): $(BENCH_OBJ)
	$(archive)

$(addprefix $(BUILD)/bench/,compare reopen worker threads found objects oo7 events): $(BUILD)/bench/%: \
		$(BUILD)/obj/bench/%.o $(BENCH_ARCHIVE) $(RVM_ARCHIVE) $(ARCHIVE)
	$(link) $(CLIENT_LIBS)

$(BUILD)/bench/debit-credit: $(BUILD)/obj/bench/debit_credit.o $(BENCH_ARCHIVE) $(RVM_ARCHIVE) $(ARCHIVE)
	$(link) $(CLIENT_LIBS)

$(BUILD)/bench/turns: $(BUILD)/obj/bench/turns.o $(ARCHIVE)
	$(link) $(CLIENT_LIBS)

$(BUILD)/bench/inserts: $(INSERTS_OBJ) $(BENCH_ARCHIVE) $(RVM_ARCHIVE) $(ARCHIVE)
	$(link) $(CLIENT_LIBS)

# The same three programs with the drivers of other systems.
$(BUILD)/bench/oo7-peers: $(BUILD)/obj/bench/oo7.o $(PEERS_OBJ) $(BENCH_ARCHIVE) $(RVM_ARCHIVE) $(ARCHIVE)
	$(link) $(PEERS_LIBS) $(CLIENT_LIBS)

$(BUILD)/bench/inserts-peers: $(INSERTS_OBJ) $(PEERS_OBJ) $(BENCH_ARCHIVE) $(RVM_ARCHIVE) $(ARCHIVE)
	$(link) $(PEERS_LIBS) $(CLIENT_LIBS)

$(BUILD)/bench/compare-peers: $(BUILD)/obj/bench/compare.o $(PEERS_OBJ) $(BENCH_ARCHIVE) $(RVM_ARCHIVE) $(ARCHIVE)
	$(link) $(PEERS_LIBS) $(CLIENT_LIBS)

$(BUILD)/bench/relay: $(BUILD)/obj/bench/relay.o $(BENCH_ARCHIVE)
	$(link)

$(BUILD)/bench/two-lanes: $(BUILD)/obj/bench/two_lanes.o $(BENCH_ARCHIVE)
	$(link)

$(BUILD)/bench/host-limits: $(BUILD)/obj/bench/host_limits.o $(BENCH_ARCHIVE)
	$(link)

$(BUILD)/bench/limits: $(BUILD)/obj/bench/limits_verbs.o $(RAW_OBJ) $(BENCH_ARCHIVE)
	$(link) $(VERBS_LIBS)

# --- the demo and the benchmarks ---------------------------------------------------------

.PHONY: demo bench bench-quick bench-alarms bench-failover bench-failover-rdma bench-standby \
	bench-handover bench-resync bench-pace bench-neighbours bench-threads bench-rdma \
	figures figures-whole

#: demo            kill an owner and a mirror, recover, check (about 15 s)
demo:
	@deploy/deps.sh build
	@$(SUBMAKE) all
	@$(PYTHON) bench/demo.py --build $(BUILD)

#: bench           all measurements, beside other systems; bench-quick: the same, shorter
bench bench-quick:
	@deploy/deps.sh build bench
	$(if $(findstring quick,$@),,@$(MAKE) --no-print-directory check-peers)
	@$(SUBMAKE) all benches-peers python $(BUILD)/bench/cpp
	@$(PYTHON) bench/run.py --build $(BUILD) $(if $(findstring quick,$@),--quick)
	@$(PYTHON) bench/figures.py $(BUILD)/bench/results.json

# short, whole, or tiny, which only tests that the figures can be drawn.
FIGURES ?= short
#: figures         figures of the five papers, measured again here, beside what the papers say, in
#:                 build/figures/index.html (minutes); figures-whole: more of each (an hour)
figures figures-whole:
	@deploy/deps.sh build bench
	@$(SUBMAKE) all benches-peers
	@$(PYTHON) bench/papers/draw.py --build $(BUILD) \
		--form $(if $(findstring whole,$@),whole,$(FIGURES))

#: bench-failover  from the end of an owner, or its silence, to the first commit of the next, and to
#:                 all its memory; as root also from the moment when its host is cut off
bench-failover: all
	@$(PYTHON) bench/cutoff.py --build $(BUILD); cutoff=$$?; \
		$(PYTHON) bench/failover.py --build $(BUILD) && exit $$cutoff

#: bench-standby   from the end of an owner to the first commit of a standby inside a process, and
#:                 to all its memory; also with a copy of the memory, kept beforehand
bench-standby: all
	@$(PYTHON) bench/standby.py --build $(BUILD)

ALARMS_SECONDS ?= 3600
#: bench-alarms    owners and mirrors that a busy host makes seem dead, in an hour (ALARMS_SECONDS)
bench-alarms: all
	@$(PYTHON) bench/alarms.py --build $(BUILD) --seconds $(ALARMS_SECONDS)

#: bench-handover  the pause of a planned handover
bench-handover: all $(TELLER)
	@$(PYTHON) bench/handover.py --build $(BUILD)

#: bench-resync    what commits notice of a mirror that is copied whole, or sent what changed
bench-resync: all
	@$(PYTHON) bench/resync.py --build $(BUILD)
	@$(PYTHON) bench/resync_changed.py --build $(BUILD)

#: bench-pace      what it costs to wait for a mirror that cannot keep up, and not to
bench-pace: all
	@$(PYTHON) bench/pace.py --build $(BUILD)

#: bench-neighbours  what commits notice of the other stores of a daemon
bench-neighbours: all
	@$(PYTHON) bench/neighbours.py --build $(BUILD)

#: bench-threads   stores that commit at the same time to one daemon, by its threads
bench-threads: all
	@$(PYTHON) bench/lanes.py --build $(BUILD)

# In a virtual machine with soft-RoCE: ratios to the bare fabric.
RDMA_BENCH := build/bench-rdma
#: bench-rdma      commit and recovery over soft-RoCE against the bare fabric, under QEMU
bench-rdma:
	@deploy/deps.sh build rdma-test
	@$(SUBMAKE) all
	@mkdir -p $(RDMA_BENCH)
	@tests/rdma/rig.py run --steady --nodes 4 --timeout 1800 --see $(BUILD) --output $(RDMA_BENCH) -- \
		$(PYTHON) bench/run_rdma.py --build $(BUILD) --output $(abspath $(RDMA_BENCH))/results.json
	@echo "and on two processors, by the host's clock:"
	@tests/rdma/rig.py run --nodes 4 --timeout 1800 --see $(BUILD) --output $(RDMA_BENCH) -- \
		$(PYTHON) bench/run_rdma.py --build $(BUILD) --only unwaited --rounds 7 --seconds 1 \
		--output $(abspath $(RDMA_BENCH))/parallel.json
	@cp $(RDMA_BENCH)/results.json build/bench-rdma.json
	@cp $(RDMA_BENCH)/parallel.json build/bench-rdma-parallel.json
	@echo build/bench-rdma.json build/bench-rdma-parallel.json

RDMA_FAILOVER := build/bench-failover-rdma
#: bench-failover-rdma  the same as bench-failover over soft-RoCE, under QEMU
bench-failover-rdma:
	@deploy/deps.sh build rdma-test
	@$(SUBMAKE) all
	@mkdir -p $(RDMA_FAILOVER)
	@tests/rdma/rig.py run --steady --nodes 4 --memory 4G --timeout 3600 --see $(BUILD) \
		--output $(RDMA_FAILOVER) -- $(PYTHON) bench/failover.py --build $(BUILD) \
		--output $(abspath $(RDMA_FAILOVER))/failover.json
