# The drill with cluster managers themselves. The Makefile includes it. Not in SUITES: it fetches a
# Debian system, needs root, and waits for what cluster managers wait for.

COUNTER := $(BUILD)/tests/cluster/counter

.PHONY: check-cluster
tests: $(COUNTER)

$(COUNTER): $(BUILD)/obj/tests/cluster/counter.o $(ARCHIVE)
	$(link) $(CLIENT_LIBS)

CLUSTER := $(BUILD)/cluster
#: check-cluster   three nodes under Pacemaker and Corosync without STONITH, also with fifty stores,
#:                 and under systemd alone: owners, nodes and links fail, nothing acknowledged is
#:                 lost (as root, with Debian's mirror; no part of check)
check-cluster:
	@deploy/deps.sh build test deb-test
	@$(SUBMAKE) all $(COUNTER)
	@$(RUN) cluster --quiet 3600 --sum "root: tests/cluster/root.sh $(BUILD) $(CLUSTER)" \
		"drills: unshare --mount --propagation private env PERSEAS_CLUSTER=$(abspath $(CLUSTER)) \
			$(PYTHON) -m pytest -v -s --durations=0 -p no:cacheprovider tests/cluster"
