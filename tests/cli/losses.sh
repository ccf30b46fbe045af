#!/usr/bin/env bash
# Losses: binary cross-entropy, focal losses and weights of classes.
set -uo pipefail
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
shapes 200
loss_of() { "$DTRAIN" inspect "$1" --graph | tr -d ' \n' | grep -oE '"layer":"softmax_loss".*'; }
hash_of() { "$DTRAIN" inspect "$1" --json | grep -oE '"weights_sha256":"[0-9a-f]+"'; }

for name in bce focal weights; do
  case $name in
    bce) options=(--bce-loss --bce-target-thresh 0.2 --mixup 0.8 --cutmix 1) ;;
    focal) options=(--focal-gamma 2 --label-smoothing 0.1) ;;
    weights) options=(--class-weights balanced) ;;
  esac
  options+=(--logical-shards 4)
  run train "${small_training[@]}" "${options[@]}" --num-epochs 2 --model-prefix m/$name --seed 1 --threads 1
  check "a run with $name succeeds" exits 0
  check "$name: training sees a finite loss" bash -c "grep -qE 'Train-accuracy=0\.[0-9]+' err"
  run train "${small_training[@]}" "${options[@]}" --num-epochs 1 --model-prefix m/two-$name --seed 1 --threads 2 --loss ce
  check "$name: the training's loss is no cross-entropy" says_line '^Epoch\[0\] Train-loss=[0-9.]+$'
  check "$name: that of the validation is" says_line '^Epoch\[0\] Validation-cross-entropy=[0-9.]+$'
  run train "${small_training[@]}" "${options[@]}" --num-epochs 2 --model-prefix m/two-$name --threads 2 --resume
  check "$name: a resumed run ends in the same weights" same "$(hash_of m/two-$name)" "$(hash_of m/$name)"
done
check "the weights of classes are said" bash -c "'$DTRAIN' train ${small_training[*]} --class-weights balanced --num-epochs 0 2>&1 | grep -q 'The loss weighs classes, from'"
check "the checkpoint holds the loss" bash -c "grep -q '\"kind\":\"sigmoid\"' <<<'$(loss_of m/bce)'"
run train "${small_training[@]}" --num-epochs 3 --model-prefix m/bce --resume
check "a resumed run keeps its loss" bash -c "grep -q '\"kind\":\"sigmoid\"' <<<'$(loss_of m/bce)'"
run train "${small_training[@]}" --num-epochs 4 --model-prefix m/bce --resume --focal-gamma 1
check "another loss is refused where a run is resumed" exits 2
check "it says which option" says "--focal-gamma: the checkpoint was trained with another loss"
run train "${small_training[@]}" --num-epochs 4 --model-prefix m/bce --load-epoch 3 --force --focal-gamma 1
check "a new run may take another" exits 0
run eval m/bce --data-val d/shapes_val.rec
check "eval knows the network" exits 0
run export m/bce --to onnx --out bce.onnx
check "so does export" exits 0

printf 'circle,2\n1,0.5\n' >weights.csv
run train "${small_training[@]}" --num-epochs 1 --class-weights weights.csv
check "a file names classes by name or label" says "The loss weighs classes, from 0.5 for class 1"
printf 'cirle,2\n' >weights.csv
run train "${small_training[@]}" --num-epochs 1 --class-weights weights.csv
check "a class that does not exist is refused" exits 1
check "with its line" says "weights.csv:1: 'cirle' is no class"
printf 'circle,2\n1,1\n\ncircle,3\n' >weights.csv
run train "${small_training[@]}" --num-epochs 1 --class-weights weights.csv
check "a second weight of a class is refused" exits 1
check "with both lines" says_line "weights\.csv:4: class .*circle.* has a weight already, on line 1"
printf 'circle,-2\n' >weights.csv
run train "${small_training[@]}" --num-epochs 1 --class-weights weights.csv
check "so is a negative weight" says "weights.csv:1: is not CLASS,WEIGHT"
printf 'circle,2\n1,1e300\n' >weights.csv
run train "${small_training[@]}" --num-epochs 1 --class-weights weights.csv
check "a weight that a float cannot hold is refused" exits 1
check "with its line, too" says "weights.csv:2: is not CLASS,WEIGHT"
for label in 0 1 2 3 4 5 6 7 8 9; do echo "$label,0"; done >weights.csv
run train "${small_training[@]}" --num-epochs 1 --num-classes 10 --class-weights weights.csv
check "weights that are all 0 are refused" says "weights.csv: every class weighs 0"
check "as a failure" exits 1
run train "${small_training[@]}" --num-epochs 1 --class-weights none.csv
check "a file that is not there is named" says "none.csv"
check "and refused" bash -c "! [ $code -eq 0 ]"
run train "${small_training[@]}" --num-epochs 1 --bce-target-thresh 0.2
check "a threshold needs --bce-loss" says "--bce-target-thresh: softmax cross-entropy takes targets as they are"
for targets in "0.94 0.1 0" "0.91 0.1 0" "0.01 0.1 1" "0.009 0.1 1"; do
  read -r threshold smoothing whole <<<"$targets"
  run train "${small_training[@]}" --num-epochs 0 --num-classes 10 --bce-loss --bce-target-thresh "$threshold" --label-smoothing "$smoothing"
  check "a threshold of $threshold beside a smoothing of $smoothing is refused" exits 2
  check "it says why" says "--bce-target-thresh $threshold: with 10 classes and --label-smoothing $smoothing, targets are 0.01 to 0.91, and all of them would become $whole"
  check "and what works" says "give a share between 0.01 and 0.91; or 1"
done
run train "${small_training[@]}" --num-epochs 0 --num-classes 10 --bce-loss --bce-target-thresh 0.2 --label-smoothing 0.1
check "one between the targets is taken" exits 0
check "it says that nothing is smoothed" says "warning: --label-smoothing has no effect beside --bce-target-thresh"
run train "${small_training[@]}" --num-epochs 0 --num-classes 10 --bce-loss --bce-target-thresh 0.2 --label-smoothing 0.1 --mixup 0.2
check "but where images are mixed" says_not "warning: --label-smoothing"
run train "${small_training[@]}" --num-epochs 1 --num-classes 10 --bce-loss --checkpoint-format mxnet --model-prefix m/sigmoid
check "MXNet's files know no sigmoid, which is said" says "warning: MXNet's symbol ends in a softmax"
run train "${small_training[@]}" --num-epochs 1 --focal-gamma -1
check "a focal gamma below 0 is refused" exits 2
finish
