#!/usr/bin/env bash
# Tests and benchmarks that need a GPU. On the machine that built dtrain:
#   tests/run-gpu.sh pack BUILD_DIR OUT_DIR       makes OUT_DIR/dtrain-gpu-tests.tar.zst, prints its path: the
#                                                 relocatable bundle, the test program and this script
#   tests/run-gpu.sh rehearse BUILD_DIR OUT_DIR   the benchmarks on this CPU with a few samples, to try the script itself
# On the machine with the GPU, which needs nothing else of ours:
#   bash run-gpu.sh [RESULTS_DIR]                 in the unpacked folder; default: gpu-results here
# Writes RESULTS_DIR/tests.json (GoogleTest's), bench-*.json (dtrain's), torch-*.json (PyTorch's) and summary.json. cuDNN
# 9 for CUDA 13 is found in the loader's folders, /usr/local/cuda, or where DTRAIN_CUDA_PATH says. PyTorch is the peer
# where python3, or the program that DTRAIN_GPU_PYTHON names, has it and sees a GPU; the two take turns,
# DTRAIN_GPU_ROUNDS times (3). compute-sanitizer watches the tests where it is found.
# The race to 94 % on CIFAR-10 is run where DTRAIN_GPU_CIFAR names a folder with the published binary files
# (data_batch_1.bin ... test_batch.bin), DTRAIN_GPU_RACES times (50) by either: race.json, torch-race.json.
# Exit: 0 all passed, 1 something failed, 2 no GPU here.
set -uo pipefail
export LC_ALL=C
here=$(dirname "$(realpath "${BASH_SOURCE[0]}")")
parts=$here
if [ -d "$here/gpu" ]; then parts=$here/gpu; fi
readonly here parts program=dtrain_gpu_tests
rounds=${DTRAIN_GPU_ROUNDS:-3} device=cuda dtypes="float32 bfloat16 float16" steps=50 peer_steps=50

# What is measured: name, samples a step, layers of resnet-v1, image, classes.
networks="
cifar-resnet20 512 20 3,32,32 10
resnet18 256 18 3,224,224 1000
resnet50 256 50 3,224,224 1000"

# shellcheck source=tests/gpu/race.sh
. "$parts/race.sh"

main() {
  case "${1:-}" in
    -h | --help) sed -n '2,/^set/{/^#/s/^# \?//p}' "${BASH_SOURCE[0]}" ;;
    pack) [ $# -eq 3 ] || fail "usage: tests/run-gpu.sh pack BUILD_DIR OUT_DIR" 2; pack "$2" "$3" ;;
    rehearse) [ $# -eq 3 ] || fail "usage: tests/run-gpu.sh rehearse BUILD_DIR OUT_DIR" 2; rehearse "$2" "$3" ;;
    *) run "${1:-gpu-results}" ;;
  esac
}

pack() (  # pack BUILD OUT
  set -e
  build=$(realpath "$1")
  mkdir -p "$2"
  out=$(realpath "$2")
  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
  bundle=$(bash "$here/../packaging/bundle.sh" "$build" "$work")
  mkdir "$work/dtrain-gpu-tests"
  tar -C "$work/dtrain-gpu-tests" --strip-components=1 -xf "$bundle"
  install -m 755 "$build/tests/$program" "$work/dtrain-gpu-tests/bin/"
  strip "$work/dtrain-gpu-tests/bin/$program"
  ldd "$build/tests/$program" | awk '$2 == "=>" { print $1, $3 }' | while read -r name path; do
    if [ ! -e "$work/dtrain-gpu-tests/lib/$name" ]; then install -m 755 "$path" "$work/dtrain-gpu-tests/lib/$name"; fi
  done
  install -m 755 "${BASH_SOURCE[0]}" "$work/dtrain-gpu-tests/run-gpu.sh"
  install -m 644 "$parts/race.sh" "$parts/pytorch_peer.py" "$parts/speednet_peer.py" "$work/dtrain-gpu-tests/"
  draw_networks "$build" "$work/dtrain-gpu-tests/networks"
  draw_race "$build" "$work/dtrain-gpu-tests/networks"
  tar -C "$work" -cf - dtrain-gpu-tests | zstd -q -f -o "$out/dtrain-gpu-tests.tar.zst"
  echo "$out/dtrain-gpu-tests.tar.zst"
)

# The networks as PyTorch is to build them. draw_networks BUILD FOLDER
draw_networks() {
  local name layers image classes
  while read -r name _ layers image classes; do
    [ -n "$name" ] || continue
    mkdir -p "$2/$name"
    "$1/tests/dtrain_dump_graph" resnet-v1 "$layers" "$image" "$classes" "$2/$name" || return 1
  done <<<"$networks"
}

