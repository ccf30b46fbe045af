#!/usr/bin/env bash
# Tests and benchmarks that need a GPU. On the machine that built dtrain:
#   tests/run-gpu.sh pack BUILD_DIR OUT_DIR   makes OUT_DIR/dtrain-gpu-tests.tar.zst, prints its path: the relocatable
#                                             bundle, the test program and this script
# On the machine with the GPU, which needs nothing else of ours:
#   bash run-gpu.sh [RESULTS_DIR]             in the unpacked folder; default: gpu-results here
# Writes RESULTS_DIR/tests.json (GoogleTest's), bench-*.json (dtrain's) and summary.json. cuDNN 9 for CUDA 13 is found in
# the loader's folders, /usr/local/cuda, or where DTRAIN_CUDA_PATH says.
# Exit: 0 all passed, 1 something failed, 2 no GPU here.
set -uo pipefail
here=$(dirname "$(realpath "${BASH_SOURCE[0]}")")
readonly here program=dtrain_gpu_tests

main() {
  case "${1:-}" in
    -h | --help) sed -n '2,/^set/{/^#/s/^# \?//p}' "${BASH_SOURCE[0]}" ;;
    pack) [ $# -eq 3 ] || fail "usage: tests/run-gpu.sh pack BUILD_DIR OUT_DIR" 2; pack "$2" "$3" ;;
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
  tar -C "$work" -cf - dtrain-gpu-tests | zstd -q -f -o "$out/dtrain-gpu-tests.tar.zst"
  echo "$out/dtrain-gpu-tests.tar.zst"
)

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

  "$here/lib/ld-linux-x86-64.so.2" --library-path "$here/lib" "$here/bin/$program" \
    --gtest_output="json:$results/tests.json" >"$results/tests.log" 2>&1 || failed=1
  tail -n 20 "$results/tests.log"

  local dtype
  for dtype in float32 bfloat16; do
    bench "$results" "cifar-resnet20-$dtype" --dtype $dtype --batch-size 512 --num-layers 20 || failed=1
    bench "$results" "resnet18-$dtype" --dtype $dtype --batch-size 256 --num-layers 18 --image-shape 3,224,224 \
      --num-classes 1000 || failed=1
    bench "$results" "resnet50-$dtype" --dtype $dtype --batch-size 256 --num-layers 50 --image-shape 3,224,224 \
      --num-classes 1000 || failed=1
  done
  summarise "$results" $failed
  return $failed
}

bench() {  # bench RESULTS NAME OPTION...
  local results=$1 name=$2
  shift 2
  if "$here/dtrain" bench train --device cuda --network resnet-v1 --steps 50 "$@" --json \
    >"$results/bench-$name.json" 2>"$results/bench-$name.log"; then
    printf '%-28s %s images/sec\n' "$name" "$(number images_per_second "$results/bench-$name.json")"
  else
    printf '%-28s failed: %s\n' "$name" "$(head -n 1 "$results/bench-$name.log")"
    return 1
  fi
}

number() { grep -oE "\"$1\": ?[0-9.e+-]+" "$2" | head -n 1 | sed 's/.*: *//'; }  # number KEY FILE

summarise() {  # summarise RESULTS FAILED
  local file first=1
  {
    printf '{"schema": "dtrain.gpu-results/1", "failed": %s, "tests": %s, "test_failures": %s, "images_per_second": {' \
      "$([ "$2" -eq 0 ] && echo false || echo true)" "$(number tests "$1/tests.json")" "$(number failures "$1/tests.json")"
    for file in "$1"/bench-*.json; do
      [ -s "$file" ] || continue
      [ $first -eq 1 ] || printf ', '
      first=0
      printf '"%s": %s' "$(basename "$file" .json | sed 's/^bench-//')" "$(number images_per_second "$file")"
    done
    printf '}}\n'
  } >"$1/summary.json"
  cat "$1/summary.json"
}

fail() { echo "run-gpu: $1" >&2; exit "$2"; }

main "$@"
