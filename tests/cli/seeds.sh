#!/usr/bin/env bash
# The lines of the lab that dtrain succeeds, on CIFAR-10.
set -uo pipefail
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

if [ -z "${DTRAIN_TEST_DATA:-}" ]; then
  skip "the lab's lines on CIFAR-10" "DTRAIN_TEST_DATA is not set"
  finish
  exit
fi
run data prepare cifar10 --from "$DTRAIN_TEST_DATA/cifar-10-batches-bin" --out data
check "CIFAR-10 is prepared" answers "data/cifar10_train.rec  50000 records"
run train --network resnet --num-layers 8 --kv-store dist_device_sync --num-epochs 1 --num-examples 6400 --model-prefix m/r8 --seed 1
check "the lab's line trains" exits 0
check "the lab's line logs as the lab shows" says_line $'^Epoch\\[0\\] Batch \\[40\\]\tSpeed: [0-9.]+ samples/sec\taccuracy=0\\.[0-9]{6}$'
check "the lab's line uses the data of the recipe" says_line '^Epoch\[0\] Validation-accuracy=0\.[0-9]{6}$'
run eval m/r8 --load-epoch 1 --data-val data/cifar10_val.rec --json
check "eval counts every test image" json out 'd["samples"] == 10000 and d["accuracy"] > 0.15'

finish
