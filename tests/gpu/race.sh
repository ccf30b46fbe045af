#!/usr/bin/env bash
# The race to 94 %: the recipe speednet on CIFAR-10, by dtrain and by PyTorch, each DTRAIN_GPU_RACES times with other
# seeds. Part of run-gpu.sh, whose variables and functions it uses. dtrain is a process a run, PyTorch one for all, with a
# run more before the first that counts. Seconds go from the first step to the end of the last evaluation, the images
# being in memory and the first layer whitened; wall_seconds, dtrain's only, from exec to exit. Of dtrain's they are
#   all epochs, with the mean of the later steps in place of the first two, which load and record, and the last
#   evaluation: the earlier ones, which dtrain makes after each epoch, do not count.
# shellcheck disable=SC2154
set -uo pipefail

races=${DTRAIN_GPU_RACES:-10} race_dtype=auto race_plans=10 race_test_images=0
race_options=()  # besides the recipe

draw_race() {  # draw_race BUILD FOLDER [WIDTH]
  mkdir -p "$2/speednet"
  "$1/tests/dtrain_dump_graph" speednet 0 3,32,32 10 "$2/speednet" "${3:-0}"
}

race() {  # race RESULTS
  local work status
  rm -f "$1/race.json" "$1/torch-race.json"
  join_cifar
  if [ -z "${DTRAIN_GPU_CIFAR:-}" ]; then
    row race "not run: DTRAIN_GPU_CIFAR names no folder with CIFAR-10's binary files"
    return
  fi
  work=$(mktemp -d)
  race_dtrain "$1" "$work"
  status=$?
  rm -rf "$work"
  tell_race "$1/race.json"
  if [ $status -eq 0 ] && [ -n "$python" ]; then race_pytorch "$1"; fi
  return $status
}

