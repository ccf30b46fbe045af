#!/usr/bin/env bash
# Sets up dtrain on a fresh machine: installs missing packages, builds, prepares the embedded data set, trains a small
# network and prints its accuracy.
#   bash examples/quickstart.sh [FOLDER]
# Writes the data and the model to FOLDER (default: build/quickstart). You can run it again: it skips finished steps,
# but trains from the start.
set -euo pipefail
here=$PWD
top=$(realpath "$(dirname "${BASH_SOURCE[0]}")/..")
folder=$(realpath -m "${1:-$top/build/quickstart}")
dtrain=$top/build/quick/dtrain
cd "$top"
epochs=8

main() {
  say "1/4 Installing missing packages"
  packaging/install-deps.sh build

  say "2/4 Building (for this machine alone; a few minutes on 2 cores the first time; log: $(shown "$top/build/quickstart-build.log"))"
  build

  say "3/4 Drawing the data set 'shapes' (10 classes of small pictures)"
  "$dtrain" data prepare shapes --out "$folder/data"

  say "4/4 Training ResNet-8 for $epochs epochs"
  "$dtrain" train --network resnet --num-layers 8 --num-epochs $epochs --seed 1 --disp-batches 100 \
    --model-prefix "$folder/model/shapes" --force \
    --data-train "$folder/data/shapes_train.rec" --data-val "$folder/data/shapes_val.rec" \
    --batch-size 32 --lr 0.1 --lr-schedule one-cycle --max-random-h 0 --max-random-s 0 --max-random-l 0

  say "Accuracy on pictures that training did not use"
  "$dtrain" eval "$folder/model/shapes" --load-epoch $epochs --data-val "$folder/data/shapes_val.rec"
  what_next
}

build() {
  mkdir -p build
  local compile=(cmake --build --preset quick -j "$(nproc)")
  if ! { cmake --preset quick && "${compile[@]}"; } >build/quickstart-build.log 2>&1; then
    tail -n 30 build/quickstart-build.log >&2
    exit 1
  fi
}

what_next() {
  local program model
  program=$(shown "$dtrain") model=$(shown "$folder/model/shapes")
  say "Next steps"
  cat <<EOF
  inspect the checkpoint       $program inspect $model --load-epoch $epochs
  export it to ONNX            $program export $model --load-epoch $epochs --to onnx --out shapes.onnx
  train on CIFAR-10 (170 MB)   bash $(shown "$top/examples/cifar10-resnet20.sh")
  list all commands            $program help
EOF
}

shown() {  # shown PATH: as the shell takes it where the user stands, short in the checkout
  local base=/dev/null
  if [ "$here" = "$top" ]; then base=$top; fi
  printf %q "$(realpath -m --relative-base="$base" "$1")"
}

say() { printf '\n== %s\n' "$*"; }

main
