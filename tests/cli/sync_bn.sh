#!/usr/bin/env bash
# Batch norms that take the statistics of a whole step.
set -uo pipefail
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
shapes 400
state() { "$DTRAIN" inspect "$1" --json | grep -oE '"state_sha256":"[0-9a-f]+"'; }
differs() { [ "$1" != "$2" ]; }
loss() { grep -oE 'Epoch\[1\] Train-cross-entropy=[0-9.]+' err | tail -1 | grep -oE '[0-9]+\.[0-9]+'; }
near() { awk -v a="$1" -v b="$2" 'BEGIN { exit !(a != "" && b != "" && (a - b) ^ 2 < 0.02 ^ 2) }'; }
layers=(--network resnet --num-layers 8 --width 8)
common=(--lr 0.01 --rgb-std 58 --batch-size 50 --disp-batches 2 --loss ce --seed 1
  --data-train d/shapes_train.rec --data-val d/shapes_val.rec)
plain=("${layers[@]}" "${common[@]}" --num-epochs 2)
whole=("${plain[@]}" --logical-shards 8 --sync-bn)

run train "${whole[@]}" --model-prefix m/one --threads 1
check "all shards of a step meet at each batch norm" says "batch norms take the statistics of a whole step: 8 shards meet at each"
with_meetings=$(loss)
run train "${whole[@]}" --model-prefix m/threads --threads 3
check "the number of threads changes no bit" same "$(state m/one)" "$(state m/threads)"
for workers in 2 3; do
  run train "${whole[@]}" --global-batch 50 --model-prefix "m/$workers" -n "$workers" --launcher local --job-dir "job$workers"
  check "$workers workers change no bit" same "$(state m/one)" "$(state "m/$workers")"
done
run train "${plain[@]}" --logical-shards 1 --model-prefix m/shard
check "one shard of all images learns the same" near "$with_meetings" "$(loss)"
run train "${plain[@]}" --logical-shards 8 --model-prefix m/apart
check "norms of each shard learn something else" differs "$(state m/one)" "$(state m/apart)"

run train "${layers[@]}" "${common[@]}" --logical-shards 8 --sync-bn --num-epochs 1 --model-prefix m/resumed
run train "${plain[@]}" --model-prefix m/resumed --resume
check "a resumed run has what its checkpoint had" same "$(state m/one)" "$(state m/resumed)"
run train "${layers[@]}" "${common[@]}" --logical-shards 8 --num-epochs 1 --model-prefix m/without
run train "${whole[@]}" --model-prefix m/without --resume
check "which it cannot begin then" exits 2
check "and says so" says "--sync-bn: the checkpoint was trained without it"
run eval m/one --data-val d/shapes_val.rec
check "eval takes the checkpoint" exits 0
run export m/one --to onnx --out one.onnx
check "so does the export to ONNX" exits 0

run train "${whole[@]}" --local-steps 2
check "replicas are refused" says "--sync-bn with --local-steps: "
run train "${plain[@]}" --sync-bn --kv-store dist_async -n 2 -s 1
check "servers are refused" says "--sync-bn with --kv-store dist_async or servers: "
run train --network mlp "${common[@]}" --num-epochs 1 --sync-bn
check "a network without batch norms is refused" says "--sync-bn: mlp has no batch norm"
finish
