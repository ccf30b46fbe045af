#!/usr/bin/env bash
# Loaders side by side on photographs: dtrain, torchvision and MXNet in turn on this machine.
# Usage: tests/bench/loaders.sh FOLDER_OF_PHOTOS|PREFIX.rec [--alternations N] [--seconds S]
# Packs a folder with --resize 375 first. Makes its own virtual environments under build/peers (PyPI, the first time).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

[ $# -gt 0 ] || { sed -n '2,4s/^# //p' "$0" >&2; exit 2; }
source=$1 alternations=5 seconds=8
shift
while [ $# -gt 0 ]; do
  case $1 in
    --alternations) alternations=$2; shift 2 ;;
    --seconds) seconds=$2; shift 2 ;;
    *) sed -n '2,4s/^# //p' "$0" >&2; exit 2 ;;
  esac
done

dtrain=${DTRAIN:-build/release/dtrain}
[ -x "$dtrain" ] || { cmake --preset release >&2 && cmake --build build/release >&2; }

# shellcheck source=tests/bench/peers.sh
source tests/bench/peers.sh
make_peer torchvision torch torchvision numpy
make_peer mxnet mxnet==1.9.1 numpy==1.23.5

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
rec=$source
if [ -d "$source" ]; then
  "$dtrain" data pack "$source" --out "$work/photos" --resize 375 --shuffle >&2
  rec=$work/photos.rec
fi

rate() { sed -E 's/.*"samples_per_second": ?([0-9.]+).*/\1/'; }
measure() {  # WHO THREADS
  case $1 in
    dtrain)
      "$dtrain" data bench "$rec" --image-shape 3,224,224 --random-resized-crop 1 --random-mirror 1 \
        --rgb-std 58.393,57.12,57.375 --batch-size 32 --threads "$2" --seconds "$seconds" --json | rate ;;
    *) "$peers/$1/bin/python" tests/bench/loader_peer.py "$1" "$rec" --threads "$2" --seconds "$seconds" 2>/dev/null | rate ;;
  esac
}
printf 'loader\tthreads\tsamples/sec\n'
for ((i = 1; i <= alternations; ++i)); do
  for threads in 1 2; do
    for who in dtrain torchvision mxnet; do printf '%s\t%s\t%s\n' "$who" "$threads" "$(measure "$who" "$threads")"; done
  done
done
