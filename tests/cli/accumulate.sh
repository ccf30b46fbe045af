#!/usr/bin/env bash
# Gradients of several batches before each update.
set -uo pipefail
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
shapes 200
state() { "$DTRAIN" inspect "$1" --json | grep -oE '"state_sha256":"[0-9a-f]+"'; }

run train "${small_training[@]}" --batch-size 25 --accumulate 4 --num-epochs 2 --model-prefix m/acc --seed 1 --threads 2
check "gradients of several batches are accumulated" says "Each step takes 100 images in 4 logical shards"
run train "${small_training[@]}" --batch-size 100 --logical-shards 4 --num-epochs 2 --model-prefix m/whole --seed 1 --threads 1
check "this is the same step in as many shards" same "$(state m/acc)" "$(state m/whole)"
run train "${small_training[@]}" --batch-size 25 --accumulate 4 --num-epochs 3 --model-prefix m/acc --resume
check "the same command resumes" exits 0
run train "${small_training[@]}" --batch-size 100 --logical-shards 4 --num-epochs 3 --model-prefix m/whole --resume
check "and ends in the same state again" same "$(state m/acc)" "$(state m/whole)"
run train "${small_training[@]}" --batch-size 16 --accumulate 4 --num-epochs 3 --model-prefix m/acc --resume
check "another step is refused on a resume" exits 2
check "in the words of the command" says "--batch-size 16 and --accumulate 4: the checkpoint was trained with 100 samples a step"
run train "${small_training[@]}" --num-epochs 1 --model-prefix m/single
run train --network mlp --lr 0.01 --data-train d/shapes_train.rec --num-epochs 2 --accumulate 4 --model-prefix m/single --resume
check "a step of one shard does not accumulate later" exits 2
check "which says why" says "--accumulate 4: the checkpoint was trained with 1 logical shard a step"
run train "${small_training[@]}" --global-batch 100 --accumulate 4 --num-epochs 2 --model-prefix m/global --seed 1
check "a given --global-batch stays whole" says "Each step takes 100 images in 4 logical shards"
run train "${small_training[@]}" --batch-size 25 --accumulate 2 --num-epochs 2 --model-prefix m/two --seed 1 -n 2 --launcher local --job-dir job
check "two workers accumulate two batches each" exits 0
check "which is the step of four" says "Each step takes 100 images in 4 logical shards"
run train "${small_training[@]}" --global-batch 100 --logical-shards 4 --num-epochs 2 --model-prefix m/one --seed 1
check "and the same bits" same "$(state m/two)" "$(state m/one)"

run train "${small_training[@]}" --num-epochs 1 --accumulate 3
check "--accumulate takes powers of two" says "--accumulate: must be a power of two, not 3"
run train "${small_training[@]}" --num-epochs 1 --accumulate 4 --logical-shards 2
check "--accumulate needs as many shards" exits 2
run train "${small_training[@]}" --num-epochs 1 --accumulate 64
check "every batch has samples" exits 0
run train "${small_training[@]}" --num-epochs 1 --accumulate 2 -n 2 --launcher local --elastic --elastic-batch per-worker --job-dir job2
check "a batch for each worker is one shard" says "--accumulate and --elastic-batch per-worker"
finish
