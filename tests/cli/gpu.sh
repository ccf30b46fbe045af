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

# The functions of the script for machines with a GPU, in a shell of their own: in_script COMMANDS
in_script() {
  bash -c '. "$1/../run-gpu.sh" --help >help; eval "$2"' - "$here" "$1" >out 2>err
  code=$?
}

unset OUT
in_script '
  find_pytorch() { :; }
  summarise() { :; }
  bench() { echo "bench $1 $2 $3"; }
  seconds_left() { if [ -e measured/asked ]; then echo 29; else touch measured/asked; echo 31; fi; }
  DTRAIN_GPU_SECONDS=600 DTRAIN_GPU_ONLY=compare
  take_steps measured'
check "a comparison that has no time for its parts is not done" exits 3
check "it says which part did not begin" answers "not begun: 29 s are left of this call"
check "the next call goes on with it" missing measured/done.txt

# Two packs, the first one in two calls.
in_script '
  home=$PWD/gpu-home DTRAIN_GPU_SECONDS=600 order=x:y
  find_pytorch() { :; }
  summarise() { :; }
  bench() { echo "measured by $(basename "$home"/bin/of-*)"; touch "$results/bench-$1-$2-$3.json"; }
  for build in first second; do
    mkdir -p tree/dtrain-gpu-tests/bin
    install -m 755 /dev/null tree/dtrain-gpu-tests/bin/$program
    touch tree/dtrain-gpu-tests/bin/of-$build
    tar -C tree -czf $build.tgz dtrain-gpu-tests
    rm -r tree
  done
  mkdir -p gpu-home/cifar gpu-home/own
  for build in first first second; do
    unpack $build.tgz
    put_aside measures/ "$(cat gpu-home/pack.sha256)"
    take_steps measures
  done'
check "a second pack is measured" exits 0
check "each pack is measured once" same "$(grep -c "measured by" out)" 2
check "the second build takes the place of the first" answers "measured by of-second"
check "its numbers are not mixed with those of another" same "$(cd measures && echo bench-*)" "bench-x-y-1.json"
check "those of the first pack are kept apart" same "$(cd measures.* && echo bench-*)" "bench-x-y-1.json"
check "plans that the first build measured are gone" missing gpu-home/own
check "data that was taken stays" exists gpu-home/cifar
mkdir others
echo "not a result" >others/file
in_script 'put_aside others abc'
check "a folder without results is not renamed" exists others/file

in_script '
  for speed in 3 1 2 10000000000; do echo "{\"speed\": $speed}" >speed-$speed.json; done
  echo "$(median speed speed-?.json) $(median speed speed-[12].json) $(median speed speed-*.json) $(median speed none)
$(median speed speed-2.json speed-1?*.json)"'
check "a median of two is in their middle" same "$(tr '\n' ' ' <out)" "2 1.5 2.5 null 5000000001 "

in_script '
  results=proven
  mkdir proven
  tests() { echo PRODUCT; return $verdict; }
  row() { :; }
  for verdict in 0 1; do
    products
    own_products
  done'
check "own products that fail are not used any more" same "$(grep -v PRODUCT out | tr '\n' ' ')" "timed never "

mkdir packed
echo "a row" >packed/table.txt
for try in 1 2 3 4 5 6 7 8; do
  rm -f packed/results.tgz
  in_script 'pack_results packed'
  check "results are packed into their own folder, try $try" exits 0
  check "all of them, try $try" same "$(tar -tzf packed/results.tgz 2>/dev/null | sort | tr '\n' ' ')" "packed/ packed/table.txt "
done
check "nothing is left beside them" same "$(find packed -type f | sort | tr '\n' ' ')" "packed/results.tgz packed/table.txt "

in_script '
  within() { echo "$1 s for ${*:3}"; }
  dtrain() { echo "no limit for $*" >&2; }
  row() { :; }
  dtrain=dtrain results=limited DTRAIN_GPU_CIFAR=. races=0
  mkdir limited
  doctor
  speednet_on_drawings
  race_dtrain limited .
  cat limited/*'
check "no part of a step takes as long as it likes" same "$(grep "no limit" out)" ""
for part in doctor "bench train" "data prepare shapes" "data prepare cifar10" "bench train --network speednet"; do
  check "$part has a limit" answers_line "^[0-9]+ s for $part"
done

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
