#!/usr/bin/env bash
# Clusters in an AWS account that moto plays, behind a proxy that plants faults: tests/cluster/run.sh DTRAIN [PYTEST...].
# moto and pytest come with tests/requirements.txt; without them it says so and ends with 77. The last line is
# `N passed, N failed`.
set -uo pipefail
DTRAIN=$(realpath "$1")
export DTRAIN PYTHONDONTWRITEBYTECODE=1
shift
cd "$(dirname "${BASH_SOURCE[0]}")" || exit 1

python=../../.venv/bin/python
if ! "$python" -c 'import moto.server, pytest, cryptography' 2>/dev/null; then
  echo "SKIP cluster: no moto here; tests/run.sh installs it"
  exit 77
fi
output=$("$python" -m pytest -p no:cacheprovider -q -rs "$@" 2>&1)
echo "$output"
line=$(tail -n 1 <<<"$output")
count() { grep -oE "[0-9]+ $1" <<<"$line" | grep -oE '[0-9]+' || echo 0; }
failed=$(($(count failed) + $(count error)))
echo "$(count passed) passed, $failed failed, $(count skipped) skipped"
[ "$failed" -eq 0 ]
