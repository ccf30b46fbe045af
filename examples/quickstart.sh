#!/usr/bin/env bash
# dtrain from nothing, on one machine: installs what is missing, builds, prepares the embedded data set, trains a small
# network and shows its accuracy. Run it again at will: what is done is not done twice, and training starts afresh.
#   bash examples/quickstart.sh [FOLDER]      the data and the model go to FOLDER (default: build/quickstart)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
folder=${1:-build/quickstart}
dtrain=build/release/dtrain
epochs=8

main() {
  say "1/4 Installing what is missing"
  packaging/install-deps.sh build

  say "2/4 Building (release; the first time some ten minutes on 2 cores; the log is build/quickstart-build.log)"
  build

  say "3/4 Drawing the data set 'shapes': 10 classes of small pictures"
  "$dtrain" data prepare shapes --out "$folder/data"

  say "4/4 Training ResNet-8 for $epochs epochs"
  "$dtrain" train --network resnet --num-layers 8 --num-epochs $epochs --seed 1 --disp-batches 100 \
    --model-prefix "$folder/model/shapes" \
    --data-train "$folder/data/shapes_train.rec" --data-val "$folder/data/shapes_val.rec" \
    --batch-size 32 --lr 0.1 --lr-schedule one-cycle --max-random-h 0 --max-random-s 0 --max-random-l 0

  say "Accuracy on pictures it has never seen"
  "$dtrain" eval "$folder/model/shapes" --load-epoch $epochs --data-val "$folder/data/shapes_val.rec"
  what_next
}

build() {
  mkdir -p build
  local compile=(cmake --build --preset release --target dtrain -j "$(nproc)")
  if command -v ccache >/dev/null; then export CMAKE_C_COMPILER_LAUNCHER=ccache CMAKE_CXX_COMPILER_LAUNCHER=ccache; fi
  if ! { cmake --preset release && "${compile[@]}"; } >build/quickstart-build.log 2>&1; then
    tail -n 30 build/quickstart-build.log >&2
    exit 1
  fi
}

what_next() {
  say "What next"
  cat <<EOF
  what the checkpoint holds    $dtrain inspect $folder/model/shapes --load-epoch $epochs
  for other programs           $dtrain export $folder/model/shapes --load-epoch $epochs --to onnx --out shapes.onnx
  real pictures (170 MB)       bash examples/cifar10-resnet20.sh
  everything else              $dtrain help
EOF
}

say() { printf '\n== %s\n' "$*"; }

main
