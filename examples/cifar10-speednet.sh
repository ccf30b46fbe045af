#!/usr/bin/env bash
# Trains CIFAR-10 in few epochs with the recipe speednet, a network that sees each image eight times.
#   bash examples/cifar10-speednet.sh [FOLDER [CIFAR]]
# Writes the data and the model to FOLDER (default: build/cifar10-speednet). CIFAR is a folder with the published binary
# files (cifar-10-batches-bin); without it the script downloads them. EPOCHS=n trains for n epochs. If a run is
# interrupted, run the script again: it continues where it stopped.
set -euo pipefail
top=$(realpath "$(dirname "${BASH_SOURCE[0]}")/..")
folder=${1:-$top/build/cifar10-speednet}
from=${2:-}
dtrain=${DTRAIN:-$top/build/release/dtrain}
[ -x "$dtrain" ] || dtrain=$top/build/quick/dtrain
epochs=${EPOCHS:-8}
[ -x "$dtrain" ] || { echo "$dtrain does not exist: build it with 'bash $top/examples/quickstart.sh'" >&2; exit 1; }

"$dtrain" data prepare cifar10 --out "$folder/data" ${from:+--from "$from"}
"$dtrain" train --recipe speednet --data-train "$folder/data/cifar10_train.rec" \
  --data-val "$folder/data/cifar10_val.rec" --num-epochs "$epochs" --seed 1 --dtype auto \
  --model-prefix "$folder/model/speednet" --resume
"$dtrain" eval "$folder/model/speednet" --load-epoch "$epochs" --data-val "$folder/data/cifar10_val.rec" --test-views 6
