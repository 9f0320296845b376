# The Ansible role against hosts with systemd and sshd. The Makefile includes it. Not in SUITES: it
# builds packages, fetches a Debian system, and needs root.

.PHONY: check-ansible
ANSIBLE := $(BUILD)/ansible
#: check-ansible   the Ansible role, run over ssh against four nodes: check mode, twice, changes, an
#:                 upgrade and a drain under an owner, of which nothing acknowledged is lost; and
#:                 against three with copied certificates (as root, with Debian's mirror; no part
#:                 of check)
check-ansible: dist
	@deploy/deps.sh build test deb deb-test ansible-test
	@$(SUBMAKE) all $(COUNTER)
	@rm -rf --one-file-system $(ANSIBLE)/deb && mkdir -p $(ANSIBLE)
	@$(RUN) ansible --quiet 3600 --sum \
		"packages: env DEB_BUILD_OPTIONS=nocheck deploy/deb.sh $(DIST) $(ANSIBLE)/deb" \
		"root: tests/ansible/root.sh $(BUILD) $(ANSIBLE)/deb $(ANSIBLE)" \
		"drills: unshare --mount --propagation private --pid --fork --kill-child --mount-proc \
			env PERSEAS_CLUSTER=$(abspath $(ANSIBLE)) \
			$(PYTHON) -m pytest -x -v -s --durations=0 -p no:cacheprovider tests/ansible"
