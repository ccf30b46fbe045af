#!/usr/bin/env bash
# Gradients that travel in few bytes, and what they do not go with.
set -uo pipefail
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
shapes 400
state() { "$DTRAIN" inspect "$1" --json | grep -oE '"state_sha256":"[0-9a-f]+"'; }
differs() { [ "$1" != "$2" ]; }
training=("${small_training[@]}" --logical-shards 4 --seed 1)

run train "${training[@]}" --num-epochs 2 --model-prefix m/plain
run train "${training[@]}" --num-epochs 2 --model-prefix m/one --gradient-compression 2bit:0.2
check "a run says how its gradients travel" says "Gradients travel as 2bit:0.2; one step in 32 and the last of an epoch share what is held back"
check "one process has the bits of its compression" differs "$(state m/one)" "$(state m/plain)"
run train "${training[@]}" --num-epochs 2 --model-prefix m/mxnet --gc-type 2bit --gc-threshold 0.2
check "MXNet's names mean the same" same "$(state m/one)" "$(state m/mxnet)"
run train "${training[@]}" --global-batch 50 --num-epochs 2 --model-prefix m/two -n 2 --launcher local --job-dir job --gc-threshold 0.2 --gc-type 2bit
check "the number of workers changes no bit" same "$(state m/one)" "$(state m/two)"
run train "${training[@]}" --num-epochs 1 --model-prefix m/resumed --gc-type 2bit --gc-threshold 0.2
run train "${training[@]}" --num-epochs 2 --model-prefix m/resumed --gc-type 2bit --gc-threshold 0.2 --resume
check "a resumed run goes on as if it had not stopped" same "$(state m/one)" "$(state m/resumed)"
run train "${training[@]}" --num-epochs 2 --model-prefix m/top --gradient-compression topk:0.05
check "topk is a compression of its own" differs "$(state m/one)" "$(state m/top)"
run train "${training[@]}" --global-batch 50 --num-epochs 2 --model-prefix m/top2 -n 2 --launcher local --job-dir job2 --gradient-compression topk:0.05
check "topk has the same bits for two workers" same "$(state m/top)" "$(state m/top2)"
run train "${training[@]}" --num-epochs 2 --model-prefix m/power --gradient-compression powersgd:1
check "powersgd is a compression of its own" differs "$(state m/one)" "$(state m/power)"
run train "${training[@]}" --global-batch 50 --num-epochs 2 --model-prefix m/power2 -n 2 --launcher local --job-dir job3 --gradient-compression powersgd:1
check "powersgd has the same bits for two workers" same "$(state m/power)" "$(state m/power2)"
run train "${training[@]}" --num-epochs 1 --model-prefix m/power3 --gradient-compression powersgd:1
run train "${training[@]}" --num-epochs 2 --model-prefix m/power3 --gradient-compression powersgd:1 --resume
check "a resumed run knows what powersgd held back" same "$(state m/power)" "$(state m/power3)"
run inspect m/power
check "a checkpoint says how its gradients travelled" answers_line "^compression +powersgd:1"
run train "${training[@]}" --num-epochs 3 --model-prefix m/power3 --resume
check "a run may go on without compression" says "The run goes on without what the checkpoint's compressed gradients held back"
check "and keeps the momentum" says_not "The checkpoint has no state of this optimizer"
run train "${training[@]}" --num-epochs 1 --model-prefix m/none --gradient-compression none
check "none is the default" says_not "Gradients travel"
run train --show-config --gradient-compression topk:0.05
check "the configuration shows it" answers "gradient-compression = topk:0.05"

# VALUE|MESSAGE of what cannot be meant.
while IFS='|' read -r value message; do
  run train "${training[@]}" --num-epochs 1 --gradient-compression "$value"
  check "--gradient-compression $value is a usage error" exits 2
  check "--gradient-compression $value is answered" says "$message"
done <<'VALUES'
4bit|must be none, 2bit[:THRESHOLD], topk:SHARE or powersgd[:RANK], not '4bit'
topk|must be none, 2bit[:THRESHOLD], topk:SHARE or powersgd[:RANK], not 'topk'
powersgd:0|'powersgd:0': the number behind powersgd: must be between 1 and 1024
powersgd:1.5|'powersgd:1.5': a factor has a whole number of columns
2bit:0|'2bit:0': the number behind 2bit: must be more than 0
2bit:-1|'2bit:-1': the number behind 2bit: must be more than 0
topk:0|'topk:0': the number behind topk: must be more than 0 and at most 1
topk:1.5|'topk:1.5': the number behind topk: must be more than 0 and at most 1
VALUES
run train "${training[@]}" --num-epochs 1 --gc-type 2bit --gc-threshold 0
check "--gc-threshold 0 is a usage error" exits 2
run train "${training[@]}" --num-epochs 1 --gc-threshold 0.1
check "a threshold alone is refused" says "--gc-threshold: only --gradient-compression 2bit has a threshold"
# OPTIONS|MESSAGE of what compressed gradients do not go with.
while IFS='|' read -r options message; do
  # shellcheck disable=SC2086
  run train "${training[@]}" --num-epochs 1 --gc-type 2bit $options
  check "$options is a usage error" exits 2
  check "$options is refused" says "--gradient-compression 2bit:0.5 with $message"
  check "$options has a hint" says "hint: "
done <<'OPTIONS'
--gradient-dtype bfloat16|--gradient-dtype bfloat16: gradients are compressed from float32
--local-steps 3|--local-steps: what replicas exchange is no gradient
--transport gloo|--transport gloo: Gloo sends floats as they are
--transport nccl|--transport nccl: NCCL sends floats as they are
OPTIONS
finish
