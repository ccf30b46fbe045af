#!/usr/bin/env bash
# Trains ResNet-20 v1 on CIFAR-10 to at least 0.90 on the 10,000 test images in 28 epochs, on the CPU.
#   bash examples/cifar10-resnet20.sh [FOLDER [CIFAR]]
# Writes the data and the model to FOLDER (default: build/cifar10-resnet20). CIFAR is a folder with the published binary
# files (cifar-10-batches-bin); without it the script downloads them. If a run is interrupted, run the script again: it
# continues where it stopped.
set -euo pipefail
top=$(realpath "$(dirname "${BASH_SOURCE[0]}")/..")
folder=${1:-$top/build/cifar10-resnet20}
from=${2:-}
dtrain=${DTRAIN:-$top/build/release/dtrain}
[ -x "$dtrain" ] || dtrain=$top/build/quick/dtrain
epochs=28
[ -x "$dtrain" ] || { echo "$dtrain does not exist: build it with 'bash $top/examples/quickstart.sh'" >&2; exit 1; }

"$dtrain" data prepare cifar10 --out "$folder/data" ${from:+--from "$from"}

recipe=(
  --network resnet-v1 --num-layers 20 --image-shape "3,32,32"
  # 4 logical shards of 32 samples: each thread computes whole shards, and batch norm sees 32 samples at a time.
  --global-batch 128 --logical-shards 4 --dtype auto
  # The rate rises to --lr and falls to almost nothing within the 28 epochs.
  --optimizer nag --mom 0.9 --lr 0.2 --lr-schedule one-cycle --wd 5e-4 --label-smoothing 0.1
  # Images are moved by up to 4 pixels and mirrored; their colours stay as they are.
  --pad-size 4 --random-crop 1 --random-mirror 1 --max-random-h 0 --max-random-s 0 --max-random-l 0
  --rgb-mean "125.3,123.0,113.9" --rgb-std "63.0,62.1,66.7"
)
"$dtrain" train "${recipe[@]}" --data-train "$folder/data/cifar10_train.rec" --data-val "$folder/data/cifar10_val.rec" \
  --num-epochs $epochs --seed 1 --model-prefix "$folder/model/resnet20" --tensorboard "$folder/tensorboard" --resume
"$dtrain" eval "$folder/model/resnet20" --load-epoch $epochs --data-val "$folder/data/cifar10_val.rec"
