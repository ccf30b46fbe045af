#!/usr/bin/env bash
# Jobs started by real schedulers and by mpirun on machines that are network namespaces: tests/launchers/run.sh DTRAIN
# [--slow] [SUITE...]. It is tests/hosts/run.sh with the suites of this folder, and needs what that needs.
set -euo pipefail
DTRAIN_HOSTS_SUITES=$(realpath "$(dirname "${BASH_SOURCE[0]}")")
export DTRAIN_HOSTS_SUITES
exec bash "$DTRAIN_HOSTS_SUITES/../hosts/run.sh" "$@"