rehearse() {  # rehearse BUILD OUT
  networks="
tiny 4 8 3,16,16 10"
  device=cpu dtypes=float32 steps=3 peer_steps=10 rounds=2
  mkdir -p "$2"
  [ -x "$1/tests/dtrain_dump_graph" ] || fail "$1 has no tests/dtrain_dump_graph" 2
  draw_networks "$1" "$2/networks"
  draw_race "$1" "$2/networks" 4
  dtrain=$1/dtrain graphs=$2/networks
  races=2 race_dtype=float32 race_test_images=1000
  race_options=(--width 4 --num-examples 2000 --batch-size 250 --num-epochs 1)
  DTRAIN_GPU_CIFAR=${DTRAIN_GPU_CIFAR:-${DTRAIN_TEST_DATA:+$DTRAIN_TEST_DATA/cifar-10-batches-bin}}
  measure "$2"
}

run() {  # run RESULTS
  local results=$1 failed=0
  # shellcheck disable=SC2144  # one such file is enough
  if ! compgen -G '/dev/nvidia[0-9]*' >/dev/null; then
    echo "run-gpu: this machine has no NVIDIA GPU (no /dev/nvidia0): nothing was run" >&2
    exit 2
  fi
  [ -x "$here/bin/$program" ] || fail "$here has no bin/$program: run this in the folder that \`pack\` made" 2
  mkdir -p "$results"
  if command -v nvidia-smi >/dev/null; then nvidia-smi >"$results/nvidia-smi.txt" 2>&1; fi
  dtrain=$here/dtrain graphs=$here/networks

  tests --gtest_output="json:$results/tests.json" >"$results/tests.log" 2>&1 || failed=1
  tail -n 20 "$results/tests.log"
  sanitize "$results" || failed=1
  measure "$results" $failed
}

# What is timed, and what came of everything. measure RESULTS [FAILED]
measure() {
  local failed=${2:-0}
  python=$(find_pytorch "$1")
  compare "$1" || failed=1
  race "$1" || failed=1
  summarise "$1" "$failed"
  return "$failed"
}

tests() { "${watcher[@]}" "$here/lib/ld-linux-x86-64.so.2" --library-path "$here/lib" "$here/bin/$program" "$@"; }
watcher=()

# Small networks only: a watched program is up to a hundred times slower. sanitize RESULTS
sanitize() {
  local sanitizer tool failed=0 status
  sanitizer=$(command -v compute-sanitizer || ls /usr/local/cuda/bin/compute-sanitizer 2>/dev/null) || return 0
  for tool in memcheck racecheck initcheck; do
    watcher=(timeout 1800 "$sanitizer" --tool "$tool" --target-processes all --error-exitcode 99)
    tests --gtest_filter='All/GpuLayers.AgreesWithTheReference/*:Gpu.ComputesBytes*' >"$results/$tool.log" 2>&1
    status=$?
    case $status in
      0) status=clean ;;
      99) status="errors, see $tool.log"; failed=1 ;;
      *) status="ended with $status, see $tool.log" ;;
    esac
    printf '%-28s %s\n' "$tool" "$status"
    echo "$status" >"$results/$tool.status"
  done
  watcher=()
  return $failed
}

# dtrain and its peer take turns, so that both meet the GPU as warm and as busy. compare RESULTS
compare() {
  local results=$1 failed=0 name samples layers image classes dtype round
  while read -r name samples layers image classes; do
    [ -n "$name" ] || continue
    for dtype in $dtypes; do
      for ((round = 1; round <= rounds; ++round)); do
        bench "$results/bench-$name-$dtype-$round" --dtype "$dtype" --batch-size "$samples" --num-layers "$layers" \
          --image-shape "$image" --num-classes "$classes" || failed=1
        [ -n "$python" ] || continue
        torch "$results/torch-$name-$dtype-$round" "$graphs/$name/graph.json" --batch-size "$samples" --dtype "$dtype"
      done
    done
  done <<<"$networks"
  return $failed
}

# The Python whose PyTorch can be the peer; nothing where there is none. What is known of it goes to pytorch.txt.
# find_pytorch RESULTS
find_pytorch() {
  local python
  for python in ${DTRAIN_GPU_PYTHON:-python3 /usr/bin/python3 python}; do
    if "$python" - "$device" >"$1/pytorch.txt" 2>&1 <<'END'; then
import sys, torch
if sys.argv[1] == "cuda" and not torch.cuda.is_available():
    sys.exit(f"PyTorch {torch.__version__} sees no GPU")
print(f"PyTorch {torch.__version__}")
END
      echo "$python"
      return
    fi
  done
  python=$(tail -n 1 "$1/pytorch.txt")
  echo "none: $python" >"$1/pytorch.txt"
}

