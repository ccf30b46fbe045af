#!/usr/bin/env bash
# Other people's programs as the ranks of a job: tests/launch/run.sh DTRAIN [--slow] [SUITE...]. Suites are the test_*.py
# beside this file; --slow runs what takes long, and only that. The last line is the sum. PyTorch comes from the
# distribution, MXNet from .venv (tests/requirements.txt).
set -euo pipefail
[ $# -ge 1 ] || { echo "usage: tests/launch/run.sh DTRAIN [--slow] [SUITE...]" >&2; exit 2; }
DTRAIN=$(realpath "$1")
export DTRAIN PYTHONDONTWRITEBYTECODE=1
shift
exec /usr/bin/python3 "$(dirname "${BASH_SOURCE[0]}")/main.py" "$@"
