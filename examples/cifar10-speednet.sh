#!/usr/bin/env bash
# CIFAR-10 in few epochs: the recipe speednet, a network that sees each image eight times.
#   bash examples/cifar10-speednet.sh [FOLDER [CIFAR]]
# FOLDER gets the data and the model (default: build/cifar10-speednet); CIFAR is a folder with the published binary files
# (cifar-10-batches-bin), which are downloaded where it is not given. EPOCHS=n trains for n of them. An interrupted run
# goes on where it stopped.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
folder=${1:-build/cifar10-speednet}
from=${2:-}
dtrain=${DTRAIN:-build/release/dtrain}
epochs=${EPOCHS:-8}
[ -x "$dtrain" ] || { echo "no $dtrain: run 'bash examples/quickstart.sh' first, which builds it" >&2; exit 1; }

"$dtrain" data prepare cifar10 --out "$folder/data" ${from:+--from "$from"}
"$dtrain" train --recipe speednet --data-train "$folder/data/cifar10_train.rec" \
  --data-val "$folder/data/cifar10_val.rec" --num-epochs "$epochs" --seed 1 --dtype auto \
  --model-prefix "$folder/model/speednet" --resume
"$dtrain" eval "$folder/model/speednet" --load-epoch "$epochs" --data-val "$folder/data/cifar10_val.rec" --test-views 6