bench() {  # bench FILE OPTION...
  local file=$1 cost
  shift
  if "$dtrain" bench train --device $device --network resnet-v1 --warmup $((steps / 2)) --steps $steps "$@" --json \
    </dev/null >"$file.json" 2>"$file.log"; then
    cost=$(number deterministic_cost "$file.json")
    printf '%-36s %s images/sec%s\n' "$(basename "$file")" "$(number images_per_second "$file.json")" \
      "${cost:+, deterministic: $cost x the step of --deterministic off}"
  else
    rm -f "$file.json"
    printf '%-36s failed: %s\n' "$(basename "$file")" "$(head -n 1 "$file.log")"
    return 1
  fi
}

torch() {  # torch FILE OPTION...
  local file=$1
  shift
  if "$python" -B "$parts/pytorch_peer.py" --device $device --steps $peer_steps "$@" </dev/null >"$file.json" 2>"$file.log"; then
    printf '%-36s %s images/sec\n' "$(basename "$file")" "$(number images_per_second "$file.json")"
  else
    rm -f "$file.json"
    printf '%-36s failed: %s\n' "$(basename "$file")" "$(tail -n 1 "$file.log")"
  fi
}

numbers() { grep -ohE "\"$1\": ?[0-9.e+-]+" "${@:2}" 2>/dev/null | sed 's/.*: *//'; }  # numbers KEY FILE...
number() { numbers "$@" | head -n 1; }
first() { local found; found=$(number "$@"); echo "${found:-null}"; }
# The middle one of several files' numbers; null where there is none. median KEY FILE...
median() { numbers "$@" | sort -g | awk '{ v[NR] = $1 } END { print NR ? v[int((NR + 1) / 2)] : "null" }'; }
# The first number by the second, or null. quotient A B
quotient() { awk -v a="$1" -v b="$2" 'BEGIN { if (a + 0 > 0 && b + 0 > 0) printf "%.4g", a / b; else print "null" }'; }
quoted() { sed 's/\\/\\\\/g; s/"/\\"/g; s/.*/"&"/' <<<"$1"; }

# What dtrain's files of one network say beside its peer's. network_json RESULTS NAME
network_json() {
  local ours=("$1/bench-$2"-*.json) theirs=("$1/torch-$2"-*.json) speed peer_speed kernels
  speed=$(median images_per_second "${ours[@]}")
  peer_speed=$(median images_per_second "${theirs[@]}")
  # Of one step, each operation alone: what is missing to 1 is launches and waiting; more than 1 is what runs at once.
  kernels=$(numbers seconds "${ours[0]}" | awk '{ sum += $1 } END { print sum + 0 }')
  printf '{"images_per_second": %s, "pytorch_images_per_second": %s, "times_pytorch": %s, ' "$speed" "$peer_speed" \
    "$(quotient "$speed" "$peer_speed")"
  printf '"kernel_share": %s, "memory_bytes": %s, "pytorch_memory_bytes": %s, "deterministic_cost": %s}' \
    "$(quotient "$kernels" "$(number step_seconds "${ours[0]}")")" "$(median planned_bytes "${ours[@]}")" \
    "$(median peak_memory_bytes "${theirs[@]}")" "$(median deterministic_cost "${ours[@]}")"
}

summarise() {  # summarise RESULTS FAILED
  local tool name dtype separator=""
  {
    printf '{"schema": "dtrain.gpu-results/2", "failed": %s, ' "$([ "$2" -eq 0 ] && echo false || echo true)"
    printf '"tests": %s, "test_failures": %s, "sanitizer": {' "$(first tests "$1/tests.json")" \
      "$(first failures "$1/tests.json")"
    for tool in memcheck racecheck initcheck; do
      printf '%s"%s": %s' "$separator" $tool "$(quoted "$(cat "$1/$tool.status" 2>/dev/null || echo "not run")")"
      separator=", "
    done
    printf '}, "pytorch": %s, "networks": {' "$(quoted "$(tail -n 1 "$1/pytorch.txt")")"
    separator=""
    while read -r name _; do
      for dtype in ${name:+$dtypes}; do
        printf '%s"%s-%s": %s' "$separator" "$name" "$dtype" "$(network_json "$1" "$name-$dtype")"
        separator=", "
      done
    done <<<"$networks"
    printf '}, "race": %s}\n' "$(race_json "$1")"
  } >"$1/summary.json"
  cat "$1/summary.json"
}

fail() { echo "run-gpu: $1" >&2; exit "$2"; }

main "$@"
