# The programs of the tests: what they are made of and how they are linked. The Makefile includes it
# and compiles their objects; tests/check.mk says which lane runs which program.

SUPPORT_OBJ := $(call objects,tests/support/*.c)
SIM_OBJ := $(call objects,tests/sim/*.c)
CRASH_OBJ := $(call objects,tests/crash/*.c)
DRILL_OBJ := $(call objects,tests/drills/*.c)

UNIT_TESTS := $(patsubst %.c,$(BUILD)/%,$(call sources,tests/unit/test_*.c))
SIM := $(if $(SIM_OBJ),$(BUILD)/tests/sim/sim)
CRASH := $(if $(CRASH_OBJ),$(BUILD)/tests/crash/crash)
TELLER := $(if $(DRILL_OBJ),$(BUILD)/tests/drills/teller)

# The optimizer takes three quarters of the time that compiling a unit test takes. It would make few
# tests faster, since they call code that is optimized in any case. The tests listed here run inline
# functions of the product many times.
OPTIMIZED_TESTS := $(addprefix $(BUILD)/obj/tests/unit/test_,$(addsuffix .o,litmus biased section copy_away))
$(filter-out $(OPTIMIZED_TESTS),$(UNIT_TESTS:$(BUILD)/%=$(BUILD)/obj/%.o)): UNOPTIMIZED := \
	-O0 -U_FORTIFY_SOURCE

# What programs copy from doc/examples.
EXAMPLE_OBJ := $(addprefix $(BUILD)/obj/doc/examples/,hash.o tree.o)

# Everything of ours in one archive, for tests to take what they need from.
TEST_ARCHIVE := $(BUILD)/libtest.a

# Programs of doc/examples include the library's header as one that is installed.
$(addprefix $(BUILD)/obj/,doc/%.o tests/%.o bench/%.o): BASE_CFLAGS += -Iclient -I$(RVM)

# So many programs of the same archive: where there is a linker that takes half the time, that does.
QUICK_LINK := $(if $(shell command -v ld.gold),-fuse-ld=gold)

.PHONY: tests unit-tests
tests: $(UNIT_TESTS) $(SIM) $(CRASH) $(TELLER)
unit-tests: $(UNIT_TESTS)

$(TEST_ARCHIVE): $(PROTO_OBJ) $(CLIENT_OBJ) $(RVM_OBJ) $(RDS_OBJ) \
		$(filter-out %/main.o,$(COMMAND_OBJ)) $(SERVER_OBJ) \
		$(SUPPORT_OBJ) $(BENCH_OBJ) $(EXAMPLE_OBJ)
	$(archive)

$(BUILD)/tests/unit/%: $(BUILD)/obj/tests/unit/%.o $(TEST_ARCHIVE)
	$(link) $(QUICK_LINK) -lcmocka $(TEST_LIBS)

# Where some of the simulator's mistakes are made: tests/sim/mistakes_wrapped.c and others. handles.c
# has the first two.
SIM_WRAPPED := ps_deadlock_add_handle ps_deadlock_remove_handle \
	ps_making_withdraw ps_mend_forward ps_mirror_read ps_mirror_write \
	ps_quorum_is_t ps_rejoin_make_image_beside ps_rejoin_ask_to_make_image_beside ps_roster_set_image_id ps_demand_uniform_run \
	ps_demand_request ps_demand_drop_link ps_demand_await_fill ps_granules_note_filled ps_update_durable_seq ps_token_check ps_tx_copy_committed ps_unwaited_await_all \
	ps_unwaited_is_flush_overdue ps_run_release ps_deferred_apply ps_deferred_end ps_gather_add_tx \
	ps_gather_send_unless_tx_joins ps_gather_send ps_gather_restore_window ps_map_destroy_set \
	ps_segments_match_header ps_quorum_can_remake_joining_mirror ps_commit_await_w_mirrors \
	ps_pace_await_copy ps_confirm_step ps_mirrors_that_confirmed_call ps_mirrors_with_whole_image \
	ps_resync_is_confirmed ps_quorum_is_stuck ps_resync_granted_image_would_count ps_commit_send \
	ps_unsent_choose_base ps_unsent_make_set ps_mirror_post_bulk ps_resync_step_comparing \
	ps_repair_step ps_unsent_add_wrong_granule

$(BUILD)/tests/sim/sim: $(SIM_OBJ) $(TEST_ARCHIVE)
	$(link) $(SIM_WRAPPED:%=-Wl,--wrap=%) $(TEST_LIBS)

# Unit tests that are linked with the simulator's world.
SIM_TESTS := $(addprefix test_contract_,env fabric_sim demand_sim)
$(SIM_TESTS:%=$(BUILD)/tests/unit/%): $(BUILD)/tests/unit/%: $(BUILD)/obj/tests/unit/%.o \
		$(filter-out %/main.o,$(SIM_OBJ)) $(TEST_ARCHIVE)
	$(link) -lcmocka $(SIM_WRAPPED:%=-Wl,--wrap=%) $(TEST_LIBS)

$(BUILD)/tests/crash/crash: $(CRASH_OBJ) $(TEST_ARCHIVE)
	$(link) $(TEST_LIBS)

$(BUILD)/tests/drills/teller: $(DRILL_OBJ) $(ARCHIVE)
	$(link) $(CLIENT_LIBS)
