#!/usr/bin/env bash
# Pairs of faults in jobs on machines that are network namespaces: tests/faults/run.sh DTRAIN [--slow] [SUITE...]. It is
# tests/hosts/run.sh with the suite of this folder, and needs what that needs. DTRAIN_FAULT_SEEDS=FIRST-LAST or COUNT chooses
# the schedules.
set -euo pipefail
DTRAIN_HOSTS_SUITES=$(realpath "$(dirname "${BASH_SOURCE[0]}")")
export DTRAIN_HOSTS_SUITES DTRAIN_LAB_MACHINES=7
exec bash "$DTRAIN_HOSTS_SUITES/../hosts/run.sh" "$@"
