#!/usr/bin/env bash
# clang-tidy: tests/lint/tidy.sh [--last N | FILE...]. Without files those of src that changed since
# DTRAIN_TIDY_BASE (default: over the last 20 commits), or the N that changed last: all of them take an hour. A file that is
# not compiled here, or whose standard headers this clang cannot read, is skipped. The last line is `N passed, N failed, N skipped`.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 1
. tests/lint/clang.sh
command -v clang-tidy >/dev/null || { echo "SKIP tidy: no clang-tidy (packaging/install-deps.sh test)"; exit 77; }

main() {
  local files=("$@") work database status
  if [ "${1:-}" = --last ]; then
    mapfile -t files < <(changed_last "$2")
  elif [ ${#files[@]} -eq 0 ]; then
    mapfile -t files < <(changed)
  fi
  if [ ${#files[@]} -eq 0 ]; then echo "SKIP tidy: no source changed, or no git here that tells"; exit 77; fi
  work=$(mktemp -d)
  database=$(mktemp -d)
  write_commands "$database" || exit 1
  printf '%s\n' "${files[@]}" | xargs -P "$(nproc)" -I FILE bash -c 'check "$@"' - "$database" "$work" FILE
  count_reports "$work"
  status=$?
  rm -rf "$work" "$database"
  return $status
}

changed() {
  local base=${DTRAIN_TIDY_BASE:-$(git rev-list -n 21 HEAD 2>/dev/null | tail -n 1)}
  [ -z "$base" ] || git diff --name-only --diff-filter=d "$base" -- 'src/*.cpp'
}

changed_last() {  # changed_last N
  git log -n 300 --format= --name-only -- 'src/*.cpp' 2>/dev/null | awk '!seen[$0]++' |
    while read -r file; do if [ -f "$file" ]; then echo "$file"; fi; done | head -n "$1"
}

check() {  # check BUILD FOLDER FILE: a file in FOLDER with what is wrong and a last line ok or FAIL
  local report=$2/${3//\//_}
  if ! grep -qF "/$3\"" "$1/compile_commands.json"; then
    echo "SKIP $3: not compiled here" >"$report"
  elif clang-tidy -p "$1" --quiet "$3" >"$report" 2>/dev/null; then
    echo "ok   $3" >"$report"
  elif cannot_read_library "$report"; then
    echo "SKIP $3: this clang cannot read the standard library here" >"$report"
  else
    echo "FAIL $3" >>"$report"
  fi
}
export -f check cannot_read_library

main "$@"
