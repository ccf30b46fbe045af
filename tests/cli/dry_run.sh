#!/usr/bin/env bash
# What a run will need, without running it.
set -uo pipefail
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
shapes 400
training=("${small_training[@]}" --num-epochs 7 --tensorboard board --model-prefix m/p)

run train "${training[@]}" --dry-run
check "a dry run ends well" exits 0
check "it shows the run" says_line '^The run trains on the 400 images of d/shapes_train.rec and validates on the 100 images'
check "the speed and the memory of a step" answers_line '^A step takes .*, [0-9]+ images/sec, and the process .* of memory$'
check "the time of an epoch and of the run" answers_line '^An epoch takes .*, its validation .*; the run takes about '
check "the room for checkpoints" answers_line '^Its checkpoints take .* of .* on the disk$'
check "and that nothing was saved" answers_line '^Nothing was saved'
check "neither a checkpoint nor its folder is there" missing m
check "and no event file" missing board

run train "${training[@]}" --dry-run --json
check "--json gives numbers" json out 'd["schema"] == "dtrain.dry-run/1" and d["epochs"] == 7 and d["steps_per_epoch"] == 8 and d["training_images"] == 400 and 0 < d["epoch_seconds"] < d["run_seconds"] and d["checkpoint_bytes"] > 7 * 4 * d["parameters"]'
run train "${training[@]}" --dry-run --keep-checkpoints 2 --json
check "of the checkpoints that stay" json out 'd["checkpoints"] == 2'
run train "${training[@]}" --dry-run --keep-checkpoints best,2 --json
check "the best one stays beside them" json out 'd["checkpoints"] == 3'
run train "${training[@]}" --dry-run --keep-checkpoints best,0 --json
check "best beside all is all" json out 'd["checkpoints"] == 7'
run train "${training[@]}" --dry-run --checkpoint-format mxnet --json
check "MXNet's files take room, too" json out 'd["checkpoint_bytes"] >= 7 * 12 * d["parameters"]'
run train "${training[@]}" --dry-run --num-epochs 2 --checkpoint-every 1 --json
check "so do the checkpoints within epochs" json out 'd["checkpoints"] == 16 and d["checkpoint_bytes"] > 16 * 4 * d["parameters"]'
run train "${training[@]}" --num-epochs 0 --lr-schedule one-cycle --dry-run
check "a run without epochs is measured" exits 0
run train "${training[@]}" --network resnet --num-layers 8 --dry-run --progressive-resizing --json
check "growing images are measured where they are whole, too" json out 'd["step_seconds"] > 0 and d["whole_step_seconds"] > 0 and d["step_seconds"] != d["whole_step_seconds"] and abs(d["epoch_seconds"] - 8 * d["step_seconds"]) < 1e-6'
run train "${training[@]}" --num-epochs 1000000000 --dry-run
check "too little room is an error" exits 1
check "with what to do" says 'hint: --keep-checkpoints N keeps the newest N'
run train "${training[@]}" --data-train d/nothing.rec --dry-run
check "what a run refuses, a dry run refuses" exits 1
run train "${training[@]}" --dry-run -n 2 --launcher local
check "a job has no dry run" exits 2
check "the hint names all that makes several workers" says "leave -n, -H and --elastic out, and name at most one GPU with --gpus"
echo 127.0.0.1 >workers
for question in --dry-run "--test-io 1"; do
  # shellcheck disable=SC2086  # two words
  DEEPLEARNING_WORKERS_PATH=workers DEEPLEARNING_WORKERS_COUNT=2 DEEPLEARNING_WORKER_GPU_COUNT=0 \
    run train "${training[@]}" $question
  check "the variables of a node make no job of $question" exits 0
  check "which says so" says "for which DEEPLEARNING_WORKERS_COUNT, DEEPLEARNING_WORKERS_PATH have no effect"
  # shellcheck disable=SC2086
  DEEPLEARNING_WORKERS_PATH=workers run train "${training[@]}" $question -n 2
  check "hosts that the user asks for do, with $question" exits 2
done
run train "${training[@]}" --dry-run --test-io 1
check "one question at a time" exits 2

run train "${training[@]}" --batch-size 4000 --dry-run --json
check "a batch that is larger than the set is the set" json out 'd["steps_per_epoch"] == 1 and abs(d["epoch_seconds"] - d["step_seconds"]) < 1e-9'

# What the run could not write, without anything left behind.
small=("${small_training[@]}" --num-epochs 1 --dry-run)
run train "${small[@]}" --model-prefix "m/$(printf 'x%.0s' $(seq 250))"
check "a name that is too long is refused" exits 2
check "as by the run" says "choose a shorter name"
check "its folder is not made" missing m
run train "${small[@]}" --model-prefix /proc/x/y
check "a folder that cannot be made is refused" exits 1
check "for what it is" says "/proc/x: cannot make the folder"
mkdir -p held/j-run
flock held/.j.lock "$DTRAIN" train "${small[@]}" --model-prefix held/j >out 2>err </dev/null
code=$?
check "so is a prefix under which another run writes" says "another run is writing its checkpoints there"
rm held/.j.lock
flock held/j-run/coordinator.lock "$DTRAIN" train "${small[@]}" --model-prefix held/j >out 2>err </dev/null
code=$?
check "and a folder of records that another one holds" says "held/j-run: a job runs there already"
rm held/j-run/coordinator.lock
run train "${small[@]}" --model-prefix held/j
check "free ones are taken for a look" exits 0
check "and are as they were" same "$(find held | sort | tr '\n' ' ')" "held held/j-run "
stranger=(setpriv --reuid=65534 --regid=65534 --clear-groups)
if [ "$(id -u)" = 0 ] && "${stranger[@]}" test -x "$DTRAIN" 2>/dev/null; then
  chmod 755 "$scratch" "$scratch/work" d && mkdir -m 755 closed && chmod 644 d/*
  HOME=$scratch/none "${stranger[@]}" "$DTRAIN" train "${small[@]}" --model-prefix closed/s >out 2>err </dev/null
  code=$?
  check "a folder that takes no files is refused" exits 1
  check "with what to do" says "choose a folder that this user can write to: --model-prefix"
else
  skip "a folder that takes no files" "it needs another user"
fi

run train "${training[@]}" --tensorboard "" --num-epochs 2
run train "${training[@]}" --tensorboard "" --resume --dry-run --json
check "a resumed run counts the epochs that are left" json out 'd["epochs"] == 5'
finish
