#!/usr/bin/env bash
# What the program is started with: readers of its output, standard descriptors, signals and a folder for temporary files.
set -uo pipefail
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
shapes 200
training=("${small_training[@]}" --data-val "")
endless=("${training[@]}" --num-epochs 100000)

"$DTRAIN" train "${endless[@]}" --model-prefix m/unread 2>&1 </dev/null | head -n 12 >out
code=${PIPESTATUS[0]}
check "a run whose reader has gone stops like one whose terminal has closed" exits 75
check "with a checkpoint" bash -c 'ls m/unread-*.json >/dev/null'
"$DTRAIN" train "${endless[@]}" 2>&1 </dev/null | head -n 12 >out
code=${PIPESTATUS[0]}
check "without --model-prefix it ends by the signal" exits 141
# A negative number is the signal that ended it.
closed='import os, subprocess, sys
read_end, write_end = os.pipe()
os.close(read_end)
print(subprocess.run(sys.argv[2:], stdin=subprocess.DEVNULL, stdout=write_end, stderr=open("err", "w"),
                     restore_signals=sys.argv[1] == "True").returncode)'
unread=$(/usr/bin/python3 -c "$closed" True "$DTRAIN" train --kube-print --launcher kubernetes --kube-image x --model-prefix m/a)
check "so does a command whose output has no reader from the start" same "$unread" -13
check "without a word" silent_on err
unread=$(/usr/bin/python3 -c "$closed" False "$DTRAIN" help configuration)  # Python ignores SIGPIPE
check "where SIGPIPE is ignored, it is an error" same "$unread" 1
run help exit-codes
check "the exit codes name it" answers_line '^ *141  ended by SIGPIPE'

"$DTRAIN" train "${training[@]}" --num-epochs 2 --model-prefix m/closed >out 2>&- </dev/null
code=$?
check "a run without stderr succeeds" exits 0
check "and writes nothing into its own files" python3 -m json.tool m/.closed.lock out
"$DTRAIN" train "${training[@]}" --num-epochs 2 --model-prefix m/none <&- >&- 2>&-
check "nor does one without any descriptor" python3 -m json.tool m/.none.lock out

# timeout(1) sends SIGTERM to its child and to its group.
timeout --preserve-status 5 "$DTRAIN" train "${endless[@]}" --model-prefix m/timed >out 2>err </dev/null
code=$?
check "a signal that comes twice at once is one request" exits 75

TMPDIR=/missing run launch -n 1 -- true
check "a TMPDIR that is not there is a failure" exits 1
check "which is named" says "dtrain: TMPDIR /missing: no such folder for temporary files"
check "with what to do" says "hint: set TMPDIR to a folder that exists"
TMPDIR="" run launch -n 1 -- true
check "an empty TMPDIR is none" exits 0

# The profile begins once the measurement needs its images no more. It takes long, and asks for no signal.
mkdir temporary
TMPDIR=$PWD/temporary "$DTRAIN" bench train --num-layers 50 --image-shape 3,224,224 --batch-size 8 --warmup 0 --steps 1 \
  >out 2>err </dev/null &
bench=$!
has_images() { compgen -G "temporary/dtrain-bench-*" >/dev/null; }
for _ in $(seq 1000); do has_images && break; sleep 0.02; done
for _ in $(seq 6000); do has_images || break; sleep 0.02; done
kill -TERM $bench
wait $bench
code=$?
check "a signal ends the profile of a benchmark at once" exits 143
check "and leaves no file" same "$(ls temporary)" ""

finish
