#!/usr/bin/env bash
# Replicas that take several steps before they exchange what they learned.
set -uo pipefail
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
shapes 400
state() { "$DTRAIN" inspect "$1" --json | grep -oE '"state_sha256":"[0-9a-f]+"'; }
differs() { [ "$1" != "$2" ]; }
local_training=("${small_training[@]}" --logical-shards 2 --seed 1 --local-steps 3)

run train "${local_training[@]}" --num-epochs 2 --model-prefix m/one --threads 1
check "replicas train in one process" says "2 replicas take 3 steps between two exchanges; outer optimizer nesterov, rate 0.7, momentum 0.9"
check "log lines count the batches, not the exchanges" says "Batch [6]"
run train "${local_training[@]}" --num-epochs 2 --model-prefix m/threads --threads 4
check "the number of threads changes no bit" same "$(state m/one)" "$(state m/threads)"
run train "${local_training[@]}" --global-batch 50 --num-epochs 2 --model-prefix m/two -n 2 --launcher local --job-dir job
check "nor does that of workers" same "$(state m/one)" "$(state m/two)"
run train "${local_training[@]}" --num-epochs 1 --model-prefix m/resumed
run train "${small_training[@]}" --num-epochs 2 --model-prefix m/resumed --resume
check "a resumed run goes on with its replicas" same "$(state m/one)" "$(state m/resumed)"
for outer in sgd average; do
  run train "${local_training[@]}" --num-epochs 2 --model-prefix "m/$outer" --outer-optimizer "$outer"
  check "--outer-optimizer $outer trains" exits 0
  check "with weights of its own" differs "$(state m/one)" "$(state "m/$outer")"
done
run inspect m/average --json
check "the checkpoint says how it was trained" answers '"outer_optimizer":"average"'
run train "${small_training[@]}" --num-epochs 1 --local-steps 5 -n 2 --launcher local --job-dir job2 --model-prefix m/default
check "there is a replica for each worker" says "2 replicas take 5 steps between two exchanges"
run train "${local_training[@]}" --num-epochs 2 --model-prefix m/one --mixup 0.5 --force --optimizer adam --gradient-dtype bfloat16
check "other options of a training go with it" exits 0

run train "${small_training[@]}" --num-epochs 1 --local-steps 0
check "H is at least 1" exits 2
run train "${local_training[@]}" --num-epochs 1 --ema 0.9
check "--ema is refused" says "--local-steps 3 with --ema: "
run train "${local_training[@]}" --num-epochs 1 --accumulate 2
check "--accumulate is refused" says "--local-steps 3 with --accumulate: "
run train "${small_training[@]}" --num-epochs 1 --local-steps 3 -n 2 --launcher local --elastic --elastic-batch per-worker --job-dir job3
check "a batch that follows the workers is refused" says "--local-steps 3 with --elastic-batch per-worker: the number of replicas is fixed"
run train "${small_training[@]}" --num-epochs 1 --outer-lr 0.5
check "an outer optimizer needs local steps" says "--outer-lr: without --local-steps there is no outer optimizer"
run train "${local_training[@]}" --num-epochs 1 --outer-optimizer average --outer-lr 0.5
check "average has no rate" says "--outer-lr: --outer-optimizer average does not use it"
run train "${small_training[@]}" --num-epochs 1 --local-steps 3 -n 4 --logical-shards 2 --launcher local --job-dir job4
check "more workers than replicas are refused" says "4 workers for 2 logical shards"
run train "${local_training[@]}" --num-epochs 3 --model-prefix m/resumed --resume --local-steps 4
check "a resumed run keeps its H" says "--local-steps 4: the checkpoint was trained with 3"
finish
