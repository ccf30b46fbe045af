#!/usr/bin/env bash
# What `dtrain data cp` reads from a server on this machine beside what `curl -r` reads in parallel from the same one;
# how long the first batch takes from there; and what 50 ms of delay for each request cost a loader that reads ahead:
# tests/bench/s3.sh DTRAIN [MIB] [CONNECTIONS]
set -euo pipefail
program=$(realpath "$1") mib=${2:-512} connections=${3:-8}
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
folder=$(mktemp -d)
trap 'exec 7>&-; rm -rf "$folder"' EXIT

mkfifo "$folder/in" "$folder/out"
python3 "$here/../net/s3_server.py" <"$folder/in" >"$folder/out" &
exec 7>"$folder/in"
read -r port <"$folder/out"
export AWS_ENDPOINT_URL=http://127.0.0.1:$port AWS_ACCESS_KEY_ID=key AWS_SECRET_ACCESS_KEY=secret AWS_REGION=us-east-1

seconds() { local start=$EPOCHREALTIME; "$@" >/dev/null; echo "$EPOCHREALTIME $start" | awk '{print $1 - $2}'; }
rate() { awk -v mib="$mib" -v seconds="$1" 'BEGIN {printf "%.0f", mib / seconds}'; }

curl_in_parts() {
  local part=$((mib * 1048576 / connections)) i pids=()
  for ((i = 0; i < connections; ++i)); do
    curl -sf -r "$((i * part))-$(((i + 1) * part - 1))" -o "$folder/part$i" "$AWS_ENDPOINT_URL/public/big" &
    pids+=($!)
  done
  wait "${pids[@]}"
}

dtrain_copy() {
  rm -f "$folder/got"
  "$program" data cp -q s3://public/big "$folder/got"
}

# Raw 32x32 images, uncached at first: samples a second over so many seconds, from the key's first word.
samples_from() {
  rm -rf "$folder/cache"
  "$program" train --test-io 1 --data-train "s3://public/$1/shapes_train.rec" --image-shape 3,28,28 --batch-size 128 \
    --disp-batches 50 --cache-dir "$folder/cache" -q 2>/dev/null | awk '{print $4}' | tail -n +4 |
    awk '{sum += 1 / $1} END {printf "%.0f", NR / sum}'
}

first_batch_from() {
  rm -rf "$folder/cache"
  "$program" train --test-io 1 --data-train "s3://public/$1/shapes_train.rec" --image-shape 3,28,28 --batch-size 128 \
    --disp-batches 1 --cache-dir "$folder/cache" -q 2>/dev/null | head -n 1
}

head -c "$((mib * 1048576))" /dev/zero >"$folder/big"
curl -sf -X PUT -H 'x-bench: 1' --data-binary "@$folder/big" "$AWS_ENDPOINT_URL/public/big"
for round in 1 2 3; do
  curl=$(rate "$(seconds curl_in_parts)") ours=$(rate "$(seconds dtrain_copy)")
  echo "round $round: curl -r x $connections $curl MiB/s, dtrain data cp $ours MiB/s"
done
cmp "$folder/big" "$folder/got"

"$program" data prepare shapes -q --out "$folder/d" --train-count 60000 --val-count 10 >/dev/null
for word in plain slow; do "$program" data cp -q -r "$folder/d" "s3://public/$word" >/dev/null; done
echo "first batch: $(seconds first_batch_from plain) s; with 50 ms of delay for each request $(seconds first_batch_from slow) s"
for round in 1 2 3; do
  echo "round $round: loader $(samples_from plain) samples/s, with 50 ms of delay $(samples_from slow)"
done
