#!/usr/bin/env bash
# The ratio table: dtrain, PyTorch and MXNet train the same network in turn on this machine, the median of several
# alternations counts. Usage: tests/bench/compare.sh [--networks "NAME NAME"|all] [--shards "1 8"] [--dtypes "NAME NAME"]
#   [--alternations N] [--seconds S] [--no-compile] [--quick] > table
# NAME: cifar-16 or cifar-64 (ResNet-20 v1 of that width, batch 128; these are compared where no network is named), or one
# of torchvision's on 224 pixels (batch 32).
# Makes its own virtual environments under build/peers (several GB from PyPI the first time).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

all="cifar-16 cifar-64 resnet18 resnet50 mobilenet_v2 efficientnet_b0 vgg16 convnext_tiny vit_b_16 vit_small_patch16_224"
networks="cifar-16 cifar-64" shards="1 8" dtypes="float32 bfloat16" alternations=5 seconds=8 threads=2 compile=1
while [ $# -gt 0 ]; do
  case $1 in
    --networks) networks=$2; shift 2 ;;
    --shards) shards=$2; shift 2 ;;
    --dtypes) dtypes=$2; shift 2 ;;
    --alternations) alternations=$2; shift 2 ;;
    --seconds) seconds=$2; shift 2 ;;
    --no-compile) compile=; shift ;;
    --quick) alternations=1 seconds=3; shift ;;
    *) sed -n '2,7s/^# //p' "$0" >&2; exit 2 ;;
  esac
done
[ "$networks" != all ] || networks=$all

dtrain=${DTRAIN:-build/release/dtrain}
[ -x "$dtrain" ] || { cmake --preset release >&2 && cmake --build build/release >&2; }

# shellcheck source=tests/bench/peers.sh
source tests/bench/peers.sh
make_peer torch torch torchvision numpy
case $networks in *cifar*) make_peer mxnet mxnet==1.9.1 numpy==1.23.5 ;; esac

results=$(mktemp)
trap 'rm -f "$results"' EXIT
record() {  # CASE WHO COMMAND...: appends CASE, WHO and the JSON line that the command prints
  local case=$1 who=$2
  shift 2
  printf '%s\t%s\t%s\n' "$case" "$who" "$("$@" 2>/dev/null | tr -d '\n')" >>"$results"
}

compare() {  # CASE DTYPE "OPTIONS OF BOTH" "OPTIONS OF DTRAIN"
  local case=$1 both="$3 --dtype $2 --threads $threads --seconds $seconds" v
  # shellcheck disable=SC2086  # options are words
  for v in $shards; do record "$case" "dtrain V=$v" "$dtrain" bench train $both $4 --logical-shards "$v" --json; done
  # shellcheck disable=SC2086
  record "$case" "pytorch eager" "$peers/torch/bin/python" tests/bench/pytorch_peer.py $both
  [ -n "$compile" ] || return 0
  # shellcheck disable=SC2086
  record "$case" "pytorch compiled" "$peers/torch/bin/python" tests/bench/pytorch_peer.py $both --compile
}

for ((i = 1; i <= alternations; ++i)); do
  for network in $networks; do
    for dtype in $dtypes; do
      case="$network $dtype"
      echo "alternation $i of $alternations: $case" >&2
      case $network in
        cifar-*)
          sizes="--width ${network#cifar-} --batch-size 128"
          compare "$case" "$dtype" "--network resnet-v1 $sizes" "--num-layers 20 --image-shape 3,32,32"
          if [ "$dtype" = float32 ]; then
            # shellcheck disable=SC2086
            record "$case" mxnet "$peers/mxnet/bin/python" tests/bench/mxnet_peer.py $sizes --threads "$threads" \
              --seconds "$seconds"
          fi
          ;;
        *)
          compare "$case" "$dtype" "--network $network --batch-size 32 --warmup 2" \
            "--num-layers 0 --num-classes 1000 --image-shape 3,224,224"
          ;;
      esac
    done
  done
done
/usr/bin/python3 tests/bench/ratio_table.py "$results"
