#!/usr/bin/env bash
# The steps of run-gpu.sh but for the race, and the time that a call has for them. Part of run-gpu.sh, whose variables
# it uses; `results` is the folder of the results.
# shellcheck disable=SC2154
set -uo pipefail

readonly least_seconds=30  # with less no step begins
readonly no_time=75        # what a step of many parts returns that had no time for all of them
drawn_train=50000 drawn_validation=10000
ceilings_options=()

# ---- time

seconds_left() { echo $((${DTRAIN_GPU_SECONDS:-0} > 0 ? DTRAIN_GPU_SECONDS - SECONDS : 1000000)); }
has_time() {  # has_time STEP
  local left
  left=$(seconds_left)
  [ "$left" -ge $least_seconds ] && return
  row "$1" "not begun: $left s are left of this call"
  return 1
}
# Whether the step that just ended was stopped because the time of the call was used up.
cut_off() { [ "$(seconds_left)" -le 5 ]; }
# Runs a command for at most so many seconds, fewer where the call ends earlier; a little is left for the results.
within() {  # within SECONDS COMMAND...
  local left
  left=$(($(seconds_left) - 5))
  timeout --kill-after=5 $((left < $1 ? (left > 0 ? left : 1) : $1)) "${@:2}"
}

# Steps that earlier calls finished count only where calls are limited.
is_done() {  # is_done STEP
  [ "${DTRAIN_GPU_SECONDS:-0}" -gt 0 ] && [ -z "${DTRAIN_GPU_ONLY:-}" ] && grep -qsxF -- "$1" "$results/done.txt"
}
note_done() { echo "$1" >>"$results/done.txt"; }

# ---- rows

row() { printf '%-36s %s\n' "$1" "$2" | tee -a "$results/table.txt"; }

# Says what `dtrain bench train --json` found. bench_row NAME FILE
bench_row() {
  local cost recorded slow
  cost=$(number deterministic_cost "$2")
  recorded=$(sed -nE 's/.*"recorded": ?(true|false).*/\1/p' "$2" | head -n 1)
  slow=$(number by_definition "$2")
  row "$1" "$(number images_per_second "$2") images/sec, step $(number step_seconds "$2") s${cost:+, \
deterministic: $cost x the step of --deterministic off}${recorded:+, recorded: $recorded}${slow:+, \
by definition: $slow}, operations: $(number operations_share "$2") of the step"
}

# The words of `networks` for one of them. network NAME
network() { awk -v name="$1" '$1 == name' <<<"$networks"; }

# bench_as FILE NETWORK DTYPE OPTION...
bench_as() {
  local file=$results/$1 name=$1 samples layers image classes
  read -r _ samples layers image classes <<<"$(network "$2")"
  [ -n "${classes:-}" ] || { row "$1" "failed: no network is called $2"; return 1; }
  if within 110 "$dtrain" bench train --device "$device" --network resnet-v1 --num-layers "$layers" --image-shape "$image" \
    --num-classes "$classes" --batch-size "$samples" --dtype "$3" --warmup $((steps / 3)) --steps "$steps" --json "${@:4}" \
    </dev/null >"$file.json" 2>"$file.log"; then
    bench_row "$name" "$file.json"
  else
    rm -f "$file.json"
    row "$name" "failed: $(head -n 1 "$file.log")"
    return 1
  fi
}
bench() { bench_as "bench-$1-$2-$3" "$1" "$2"; }  # bench NETWORK DTYPE ROUND

next_round() {  # next_round NAME
  local round=1
  while [ -e "$results/bench-$1-$round.json" ]; do round=$((round + 1)); done
  echo $round
}

# torch NETWORK DTYPE ROUND
torch() {
  local name=torch-$1-$2-$3
  local file=$results/$name samples
  [ -n "$python" ] || { row "$name" "not run: $(tail -n 1 "$results/pytorch.txt")"; return 0; }
  read -r _ samples _ <<<"$(network "$1")"
  if within 170 "$python" -B "$parts/pytorch_peer.py" "$graphs/$1/graph.json" --device "$device" --steps "$peer_steps" \
    --batch-size "$samples" --dtype "$2" </dev/null >"$file.json" 2>"$file.log"; then
    row "$name" "$(number images_per_second "$file.json") images/sec"
  else
    rm -f "$file.json"
    row "$name" "failed: $(tail -n 1 "$file.log")"
  fi
}