# What `take` kept becomes the folder, unless one is named.
join_cifar() {
  local unpacked=$home/cifar-10 file
  if [ -n "${DTRAIN_GPU_CIFAR:-}" ]; then return; fi
  if [ ! -d "$unpacked" ] && compgen -G "$home/cifar/*" >/dev/null; then
    rm -rf "$unpacked.new"
    mkdir -p "$unpacked.new"
    # By Python, because tar needs a program xz that may not be there.
    if cat "$home"/cifar/* | "${python:-python3}" -c 'import sys, tarfile
tarfile.open(fileobj=sys.stdin.buffer, mode="r|xz").extractall(sys.argv[1])' "$unpacked.new"; then
      mv "$unpacked.new" "$unpacked"
    fi
  fi
  file=$(find "$unpacked" -name data_batch_1.bin 2>/dev/null | head -n 1)
  if [ -n "$file" ]; then DTRAIN_GPU_CIFAR=$(dirname "$file"); fi
}

race_dtrain() {  # race_dtrain RESULTS FOLDER
  local options seed begin run runs=()
  options=(--recipe speednet --device "$device" --dtype "$race_dtype" "${race_options[@]}"
    --data-train "$2/cifar10_train.rec" --data-val "$2/cifar10_val.rec" --json)
  {
    within 60 "$dtrain" data prepare cifar10 --from "$DTRAIN_GPU_CIFAR" --out "$2" &&
      within 60 "$dtrain" train "${options[@]}" --show-config >"$1/race-config.json" &&
      time_plans "$1/race-config.json" "$1/race-plans.json"
  } </dev/null >"$1/race.log" 2>&1 || { race_failed "$1/race.log"; return 1; }
  for ((seed = 1; seed <= races; ++seed)); do
    begin=$EPOCHREALTIME
    within 60 "$dtrain" train "${options[@]}" --seed $seed </dev/null >"$1/race-$seed.jsonl" 2>"$1/race-$seed.log" ||
      { race_failed "$1/race-$seed.log"; return 1; }
    run=$(race_run $seed "$begin" "$EPOCHREALTIME" "$1/race-$seed.jsonl")
    runs+=("$run")
  done
  (IFS=,; printf '{"schema": "dtrain.race/1", "runs": [%s]}\n' "${runs[*]}") >"$1/race.json"
}

race_failed() { row race "failed: $(grep -m 1 -E '^dtrain: |^\{"error"' "$1" || head -n 1 "$1")"; }

# A later run takes the plans that this one finds fastest; a CPU has none. time_plans CONFIG FILE
time_plans() {
  [ "$device" = cuda ] || return 0
  within 170 "$dtrain" bench train --network speednet --width "$(setting width "$1")" \
    --batch-size "$(setting batch-size "$1")" --dtype "$race_dtype" --device "$device" --time-plans $race_plans \
    --own-products "$(own_products)" --warmup 2 --steps 10 --json >"$2"
}

setting() { sed -nE 's/.*"name":"'"$1"'","value":"([^"]*)".*/\1/p' "$2"; }  # setting NAME CONFIG

# What a run says of itself. race_run SEED BEGIN END EVENTS
race_run() {
  awk -v seed="$1" -v begin="$2" -v end="$3" '
    function value(key) {
      if (!match($0, "\"" key "\":[-+0-9.e]+")) return 0
      return substr($0, RSTART + length(key) + 3, RLENGTH - length(key) - 3) + 0
    }
    /"event":"step"/ { if (++steps <= 2) first += value("seconds"); else later += value("seconds") }
    /"event":"epoch"/ { epochs += value("seconds") }
    /"event":"evaluation"/ { evaluation = value("seconds"); accuracy = value("accuracy") }
    END {
      if (steps > 2) epochs += 2 * later / (steps - 2) - first
      printf "{\"seed\": %d, \"accuracy\": %.6g, \"seconds\": %.6f, \"wall_seconds\": %.6f}", seed, accuracy,
        epochs + evaluation, end - begin
    }' "$4"
}

race_pytorch() {  # race_pytorch RESULTS
  local file=$1/torch-race
  if within $((60 + 30 * races)) "$python" -B "$parts/speednet_peer.py" "$graphs/speednet/graph.json" "$1/race-config.json" \
    "$DTRAIN_GPU_CIFAR" --runs "$races" --dtype "$(race_arithmetic "$1")" --device "$device" \
    --test-images "$race_test_images" </dev/null >"$file.json" 2>"$file.log"; then
    tell_race "$file.json"
  else
    rm -f "$file.json"
    row torch-race "failed: $(tail -n 1 "$file.log")"
  fi
}

race_arithmetic() { sed -nE '1s/.*"dtype":"([a-z0-9]+)".*/\1/p' "$1/race-1.jsonl"; }  # race_arithmetic RESULTS

tell_race() {  # tell_race FILE
  [ -s "$1" ] || return 0
  row "$(basename "$1" .json)" "accuracy $(mean accuracy "$1") in $(numbers accuracy "$1" | wc -l) runs, $(median seconds \
    "$1") s of training"
}

mean() { numbers "$@" | awk '{ sum += $1 } END { print NR ? sum / NR : "null" }'; }  # mean KEY FILE...

# Of numbers, one a line: the mean and its standard error, and the share of those that reach 0.94.
race_accuracy() {
  awk '{ v[NR] = $1; sum += $1; reached += $1 >= 0.94 }
    END {
      for (i = 1; i <= NR; ++i) squares += (v[i] - sum / NR) ^ 2
      error = "null"
      if (NR > 1) error = sprintf("%.3g", sqrt(squares / (NR - 1) / NR))
      printf "\"runs\": %d, \"accuracy_mean\": %.6g, \"accuracy_standard_error\": %s, \"share_at_94\": %.4g",
        NR, sum / NR, error, reached / NR
    }'
}

race_side() {  # race_side FILE: what summary.json says of one program's runs
  [ -s "$1" ] || { printf 'null'; return; }
  printf '{%s' "$(numbers accuracy "$1" | race_accuracy)"
  printf ', "seconds_mean": %s, "seconds_median": %s' "$(mean seconds "$1")" "$(median seconds "$1")"
  if grep -q wall_seconds "$1"; then
    printf ', "wall_seconds_mean": %s, "wall_seconds_median": %s' "$(mean wall_seconds "$1")" "$(median wall_seconds "$1")"
  fi
  printf '}'
}

race_json() {  # race_json RESULTS
  [ -s "$1/race.json" ] || { printf 'null'; return; }
  printf '{"dtype": %s, "dtrain": %s, "pytorch": %s, "times_pytorch": %s}' "$(quoted "$(race_arithmetic "$1")")" \
    "$(race_side "$1/race.json")" "$(race_side "$1/torch-race.json")" \
    "$(quotient "$(median seconds "$1/torch-race.json")" "$(median seconds "$1/race.json")")"
}
