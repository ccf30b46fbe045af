#!/usr/bin/env bash
# Starts a training program from its newest checkpoint: resume.sh FOLDER COMMAND...
# Checkpoints are FOLDER/model-STEP or FOLDER/model-STEP.*; the one with the highest step is given as `--load FOLDER/model-STEP`.
set -euo pipefail
[ $# -ge 2 ] || { echo "usage: resume.sh FOLDER COMMAND..." >&2; exit 2; }
folder=$1
shift

newest=
for file in "$folder"/model-*; do
  step=${file##*/model-}
  step=${step%%.*}
  case $step in '' | *[!0-9]*) continue ;; esac
  if [ -z "$newest" ] || [ "$step" -gt "$newest" ]; then newest=$step; fi
done

if [ -n "$newest" ]; then set -- "$@" --load "$folder/model-$newest"; fi
exec "$@"
