#!/usr/bin/env bash
# Which images an epoch takes: the balanced sampler and repeated augmentation.
set -uo pipefail
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
shapes 200
state() { "$DTRAIN" inspect "$1" --json | grep -oE '"state_sha256":"[0-9a-f]+"'; }

for sampling in "--balanced-sampler" "--repeated-augment 3 --pad-size 2 --max-random-s 30"; do
  read -ra options <<<"$sampling --logical-shards 4"
  rm -rf m
  run train "${small_training[@]}" "${options[@]}" --num-epochs 2 --model-prefix m/once --seed 1 --threads 1 --data-nthreads 1
  check "$sampling trains" exits 0
  run train "${small_training[@]}" "${options[@]}" --num-epochs 1 --model-prefix m/again --seed 1 --threads 2
  run train "${small_training[@]}" "${options[@]}" --num-epochs 2 --model-prefix m/again --resume --threads 2 --data-nthreads 3
  check "$sampling ends in the same state where it is stopped between" same "$(state m/again)" "$(state m/once)"
done
run train "${small_training[@]}" --num-epochs 2 --model-prefix m/plain --seed 1 --logical-shards 4
check "another order of the images gives other weights" bash -c "[ '$(state m/plain)' != '$(state m/once)' ]"

run train "${small_training[@]}" --balanced-sampler --num-epochs 2 --model-prefix m/alone --seed 1 --global-batch 50 --logical-shards 4
run train "${small_training[@]}" --balanced-sampler --num-epochs 2 --model-prefix m/job --seed 1 --global-batch 50 --logical-shards 4 \
  -n 2 --launcher local --job-dir job --sample-ledger
check "workers share a balanced epoch" exits 0
check "their number changes no weight" same "$(state m/job)" "$(state m/alone)"
ids() { cat job/ledger/*.jsonl | grep -oE '"ids":\[[0-9,]*\]' | tr -d '"ids:[]' | tr ',' '\n'; }
check "each step's samples are in the ledger" same "$(ids | grep -c .)" 400

run train "${small_training[@]}" --num-epochs 1 --balanced-sampler --shuffle-block 8
check "--balanced-sampler has no blocks" says "--balanced-sampler: cannot be combined with shuffled blocks"
run train "${small_training[@]}" --num-epochs 1 --repeated-augment 0
check "--repeated-augment counts from 1" exits 2
finish
