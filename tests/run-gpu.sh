#!/usr/bin/env bash
# Tests and benchmarks that need a GPU, the most important numbers first. On the machine that built dtrain:
#   tests/run-gpu.sh pack [BUILD_DIR [OUT_DIR]]   makes OUT_DIR/dtrain-gpu-tests.tar.gz and prints its path (default:
#                                                 build/release build/pack): the relocatable bundle, the test program
#                                                 and these scripts
#   tests/run-gpu.sh rehearse BUILD_DIR OUT_DIR   the benchmarks on this CPU with a few samples, to try the script itself
# On the machine with the GPU, which needs nothing else of dtrain, in the unpacked folder:
#   bash run-gpu.sh [RESULTS_DIR]                 default: gpu-results here
#   bash run-gpu.sh take FILE...                  keeps parts of CIFAR-10's archive (.tar.xz, in order) for the race
# In a checkout that has build/pack, `bash tests/run-gpu.sh` unpacks it to DTRAIN_GPU_HOME (/tmp/dtrain-gpu) and works
# there; later calls find it there. Results of another pack are put aside first, as RESULTS_DIR.HASH. Writes
# RESULTS_DIR/table.txt, summary.json and what they come from, and all of it as one file: results.tgz in $OUT, or in
# RESULTS_DIR. It is written again after each step, so that a call that is cut off leaves it.
#
# Steps, in this order; DTRAIN_GPU_ONLY names others, or another order:
#   doctor                        what dtrain finds; without a usable GPU nothing else is done
#   NETWORK:DTYPE[:apart|:timed|:own]  `dtrain bench train`; apart: --join-passes 0; timed: --time-plans 10, which the
#                                 other steps do not use; own: --own-products first
#   speednet                      the recipe of the race on drawn pictures, two seeds
#   torch:NETWORK:DTYPE           PyTorch beside it
#   products                      dtrain's own products of matrices, on Hopper: whether they are right, and cuDNN's time
#                                 and theirs. Where they are not right, nothing else uses them
#   ceilings                      what PyTorch copies and multiplies a second
#   tests                         GoogleTest's
#   kernels                       one step by ncu
#   race                          to 94 % on CIFAR-10, DTRAIN_GPU_RACES times (10) by dtrain and by PyTorch, where
#                                 DTRAIN_GPU_CIFAR names a folder with data_batch_1.bin ... test_batch.bin, or after `take`
#   compare                       every network and type, dtrain and PyTorch in turns, DTRAIN_GPU_ROUNDS times (3)
#   sanitize                      tests by compute-sanitizer, 120 s a tool, where DTRAIN_GPU_SANITIZE=1
# DTRAIN_GPU_SECONDS limits a call; the next call in the same folder goes on with the step that was not finished.
# The driver is found in the loader's folders and /usr/local/nvidia, cuDNN 9 for CUDA 13 and NCCL there, in
# /usr/local/cuda, in the wheels of a Python (python3, or DTRAIN_GPU_PYTHON), or where DTRAIN_CUDA_PATH says.
# Exit: 0 all passed, 1 something failed, 2 no GPU here, 3 the time was used up before the last step.
set -uo pipefail
export LC_ALL=C PYTHONUNBUFFERED=1
here=$(dirname "$(realpath "${BASH_SOURCE[0]}")")
parts=$here/gpu
readonly here parts program=dtrain_gpu_tests archive=dtrain-gpu-tests.tar.gz
home=${DTRAIN_GPU_HOME:-/tmp/dtrain-gpu}
rounds=${DTRAIN_GPU_ROUNDS:-3} device=cuda dtypes="bfloat16 float16 float32" steps=60 peer_steps=60
order="doctor resnet50:bfloat16 speednet torch:resnet50:bfloat16 products resnet50:float16 resnet50:float16:apart ceilings
  tests resnet50:bfloat16:timed resnet50:bfloat16:own kernels resnet18:bfloat16 race compare sanitize"

# What is measured: name, samples a step, layers of resnet-v1, image, classes.
networks="
resnet50 256 50 3,224,224 1000
resnet18 256 18 3,224,224 1000
cifar-resnet20 512 20 3,32,32 10"

