#!/usr/bin/env bash
# Workers join, die and leave while a job trains, and a picture shows it: on this machine, in about a minute.
#   bash examples/elastic.sh [FOLDER]      data, model, job and picture go to FOLDER (default: build/elastic)
# examples/elastic.svg, which README.md shows, was made so.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
folder=${1:-build/elastic}
dtrain=${DTRAIN:-build/release/dtrain}
epochs=${EPOCHS:-26}
pause=${PAUSE:-8} # seconds between two changes
[ -x "$dtrain" ] || { echo "no $dtrain: run 'bash examples/quickstart.sh' first, which builds it" >&2; exit 1; }

main() {
  "$dtrain" data prepare shapes --out "$folder/data"
  echo w1 >"$folder/hosts"
  rm -rf "$folder/job"
  train --detach
  trap '"$dtrain" stop --job-dir "$folder/job" >/dev/null 2>&1 || true' EXIT

  sleep "$pause"
  hosts add w2
  sleep "$pause"
  kill -KILL "$(process_of w1)" # the agent starts another one
  sleep "$pause"
  hosts add w3
  sleep "$pause"
  hosts remove w1
  "$dtrain" tail-logs --job-dir "$folder/job" >/dev/null # until it is over

  "$dtrain" events --job-dir "$folder/job" | grep -E ' (added|removed|generation) '
  "$dtrain" plot "$folder/job" --out "$folder/run.svg"
  "$dtrain" plot "$folder/job" --out "$folder/run.png"
}

train() {
  "$dtrain" train --network resnet --num-layers 8 --num-epochs "$epochs" --seed 1 --model-prefix "$folder/model/shapes" \
    --data-train "$folder/data/shapes_train.rec" --data-val "$folder/data/shapes_val.rec" \
    --global-batch 64 --logical-shards 8 --lr 0.1 --lr-schedule one-cycle \
    --max-random-h 0 --max-random-s 0 --max-random-l 0 --threads 1 --data-nthreads 1 \
    -n 1 -H "$folder/hosts" --launcher local --elastic --elastic-boundary step --job-dir "$folder/job" "$@"
}

hosts() { "$dtrain" hosts "$@" --job-dir "$folder/job"; }

process_of() {
  hosts list --json | sed -E 's/.*"name": ?"'"$1"'"[^}]*"pids": ?\[([0-9]+).*/\1/'
}

main
