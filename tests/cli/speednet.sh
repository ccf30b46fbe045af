#!/usr/bin/env bash
set -uo pipefail
# The recipe speednet as it is, in a narrow network on few pictures.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
shapes 300
hash() { "$DTRAIN" inspect "$1" --json | /usr/bin/python3 -c 'import json,sys; print(json.load(sys.stdin)["weights_sha256"])'; }
recipe=(--recipe speednet --width 4 --data-train d/shapes_train.rec --data-val d/shapes_val.rec --image-shape "3,28,28"
  --global-batch 60 --logical-shards 4 --seed 3)

run train "${recipe[@]}" --num-epochs 2 --model-prefix m/whole
check "the recipe trains" exits 0
check "its checkpoint is read" bash -c "[ -n '$(hash m/whole)' ]"
accuracy=$(sed -n 's/^Epoch\[1\] Validation-accuracy=//p' err)
run eval m/whole --data-val d/shapes_val.rec
check "eval sees what training saw" answers "accuracy=$accuracy"
run eval m/whole --data-val d/shapes_val.rec --json
check "with as many views of each image" json out 'd["test_views"] == 6'
run eval m/whole --data-val d/shapes_val.rec --test-views 1 --json
check "--test-views chooses another number" json out 'd["test_views"] == 1'

run train "${recipe[@]}" --num-epochs 2 --model-prefix m/two -n 2 --launcher local --job-dir job
check "it trains on two workers" exits 0
check "with the bits of one process" same "$(hash m/two)" "$(hash m/whole)"

"$DTRAIN" train "${recipe[@]}" --num-epochs 2 --model-prefix m/cut -n 2 --launcher local --job-dir cut >cut.out 2>&1 &
while ! compgen -G 'm/cut-0001.json' >/dev/null && kill -0 $! 2>/dev/null; do sleep 0.05; done
"$DTRAIN" stop --job-dir cut >/dev/null 2>&1
wait
run train "${recipe[@]}" --num-epochs 2 --model-prefix m/cut --resume
check "a stopped run goes on" exits 0
check "to the same bits" same "$(hash m/cut)" "$(hash m/whole)"

finish
