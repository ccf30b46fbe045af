#!/usr/bin/env bash
# Recipes of training: clipping, average of the weights, mixed images, early stop, the best checkpoint, other rules.
set -uo pipefail
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
shapes 200
recipe=(--clip-norm 1 --ema 0.9 --mixup 0.8 --cutmix 1 --logical-shards 4)
state() { "$DTRAIN" inspect "$1" --json | grep -oE '"state_sha256":"[0-9a-f]+"'; }

run train "${small_training[@]}" "${recipe[@]}" --num-epochs 2 --model-prefix m/s --seed 1 --threads 1
check "a run with every recipe succeeds" exits 0
check "it says that evaluations use the average" says "Evaluations use the average of the weights over the steps, with decay 0.9"
accuracy=$(grep -oE 'Validation-accuracy=[0-9.]+' err | tail -n 1 | cut -d= -f2)
run eval m/s --data-val d/shapes_val.rec
check "eval sees what training saw" answers "accuracy=$accuracy"
loss=$(grep '^loss=' out)
run eval m/s --data-val d/shapes_val.rec --last-weights
check "eval --last-weights sees other weights" bash -c "! grep -qxF '$loss' out"
run export m/s --to safetensors --out average.safetensors
run export m/s --to safetensors --out last.safetensors --last-weights
check "so does export" bash -c '! cmp -s average.safetensors last.safetensors'

run train "${small_training[@]}" "${recipe[@]}" --num-epochs 1 --model-prefix m/two --seed 1 --threads 2
run train "${small_training[@]}" --clip-norm 1 --mixup 0.8 --cutmix 1 --num-epochs 2 --model-prefix m/two --threads 2 --resume
check "a resumed run keeps the average without --ema" says "with decay 0.9"
check "it ends in the state of one that was not stopped" same "$(state m/two)" "$(state m/s)"
run train "${small_training[@]}" --num-epochs 3 --model-prefix m/two --resume --ema 0
check "--ema 0 drops the average" says "The run goes on without the checkpoint's average of weights"

run train "${small_training[@]}" --num-epochs 20 --lr 1e-9 --model-prefix m/early --early-stop 2
check "a run that gets no better ends early" answers_line '^3 epochs trained; '
check "it says why" says "early stop: no validation accuracy of the last 2 epochs is above"
check "as what was asked for, and no warning" says_not "warning: early stop"
check "every epoch was saved" same "$(cd m && echo early-*.json)" "early-0001.json early-0002.json early-0003.json"
check "its last line names the best checkpoint" answers_line '; best: m/early-0001$'
run train "${small_training[@]}" --num-epochs 20 --lr 1e-9 --model-prefix m/early --early-stop 2 --resume
check "to resume it trains nothing and says why" says "Nothing is left to train: the run stopped early after 3 epochs"
check "with what to give" says "than --early-stop 2, or none, trains on; best: m/early-0001"
run train "${small_training[@]}" --num-epochs 4 --lr 1e-9 --model-prefix m/early --early-stop 2 --load-epoch best --force
check "--load-epoch best begins with the best" says 'Loaded model "m/early-0001"'
check "it knows no best of the run before" answers_line '^4 epochs trained; '
run train "${small_training[@]}" --num-epochs 4 --lr 1e-9 --model-prefix m/best --keep-checkpoints best,1
check "the best checkpoint stays beside the newest" same "$(cd m && echo best-*.json)" "best-0001.json best-0004.json"
check "the last line names it" answers_line '; best: m/best-0001$'
for checkpoint in m/best m/best-0004.json; do
  run inspect $checkpoint --json
  check "inspect of $checkpoint names the best" json out 'd["best"] == "m/best-0001" and d["epoch"] == 4 and d["best_accuracy"] >= 0'
