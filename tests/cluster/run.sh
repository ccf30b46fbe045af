#!/usr/bin/env bash
# Clusters in an AWS account that moto plays, behind a proxy that plants faults: tests/cluster/run.sh DTRAIN [--slow] [PYTEST...].
# --slow runs what takes long, and only that.
# moto and pytest come with tests/requirements.txt; without them it says so and ends with 77. The last line is
# `N passed, N failed`.
set -uo pipefail
DTRAIN=$(realpath "$1")
export DTRAIN PYTHONDONTWRITEBYTECODE=1
shift
chosen="not slow"
if [ "${1:-}" = --slow ]; then chosen=slow; shift; fi
cd "$(dirname "${BASH_SOURCE[0]}")" || exit 1
export PATH=$PATH:/usr/sbin:/sbin

python=../../.venv/bin/python
if ! "$python" -c 'import moto.server, pytest, cryptography' 2>/dev/null; then
  echo "SKIP cluster: no moto here; tests/run.sh installs it"
  exit 77
fi
# Nodes are machines in namespaces of their own, which the kernel removes however this ends.
own=(--net --mount --pid --ipc --fork --kill-child=KILL --mount-proc --propagation private)
# Three accounts side by side: most of the time is waited for machines that boot.
run=("$python" -m pytest -p no:cacheprovider -q -rs -n 3 --dist worksteal -m "$chosen" "$@")
if [ "$(id -u)" = 0 ] && command -v sshd >/dev/null && unshare "${own[@]}" ip link add probe type bridge 2>/dev/null; then
  # shellcheck disable=SC2016  # the inner shell's variables
  run=(unshare "${own[@]}" bash -c '
    set -e
    ip link set lo up
    mount -t tmpfs -o mode=755 lab /run
    mkdir -p /run/lab/shared /run/sshd
    export DTRAIN_CLUSTER_LAB=1 TMPDIR=/run/lab
    exec "$@"' nodes "${run[@]}")
fi

output=$("${run[@]}" 2>&1)
echo "$output"
line=$(tail -n 1 <<<"$output")
count() { grep -oE "[0-9]+ $1" <<<"$line" | grep -oE '[0-9]+' || echo 0; }
failed=$(($(count failed) + $(count error)))
echo "$(count passed) passed, $failed failed, $(count skipped) skipped"
[ "$failed" -eq 0 ]
