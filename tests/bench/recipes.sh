#!/usr/bin/env bash
# What each recipe is worth: tests/bench/recipes.sh [NAME...]. Trains ResNet-20 on CIFAR-10 with each of the named
# recipes (all of them), and prints the accuracy on the 10,000 test pictures of each seed, and their mean.
# DTRAIN: the program; DTRAIN_TEST_DATA: the folder that holds cifar-10-batches-bin/; SEEDS (3), EPOCHS (28). One run
# takes an hour or so on two cores. PEER: a Python with torch, torchvision, timm (1.0) and pillow, which trains the recipes
# that timm has by timm_peer.py, for a second row; two means that are as near as the seeds are to each other agree.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
repository=$PWD
dtrain=$(realpath "${DTRAIN:-build/release/dtrain}")
data=$(realpath "${DTRAIN_TEST_DATA:?the folder with cifar-10-batches-bin/}")
seeds=${SEEDS:-3} epochs=${EPOCHS:-28}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
"$dtrain" data prepare cifar10 --out d --from "$data/cifar-10-batches-bin" >/dev/null

# As examples/cifar10-resnet20.sh, with one shard: then mixing is that of timm.
common=(--network resnet-v1 --num-layers 20 --image-shape "3,32,32" --global-batch 128 --dtype auto
  --lr-schedule cosine --warmup-epochs 2 --wd 5e-4 --label-smoothing 0.1
  --pad-size 4 --random-crop 1 --random-mirror 1 --max-random-h 0 --max-random-s 0 --max-random-l 0
  --rgb-mean "125.3,123.0,113.9" --rgb-std "63.0,62.1,66.7" --data-train d/cifar10_train.rec --data-val d/cifar10_val.rec)
declare -A recipes=(
  [plain]="--optimizer nag --lr 0.2"
  [clip-norm]="--optimizer nag --lr 0.2 --clip-norm 1"
  [ema]="--optimizer nag --lr 0.2 --ema 0.999 --ema-warmup"
  [mixup]="--optimizer nag --lr 0.2 --mixup 0.2"
  [cutmix]="--optimizer nag --lr 0.2 --cutmix 1"
  [mixup-cutmix]="--optimizer nag --lr 0.2 --mixup 0.2 --cutmix 1"
  [rand-augment]="--optimizer nag --lr 0.2 --auto-augment rand"
  [poly]="--optimizer nag --lr 0.2 --lr-schedule poly"
  [restarts]="--optimizer nag --lr 0.2 --lr-cycles 2"
  [rmsprop]="--optimizer rmsprop --lr 0.001"
  [adagrad]="--optimizer adagrad --lr 0.02"
  [adamw]="--optimizer adamw --lr 0.002 --wd 0.05"
  [lamb]="--optimizer lamb --lr 0.01 --wd 0.02"
  [lars]="--optimizer lars --lr 10"
)
if [ $# -eq 0 ]; then set -- plain clip-norm ema mixup cutmix mixup-cutmix rand-augment poly restarts rmsprop adagrad adamw lamb lars; fi

printf '| recipe | accuracy of each seed, %% | mean, %% |\n|---|---|---|\n'
row() {  # row TITLE ACCURACY...
  local title=$1
  shift
  printf '| %s | %s | %s |\n' "$title" "$*" "$(printf '%s\n' "$@" | awk '{ sum += $1 } END { printf "%.2f", sum / NR }')"
}

peer=$repository/tests/bench/timm_peer.py
timm_has() { [ -n "${PEER:-}" ] && [[ " plain ema mixup cutmix mixup-cutmix rand-augment " == *" $1 "* ]]; }

for name in "$@"; do
  [ -n "${recipes[$name]:-}" ] || { echo "there is no recipe $name" >&2; exit 2; }
  read -ra options <<<"${recipes[$name]}"
  found=()
  for seed in $(seq "$seeds"); do
    "$dtrain" train "${common[@]}" "${options[@]}" --num-epochs "$epochs" --seed "$seed" >log 2>&1 || { tail -n 5 log >&2; exit 1; }
    found+=("$(grep -oE 'validation accuracy [0-9.]+' log | tail -n 1 | awk '{ printf "%.2f", 100 * $3 }')")
  done
  row "$name" "${found[@]}"
  timm_has "$name" || continue
  found=()
  for seed in $(seq "$seeds"); do
    found+=("$("$PEER" "$peer" "$data/cifar-10-batches-bin" "$name" --seed "$seed" --epochs "$epochs")")
  done
  row "$name, timm" "${found[@]}"
done