done
run inspect m/best --load-epoch best --json
check "inspect --load-epoch best takes the best" json out 'd["epoch"] == 1'
run eval m/best --load-epoch best --data-val d/shapes_val.rec
check "eval --load-epoch best takes it too" exits 0
run train "${small_training[@]}" --num-epochs 3 --lr 1e-9 --model-prefix m/gone --early-stop 9 --keep-checkpoints 1
run train "${small_training[@]}" --num-epochs 4 --lr 1e-9 --model-prefix m/gone --early-stop 9 --keep-checkpoints best,1 --resume
check "a best that an earlier run did not keep is not promised" answers_line '; best: m/gone-0001, which was not kept$'
run train "${small_training[@]}" --num-epochs 3 --lr 1e-9 --model-prefix m/late
run eval m/late --load-epoch best --data-val d/shapes_val.rec --json
check "a run that does not choose knows its best epoch, too" json out 'd["epoch"] == 1'
run train "${small_training[@]}" --num-epochs 5 --lr 1e-9 --model-prefix m/late --keep-checkpoints best,1 --resume
check "the one that goes on keeps it" same "$(cd m && echo late-*.json)" "late-0001.json late-0005.json"
check "and names it" answers_line '; best: m/late-0001$'
run train "${small_training[@]}" --num-epochs 20 --lr 1e-9 --model-prefix m/late --early-stop 4 --resume
check "an early stop counts the epochs before" says "the run stopped early after 5 epochs, 4 of them without a better validation"
run train "${small_training[@]}" --data-val "" --num-epochs 1 --model-prefix m/any
run eval m/any --load-epoch best --data-val d/shapes_val.rec
check "a run without validation has no best" exits 1
check "it says how to have one" says "a run with --data-val finds the best one"
run train "${small_training[@]}" --num-epochs 3 --model-prefix m/any --keep-checkpoints best,1 --resume
check "one that goes on with validation says that it does not know the epochs before" says "the checkpoint does not say which epoch was the best one; the best epoch is looked for from epoch 1 on, and the checkpoints of the epochs before stay"
check "they stay" exists m/any-0001.json
run eval m/any --load-epoch worst --data-val d/shapes_val.rec
check "--load-epoch takes no other word" exits 2
run train "${small_training[@]}" --num-epochs 1 --keep-checkpoints best,best
check "--keep-checkpoints refuses what it does not know" exits 2
check "it says what it takes" says "must be a number from 0 on, best, or both as in best,3"
run train "${small_training[@]}" --data-val "" --num-epochs 1 --early-stop 1
check "--early-stop needs validation data" exits 2
run train "${small_training[@]}" --num-epochs 1 --mixup 1 --batch-size 4 --logical-shards 4
check "a shard of one image has none to be mixed with" says "each shard has one image"
check "which is refused" exits 2
run train "${small_training[@]}" --num-epochs 1 --ema 1
check "--ema 1 would never move" exits 2

for optimizer in rmsprop adagrad lamb lars adamax nadam adadelta signum ftml; do
  run train "${small_training[@]}" --num-epochs 1 --optimizer $optimizer --lr 0.01
  check "--optimizer $optimizer trains" exits 0
done
run train "${small_training[@]}" --num-epochs 2 --lr-schedule poly --lr-power 1 --lr-final 0.1
check "--lr-schedule poly trains" exits 0
run train "${small_training[@]}" --num-epochs 2 --lr-schedule cosine --lr-cycles 2
check "cosine restarts" exits 0

schedule() { run train "${small_training[@]}" --num-epochs 2 --model-prefix m/never "$@"; }
for kind in cosine poly; do
  schedule --lr-schedule $kind --warmup-epochs 2
  check "a warm-up that $kind never leaves is a usage error" exits 2
  check "which names both numbers" says "--warmup-epochs: the warm-up of $kind must end before the run, which has 2 epochs"
done
schedule --lr-schedule one-cycle --warmup-epochs 1
check "one-cycle takes no warm-up" says "--warmup-epochs: one-cycle rises by itself and takes no warm-up"
schedule --lr-schedule cosine --lr-cycles 2.5
check "cosine has whole cycles" says "--lr-cycles: must be a whole number, not 2.5"
check "none of these runs left a checkpoint" missing m/never-0002.json
schedule --lr-schedule cosine --warmup-epochs 1
check "a warm-up that ends before the run is taken" exits 0

run train "${small_training[@]}" --num-epochs 1 --model-prefix m/rule --seed 1
run train "${small_training[@]}" --num-epochs 2 --model-prefix m/rule --load-epoch 1 --optimizer adamw --lr 0.001
check "another optimizer begins at zero" says "The checkpoint has no state of this optimizer: it begins at zero"
run inspect m/rule --json
check "and counts its updates from there" json out 'd["updates"] == 4'
finish
