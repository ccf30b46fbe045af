#!/usr/bin/env bash
# What `dtrain data cp` reads from a server on this machine beside what `curl -r` reads in parallel from the same one, in
# turn; how long the first batch takes from there; and what 50 ms of delay for each request cost a loader that reads
# ahead: tests/bench/s3.sh DTRAIN [MIB] [ROUNDS] [CONNECTIONS]
set -euo pipefail
program=$(realpath "$1") mib=${2:-512} rounds=${3:-9} connections=${4:-8}
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
folder=$(mktemp -d)
trap 'exec 7>&-; rm -rf "$folder"' EXIT

mkfifo "$folder/in" "$folder/out"
python3 "$here/../net/s3_server.py" <"$folder/in" >"$folder/out" &
exec 7>"$folder/in"
read -r port <"$folder/out"
export AWS_ENDPOINT_URL=http://127.0.0.1:$port AWS_ACCESS_KEY_ID=key AWS_SECRET_ACCESS_KEY=secret AWS_REGION=us-east-1

put() { curl -sf -X PUT -T "$1" "$AWS_ENDPOINT_URL/public/$2"; }
seconds() { local start=$EPOCHREALTIME; "$@" >/dev/null; echo "$EPOCHREALTIME $start" | awk '{print $1 - $2}'; }
quotient() { awk -v one="$1" -v other="$2" 'BEGIN {printf "%.2f", one / other}'; }
median() { sort -n | awk '{values[NR] = $1} END {print values[int((NR + 1) / 2)]}'; }

curl_in_parts() {
  local part=$((mib * 1048576 / connections)) i pids=()
  for ((i = 0; i < connections; ++i)); do
    curl -sf -r "$((i * part))-$(((i + 1) * part - 1))" -o "$folder/part$i" "$AWS_ENDPOINT_URL/public/big" &
    pids+=($!)
  done
  wait "${pids[@]}"
}

# What --test-io says of the records below WORD, with nothing of them cached.
read_from() {  # WORD DISP_BATCHES OPTIONS...
  local word=$1 every=$2
  shift 2
  rm -rf "$folder/cache"
  "$program" train --test-io 1 --data-train "s3://public/$word/train.rec" --image-shape 3,28,28 --batch-size 128 \
    --disp-batches "$every" --cache-dir "$folder/cache" -q "$@" 2>/dev/null
}

# All lines are read, so that nothing ends by SIGPIPE, but only the first one counts.
first_batch_from() {
  local start=$EPOCHREALTIME
  { read -r && echo "$EPOCHREALTIME $start" | awk '{print $1 - $2}' && cat >/dev/null; } < <(read_from "$1" 1)
}

# Samples a second after the first quarter of an epoch.
samples_from() {
  read_from "$1" 50 "${@:2}" | awk '/^Batch/ {rates[++all] = $4}
    END {for (i = int(all / 4) + 1; i <= all; ++i) {sum += 1 / rates[i]; ++n}
    printf "%.0f", n / sum}'
}

compare_copies() {
  local round curl ours
  head -c "$((mib * 1048576))" /dev/urandom >"$folder/big"
  put "$folder/big" big
  for ((round = 1; round <= rounds; ++round)); do
    rm -f "$folder"/part* "$folder/got"
    curl=$(seconds curl_in_parts)
    ours=$(seconds "$program" data cp -q s3://public/big "$folder/got")
    quotient "$curl" "$ours" >>"$folder/ratios" && echo >>"$folder/ratios"
    echo "round $round: curl -r x $connections $(quotient "$mib" "$curl") MiB/s, dtrain data cp $(quotient "$mib" "$ours") MiB/s"
  done
  cmp "$folder/big" "$folder/got"
  echo "dtrain data cp / curl -r, median of $rounds rounds: $(median <"$folder/ratios")"
}

compare_loaders() {  # NAME OPTIONS...
  local round plain slow
  rm -f "$folder/ratios"
  for ((round = 1; round <= rounds; ++round)); do
    plain=$(samples_from plain "${@:2}") slow=$(samples_from slow "${@:2}")
    quotient "$slow" "$plain" >>"$folder/ratios" && echo >>"$folder/ratios"
    echo "round $round: $1, $plain samples/s, with 50 ms of delay $slow"
  done
  echo "$1, with 50 ms of delay / without, median of $rounds rounds: $(median <"$folder/ratios")"
}

compare_copies
"$program" data prepare shapes -q --out "$folder/d" --train-count 120000 --val-count 10 >/dev/null
for word in plain slow; do
  for ending in rec idx; do put "$folder/d/shapes_train.$ending" "$word/train.$ending"; done
done
for ((round = 1; round <= 3; ++round)); do
  echo "first batch: $(first_batch_from plain) s; with 50 ms of delay for each request $(first_batch_from slow) s"
done
compare_loaders "all records shuffled"
compare_loaders "blocks shuffled" --shuffle-block 1024
