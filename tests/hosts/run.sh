#!/usr/bin/env bash
# Jobs over ssh between machines that are network namespaces: tests/hosts/run.sh DTRAIN [--slow] [SUITE...]. Suites are the
# test_*.py beside this file; --slow runs what takes long, and only that. The last line is the sum. Real data comes from
# DTRAIN_TEST_DATA. Needs root, may make namespaces (a container without them skips all), ip, nsenter and sshd.
# All of it lives in namespaces of its own: several runs can use the same names and addresses at once, and the kernel
# removes every process, interface and mount when the run ends, however it ends.
set -euo pipefail
[ $# -ge 1 ] || { echo "usage: tests/hosts/run.sh DTRAIN [--slow] [SUITE...]" >&2; exit 2; }
here=$(realpath "$(dirname "${BASH_SOURCE[0]}")")
DTRAIN=$(realpath "$1")
export DTRAIN PYTHONDONTWRITEBYTECODE=1
shift
export PATH=$PATH:/usr/sbin:/sbin

own=(--net --mount --pid --ipc --fork --kill-child=KILL --mount-proc --propagation private)

main() {
  local tool
  for tool in unshare nsenter ip sshd ssh-keygen mount; do
    command -v $tool >/dev/null || skip "no program $tool here"
  done
  [ "$(id -u)" = 0 ] || skip "making network namespaces needs root"
  unshare "${own[@]}" ip link add probe type bridge 2>/dev/null || skip "namespaces, mounts or bridges are not allowed here"
  # shellcheck disable=SC2016  # the inner shell's variables
  exec unshare "${own[@]}" bash -c '
    set -e
    ip link set lo up
    mount -t tmpfs -o mode=755 lab /run
    mkdir -p /run/lab/shared /run/sshd
    export TMPDIR=/run/lab/shared
    if [ -n "${DTRAIN_LAB_NFS:-}" ]; then bash "$1/serve_nfs.sh"; fi
    shift
    exec /usr/bin/python3 "$@"' hosts "$here" "$here/main.py" "$@"
}

skip() {
  echo "SKIP hosts: $1"
  exit 77
}

main "$@"
