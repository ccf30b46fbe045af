#!/usr/bin/env bash
# The files of examples/recipes: `train --config` takes each of them whole, and that of CIFAR-10 trains.
set -uo pipefail
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
shapes 200
files=$here/../../examples/recipes
small=(--data-train d/shapes_train.rec --data-val d/shapes_val.rec)
run data prepare shapes-detection --out d --train-count 8 --val-count 2
scenes=(--data-train d/shapes-detection_train.rec --data-val d/shapes-detection_val.rec)
for file in "$files"/*.toml; do
  name=$(basename "$file" .toml)
  data=("${small[@]}" --image-shape "3,32,32")
  [[ $name == coco-* ]] && data=("${scenes[@]}" --image-shape "3,64,64")
  run train --config "$file" "${data[@]}" --global-batch 16 --logical-shards 2 --num-epochs 0
  check "$name is taken" exits 0
  check "$name: no option of it is unknown or without use" says_not "warning"
  grep -q '^random-resized-crop = 1' "$file" || continue
  run train --config "$file" --show-config
  check "$name: no window shows a padding" answers_line '^ *pad-size = 0( |$)'
done
run train --config "$files/cifar10-resnet20.toml" "${small[@]}" --num-epochs 2 --dtype float32 --model-prefix m/r20
check "the recipe of CIFAR-10 trains" exits 0
check "it takes 128 images a step in 4 shards" says "Each step takes 128 images in 4 logical shards"
check "it keeps what it chose" grep -q '^lr-schedule = "one-cycle"' m/r20-run/train.toml
run train --config "$files/photos.toml" "${small[@]}" --image-shape 3,32,32 --num-epochs 1 --num-examples 64 --model-prefix m/p
check "that of photographs trains" exits 0
check "its warm-up is fitted to a short run" says "would fill the run: it takes 0.5"
run train --config "$files/photos.toml" "${small[@]}" --image-shape 3,32,32 --num-epochs 0 --batch-size 16 --accumulate 2
check "--batch-size beside a file comes before its --global-batch" says "Each step takes 32 images in 2 logical shards"
cp "$files/photos.toml" wrong.toml
echo 'random-erazing = 1' >>wrong.toml
run train --config wrong.toml "${small[@]}" --num-epochs 0
check "a file with a name that does not exist is refused" exits 2
check "with the name that was meant" says "random-erasing"
finish
