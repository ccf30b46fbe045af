#!/usr/bin/env bash
# `dtrain predict` beside timm and onnxruntime: each names what a folder of photographs shows with one ResNet-50, float32, in
# turn on this machine; the median of the rounds counts. The lines on stderr also give the time of all processors for an image,
# which other programs change less.
# Usage: tests/bench/predict.sh FOLDER_OF_JPEGS [--copies N] [--rounds N] [--threads N] [--batch-size N] [WHO...]
# WHO: dtrain onnxruntime timm timm-compiled. Every picture is read from N files (20 where --copies is left out). Makes its own
# virtual environment under build/peers (several GB from PyPI the first time).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

usage() { sed -n '5,7s/^# //p' "$0" >&2; exit 2; }
[ $# -gt 0 ] || usage
source=$1 copies=20 rounds=3 threads=2 batch=32 who=()
shift
while [ $# -gt 0 ]; do
  case $1 in
    --copies) copies=$2; shift 2 ;;
    --rounds) rounds=$2; shift 2 ;;
    --threads) threads=$2; shift 2 ;;
    --batch-size) batch=$2; shift 2 ;;
    dtrain | onnxruntime | timm | timm-compiled) who+=("$1"); shift ;;
    *) usage ;;
  esac
done
[ ${#who[@]} -gt 0 ] || who=(dtrain onnxruntime timm timm-compiled)

dtrain=${DTRAIN:-build/release/dtrain}
[ -x "$dtrain" ] || { cmake --preset release >&2 && cmake --build build/release --target dtrain >&2; }

# shellcheck source=tests/bench/peers.sh
source tests/bench/peers.sh
make_peer torch torch torchvision timm onnx onnxruntime numpy
readonly peer=("$peers/torch/bin/python" tests/bench/predict_peer.py)

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/photos" "$work/one"
while read -r picture; do
  for ((i = 0; i < copies; ++i)); do cp "$picture" "$work/photos/$(basename "$picture" .jpg)-$i.jpg"; done
done < <(find "$source" -name '*.jpg')
find "$work/photos" -name '*.jpg' | sort | head -n 1 | xargs -I {} cp {} "$work/one"
count=$(find "$work/photos" -name '*.jpg' | wc -l)
"${peer[@]}" write "$work" >&2
"$dtrain" import "$work/resnet50.pth" --network resnet50 --out "$work/m" -q >&2

TIMEFORMAT='%R %U %S'
predicted() {  # FOLDER CSV: prints seconds of the clock and of the processors
  { time "$dtrain" predict "$work/m" "$work/$1" --threads "$threads" --batch-size "$batch" --csv -q >"$2"; } 2>&1
}
# The time of all pictures less that of one, which is the start of the program.
by_dtrain() {
  local all one
  all=$(predicted photos "$work/dtrain.csv") one=$(predicted one "$work/one.csv")
  awk -F , 'NR > 1 {sub(/.*\//, "", $1); print $1, $3}' "$work/dtrain.csv" | sort >"$work/dtrain.labels"
  awk -v count="$count" '{for (i = 1; i <= NF; ++i) took[i] += NR == 1 ? $i : -$i}
    END {printf "{\"images_per_second\": %f, \"cpu_seconds_per_image\": %f}\n", (count - 1) / took[1], (took[2] + took[3]) / (count - 1)}
    ' <<<"$all"$'\n'"$one"
}
by_peer() {  # WHO
  local more=()
  [ "$1" != timm-compiled ] || more=(--compile)
  "${peer[@]}" "${1%-compiled}" "$work/photos" --model "$work/resnet50.onnx" --threads "$threads" --workers "$threads" \
    --batch-size "$batch" --labels "$work/$1.labels" "${more[@]}"
}

uptime >&2
for ((i = 1; i <= rounds; ++i)); do
  for each in "${who[@]}"; do
    echo "round $i of $rounds: $each" >&2
    if [ "$each" = dtrain ]; then line=$(by_dtrain); else line=$(by_peer "$each" 2>"$work/errors") || cat "$work/errors" >&2; fi
    printf 'ResNet-50 float32, batch %s, %s pictures\t%s\t%s\n' "$batch" "$count" "$each" "$line" | tee -a "$work/results" >&2
  done
done
uptime >&2
for each in "${who[@]}"; do
  if [ -e "$work/dtrain.labels" ] && [ -e "$work/$each.labels" ] && [ "$each" != dtrain ]; then
    echo "$each gives $(sort "$work/$each.labels" | comm -12 - "$work/dtrain.labels" | wc -l) of $count pictures dtrain's class" >&2
  fi
done
/usr/bin/python3 tests/bench/ratio_table.py "$work/results"
