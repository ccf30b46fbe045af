#!/usr/bin/env bash
# clang's thread-safety analysis of what uses base/mutex.hpp: tests/lint/thread_safety.sh. It reads the sources
# that include this header, and one for each header of src and include that does. A planted access without the mutex must
# be refused first. A file that is not compiled here, or whose standard headers this clang cannot read, is skipped. The last
# line is `N passed, N failed, N skipped`.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 1
. tests/lint/clang.sh
command -v clang++ >/dev/null || { echo "SKIP thread_safety: no clang++ (packaging/install-deps.sh test)"; exit 77; }
export analysis='-fsyntax-only -Wno-everything -Wthread-safety -Werror=thread-safety'

main() {
  local work status
  work=$(mktemp -d)
  mkdir "$work/reports"
  write_commands "$work" || exit 1
  refuse_planted "$work" >"$work/reports/planted"
  users | xargs -P "$(nproc)" -I FILE bash -c 'check "$@"' - "$work" FILE
  count_reports "$work/reports"
  status=$?
  rm -rf "$work"
  return $status
}

users() {  # the sources to read
  {
    grep -rlF '<dtrain/base/mutex.hpp>' src --include='*.cpp'
    grep -rlF '<dtrain/base/mutex.hpp>' src include --include='*.hpp' | while read -r header; do user_of "$header"; done
  } | sort -u
}

user_of() {  # user_of HEADER: its own source, else one of the same name, else the first one that includes it
  local name own=${1%.hpp}.cpp
  if [ -f "$own" ]; then echo "$own"; return; fi
  name=$(basename "$1" .hpp)
  grep -rlE "^#include [\"<](.*/)?$name\\.hpp[\">]" src --include='*.cpp' |
    awk -v own="/$name.cpp" '{ if (index($0, own)) { found = $0 } else if (!other) { other = $0 } } END { print found ? found : other }'
}

refuse_planted() {  # refuse_planted FOLDER
  cat >"$1/planted.cpp" <<'END'
#include <dtrain/base/mutex.hpp>
class Counter {
 public:
  void add() { ++count_; }

 private:
  dtrain::Mutex mutex_;
  int count_ DTRAIN_GUARDED_BY(mutex_) = 0;
};
END
  # shellcheck disable=SC2086  # several words
  if clang++ -std=c++20 -Iinclude $analysis "$1/planted.cpp" 2>"$1/planted.txt"; then
    echo "FAIL a planted access without the mutex was not refused"
  elif grep -q "requires holding mutex 'mutex_'" "$1/planted.txt"; then
    echo "ok   a planted access without the mutex is refused"
  elif cannot_read_library "$1/planted.txt"; then
    echo "SKIP planted: this clang cannot read the standard library here"
  else
    cat "$1/planted.txt"
    echo "FAIL a planted access was refused for another reason"
  fi
}

check() {  # check FOLDER FILE: a report in FOLDER/reports
  local report=$1/reports/${2//\//_} command
  command=$(command_of "$1/compile_commands.json" "$2")
  if [ -z "$command" ]; then
    echo "SKIP $2: not compiled here" >"$report"
  elif eval "clang++ $command $analysis" 2>"$report"; then
    echo "ok   $2" >"$report"
  elif cannot_read_library "$report"; then
    echo "SKIP $2: this clang cannot read the standard library here" >"$report"
  else
    echo "FAIL $2" >>"$report"
  fi
}

command_of() {  # command_of COMMANDS FILE: the arguments of its compiler, quoted for a shell
  grep -F -B1 "/$2\"" "$1" | sed -nE 's/^ *"command": "[^ ]+ (.*)",?$/\1/p' | head -n 1 | sed -E 's/\\(.)/\1/g; s/ -o [^ ]+ -c / /'
}
export -f check command_of cannot_read_library

main "$@"
