#!/usr/bin/env bash
# What it costs when workers come, go and die: dtrain and, where build/peers/torch is there (compare.sh makes it), torchrun
# with a state of the same size, in turn. Usage: tests/bench/elastic.sh [ROUNDS]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
rounds=${1:-3}
dtrain=${DTRAIN:-build/release/dtrain}
torch=build/peers/torch/bin/python
for ((i = 1; i <= rounds; ++i)); do
  "$dtrain" bench elastic --rounds 1 --json
  if [ -x "$torch" ]; then "$torch" tests/bench/torchrun_peer.py; else echo "no $torch: torchrun is left out" >&2; fi
done
