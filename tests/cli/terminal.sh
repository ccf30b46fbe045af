#!/usr/bin/env bash
set -uo pipefail
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
shapes 3000

in_terminal() {  # in_terminal COMMAND: both streams on a terminal, as they look there in `screen`
  script -qec "$1" /dev/null >screen 2>&1 </dev/null
  code=$?
}
shows() { grep -qF -- "$1" screen; }
shows_escape() { grep -q "$(printf '\033\\[%s' "$1")" screen; }
training="$DTRAIN train ${small_training[*]} --num-epochs 12"

run train "${small_training[@]}" --num-epochs 1
check "training into files succeeds" exits 0
check "a file gets no escape byte on stderr" plain err
check "a file gets no escape byte on stdout" plain out
check "a file gets no redrawn line" bash -c "! grep -q $'\r' err"
run train --help
check "help in a pipe has no escape byte" plain out

in_terminal "$training"
check "training on a terminal succeeds" exits 0
check "a terminal shows the steps of the epoch" shows "Epoch[0] step "
check "a terminal shows a bar" bash -c 'grep -qE "\\[=* *\\]" screen'
check "a terminal shows rate and time left" shows "steps/s ETA"
check "a terminal shows loss and accuracy" bash -c 'grep -qE "loss [0-9.]+ accuracy [0-9.]+" screen'
check "the bar is erased before a log line" bash -c "grep -qE $'\033\\\\[KEpoch\\\\[0\\\\] Batch' screen"
in_terminal "TERM=dumb $training"
check "TERM=dumb shows no bar" bash -c "! grep -q $'\033' screen"
in_terminal "$training --quiet"
check "--quiet shows no bar" bash -c "! grep -q $'\033' screen"
in_terminal "$DTRAIN train --lr x"
check "errors are coloured on a terminal" shows_escape "1;31m"
in_terminal "NO_COLOR=1 $DTRAIN train --lr x"
check "NO_COLOR takes the colour away" plain screen
in_terminal "$DTRAIN train --help --color never"
check "--color never takes the colour away" plain screen
run train --help --color always
check "--color always colours a pipe" bash -c "grep -q $'\033' out"
in_terminal "stty cols 40; $training"
check "the bar is cut to the terminal's width" bash -c "! tr '\r' '\n' <screen | sed $'s/\033\\\\[K//g' | grep -E '^Epoch.0. step ' | grep -qE '.{40}'"

finish
