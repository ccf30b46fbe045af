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
training=(train --network mlp --benchmark 1 --image-shape "1,8,8" --num-classes 4 --num-examples 64 --num-epochs 1
  --batch-size 16 --logical-shards 4 --seed 3)
hash() { "$DTRAIN" inspect "$1" --json | /usr/bin/python3 -c 'import json,sys; print(json.load(sys.stdin)["weights_sha256"])'; }
took() { grep -q "took GPU $2" "job/logs/worker1.$1.log"; }  # took SLOT GPU

run "${training[@]}" --gpus 1,0 --model-prefix m/two --job-dir job
check "a job on two GPUs trains" exits 0
check "it has two workers" says "2 workers x"
check "the host's batch is shared" says "G = 16 samples a step in V = 4"
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
check "and says which is missing" says "GPU 2 is not there"

run "${training[@]}" --gpus 0,1 --kv-store dist_device_sync --model-prefix m/nccl --job-dir nccl
check "a job whose gradients are added on the GPUs trains" exits 0
check "a store on GPUs means NCCL" says "travel by NCCL"
check "a worker reduces on its own GPU" grep -q "reduces on GPU 1" nccl/logs/worker1.1.log
check "NCCL does not change a bit" same "$(hash m/one)" "$(hash m/nccl)"
run "${training[@]}" --gpus 0,1 --kv-store device --transport tcp --gradient-dtype bfloat16 --model-prefix m/tcp16 --job-dir tcp16
check "who chooses tcp gets it" says_not "travel by NCCL"
run "${training[@]}" --gpus 0,1 --transport nccl --gradient-dtype bfloat16 --model-prefix m/nccl16 --job-dir nccl16
check "NCCL carries bfloat16" exits 0
check "NCCL rounds to the same bits" same "$(hash m/tcp16)" "$(hash m/nccl16)"
run "${training[@]}" -n 2 --transport nccl --job-dir nowhere
check "NCCL without GPUs is a usage error" exits 2
check "NCCL without GPUs is explained" says "--transport nccl: the workers compute on the CPU"

run "${training[@]}" --gpus 0,5 --job-dir nowhere
check "a GPU that is not there is a usage error" exits 2
check "a GPU that is not there is named" says "GPU 5 is not there: this machine has GPUs 0 to 1"
printf 'w1\nw2 slots=3\n' >hosts
run "${training[@]}" --gpus 0,1 -H hosts --launcher local --job-dir nowhere
check "more workers than GPUs are a usage error" exits 2
check "the host with more workers than GPUs is named" says "w2 slots=3: --gpus 0,1 names 2 GPUs"
check "nothing is begun then" missing nowhere
finish
