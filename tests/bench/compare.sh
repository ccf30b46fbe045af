#!/usr/bin/env bash
# The ratio table: dtrain, PyTorch and MXNet train the same network in turn on this machine, the median of several
# alternations counts. Usage: tests/bench/compare.sh [--alternations N] [--seconds S] [--quick] > table
# Makes its own virtual environments under build/peers (several GB from PyPI the first time).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

alternations=5 seconds=8 threads=2 batch=128
while [ $# -gt 0 ]; do
  case $1 in
    --alternations) alternations=$2; shift 2 ;;
    --seconds) seconds=$2; shift 2 ;;
    --quick) alternations=1 seconds=3; shift ;;
    *) sed -n '2,4s/^# //p' "$0" >&2; exit 2 ;;
  esac
done

dtrain=${DTRAIN:-build/release/dtrain}
[ -x "$dtrain" ] || { cmake --preset release >&2 && cmake --build build/release >&2; }

# shellcheck source=tests/bench/peers.sh
source tests/bench/peers.sh
make_peer torch torch numpy
make_peer mxnet mxnet==1.9.1 numpy==1.23.5

results=$(mktemp)
trap 'rm -f "$results"' EXIT
record() {  # CASE WHO COMMAND...: appends CASE, WHO and the JSON line that the command prints
  local case=$1 who=$2
  shift 2
  printf '%s\t%s\t%s\n' "$case" "$who" "$("$@" 2>/dev/null | tr -d '\n')" >>"$results"
}
ours() {  # CASE WIDTH DTYPE SHARDS
  record "$1" "dtrain V=$4" "$dtrain" bench train --network resnet-v1 --num-layers 20 --width "$2" --image-shape 3,32,32 \
    --batch-size "$batch" --dtype "$3" --threads "$threads" --logical-shards "$4" --seconds "$seconds" --json
}
torch_peer() { record "$1" "$4" "$peers/torch/bin/python" tests/bench/pytorch_peer.py --width "$2" --dtype "$3" \
  --threads "$threads" --batch-size "$batch" --seconds "$seconds" "${@:5}"; }

for ((i = 1; i <= alternations; ++i)); do
  for width in 16 64; do
    for dtype in float32 bfloat16; do
      case="width $width $dtype"
      echo "alternation $i of $alternations: $case" >&2
      for shards in 1 8; do ours "$case" "$width" "$dtype" "$shards"; done
      torch_peer "$case" "$width" "$dtype" "pytorch eager"
      torch_peer "$case" "$width" "$dtype" "pytorch compiled" --compile
      if [ "$dtype" = float32 ]; then
        record "$case" mxnet "$peers/mxnet/bin/python" tests/bench/mxnet_peer.py --width "$width" --threads "$threads" \
          --batch-size "$batch" --seconds "$seconds"
      fi
    done
  done
done
/usr/bin/python3 tests/bench/ratio_table.py "$results"
