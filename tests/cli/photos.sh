#!/usr/bin/env bash
# From photographs to a trained network, as with ImageNet.
set -uo pipefail
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

if [ -z "${DTRAIN_TEST_DATA:-}" ]; then
  skip "training on photographs" "set DTRAIN_TEST_DATA to the folder that holds coco_ccby/"
  finish
  exit
fi
coco=$DTRAIN_TEST_DATA/coco_ccby

run data prepare coco --from "$coco" --out d --resize 256 --shards 2
check "prepare packs the photographs" answers_line '^d/coco_train  [0-9]+ records$'
check "and those to validate with" answers_line '^d/coco_val  21 records$'
run data prepare coco --from "$coco" --out d --resize 256 --shards 2
check "prepare can be run again" says "already complete"
run data verify d/coco_train d/coco_val
check "verify says good" answers "d/coco_val_1.rec: 11 records, no damage"
run data ls d/coco_train
check "the shorter edges are resized" answers_line '^of 81 decoded: height 256 to .*, width 256 to '
run data show d/coco_train --image-shape 3,224,224 --random-resized-crop --count 6 --columns 3 --out sheet.png
check "show draws what the network will see" answers "sheet.png  680x454 pixels"

training=(--recipe imagenet --random-resized-crop --resize 256 --num-classes 80 --network resnet --num-layers 18 --top-k 5
  --data-val d/coco_val --batch-size 16 --num-examples 32 --num-epochs 1 --disp-batches 1 --seed 1)
run train "${training[@]}" --data-train d/coco_train --model-prefix m/a --prefetch 2 -v
check "training succeeds" exits 0
check "the recipe sees pictures of 224 x 224" says "colour images of 224 x 224 pixels into 80 classes"
check "the memory of what is loaded ahead is said" says_line '^--prefetch 2: up to [0-9.]+ MiB of samples in the memory of each worker$'
check "validation reports the best" says_line '^Epoch\[0\] Validation-accuracy=[01]\.[0-9]{6}$'
check "and the five best" says_line '^Epoch\[0\] Validation-top_k_accuracy_5=[01]\.[0-9]{6}$'
accuracy=$(sed -n 's/^Epoch\[0\] Validation-accuracy=//p' err)
five=$(sed -n 's/^Epoch\[0\] Validation-top_k_accuracy_5=//p' err)
run eval m/a --data-val d/coco_val
check "eval resizes and crops as training did" answers "accuracy=$accuracy"
check "eval counts the five best" answers "top_k_accuracy_5=$five"
run train "${training[@]}" --data-train 'd/coco_train_*.rec' --model-prefix m/b --prefetch 5 --data-nthreads 1
hash() { "$DTRAIN" inspect "$1" --json | /usr/bin/python3 -c 'import json,sys; print(json.load(sys.stdin)["weights_sha256"])'; }
check "neither prefetching nor threads nor the set's spelling change a bit" same "$(hash m/b)" "$(hash m/a)"

finish
