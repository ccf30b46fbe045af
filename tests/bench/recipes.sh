#!/usr/bin/env bash
# What each recipe is worth: tests/bench/recipes.sh [NAME...]. Trains ResNet-20 on CIFAR-10 with each of the named
# recipes (all of them), and prints the accuracy on the 10,000 test pictures: of each seed at the end, their mean, and the
# mean after each epoch.
# DTRAIN: the program; DTRAIN_TEST_DATA: the folder that holds cifar-10-batches-bin/; SEEDS (3), EPOCHS (28), FILES (5): so
# many of the five files of 10,000 training pictures; JOBS (1): runs side by side, which share the cores. One run of 28
# epochs takes an hour or so on two cores. PEER: a Python with torch, torchvision, timm (1.0) and pillow, which trains the
# recipes that timm has by timm_peer.py, for a second row; two means that are as near as the seeds are to each other agree.
# OUT: a folder that keeps the curve of each run; a run whose curve it holds is not trained again.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
peer=$PWD/tests/bench/timm_peer.py
python=${PEER:+$(realpath --no-symlinks "$PEER")}  # a virtual environment's is a link
dtrain=$(realpath "${DTRAIN:-build/release/dtrain}")
data=$(realpath "${DTRAIN_TEST_DATA:?the folder with cifar-10-batches-bin/}")/cifar-10-batches-bin
seeds=${SEEDS:-3} epochs=${EPOCHS:-28} files=${FILES:-5} jobs=${JOBS:-1}
threads=$((($(nproc) + jobs - 1) / jobs))
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
curves=${OUT:-$work/curves}
mkdir -p "$curves"
curves=$(realpath "$curves")
cd "$work"

# As examples/cifar10-resnet20.sh, with one shard: then mixing is that of timm.
common=(--network resnet-v1 --num-layers 20 --image-shape "3,32,32" --global-batch 128 --dtype auto
  --lr-schedule cosine --warmup-epochs 2 --wd 5e-4 --label-smoothing 0.1
  --pad-size 4 --random-crop 1 --random-mirror 1 --max-random-h 0 --max-random-s 0 --max-random-l 0
  --rgb-mean "125.3,123.0,113.9" --rgb-std "63.0,62.1,66.7" --data-train "$work/train.rec" --data-val "$work/val.rec")
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
for name in "$@"; do
  [ -n "${recipes[$name]:-}" ] || { echo "there is no recipe $name" >&2; exit 2; }
done

main() {
  local seed name
  prepare_records
  for seed in $(seq "$seeds"); do
    for name in "$@"; do
      start dtrain_curve "$name" "$seed" dtrain
      if timm_has "$name"; then start timm_curve "$name" "$seed" timm; fi
    done
  done
  wait_below 1
  printf '| recipe | accuracy of each seed, %% | mean, %% | mean after each epoch, %% |\n|---|---|---|---|\n'
  for name in "$@"; do
    row "$name" "$curves/$name"-*.dtrain
    if timm_has "$name"; then row "$name, timm" "$curves/$name"-*.timm; fi
  done
}

prepare_records() {
  local of_files=("$data"/data_batch_[1-"$files"].bin)
  "$dtrain" data import "${of_files[@]}" --out train >/dev/null
  "$dtrain" data import "$data/test_batch.bin" --out val >/dev/null
}

timm_has() { [ -n "$python" ] && [[ " plain ema mixup cutmix mixup-cutmix rand-augment " == *" $1 "* ]]; }

start() {  # start COMMAND NAME SEED KIND: the curve NAME-SEED.KIND, in the background
  local out=$curves/$2-$3.$4
  if [ -s "$out" ]; then return; fi
  wait_below "$jobs"
  { "$1" "$2" "$3" >"$out.part" && mv "$out.part" "$out"; } &
}

wait_below() {  # wait_below N: until fewer than N runs are under way; the first that failed ends the script
  while [ "$(jobs -pr | wc -l)" -ge "$1" ]; do wait -n; done
}

dtrain_curve() {  # dtrain_curve NAME SEED: one accuracy in per cent a line
  local options
  read -ra options <<<"${recipes[$1]}"
  "$dtrain" train "${common[@]}" "${options[@]}" --num-epochs "$epochs" --seed "$2" --threads "$threads" >"$1-$2.log" 2>&1 ||
    { tail -n 5 "$1-$2.log" >&2; exit 1; }
  sed -n 's|^.*Validation-accuracy=||p' "$1-$2.log" | awk '{ printf "%.2f\n", 100 * $1 }'
}

timm_curve() {  # likewise
  "$python" "$peer" "$data" "$1" --seed "$2" --epochs "$epochs" --files "$files" --threads "$threads"
}

row() {  # row TITLE CURVE...
  local title=$1
  shift
  awk -v title="$title" '
    FNR == 1 && NR > 1 { ends = ends " " last }
    { sum[FNR] += $1; last = $1; rows = FNR }
    END {
      for (i = 1; i <= rows; ++i) curve = curve sprintf(" %.1f", sum[i] / (ARGC - 1))
      printf "| %s |%s %s | %.2f |%s |\n", title, ends, last, sum[rows] / (ARGC - 1), curve
    }' "$@"
}

main "$@"
