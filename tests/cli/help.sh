#!/usr/bin/env bash
set -uo pipefail
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

run
check "bare dtrain is a usage error" exits 2
check "bare dtrain explains itself on stderr" says "usage: dtrain COMMAND"
check "bare dtrain answers nothing" silent_on out

run --version
check "--version succeeds" exits 0
check "--version answers name and number" answers_line '^dtrain [0-9]+\.[0-9]+\.[0-9]+$'

run --version -v
check "--version --verbose names compiler, kernels and libraries" \
  same "$(grep -cE '^(commit: .|compiler: [A-Z].* [0-9]|build: |cpu kernels: oneDNN |gpus: .|zlib [0-9]|OpenSSL [0-9])' out)" 7
run --version --json
check "--version --json is one document" json out 'd["schema"] == "dtrain.version/1" and d["libraries"]["zstd"] and "commit" in d'

run help --json
check "help --json has every command, its options and refusals" json out \
  'len(d["commands"]) > 40 and any(o["name"] == "--save-period" and o["refused"] for c in d["commands"] if c["path"] == "train" for o in c["options"])'
run help hosts --json
check "help GROUP --json has the commands of the group" json out '{c["path"] for c in d["commands"]} == {"hosts list", "hosts add", "hosts remove", "hosts drain", "hosts join", "hosts leave"}'
cp out hosts.json
for word in --help --help-all; do
  run hosts $word --json
  check "$word --json is the same document" diff hosts.json out
done
run help exit-codes --json
check "help TOPIC --json has the text" json out 'd["topic"] == "exit-codes" and "resum" in d["text"]'

run help
check "help succeeds" exits 0
check "help is an answer" answers "usage: dtrain COMMAND"
check "help names every group's commands" bash -c 'tr -s " \n" " " <out | grep -qF "files: prepare, pack,"'
check "help names the topics" answers "exit-codes, environment, configuration"
check "its first training has the batch and the rate of a small set" \
  bash -c 'tr -d "\\\\" <out | tr -s " \n" " " | grep -qF "shapes_val.rec --batch-size 32 --lr 0.1 --lr-schedule one-cycle --num-epochs 4"'

run train -h
check "-h of a command succeeds" exits 0
check "-h lists the names of the options" answers "--lr-step-epochs"
cp out short
run train --help
check "--help of a command succeeds" exits 0
check "--help is -h" diff short out
check "--help starts with the usage" same "$(head -n 1 out)" "usage: dtrain train [options]"
check "--help explains the options of a first run, then gives examples and the names of the others" \
  same "$(grep -E '^(First options|Examples|More options|Network|See also):' out | tr '\n' ' ')" "First options: Examples: More options: See also: "
check "--help explains seven options" same "$(sed -n '/^First options:/,/^$/p' out | grep -o '^ \{6\}--[a-z-]*' | tr -d ' ' | tr '\n' ' ')" \
  "--network --num-layers --finetune --data-train --data-val --num-epochs --model-prefix "
check "--help names the page with all of them" answers "dtrain train --help-all"
check "--help shows the recipe's defaults" answers "(default 300)"
run train --help-all
check "--help-all succeeds" exits 0
check "--help-all has examples before options" same "$(grep -nE '^(Examples|Network):' out | cut -d: -f2 | tr '\n' ' ')" "Examples Network "
check "--help-all explains every option" answers "size limit of the cache in GiB"
check "--help-all shows the recipe's defaults" bash -c 'tr -s " \n" " " <out | grep -qF "(default 200,250)"'
check "--help-all ends with exit codes and other commands" answers "See also:"
check "a page is 100 columns wide where there is no terminal" bash -c 'grep -qE "^.{90,}$" out && ! grep -vE "^usage|^.{0,100}$" out'
COLUMNS=200 run train --help-all
check "COLUMNS makes it wider, up to 120" bash -c 'grep -qE "^.{110,}$" out && ! grep -qE "^.{121,}$" out'
COLUMNS=40 run train --help-all
check "COLUMNS makes it narrower, down to 60" bash -c '! grep -vE "^usage|^.{0,60}$" out'
script -qec "stty cols 72; $DTRAIN train --help-all --color never" /dev/null </dev/null | tr -d '\r' >out
check "a page has the terminal's width" bash -c 'grep -qE "^.{65,}$" out && ! grep -vE "^usage|^.{0,72}$" out'
run stop --help
cp out short
run stop --help-all
check "a command with few options explains them all at once" diff short out
run --help train
check "--help may stand before the command" answers "usage: dtrain train [options]"
run data
check "a group alone is a usage error" exits 2
check "a group alone lists its commands" says "prepare"
run data --help
check "help of a group lists its commands" answers "verify"

