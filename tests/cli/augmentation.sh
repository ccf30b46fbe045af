#!/usr/bin/env bash
# Augmentation of colours, AutoAugment and random erasing, as `data show` draws it and `train` uses it.
set -uo pipefail
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
shapes 200
state() { "$DTRAIN" inspect "$1" --json | grep -oE '"state_sha256":"[0-9a-f]+"'; }

run data show d/shapes_train.rec --out plain.png --count 20
for name in "brightness 0.4" "contrast 0.4" "saturation 0.4" "pca-noise 0.1" "random-erasing 0.5" "auto-augment imagenet"; do
  read -ra option <<<"--$name"
  run data show d/shapes_train.rec --out changed.png --count 20 "${option[@]}"
  check "--$name changes the images" bash -c '! cmp -s plain.png changed.png'
done
for mode in rand const; do
  run data show d/shapes_train.rec --out other.png --count 20 --random-erasing 0.5 --random-erasing-mode $mode --rgb-std 58
  run data show d/shapes_train.rec --out changed.png --count 20 --random-erasing 0.5 --rgb-std 58
  check "--random-erasing-mode $mode is another" bash -c '! cmp -s other.png changed.png'
done

augmented=(--brightness 0.4 --contrast 0.4 --saturation 0.4 --pca-noise 0.1 --random-erasing 0.5 --auto-augment imagenet)
run train "${small_training[@]}" "${augmented[@]}" --num-epochs 1 --model-prefix m/one --seed 1 --data-nthreads 1
check "a run with all of them succeeds" exits 0
run train "${small_training[@]}" "${augmented[@]}" --num-epochs 1 --model-prefix m/three --seed 1 --data-nthreads 3
check "it is the same for any number of threads" same "$(state m/one)" "$(state m/three)"

run data prepare shapes --out j --train-count 200 --val-count 20 --encoding jpeg
cut=(--network mlp --lr 0.01 --rgb-std 58 --batch-size 50 --data-train j/shapes_train.rec --image-shape "3,8,8" --pad-size 0
  --random-resized-crop 1 --num-epochs 2 --seed 1)
run train "${cut[@]}" --model-prefix m/all --cache-decoded 1 --data-nthreads 1 -v
check "--cache-decoded says its memory" says_line '^--cache-decoded 1: up to 1.0 GiB of decoded images in the memory of each worker$'
run train "${cut[@]}" --model-prefix m/few --cache-decoded 0.0001 --data-nthreads 3
check "how many images are kept does not show" same "$(state m/few)" "$(state m/all)"
run train "${cut[@]}" --model-prefix m/all --cache-decoded 1 --num-epochs 3 --resume
run train "${cut[@]}" --model-prefix m/whole --cache-decoded 1 --num-epochs 3
check "nor does it after a resume, which begins with none" same "$(state m/all)" "$(state m/whole)"
run train "${small_training[@]}" --num-epochs 1 --brightness 2
check "--brightness goes up to 1" exits 2
run train "${small_training[@]}" --num-epochs 1 --auto-augment imagent
check "--auto-augment names what there is" says "imagenet"
run train "${small_training[@]}" --num-epochs 1 --rand-augment-ops 3 --mom 0.5 --optimizer adamw
check "options without effect stop no run" exits 0
check "what they need is named" says "--rand-augment-ops has no effect without --auto-augment rand"
check "for each of them" says "--mom has no effect without --optimizer sgd, nag, muon, lars or signum"
finish
