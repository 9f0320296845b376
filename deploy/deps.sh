#!/bin/sh
# deps.sh GROUP...: makes sure that the Debian packages of the groups are installed; root
# installs what is missing, anybody else is told how. Groups: build, test, night, model,
# rdma-test, bench, abi, coverage, format, deb, deb-test, rpm, rpm-test, container, container-test,
# ansible-test.
set -eu

build="gcc libc6-dev libevent-dev libibverbs-dev libncurses-dev libprotobuf-c-dev librdmacm-dev
	libssl-dev protobuf-c-compiler python3 python3-cffi python3-dev python3-setuptools"
# What `make check` needs. prometheus has promtool, which tries the alert rules; the drill of owners
# that etcd elects starts an etcd of its own.
test="clang-format-14 etcd-client etcd-server g++ groff iproute2 libcmocka-dev libxml2-utils
	man-db mypy openssl pkg-config procps prometheus python3-jsonschema python3-numpy
	python3-pip python3-pytest python3-pytest-xdist python3-seccomp python3-wheel python3-yaml
	resource-agents shellcheck strace systemd valgrind zsh"
# What the suites of `make check-night` need besides: clang, analyzers, a browser, Ansible.
night="ansible-core ansible-lint chromium chromium-driver clang-14 clang-tidy-14 cppcheck
	libclang-rt-14-dev libstdc++-12-dev llvm-14 python3-selenium yamllint"
model="gcc libc6-dev python3 spin"
rdma_test="busybox-static ibverbs-providers ibverbs-utils iproute2 kmod python3-pytest
	qemu-system-x86 xz-utils zstd"
# redis-tools has the server's program; the package redis-server would add a service that runs.
bench="libcmocka-dev libdb5.3-dev libhiredis-dev liblmdb-dev libpmemobj-dev libsqlite3-dev
	openssl python3-matplotlib python3-pytest redis-tools"

# Compares the interface with the one that was promised.
abi="abigail-tools gcc libc6-dev python3"
coverage="lcov"
format="clang-format-14"
deb="debhelper dh-python dpkg-dev fakeroot libcmocka-dev"
deb_test="lintian mmdebstrap piuparts python3-debian util-linux"
rpm="libcmocka-dev rpm"
rpm_test="rpmlint"
container="gcc libc6-dev mmdebstrap podman util-linux"
# runc, since crun refuses control groups of both versions at once; and what podman needs to have
# names for containers in a network.
container_test="containernetworking-plugins dnsmasq-base docker-compose
	golang-github-containernetworking-plugin-dnsname iptables podman-compose runc"

# The control node of the role's drill; the hosts are made by mmdebstrap.
ansible_test="mmdebstrap openssh-client util-linux"

# Packages that have a service, which nothing here needs, each with the service's name.
services="prometheus:prometheus etcd-server:etcd"

wanted=
for group in "$@"; do
	case $group in
	build) wanted="$wanted $build" ;;
	test) wanted="$wanted $test" ;;
	night) wanted="$wanted $night" ;;
	model) wanted="$wanted $model" ;;
	rdma-test) wanted="$wanted $rdma_test" ;;
	bench) wanted="$wanted $bench" ;;
	abi) wanted="$wanted $abi" ;;
	coverage) wanted="$wanted $coverage" ;;
	format) wanted="$wanted $format" ;;
	deb) wanted="$wanted $deb" ;;
	deb-test) wanted="$wanted $deb_test" ;;
	rpm) wanted="$wanted $rpm" ;;
	rpm-test) wanted="$wanted $rpm_test" ;;
	container) wanted="$wanted $container" ;;
	container-test) wanted="$wanted $container_test" ;;
	ansible-test) wanted="$wanted $ansible_test" ;;
	*)
		echo "deps.sh: no group '$group': build, test, night, model, rdma-test, bench," \
			"abi, coverage, format, deb, deb-test, rpm, rpm-test, container," \
			"container-test, ansible-test" >&2
		exit 1
		;;
	esac
done

if ! command -v dpkg-query >/dev/null; then
	echo "deps.sh: not a Debian system; what is needed there:$wanted" >&2
	exit 0
fi

missing=
for package in $wanted; do
	state=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)
	[ "$state" = installed ] || missing="$missing $package"
done
[ -n "$missing" ] || exit 0

if [ "$(id -u)" != 0 ]; then
	echo "Packages are missing. Install them with:" >&2
	echo "    sudo apt-get install --no-install-recommends$missing" >&2
	exit 1
fi
echo "installing:$missing"
export DEBIAN_FRONTEND=noninteractive
apt-get update -q

# Some packages start a service as soon as they are installed, and with each boot. Of these the
# tests want the programs alone. While apt-get runs, a policy refuses all starts, unless the system
# has one already; and a service that nobody asked for is masked, until `systemctl unmask`.
policy=/usr/sbin/policy-rc.d
if [ ! -e $policy ]; then
	trap 'rm -f $policy' EXIT
	trap 'exit 130' INT TERM
	printf '#!/bin/sh\nexit 101\n' >$policy
	chmod 755 $policy
fi
for service in $services; do
	case " $missing " in
	*" ${service%:*} "*)
		unit=/etc/systemd/system/${service#*:}.service
		mkdir -p /etc/systemd/system
		[ -e "$unit" ] || [ -L "$unit" ] || ln -s /dev/null "$unit"
		;;
	esac
done
# shellcheck disable=SC2086
apt-get install -q -y --no-install-recommends $missing
