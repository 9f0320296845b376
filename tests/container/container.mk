# The container images, run by podman. The Makefile includes it. Not in SUITES: it builds packages,
# fetches a Debian system, and needs root.

.PHONY: check-container
CONTAINER := $(BUILD)/container
#: check-container   the container images of the Debian packages, three mirrors and owners of the compose
#:                 file under podman: containers are killed, stopped and started, nothing
#:                 acknowledged is lost (as root, with Debian's mirror; no part of check)
check-container: dist
	@deploy/deps.sh build test deb deb-test container container-test
	@$(SUBMAKE) $(COUNTER)
	@rm -rf --one-file-system $(CONTAINER) && mkdir -p $(CONTAINER)
	@$(RUN) container --quiet 3600 --sum \
		"packages: env DEB_BUILD_OPTIONS=nocheck deploy/deb.sh $(DIST) $(CONTAINER)/deb" \
		"drills: unshare --mount --propagation private --pid --fork --kill-child --mount-proc \
			env PERSEAS_CONTAINER=$(abspath $(CONTAINER)) PERSEAS_BUILD=$(abspath $(BUILD)) \
			$(PYTHON) -m pytest -v -s --durations=0 -p no:cacheprovider tests/container"
