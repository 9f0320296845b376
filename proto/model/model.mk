# The rules of proto/PROTOCOL.md in Promela: every state of small stores, and mistakes that must be
# found. The Makefile includes it.

MODEL := $(PYTHON) proto/model/check.py
.PHONY: model model-quick check-model check-model-whole
#: model           checks the rules, all of them (minutes); model-quick: within a minute
model:
	@deploy/deps.sh model
	@$(MODEL) --jobs 2

model-quick:
	@deploy/deps.sh model
	@$(MODEL) --jobs 2 --quick

check-model:
	@$(RUN) model "model: $(MAKE) --no-print-directory model-quick"

check-model-whole:
	@$(RUN) model-whole "model: $(MAKE) --no-print-directory model"
