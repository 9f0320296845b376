# The transaction systems that bench compares with, each tested for what it is measured for. The
# Makefile includes it.

.PHONY: check-peers
$(BUILD)/tests/peers/test_peers: $(BUILD)/obj/tests/peers/test_peers.o $(PEERS_OBJ) $(TEST_ARCHIVE)
	$(link) -lcmocka $(PEERS_LIBS) $(TEST_LIBS)

#: check-peers     the systems that bench compares with do what they are measured for
check-peers:
	@deploy/deps.sh build bench
	@$(SUBMAKE) $(BUILD)/tests/peers/test_peers
	@$(RUN) peers \
		"peers: bench/peers/redis_pair.py -- $(abspath $(BUILD))/tests/peers/test_peers" \
		"pair: $(PYTHON) -m pytest -q -p no:cacheprovider tests/peers"
