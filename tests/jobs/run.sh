#!/usr/bin/env bash
# Jobs of real worker processes on this machine: tests/jobs/run.sh DTRAIN [--slow] [SUITE...]. Suites are the test_*.py
# beside this file; --slow runs what takes long, and only that. The last line is the sum. Real data comes from DTRAIN_TEST_DATA.
set -euo pipefail
[ $# -ge 1 ] || { echo "usage: tests/jobs/run.sh DTRAIN [--slow] [SUITE...]" >&2; exit 2; }
DTRAIN=$(realpath "$1")
export DTRAIN PYTHONDONTWRITEBYTECODE=1
shift
exec /usr/bin/python3 "$(dirname "${BASH_SOURCE[0]}")/runner.py" "$@"