# All that have a manual page, which is all there are (tests/cli/documents.sh).
mapfile -t commands < <(sed -n 's/^\.Nm "dtrain \(.*\)"$/\1/p' "$here"/../../man/*.1)
check "manual pages name the commands" [ "${#commands[@]}" -gt 40 ]
for command in "${commands[@]}"; do
  # shellcheck disable=SC2086
  run $command --help
  check "$command --help succeeds" exits 0
  while read -r example; do
    eval "run $command --show-config ${example#"dtrain $command"}"
    check "an example of $command parses: $example" exits 0
  done < <(sed -n '/^Examples:/,/^$/p' out | sed -e ':a' -e '/\\$/{N;s/ *\\\n */ /;ba' -e '}' | sed -n 's/^  dtrain/dtrain/p')
  # shellcheck disable=SC2086
  run help $command
  check "help $command is the same page" answers "usage: dtrain $command"
done

run help exit-codes
for number in 0 1 2 3 4 75 93 129 130 138 140 143 152; do
  check "the table of exit codes has $number" answers_line "^ *$number  "
done
run help environment
check "the environment page names the variable of an option" answers DTRAIN_BATCH_SIZE
check "the environment page names NO_COLOR" answers NO_COLOR
for name in DTRAIN_CUDA_PATH DTRAIN_PROGRESS_FILE DTRAIN_DEADLINE_FILE DTRAIN_SAVED_FILE; do
  check "the environment page names $name" answers_line "^  $name +[a-zJ]"
done
check "the environment page names the variables of a cluster" answers_line '^  DEEPLEARNING_WORKERS_PATH +train, launch, run, sync, doctor$'
for command in "data show" "data bench"; do
  # shellcheck disable=SC2086  # a command of two words
  run $command --help-all
  check "$command takes any class" bash -c "tr -s ' \\n' ' ' <out | grep -qF 'labels are 0 to N-1 (default any)'"
  # shellcheck disable=SC2086
  run $command --show-config
  check "$command shows that any number of classes will do" answers_line '^num-classes = any  .default.$'
done
run launch --help
check "the help of launch says where a launch on this machine keeps its files" \
  bash -c "tr -s ' \\n' ' ' <out | grep -qF '(default a new folder in /tmp where all ranks are on this machine, else .)'"
run launch --show-config
check "its configuration says the same" answers_line '^job-dir = a new folder in /tmp where all ranks are on this machine, else \.  .default.$'
run launch --job-dir j --show-config
check "it names the folder that is given" answers_line '^job-dir = j  .--job-dir.$'
run train --finetune w.safetensors --show-config
check "the configuration says that --finetune chooses later" says "--finetune chooses what is not given when the run begins"
run train --show-config
check "without --finetune nothing is said" silent_on err
run train --help-all
check "the help of -n says what -H makes of it" bash -c "tr -s ' \\n' ' ' <out | grep -qF '(default all hosts of -H, of the batch job or of the cluster, else 1)'"
run eval --show-config
check "what a checkpoint decides is shown so" answers_line "^rgb-mean = the checkpoint's  .default.$"
run cluster up demo --heal --yes --show-config
check "options that only the command line takes are shown where they are given" answers_line '^yes = true  .--yes.$'
check "and left out where they are not" bash -c '! grep -q elastic-role out'
run cluster up demo --yes --show-config --json
check "they have no variable" json out '{"name": "yes", "value": "true", "origin": "--yes", "env": None} in d["values"]'
COLUMNS=80 run help environment
check "the environment page has no long lines" bash -c '[ "$(wc -L <out)" -le 84 ]'
run help launchers
check "nor has that of launchers" bash -c '[ "$(wc -L <out)" -le 90 ]'
run help configuration
check "the configuration page shows a section" answers "[train]"
check "and what stands before the first one" answers "commands share: json, color, quiet and verbose."
run help exit-cods
check "an unknown topic is a usage error" exits 2
check "an unknown topic gets advice" says 'dtrain help exit-codes'

"$DTRAIN" help >/dev/full 2>err
code=$?
check "an answer that cannot be written is a failure" exits 1
check "an answer that cannot be written is told" says "standard output: cannot write"

finish
