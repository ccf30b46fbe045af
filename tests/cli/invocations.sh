#!/usr/bin/env bash
# Command lines that are wrong somewhere; `bad_invocations.py DTRAIN --count 2000 --seed S` tries more of them.
set -euo pipefail
exec /usr/bin/python3 -B "$(dirname "$0")/bad_invocations.py" "$DTRAIN" --count 150
