#!/usr/bin/env bash
# Several GPUs: one worker on each. The GPUs are two that this CPU plays (tests/helpers/two_gpus.cpp), and NCCL is its
# stand-in (tests/helpers/nccl_standin.cpp).
set -uo pipefail
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
if ! [ -x "$(dirname "$DTRAIN")/tests/dtrain_two_gpus" ]; then
  skip "several GPUs" "dtrain_two_gpus is not built beside $DTRAIN"
  finish
  exit
fi
DTRAIN=$(dirname "$DTRAIN")/tests/dtrain_two_gpus
shapes 64
training=(train --network mlp --image-shape "3,28,28" --data-train d/shapes_train.rec --rgb-std 58 --lr 0.01 --num-epochs 1
  --batch-size 16 --logical-shards 4 --seed 3)
hash() { "$DTRAIN" inspect "$1" --json | /usr/bin/python3 -c 'import json,sys; print(json.load(sys.stdin)["weights_sha256"])'; }
differ() { [ -n "$1" ] && [ -n "$2" ] && [ "$1" != "$2" ]; }
answers_not() { ! grep -qF -- "$1" out; }
no_line() { ! grep -q "$@"; }
took() { grep -q "took GPU $2" "job/logs/worker1.$1.log"; }  # took SLOT GPU

run "${training[@]}" --gpus 1,0 --model-prefix m/two --job-dir job
check "a job on two GPUs trains" exits 0
check "it has two workers" says "It computes in 2 workers on GPUs 1,0, in float32"
check "the host's batch is shared" says "Each step takes 16 images in 4 logical shards"
check "host_worker says how many workers the host has" grep -qx "worker1 slots=2" job/host_worker
check "the first worker has the first GPU of the list" took 0 1
check "the second worker has the second GPU" took 1 0
check "a worker says on which GPU it computes" grep -q "GPU 0, " job/logs/worker1.1.log
run "${training[@]}" --gpus 1 --model-prefix m/one
check "one GPU has one process" says_not "workers x"
check "one GPU alone is the one that was named" says "took GPU 1"
check "the number of GPUs does not change a bit" same "$(hash m/one)" "$(hash m/two)"

DEEPLEARNING_WORKER_GPU_COUNT=2 run "${training[@]}" --model-prefix m/counted --job-dir counted
check "a cluster's number of GPUs is what --gpus is" same "0 $(hash m/one)" "$code $(hash m/counted)"
check "where they come from is said" says "DEEPLEARNING_WORKER_GPU_COUNT: training on --gpus 0,1"
check "each of them has a worker" grep -q "took GPU 1" counted/logs/worker1.1.log
DEEPLEARNING_WORKER_GPU_COUNT=2 run "${training[@]}" --device cpu
check "--device cpu trains without them" exits 0
check "and says nothing of them" says_not "GPU"
DEEPLEARNING_WORKER_GPU_COUNT=3 run "${training[@]}" --job-dir nowhere
check "more GPUs than there are is a usage error" exits 2
check "and says which is missing" says "GPU 2 does not exist"

run "${training[@]}" --gpus 0,1 --kv-store dist_device_sync --model-prefix m/nccl --job-dir nccl
check "a job whose gradients are added on the GPUs trains" exits 0
check "a store on GPUs means NCCL" says "travel by NCCL"
check "a worker reduces on its own GPU" grep -q "reduces on GPU 1" nccl/logs/worker1.1.log
check "gradients do not leave the GPUs" no_line "pass through the host" nccl/logs/worker1.0.log nccl/logs/worker1.1.log
check "NCCL does not change a bit" same "$(hash m/one)" "$(hash m/nccl)"
run "${training[@]}" --gpus 0,1 --kv-store device --transport tcp --gradient-dtype bfloat16 --model-prefix m/tcp16 --job-dir tcp16
check "who chooses tcp gets it" says_not "travel by NCCL"
run "${training[@]}" --gpus 0,1 --transport nccl --gradient-dtype bfloat16 --model-prefix m/nccl16 --job-dir nccl16
check "NCCL carries bfloat16" exits 0
check "NCCL rounds to the same bits" same "$(hash m/tcp16)" "$(hash m/nccl16)"
run "${training[@]}" -n 2 --transport nccl --job-dir nowhere
check "NCCL without GPUs is a usage error" exits 2
check "NCCL without GPUs is explained" says "--transport nccl needs GPUs, and the workers compute on the CPU"

