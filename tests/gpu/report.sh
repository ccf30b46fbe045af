#!/usr/bin/env bash
# Numbers out of files of results, and all of them as one JSON document and one archive. Part of run-gpu.sh, whose
# variables it uses.
# shellcheck disable=SC2154
set -uo pipefail

numbers() { grep -ohE "\"$1\": ?[0-9.e+-]+" "${@:2}" 2>/dev/null | sed 's/.*: *//'; }  # numbers KEY FILE...
number() { numbers "$@" | head -n 1; }
first() { local found; found=$(number "$@"); echo "${found:-null}"; }
# The middle one of several files' numbers, the mean of the middle two of an even number, null of none.
# median KEY FILE...
median() {
  numbers "$@" | sort -g | awk '{ v[NR] = $1 }
    END {
      if (NR == 0) print "null"
      else if (NR % 2) print v[(NR + 1) / 2]
      else printf "%.10g\n", (v[NR / 2] + v[NR / 2 + 1]) / 2
    }'
}
# The first number by the second, or null. quotient A B
quotient() { awk -v a="$1" -v b="$2" 'BEGIN { if (a + 0 > 0 && b + 0 > 0) printf "%.4g", a / b; else print "null" }'; }
quoted() { sed 's/\\/\\\\/g; s/"/\\"/g; s/.*/"&"/' <<<"$1"; }

# What dtrain's files of one network say beside its peer's. network_json RESULTS NAME
network_json() {
  local ours=("$1/bench-$2"-*.json) theirs=("$1/torch-$2"-*.json) speed peer_speed
  speed=$(median images_per_second "${ours[@]}")
  peer_speed=$(median images_per_second "${theirs[@]}")
  printf '{"images_per_second": %s, "pytorch_images_per_second": %s, "times_pytorch": %s, ' "$speed" "$peer_speed" \
    "$(quotient "$speed" "$peer_speed")"
  # Each operation of a step alone, as a share of it: what is missing to 1 is launches, waiting and the update.
  printf '"kernel_share": %s, "memory_bytes": %s, "pytorch_memory_bytes": %s, "deterministic_cost": %s}' \
    "$(median operations_share "${ours[@]}")" "$(median planned_bytes "${ours[@]}")" \
    "$(median peak_memory_bytes "${theirs[@]}")" "$(median deterministic_cost "${ours[@]}")"
}

summarise() {  # summarise RESULTS FAILED
  local tool name dtype separator=""
  {
    printf '{"schema": "dtrain.gpu-results/2", "failed": %s, ' "$([ "$2" -eq 0 ] && echo false || echo true)"
    printf '"tests": %s, "test_failures": %s, "sanitizer": {' "$(first tests "$1/tests.json")" \
      "$(first failures "$1/tests.json")"
    for tool in memcheck racecheck initcheck; do
      printf '%s"%s": %s' "$separator" $tool "$(quoted "$(cat "$1/$tool.status" 2>/dev/null || echo "not run")")"
      separator=", "
    done
    printf '}, "pytorch": %s, "networks": {' "$(quoted "$(tail -n 1 "$1/pytorch.txt")")"
    separator=""
    while read -r name _; do
      for dtype in ${name:+$dtypes}; do
        printf '%s"%s-%s": %s' "$separator" "$name" "$dtype" "$(network_json "$1" "$name-$dtype")"
        separator=", "
      done
    done <<<"$networks"
    printf '}, "race": %s}\n' "$(race_json "$1")"
  } >"$1/summary.json"
  cat "$1/summary.json"
}

# All results as one file: a machine that is lent hands back only a few. pack_results RESULTS
pack_results() {
  local from to=${OUT:-$1} packed status=0
  from=$(realpath "$1")
  # Outside the folder: tar calls it a failure when what it reads changes meanwhile, and a new file changes its folder.
  packed=$(mktemp) || return
  { tar -C "$(dirname "$from")" -czf "$packed" --exclude=home --exclude='*results.tgz' "$(basename "$from")" &&
    chmod 644 "$packed" && mv "$packed" "$to/results.tgz"; } || status=1
  rm -f "$packed"
  return $status
}