# shellcheck source=tests/gpu/environment.sh
. "$parts/environment.sh"
# shellcheck source=tests/gpu/measure.sh
. "$parts/measure.sh"
# shellcheck source=tests/gpu/race.sh
. "$parts/race.sh"
# shellcheck source=tests/gpu/report.sh
. "$parts/report.sh"

main() {
  case "${1:-}" in
    -h | --help) sed -n '2,/^set/{/^#/s/^# \?//p}' "${BASH_SOURCE[0]}" ;;
    pack) [ $# -le 3 ] || fail "usage: tests/run-gpu.sh pack [BUILD_DIR [OUT_DIR]]" 2; pack "${@:2}" ;;
    rehearse) [ $# -eq 3 ] || fail "usage: tests/run-gpu.sh rehearse BUILD_DIR OUT_DIR" 2; rehearse "$2" "$3" ;;
    take) mkdir -p "$home/cifar" && cp "${@:2}" "$home/cifar/" ;;
    *) run "${1:-gpu-results}" ;;
  esac
}

pack() (  # pack [BUILD [OUT]]
  set -e
  build=$(realpath "${1:-$here/../build/release}")
  mkdir -p "${2:-$here/../build/pack}"
  out=$(realpath "${2:-$here/../build/pack}")
  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
  bundle=$(bash "$here/../packaging/bundle.sh" "$build" "$work")
  tree=$work/dtrain-gpu-tests
  mkdir "$tree"
  tar -C "$tree" --strip-components=1 -xf "$bundle"
  install -m 755 "$build/tests/$program" "$tree/bin/"
  strip "$tree/bin/$program"
  ldd "$build/tests/$program" | awk '$2 == "=>" { print $1, $3 }' | while read -r name path; do
    if [ ! -e "$tree/lib/$name" ]; then install -m 755 "$path" "$tree/lib/$name"; fi
  done
  install -m 755 "${BASH_SOURCE[0]}" "$tree/run-gpu.sh"
  mkdir "$tree/gpu"
  install -m 644 "$parts"/*.sh "$parts"/*.py "$tree/gpu/"
  draw_networks "$build" "$tree/networks"
  draw_race "$build" "$tree/networks"
  # gzip, because what has GPUs may not have zstd.
  tar -C "$work" -cf - dtrain-gpu-tests | gzip -9 >"$out/$archive"
  echo "$out/$archive"
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
  order="tiny:float32 speednet torch:tiny:float32 ceilings race compare"
  ceilings_options=(--values 1000 --size 16)
  mkdir -p "$2"
  [ -x "$1/tests/dtrain_dump_graph" ] || fail "$1 has no tests/dtrain_dump_graph" 2
  draw_networks "$1" "$2/networks"
  draw_race "$1" "$2/networks" 4
  dtrain=$1/dtrain graphs=$2/networks home=$2/home
  races=2 race_dtype=float32 race_test_images=1000 drawn_train=2000 drawn_validation=500
  race_options=(--width 4 --num-examples 2000 --batch-size 250 --num-epochs 1)
  DTRAIN_GPU_CIFAR=${DTRAIN_GPU_CIFAR:-${DTRAIN_TEST_DATA:+$DTRAIN_TEST_DATA/cifar-10-batches-bin}}
  take_steps "$2"
}

run() {  # run RESULTS
  if [ ! -d "$here/bin" ]; then unpack_and_run "$@"; fi
  # shellcheck disable=SC2144  # one such file is enough
  if ! compgen -G '/dev/nvidia[0-9]*' >/dev/null; then
    echo "run-gpu: this machine has no NVIDIA GPU (no /dev/nvidia0): nothing was run" >&2
    exit 2
  fi
  [ -x "$here/bin/$program" ] || fail "$here has no bin/$program: run this in the folder that \`pack\` made" 2
  dtrain=$here/dtrain graphs=$here/networks
  put_aside "$1" "$(this_pack)"
  find_libraries
  take_steps "$1"
}

# In a checkout: what travelled with it, or with an earlier call. Does not return where there is one of them.
unpack_and_run() {
  local packed=$here/../build/pack/$archive
  if [ -s "$packed" ]; then unpack "$packed"; fi
  [ -x "$home/bin/$program" ] || return 0
  cd "$home" || exit 1
  exec bash "$home/run-gpu.sh" "$@"
}

# To the home, unless it is there already. What an earlier pack left in its place is removed, with the plans that its
# build measured; what `take` kept and what was drawn stays. unpack ARCHIVE
unpack() {
  local hash name
  hash=$(sha256sum <"$1") || fail "$1 cannot be read" 1
  hash=${hash%% *}
  if [ -x "$home/bin/$program" ] && [ "$(cat "$home/pack.sha256" 2>/dev/null)" = "$hash" ]; then return; fi
  mkdir -p "$home"
  rm -rf "$home/pack.sha256" "$home/timed" "$home/own"
  while read -r name; do
    rm -rf "${home:?}/${name:?}"
  done < <(tar -tzf "$1" | cut -d / -f 2 | sed '/^\.*$/d' | sort -u)
  tar -C "$home" --strip-components=1 -xzf "$1" || fail "$1 cannot be unpacked to $home" 1
  echo "$hash" >"$home/pack.sha256"
}

# What tells one pack from another, also where it was unpacked by hand.
this_pack() { cat "$here/pack.sha256" 2>/dev/null || sha256sum <"$here/bin/dtrain" | cut -d ' ' -f 1; }

# Results of another pack make room: steps that it finished are still to be done, and its numbers are no part of this
# one's. put_aside RESULTS PACK
put_aside() {
  local from=${1%/} of to copy=1
  of=$(cat "$from/pack.sha256" 2>/dev/null || echo unknown)
  if [ "$of" != "$2" ] && { [ -e "$from/done.txt" ] || [ -e "$from/table.txt" ]; }; then
    to=$from.${of:0:12}
    while [ -e "$to" ]; do copy=$((copy + 1)) to=$from.${of:0:12}.$copy; done
    mv "$from" "$to" || fail "$from has results of another pack and cannot be renamed" 1
  fi
  mkdir -p "$from"
  echo "$2" >"$from/pack.sha256"
}

# Each step of the order, then the summary. take_steps RESULTS
take_steps() {
  local step failed=0 status
  results=$1
  mkdir -p "$results"
  trap 'pack_results "$results"' EXIT
  python=$(find_pytorch "$results")
  for step in ${DTRAIN_GPU_ONLY:-$order}; do
    if is_done "$step"; then continue; fi
    if ! has_time "$step"; then failed=3; break; fi
    printf '\n== %s (%s s)\n' "$step" $SECONDS
    take_step "$step"
    status=$?
    if [ $status -eq "$no_time" ] || cut_off; then failed=3; break; fi
    note_done "$step"
    if [ $status -ne 0 ]; then failed=1; fi
    pack_results "$results"
    if [ "$step" = doctor ] && [ $status -ne 0 ]; then break; fi
  done
  summarise "$results" "$failed"
  return "$failed"
}

take_step() {  # take_step STEP
  local -a words
  IFS=: read -ra words <<<"$1"
  case $1 in
    doctor) doctor ;;
    speednet) speednet_on_drawings ;;
    products) products ;;
    ceilings) ceilings ;;
    tests) run_tests ;;
    kernels) kernels ;;
    race) race "$results" ;;
    compare) compare ;;
    sanitize) sanitize ;;
    torch:*:*) torch "${words[1]}" "${words[2]}" 1 ;;
    *:*:apart) bench_as "apart-${words[0]}-${words[1]}" "${words[0]}" "${words[1]}" --join-passes 0 ;;
    *:*:timed)
      XDG_CACHE_HOME=$home/timed bench_as "timed-${words[0]}-${words[1]}" "${words[0]}" "${words[1]}" \
        --time-plans "$race_plans" --own-products "$(own_products)"
      ;;
    *:*:own)
      if [ "$(own_products)" = never ]; then row "$1" "not run: \`products\` did not pass"; return 0; fi
      XDG_CACHE_HOME=$home/own bench_as "own-${words[0]}-${words[1]}" "${words[0]}" "${words[1]}" --own-products first
      ;;
    *:*) bench "${words[0]}" "${words[1]}" "$(next_round "${words[0]}-${words[1]}")" ;;
    *) row "$1" "failed: there is no such step"; return 1 ;;
  esac
}

fail() { echo "run-gpu: $1" >&2; exit "$2"; }

main "$@"
