#!/usr/bin/env bash
# Choosing a GPU. What happens on one is for tests/run-gpu.sh; here is what a person sees where there is none.
set -uo pipefail
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

needs_nothing_of_nvidia() { ! ldd "$DTRAIN" | grep -qE 'lib(cuda|cudart|cudnn|cublas|nccl)'; }
check "the program needs no library of NVIDIA's to start" needs_nothing_of_nvidia

run train --gpus 0,1,0
check "a GPU that is named twice is refused" exits 2
check "a GPU that is named twice is named" says "GPU 0 is named twice"
run bench train --gpus 0,1
check "one process cannot use several GPUs" exits 2
check "who can use several is said" says "only \`dtrain train\` uses several"
run train --gpus 0,x
check "a GPU is a number" exits 2
check "a GPU that is no number is named" says "'x' is not the number of a GPU"
run train --gpus 0 --device cpu
check "a GPU on the CPU makes no sense" exits 2
run train --tf32 --network resnet --num-layers 8
check "what only a GPU does is refused on the CPU" exits 2
check "and named" says "dtrain: --tf32: this option applies to GPUs, and the CPU is selected"
run bench train --time-plans 4
check "no plans of cuDNN are timed on the CPU" says "--time-plans: this option applies to GPUs"
run train --device tpu
check "an unknown device is a usage error" exits 2
check "an unknown device is answered with the known ones" says "must be one of auto, cpu, cuda"

if [ -e /dev/nvidia0 ]; then
  skip "without a GPU" "this machine has one"
else
  for device in "--device cuda" "--gpus 0" "--gpus 0,1"; do
    # shellcheck disable=SC2086  # two words
    run train $device --network resnet --num-layers 8
    check "$device without a GPU is refused" exits 2
    check "$device without a GPU says why" says_line "no GPU that dtrain could use|built without CUDA"
    check "$device without a GPU says what to do" says "use --device cpu"
  done
  DEEPLEARNING_WORKER_GPU_COUNT=1 run train --network resnet --num-layers 8
  check "a cluster's GPU that is not there is refused" exits 2
  check "and it is said who asked for it" says "DEEPLEARNING_WORKER_GPU_COUNT: training on --gpus 0"
  run bench train --device cuda
  check "nor can a GPU be measured" exits 2
  if bash "$here/../run-gpu.sh" >out 2>err; then code=0; else code=$?; fi
  check "the tests for GPUs are not run without one" exits 2
  check "the tests for GPUs say so" says "has no NVIDIA GPU"
fi
finish
