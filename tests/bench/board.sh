#!/usr/bin/env bash
# What `dtrain board` costs, beside TensorBoard: tests/bench/board.sh DTRAIN [--quick]. Needs what tests/board needs. It
# prints figures and judges none.
set -euo pipefail
[ $# -ge 1 ] || { echo "usage: tests/bench/board.sh DTRAIN [--quick]" >&2; exit 2; }
here=$(dirname "${BASH_SOURCE[0]}")
exec "$here/../../.venv/bin/python" "$here/board.py" "$@"
