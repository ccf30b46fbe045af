#!/usr/bin/env bash
# Starts a job on this machine, lets workers join, die and leave while it trains, and draws a picture of that. Takes
# about a minute.
#   bash examples/elastic.sh [FOLDER]
# Writes data, model, job folder and picture to FOLDER (default: build/elastic). This script made examples/elastic.svg,
# which README.md shows. EPOCHS and PAUSE change the length of the run.
set -euo pipefail
top=$(realpath "$(dirname "${BASH_SOURCE[0]}")/..")
folder=${1:-$top/build/elastic}
dtrain=${DTRAIN:-$top/build/release/dtrain}
[ -x "$dtrain" ] || dtrain=$top/build/quick/dtrain
epochs=${EPOCHS:-26}
pause=${PAUSE:-8} # seconds between two changes
[ -x "$dtrain" ] || { echo "$dtrain does not exist: build it with 'bash $top/examples/quickstart.sh'" >&2; exit 1; }

main() {
  "$dtrain" data prepare shapes --out "$folder/data"
  echo w1 >"$folder/hosts"
  rm -rf "$folder/job"
  train --detach
  trap '"$dtrain" stop --job-dir "$folder/job" >/dev/null 2>&1 || true' EXIT

  sleep "$pause"
  hosts add w2
  sleep "$pause"
  kill -KILL "$(process_of w1)" # its agent starts it again
  sleep "$pause"
  hosts add w3
  sleep "$pause"
  hosts remove w1
  "$dtrain" tail-logs --job-dir "$folder/job" >/dev/null # until the job ends

  "$dtrain" events --job-dir "$folder/job" | grep -E ' (added|removed|generation) '
  "$dtrain" plot "$folder/job" --out "$folder/run.svg"
  "$dtrain" plot "$folder/job" --out "$folder/run.png"
}

train() {
  "$dtrain" train --network resnet --num-layers 8 --num-epochs "$epochs" --seed 1 \
    --model-prefix "$folder/model/shapes" --force \
    --data-train "$folder/data/shapes_train.rec" --data-val "$folder/data/shapes_val.rec" \
    --global-batch 64 --logical-shards 8 --lr 0.1 --lr-schedule one-cycle \
    --max-random-h 0 --max-random-s 0 --max-random-l 0 --threads 1 --data-nthreads 1 \
    -n 1 -H "$folder/hosts" --launcher local --elastic --elastic-boundary step --job-dir "$folder/job" "$@"
}

hosts() { "$dtrain" hosts "$@" --job-dir "$folder/job"; }

process_of() {  # process_of HOST: the process id of its first worker
  hosts list --json | sed -E 's/.*"name": ?"'"$1"'"[^}]*"pids": ?\[([0-9]+).*/\1/'
}

main
