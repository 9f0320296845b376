# The lanes that run in virtual machines: soft-RoCE and iWARP, and the installed service under systemd.
# The Makefile includes it; tests/rdma/rig.py starts the machines.

RDMA_TOOLS := $(patsubst %_verbs.c,$(BUILD)/%,$(call sources,tests/rdma/*_verbs.c))

.PHONY: check-rdma check-rdma-drills check-rdma-siw check-service
tests: $(RDMA_TOOLS)

$(RDMA_TOOLS): $(BUILD)/%: $(BUILD)/obj/%_verbs.o
	$(link) $(VERBS_LIBS)

# In virtual machines, on soft-RoCE: first what the other tests of the suite rely on.
IN_GUEST := $(PYTHON) -m pytest -v --durations=12 -o faulthandler_timeout=300 -p no:cacheprovider
# The drills in which the data path matters; check-rdma-drills runs all that know of fabrics.
ON_RDMA := tests/drills/test_mirror.py tests/drills/test_damage.py tests/drills/test_zombie.py \
	tests/drills/test_medley.py \
	tests/drills/test_access.py::test_what_is_denied_leaves_everything_as_it_is
check-rdma:
	@deploy/deps.sh build rdma-test
	@$(SUBMAKE) all $(TELLER) $(RDMA_TOOLS)
	@tests/rdma/kernel.py >/dev/null
	@: one alone waits much of the time, and leaves a processor idle
	@$(RUN) rdma --jobs 2 \
		"machines: $(PYTHON) -m pytest -v --durations=12 -p no:cacheprovider tests/rdma \
			--ignore tests/rdma/guest" \
		"guest: tests/rdma/rig.py run --nodes 4 --timeout 880 -- $(IN_GUEST) tests/rdma/guest" \
		"drills: tests/rdma/rig.py run --nodes 4 --timeout 880 -- $(IN_GUEST) $(ON_RDMA) -k rdma"

check-rdma-drills:
	@deploy/deps.sh build rdma-test
	@$(SUBMAKE) all $(TELLER)
	@tests/rdma/kernel.py >/dev/null
	@$(RUN) rdma-drills "drills: tests/rdma/rig.py run --nodes 4 --timeout 1780 \
		-- $(IN_GUEST) tests/drills -k 'rdma and not route'"

# The nodes on the other software device, iWARP's. Not in SUITES: it fetches the kernel's source.
#: check-rdma-siw  the soft-RoCE rig on iWARP instead (fetches the kernel's source)
check-rdma-siw:
	@deploy/deps.sh build rdma-test
	@$(SUBMAKE) all $(TELLER) $(RDMA_TOOLS)
	@tests/rdma/siw.sh >/dev/null
	@$(RUN) rdma-siw "guest: tests/rdma/rig.py run --provider siw --nodes 4 \
		--timeout 280 -- $(IN_GUEST) tests/rdma/guest/test_nodes.py tests/rdma/guest/test_smoke.py \
		-m 'not rxe'"

# The service under systemd, in a machine. Not in SUITES: drills show most of it in less time.
SERVICE_PREFIX := /run/perseas-installed
#: check-service   the installed units under systemd, on soft-RoCE, under QEMU
check-service:
	@deploy/deps.sh build test rdma-test
	@$(SUBMAKE) all
	@$(SUBMAKE) PREFIX=$(SERVICE_PREFIX) DESTDIR=$(abspath build/service) install
	@$(SUBMAKE) BUILD=build/next VERSION=$(VERSION)+next build/next/perseasd
	@tests/rdma/kernel.py >/dev/null
	@$(RUN) service --quiet 3600 "systemd: tests/rdma/rig.py run --nodes 4 --timeout 880 -- \
		tests/rdma/service.sh $(abspath build/service) $(SERVICE_PREFIX) $(abspath $(BUILD)) \
		$(abspath build/next)/perseasd"
