# Functions for scripts that run clang's tools on the sources: each check writes a report into a folder, whose last line is
# `ok ...`, `SKIP ...` or `FAIL ...`.
# shellcheck shell=bash
set -u

write_commands() {  # write_commands FOLDER: compile_commands.json for each source alone, without a precompiled header
  cmake --preset release -B "$1" -DCMAKE_UNITY_BUILD=OFF -DDTRAIN_PCH=OFF >"$1/configure.log" 2>&1 ||
    { cat "$1/configure.log" >&2; return 1; }
}

cannot_read_library() {  # cannot_read_library REPORT: whether this clang stumbles over the standard headers that are here
  grep -qE '^/usr/[^ ]*include/c\+\+/.*(\[clang-diagnostic-error|: error: )' "$1"
}

count_reports() {  # count_reports FOLDER: prints all reports and the closing line; fails if one of them failed
  local passed=0 failed=0 skipped=0 report
  for report in "$1"/*; do
    cat "$report"
    case "$(tail -n 1 "$report")" in
      ok*) passed=$((passed + 1)) ;;
      SKIP*) skipped=$((skipped + 1)) ;;
      *) failed=$((failed + 1)) ;;
    esac
  done
  echo "$passed passed, $failed failed, $skipped skipped"
  [ $failed -eq 0 ]
}
