#!/usr/bin/env bash
# dtrain beside its peers on photographs, in turn on this machine: decoding and augmenting (torchvision, MXNet's
# ImageRecordIter), packing (MXNet's im2rec.py), small raw records, and reading in order (dd).
# Usage: tests/bench/loaders.sh [FOLDER_OF_CLASS_FOLDERS] [--alternations N] [--seconds S] [PART...]
# Parts: photos pack (of the folder), raw read (without one); all that can run is the default. photos and pack make
# their own virtual environments under build/peers (PyPI, the first time).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

usage() { sed -n '4,6s/^# //p' "$0" >&2; exit 2; }
source='' alternations=5 seconds=8 parts=()
while [ $# -gt 0 ]; do
  case $1 in
    --alternations) alternations=$2; shift 2 ;;
    --seconds) seconds=$2; shift 2 ;;
    photos | pack | raw | read) parts+=("$1"); shift ;;
    -*) usage ;;
    *)
      if [ -n "$source" ] || [ ! -d "$1" ]; then usage; fi
      source=$1
      shift
      ;;
  esac
done
if [ ${#parts[@]} -eq 0 ]; then
  parts=(raw read)
  [ -z "$source" ] || parts=(photos pack raw read)
fi
wants_photographs() { [[ " ${parts[*]} " =~ \ (photos|pack)\  ]]; }
if wants_photographs && [ -z "$source" ]; then usage; fi

readonly dtrain=${DTRAIN:-build/release/dtrain} bench=build/release/tests/dtrain_loader_bench
cmake --preset release >&2 && cmake --build build/release --target dtrain dtrain_loader_bench >&2

if wants_photographs; then
  # shellcheck source=tests/bench/peers.sh
  source tests/bench/peers.sh
  make_peer torchvision torch torchvision numpy
  make_peer mxnet mxnet==1.9.1 numpy==1.23.5 'opencv-python-headless<4.9'
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Every part writes lines "WHO FIGURE", more is better, round after round; then the medians, and of dtrain's figure
# divided by each other's of the same round.
row() { printf '%s\t%s\n' "$1" "$2" | tee -a "$work/rows"; }
median() { sort -n | awk '{values[NR] = $1} END {print values[int((NR + 1) / 2)]}'; }
tell_ratios() {
  local who
  cut -f 1 "$work/rows" | sort -u | while read -r who; do
    printf '%s: median %s' "$who" "$(awk -v who="$who" '$1 == who {print $2}' "$work/rows" | median)"
    [ "$who" = dtrain ] || printf ', dtrain / this %s' "$(awk -v who="$who" '$1 == "dtrain" {ours[++n] = $2}
      $1 == who {printf "%.2f\n", ours[++m] / $2}' "$work/rows" | median)"
    echo
  done
  rm "$work/rows"
}

rate() { sed -E 's/.*"samples_per_second": ?([0-9.]+).*/\1/'; }
seconds_of() { local start=$EPOCHREALTIME; "$@" >/dev/null 2>&1; echo "$EPOCHREALTIME $start" | awk '{print $1 - $2}'; }

ours_on_photos() {  # THREADS [OPTION...]
  "$dtrain" data bench "$work/photos.rec" --image-shape 3,224,224 --random-resized-crop 1 --random-mirror 1 \
    --rgb-std 58.393,57.12,57.375 --batch-size 32 --threads "$1" --seconds "$seconds" --json "${@:2}" | rate
}
peer_on_photos() {  # WHO THREADS
  "$peers/$1/bin/python" tests/bench/loader_peer.py "$1" "$work/photos.rec" --threads "$2" --seconds "$seconds" 2>/dev/null | rate
}

part_photos() {
  local i
  "$dtrain" data pack "$source" --out "$work/photos" --resize 375 --train-ratio 1 --shuffle -q >/dev/null
  echo "JPEG, random resized crop to 224, mirror, normalise: images a second on one thread, and dtrain on two and from"
  echo "decoded pictures that are kept"
  for ((i = 1; i <= alternations; ++i)); do
    row dtrain "$(ours_on_photos 1)"
    row dtrain-on-two "$(ours_on_photos 2)"
    row dtrain-cached "$(ours_on_photos 1 --cache-decoded 4)"
    row torchvision "$(peer_on_photos torchvision 1)"
    row mxnet "$(peer_on_photos mxnet 1)"
  done
  tell_ratios
}

# The same list for both: every picture ten times, and one of a single picture that shows what starting takes.
write_lists() {
  find "$source" -name '*.jpg' -printf '%P\n' | sort | awk -v list="$work/many.lst" -v one="$work/one.lst" '
    {names[NR] = $0}
    END {for (i = 0; i < NR * 10; ++i) printf "%d\t0\t%s\n", i, names[i % NR + 1] >list; printf "0\t0\t%s\n", names[1] >one}'
}
pack_by_dtrain() { "$dtrain" data pack "$work/$1.lst" --force --root "$source" --out "$work/packed" --resize 256 --quality 95 --threads 1; }
pack_by_im2rec() {
  "$peers/mxnet/bin/python" "$peers"/mxnet/lib/python3*/site-packages/mxnet/tools/im2rec.py --resize 256 --quality 95 \
    --num-thread 1 "$work/$1.lst" "$source"
}
packed_per_second() {  # COMMAND
  local many one
  many=$(seconds_of "$1" many) one=$(seconds_of "$1" one)
  awk -v count="$(wc -l <"$work/many.lst")" -v many="$many" -v one="$one" 'BEGIN {printf "%.1f", count / (many - one)}'
}

part_pack() {
  local i
  write_lists
  echo "pack, shorter edge 256, quality 95: pictures a second on one thread, without the start of the program"
  for ((i = 1; i <= alternations; ++i)); do
    row dtrain "$(packed_per_second pack_by_dtrain)"
    row im2rec "$(packed_per_second pack_by_im2rec)"
  done
  tell_ratios
}

make_raw() { [ -e "$work/raw/shapes_train.rec" ] || "$dtrain" data prepare shapes -q --out "$work/raw" --train-count 100000 --val-count 10 >/dev/null; }

part_raw() {
  make_raw
  echo "raw 32x32: images a second by the wall clock and (by the processor time of all threads)"
  "$bench" "$work/raw/shapes_train.rec" "$seconds" 1 2
}

# From the page cache, every word looked at.
read_by_dd() {
  local took
  took=$(seconds_of dd if="$work/raw/shapes_train.rec" of=/dev/null bs=1M)
  awk -v bytes="$(stat -c %s "$work/raw/shapes_train.rec")" -v took="$took" 'BEGIN {printf "%.0f", bytes / took / 1e6}'
}

part_read() {
  local i
  make_raw
  echo "reading records in order from the page cache: MB a second"
  for ((i = 1; i <= alternations; ++i)); do
    row dtrain "$("$bench" --read "$work/raw/shapes_train.rec")"
    row dd "$(read_by_dd)"
  done
  tell_ratios
}

uptime
for part in "${parts[@]}"; do "part_$part"; done
uptime
