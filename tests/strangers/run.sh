#!/usr/bin/env bash
# Strangers beside a running job: on its network, on its machines, at its ports: tests/strangers/run.sh DTRAIN [--slow]
# [SUITE...]. It is tests/hosts/run.sh with the suites of this folder, and needs what that needs, and setpriv.
set -euo pipefail
DTRAIN_HOSTS_SUITES=$(realpath "$(dirname "${BASH_SOURCE[0]}")")
export DTRAIN_HOSTS_SUITES
exec bash "$DTRAIN_HOSTS_SUITES/../hosts/run.sh" "$@"
