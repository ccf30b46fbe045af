#!/usr/bin/env bash
# Images that are small first and whole in the end.
set -uo pipefail
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
shapes 200
state() { "$DTRAIN" inspect "$1" --json | grep -oE '"state_sha256":"[0-9a-f]+"'; }
differs() { [ "$1" != "$2" ]; }
training=("${small_training[@]}" --network resnet-v1 --num-layers 8 --width 8 --logical-shards 2 --seed 1 --num-epochs 4)
progressive=("${training[@]}" --progressive-resizing)

run train "${progressive[@]}" --model-prefix m/one --threads 1
check "a run begins on small images" exits 0
check "it says which" says "images of 16x16 during 50 % of the run, of 28x28 during its last 20 %"
run train "${progressive[@]}" --model-prefix m/threads --threads 4
check "the number of threads changes no bit" same "$(state m/one)" "$(state m/threads)"
run train "${progressive[@]}" --global-batch 50 --model-prefix m/two -n 2 --launcher local --job-dir job
check "nor does that of workers" same "$(state m/one)" "$(state m/two)"
cp m/one-0002.json m/half-0002.json
cp m/one-0002.safetensors m/half-0002.safetensors
run train "${progressive[@]}" --model-prefix m/half --resume
check "a resumed run goes on at its size" same "$(state m/one)" "$(state m/half)"
run train "${training[@]}" --model-prefix m/plain
check "whole images give other weights" differs "$(state m/one)" "$(state m/plain)"
run train "${progressive[@]}" --resizing-initial-scale 0.25 --resizing-delay 0 --resizing-finetune 0.5 --resizing-increment 2 \
  --mixup 0.5 --ema 0.9 --dtype auto
check "each part can be chosen" says "images of 8x8 during 0 % of the run, of 28x28 during its last 50 %"

run train "${small_training[@]}" --progressive-resizing
check "weights of one size are a usage error" exits 2
check "weights of one size are named" says "depends on the size of the images"
run train "${training[@]}" --resizing-delay 0.3
check "a part alone is a usage error" says "--resizing-delay: without --progressive-resizing all images are whole"
run train "${progressive[@]}" --resizing-initial-scale 0
check "images of no size are a usage error" exits 2
run train "${progressive[@]}" --resizing-delay 0.9
check "shares above the run are a usage error" says "together they are more than the run"
run train "${progressive[@]}" --local-steps 3
check "replicas have whole images" says "--progressive-resizing with --local-steps: "
run train "${progressive[@]}" --benchmark 1
check "so has a benchmark" says "--progressive-resizing with --benchmark"
finish