# With --deterministic off the GPUs of this program compute other bits each time.
run "${training[@]}" --gpus 0,1 --deterministic off --transport nccl --model-prefix m/off --job-dir off
check "workers that compute other bits train together where nobody promised the same" exits 0
check "every worker of the job is told" grep -q "took GPU 1, not deterministic" off/logs/worker1.1.log
run "${training[@]}" --gpus 0,1 --deterministic off --transport nccl --optimizer muon --network lenet --job-dir muon
check "products of an update are the same on all of them nevertheless" exits 0
run "${training[@]}" --gpus 1 --deterministic off --model-prefix m/off_one
check "a worker alone is told" says "took GPU 1, not deterministic"
check "then the number of GPUs changes bits" differ "$(hash m/off)" "$(hash m/off_one)"
run "${training[@]}" --gpus 1 --model-prefix m/on --deterministic
check "the name of the option alone means on" same "$(hash m/one)" "$(hash m/on)"
for setting in on off; do
  run "${training[@]}" --deterministic $setting --model-prefix m/cpu_$setting
done
check "on the CPU there is only one way" same "$(hash m/cpu_on)" "$(hash m/cpu_off)"
run "${training[@]}" --deterministic often
check "another word is a usage error" exits 2
check "and the two words are named" says "--deterministic: must be on or off, not 'often'"

measuring=(bench train --network mlp --image-shape "1,8,8" --num-classes 4 --batch-size 16 --warmup 1 --steps 10)
run "${measuring[@]}" --gpus 0
check "bench says what the same bits cost on a GPU" answers_line "^deterministic: [0-9.]+ x the step of --deterministic off"
check "bench computes both ways" same "$(grep -c "took GPU 0$" err) $(grep -c "took GPU 0, not deterministic$" err)" "1 1"
for setting in on off; do
  run "${measuring[@]}" --gpus 0 --deterministic $setting --json
  check "bench --deterministic $setting has the cost as a number" \
    json out '(c := d["deterministic"])["seconds_off"] > 0 and c["deterministic_cost"] == c["seconds_on"] / c["seconds_off"]'
done
check "bench says how the step runs on a GPU" \
  json out '(e := d["execution"])["recorded"] and e["by_definition"] == 0 and not e["refused_kernels"] and [c["engine"] for c in e["convolutions"]] == 8 * ["replay"]'
check "bench compares the step with its operations" \
  json out 'abs(d["operations_share"] - d["operations_seconds"] / d["step_seconds"]) < 1e-9 and d["operations_share"] > 0'
run "${measuring[@]}"
check "on the CPU there is nothing to compare" answers_not "deterministic"
run "${measuring[@]}" --json
check "on the CPU the cost is null" json out 'd["deterministic"] is None and d["execution"] is None'

run "${training[@]}" --gpus 0,5 --job-dir nowhere
check "a GPU that is not there is a usage error" exits 2
check "a GPU that is not there is named" says "GPU 5 does not exist: this machine has GPUs 0 to 1"
printf 'w1\nw2 slots=3\n' >hosts
run "${training[@]}" --gpus 0,1 -H hosts --launcher local --job-dir nowhere
check "more workers than GPUs are a usage error" exits 2
check "the host with more workers than GPUs is named" says "w2 slots=3: --gpus 0,1 names 2 GPUs"
check "nothing is begun then" missing nowhere
finish
