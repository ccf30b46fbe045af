# Functions for scripts that run clang's tools on the sources: each check writes a report into a folder, whose last line is
# `ok ...`, `SKIP ...` or `FAIL ...`.
# shellcheck shell=bash
set -u

without_precompiled() {  # without_precompiled BUILD: its commands without GCC's precompiled header, which clang cannot read
  sed -E 's# -Winvalid-pch -include [^ ]*cmake_pch[.]hxx##' "$1/compile_commands.json"
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
