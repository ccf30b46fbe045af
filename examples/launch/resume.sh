#!/usr/bin/env bash
# Starts a training program from its newest checkpoint: resume.sh FOLDER COMMAND...
# Checkpoints are named FOLDER/model-STEP or FOLDER/model-STEP.*. If there are some, the script adds
# `--load FOLDER/model-STEP` with the highest STEP to COMMAND.
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
