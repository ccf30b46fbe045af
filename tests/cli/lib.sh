# What every suite of tests/cli starts with: `. "$(dirname "$0")/lib.sh"`. DTRAIN names the program. A suite runs in a scratch
# folder with a scratch HOME; `run` keeps stdout in `out`, stderr in `err` and the exit code in $code; `check` is one sentence
# with one command that must succeed; `finish` prints the sum.
# shellcheck shell=bash
set -uo pipefail

suite=$(basename "$0" .sh)
# shellcheck disable=SC2034  # for the suites
here=$(realpath "$(dirname "$0")") # of the suites
DTRAIN=$(realpath "${DTRAIN:?the program to test}")
for variable in "${!DTRAIN_@}" "${!DEEPLEARNING_@}"; do
  [ "$variable" = DTRAIN_TEST_DATA ] || unset "$variable"
done
unset NO_COLOR XDG_CONFIG_HOME EFS_MOUNT
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
export HOME=$scratch/home LC_ALL=C TERM=xterm
mkdir "$HOME" "$scratch/work"
cd "$scratch/work" || exit 1
passed=0 failed=0 skipped=0 code=0

run() {
  "$DTRAIN" "$@" >out 2>err </dev/null
  code=$?
}

check() {  # check SENTENCE COMMAND...
  local sentence=$1
  shift
  if "$@"; then
    passed=$((passed + 1))
    return
  fi
  failed=$((failed + 1))
  echo "FAIL $suite: $sentence ($*; exit code $code)"
  sed 's/^/    out: /' out | head -n 12
  sed 's/^/    err: /' err | head -n 12
}

skip() {  # skip NAME WHY
  skipped=$((skipped + 1))
  echo "SKIP $suite: $1: $2"
}

finish() {
  echo "$passed passed, $failed failed, $skipped skipped"
  [ "$failed" -eq 0 ]
}

exits() { [ "$code" -eq "$1" ]; }
answers() { grep -qF -- "$1" out; }
answers_line() { grep -qE -- "$1" out; }
says() { grep -qF -- "$1" err; }
says_line() { grep -qE -- "$1" err; }
says_not() { ! grep -qF -- "$1" err; }
silent_on() { [ ! -s "$1" ]; }           # silent_on out|err
plain() { ! grep -q $'\033' "$1"; }      # no escape byte in a file
exists() { [ -e "$1" ]; }
missing() { [ ! -e "$1" ]; }
same() { [ "$1" = "$2" ]; }
# json FILE EXPRESSION: every line of the file is JSON and the Python expression over d (the document) or all (the lines) is true
json() {
  /usr/bin/python3 - "$1" "$2" <<'PYTHON'
import json, sys
text = open(sys.argv[1], encoding="utf-8").read()
try:
    lines = [json.loads(text)]
except ValueError:
    lines = [json.loads(line) for line in text.splitlines() if line.strip()]
sys.exit(0 if lines and eval(sys.argv[2], {"d": lines[-1], "lines": lines}) else 1)
PYTHON
}

# A small drawn data set in d/ that trains in a moment, made once a suite.
shapes() { "$DTRAIN" data prepare shapes --out d --train-count "$1" --val-count 100 >/dev/null; }  # shapes COUNT
# Removes large checkpoints that no later line reads: forget PREFIX...
forget() { local prefix; for prefix in "$@"; do rm -rf "$prefix"-*; done; }
# shellcheck disable=SC2034  # for the suites
small_training=(--network mlp --lr 0.01 --rgb-std 58 --batch-size 50 --disp-batches 2
  --data-train d/shapes_train.rec --data-val d/shapes_val.rec)