# ---- steps

doctor() {
  {
    command -v nvidia-smi >/dev/null && nvidia-smi
    echo "LD_LIBRARY_PATH=${LD_LIBRARY_PATH:-} DTRAIN_CUDA_PATH=${DTRAIN_CUDA_PATH:-}"
    nproc && free -g | head -n 2
    ldconfig -p | grep -E 'libcuda\.so|libcudnn\.so|libnccl\.so'
    command -v zstd xz g++ nvcc ncu compute-sanitizer
    within 60 "$dtrain" doctor
  } </dev/null >"$results/machine.txt" 2>&1
  cat "$results/machine.txt"
  # One step, so that what is missing shows at once and not in every step that follows.
  if ! within 60 "$dtrain" bench train --device "$device" --network resnet --num-layers 8 --batch-size 16 --warmup 3 --steps 1 \
    --json </dev/null >"$results/doctor.json" 2>"$results/doctor.log"; then
    row doctor "failed: $(head -n 3 "$results/doctor.log" | tr '\n' ' ')"
    return 1
  fi
  row doctor "dtrain trains on $(sed -nE 's/.*"backend": ?"([^"]*)".*/\1/p' "$results/doctor.json")"
}

# The recipe of the race without CIFAR-10: what it takes, not what it learns.
speednet_on_drawings() {
  local seed file data=$home/drawn failed=0
  within 60 "$dtrain" data prepare shapes --out "$data" --train-count "$drawn_train" --val-count "$drawn_validation" \
    </dev/null >"$results/speednet.log" 2>&1 || { row speednet "failed: $(head -n 1 "$results/speednet.log")"; return 1; }
  for seed in 1 2; do
    file=$results/speednet-$seed
    if within 90 "$dtrain" train --recipe speednet --device "$device" --dtype "$race_dtype" "${race_options[@]}" \
      --data-train "$data/shapes_train.rec" --data-val "$data/shapes_val.rec" --seed $seed --json \
      </dev/null >"$file.jsonl" 2>"$file.log"; then
      row "speednet-$seed" "$(race_run $seed 0 0 "$file.jsonl") $(last_seconds "$file.jsonl")"
    else
      row "speednet-$seed" "failed: $(head -n 1 "$file.log")"
      failed=1
    fi
  done
  rm -rf "$data"
  return $failed
}

# Of the last epoch and evaluation. last_seconds EVENTS
last_seconds() {
  grep -oE '"event":"(epoch|evaluation)"[^}]*"seconds":[0-9.e-]+' "$1" |
    sed -E 's/"event":"([a-z]*)".*"seconds":/last \1 /; s/$/ s/' | tail -n 2 | tr '\n' ' '
}

ceilings() {
  [ -n "$python" ] || { row ceilings "not run: $(tail -n 1 "$results/pytorch.txt")"; return 0; }
  if within 60 "$python" -B "$parts/ceilings.py" --device "$device" "${ceilings_options[@]}" </dev/null \
    >"$results/ceilings.json" 2>"$results/ceilings.log"; then
    row ceilings "$(cat "$results/ceilings.json")"
  else
    row ceilings "failed: $(tail -n 1 "$results/ceilings.log")"
  fi
}

tests() { "${watcher[@]}" "$here/lib/ld-linux-x86-64.so.2" --library-path "$(own_libraries)" "$here/bin/$program" "$@"; }
watcher=()

# dtrain's own products of matrices: right, and how fast beside cuDNN's. Later steps time them where they are right: what
# a wrong one breaks is this step alone.
products() {
  local status
  rm -f "$results/products.right"  # of an earlier call
  watcher=(within 150)
  tests --gtest_filter='GpuProducts.*' >"$results/products.log" 2>&1
  status=$?
  watcher=()
  if [ $status -eq 0 ] && grep -q '^PRODUCT' "$results/products.log"; then touch "$results/products.right"; fi
  row products "$(tail -n 1 "$results/products.log")"
  grep -E '^PRODUCT|^\[  FAILED|rror' "$results/products.log" | head -n 60 | tee -a "$results/table.txt"
  return $status
}
own_products() { if [ -e "$results/products.right" ]; then echo timed; else echo never; fi; }

run_tests() {
  local status
  watcher=(within 170)
  tests --gtest_filter='-GpuProducts.*' --gtest_output="json:$results/tests.json" >"$results/tests.log" 2>&1
  status=$?
  watcher=()
  row tests "$(tail -n 3 "$results/tests.log" | tr '\n' ' ')"
  grep -E '^\[  FAILED' "$results/tests.log" | head -n 20
  return $status
}

# Every kernel of a step with its time and its traffic. The first run of a step is another one: it starts all that
# libraries load, and every native kernel beside its definition to compare them (natives.cpp), in all up to 2500 kernels
# for this network. What is launched later are steps of 300 to 600 kernels each.
kernels() {
  local ncu samples layers image classes first_run=2500 one_step=600
  ncu=$(command -v ncu || compgen -G '/usr/local/cuda*/bin/ncu' | head -n 1)
  [ -n "$ncu" ] || { row kernels "not run: no ncu"; return 0; }
  read -r _ samples layers image classes <<<"$(network resnet50)"
  within 200 "$ncu" --clock-control none --cache-control none --metrics gpu__time_duration.sum,dram__bytes.sum --csv \
    --log-file "$results/ncu.csv" --launch-skip "$first_run" --launch-count "$one_step" --kill yes \
    "$here/lib/ld-linux-x86-64.so.2" --library-path "$(own_libraries)" "$here/bin/dtrain" bench train --device "$device" --network resnet-v1 \
    --num-layers "$layers" --image-shape "$image" --num-classes "$classes" --batch-size "$samples" --dtype bfloat16 \
    --warmup 3 --steps 10 </dev/null >"$results/ncu.log" 2>&1
  row kernels "$(wc -l <"$results/ncu.csv" 2>/dev/null || echo 0) lines in ncu.csv; $(tail -n 1 "$results/ncu.log")"
}

# dtrain and its peer take turns, so that both meet the GPU as warm and as busy. What was measured before counts. Where
# the time does not suffice for all, the next call goes on.
compare() {
  local failed=0 name dtype round
  while read -r name _; do
    for dtype in ${name:+$dtypes}; do
      for ((round = 1; round <= rounds; ++round)); do
        has_time "bench-$name-$dtype-$round" || return $no_time
        if [ ! -e "$results/bench-$name-$dtype-$round.json" ]; then bench "$name" "$dtype" $round || failed=1; fi
        if [ -n "$python" ] && [ ! -e "$results/torch-$name-$dtype-$round.json" ]; then torch "$name" "$dtype" $round; fi
      done
    done
  done <<<"$networks"
  return $failed
}

# Small networks only: a watched program is up to a hundred times slower.
sanitize() {
  local sanitizer tool failed=0 status
  [ "${DTRAIN_GPU_SANITIZE:-}" = 1 ] || return 0
  sanitizer=$(command -v compute-sanitizer || compgen -G '/usr/local/cuda*/bin/compute-sanitizer' | head -n 1)
  [ -n "$sanitizer" ] || { row sanitize "not run: no compute-sanitizer"; return 0; }
  for tool in memcheck racecheck initcheck; do
    watcher=(within 120 "$sanitizer" --tool "$tool" --target-processes all --error-exitcode 99)
    tests --gtest_filter='All/GpuLayers.AgreesWithTheReference/*:Gpu.ComputesBytes*' >"$results/$tool.log" 2>&1
    status=$?
    case $status in
      0) status=clean ;;
      99) status="errors, see $tool.log"; failed=1 ;;
      124) status="not finished in 120 s" ;;
      *) status="ended with $status, see $tool.log" ;;
    esac
    row "$tool" "$status"
    echo "$status" >"$results/$tool.status"
  done
  watcher=()
  return $failed
}
