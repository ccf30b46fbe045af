#!/usr/bin/env bash
# oneDNN as on a CPU with fewer instructions. A write past a buffer ends the program when glibc finds its heap spoiled.
set -uo pipefail
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
shapes 120

# Four channels before convolutions of 1x1 with strides.
narrow=(--network resnet --num-layers 8 --width 4 --image-shape "3,28,28" --data-train d/shapes_train.rec --batch-size 32
  --logical-shards 8 --threads 1 --num-epochs 1)
for instructions in SSE41 AVX AVX2; do
  export ONEDNN_MAX_CPU_ISA=$instructions
  run train "${narrow[@]}" -v
  check "a narrow network trains with $instructions" exits 0
  named=${instructions/SSE41/SSE4.1}
  check "the start names $named" says_line "^dtrain [0-9.]+ on oneDNN .* with $named;"
done
finish
