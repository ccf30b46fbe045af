#!/usr/bin/env bash
# The ratio table of detectors: dtrain and torchvision train the same network in turn on this machine, the median of several
# alternations counts. Usage: tests/bench/detectors.sh [--networks "NAME NAME"] [--sizes "PIXELS PIXELS"]
#   [--dtypes "NAME NAME"] [--shards "1 2"] [--alternations N] [--seconds S] > table
# NAME: mask-rcnn, faster-rcnn or retinanet. Pictures of 256 pixels have the backbone resnet-18, 64 proposals and batches of
# 4, larger ones resnet-50, 512 proposals and batches of 2. Makes its own virtual environment under build/peers.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

networks="mask-rcnn" sizes="256 512" dtypes="float32 bfloat16" shards="1" alternations=3 seconds=20 threads=2
while [ $# -gt 0 ]; do
  case $1 in
    --networks) networks=$2; shift 2 ;;
    --sizes) sizes=$2; shift 2 ;;
    --dtypes) dtypes=$2; shift 2 ;;
    --shards) shards=$2; shift 2 ;;
    --alternations) alternations=$2; shift 2 ;;
    --seconds) seconds=$2; shift 2 ;;
    *) sed -n '2,7s/^# //p' "$0" >&2; exit 2 ;;
  esac
done
dtrain=${DTRAIN:-build/release/dtrain}

# shellcheck source=tests/bench/peers.sh
source tests/bench/peers.sh
make_peer torch torch torchvision numpy
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$dtrain" data prepare shapes-detection --out "$work" --train-count 64 --val-count 1 >&2
record() {  # CASE WHO COMMAND...: appends CASE, WHO and the JSON line that the command prints
  local case=$1 who=$2
  shift 2
  printf '%s\t%s\t%s\n' "$case" "$who" "$("$@" 2>/dev/null | tr -d '\n')" >>"$work/results"
}

for ((i = 1; i <= alternations; ++i)); do
  for network in $networks; do
    for size in $sizes; do
      for dtype in $dtypes; do
        case="$network $size $dtype" backbone=50 proposals=512 batch=2
        if [ "$size" -le 256 ]; then backbone=18 proposals=64 batch=4; fi
        echo "alternation $i of $alternations: $case" >&2
        both=(--network "$network" --batch-size "$batch" --dtype "$dtype" --threads "$threads" --seconds "$seconds" --warmup 1)
        regions=()
        [ "$network" = retinanet ] || regions=(--proposals "$proposals")
        for v in $shards; do
          record "$case" "dtrain V=$v" "$dtrain" bench train "${both[@]}" "${regions[@]}" --backbone "resnet-$backbone" \
            --image-shape "3,$size,$size" --data-train "$work/shapes-detection_train.rec" --logical-shards "$v" --json
        done
        record "$case" torchvision "$peers/torch/bin/python" tests/bench/detection_peer.py "${both[@]}" "${regions[@]}" \
          --backbone "resnet$backbone" --size "$size" --num-classes 3
      done
    done
  done
done
/usr/bin/python3 tests/bench/ratio_table.py "$work/results"
