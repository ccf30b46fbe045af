#!/usr/bin/env bash
# Every black-box suite against one program: tests/cli/run.sh DTRAIN [SUITE...]. The last line is the sum.
set -uo pipefail
[ $# -ge 1 ] || { echo "usage: tests/cli/run.sh DTRAIN [SUITE...]" >&2; exit 2; }
DTRAIN=$(realpath "$1") || exit 2
export DTRAIN
shift
cd "$(dirname "${BASH_SOURCE[0]}")" || exit 1

passed=0 failed=0 skipped=0
for script in *.sh; do
  name=${script%.sh}
  case "$name" in lib | run | sshd) continue ;; esac
  [ $# -eq 0 ] || [[ " $* " == *" $name "* ]] || continue
  begin=$SECONDS
  output=$(bash "$script" 2>&1)
  sum=$(tail -n 1 <<<"$output")
  if [[ $sum =~ ^([0-9]+)\ passed,\ ([0-9]+)\ failed,\ ([0-9]+)\ skipped$ ]]; then
    passed=$((passed + BASH_REMATCH[1])) failed=$((failed + BASH_REMATCH[2])) skipped=$((skipped + BASH_REMATCH[3]))
  else
    failed=$((failed + 1))
    echo "FAIL $name: ended without a sum"
  fi
  grep -v ' passed, ' <<<"$output"
  echo "$name: $sum ($((SECONDS - begin)) s)"
done
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
