#!/usr/bin/env bash
set -uo pipefail
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

run trian
check "an unknown command is a usage error" exits 2
check "an unknown command is named" says "dtrain: trian: unknown command"
check "an unknown command gets the nearest name" says "hint: did you mean 'dtrain train'?"
run data perpare
check "the second word of a command gets advice too" says "did you mean 'dtrain data prepare'?"
run pack photos
check "the second word alone gets the whole command" says "did you mean 'dtrain data pack'?"
run cluster resize demo 4
check "words of other programs get the commands here" says "hint: it could be 'dtrain cluster add', 'dtrain cluster remove'"
run cluster delete demo
check "also where there is one" says "hint: did you mean 'dtrain cluster down'?"
run cluster add demo 0 --region us-east-1
check "a count below one is refused" exits 2
check "and gets the command that takes workers out" says "hint: \`dtrain cluster remove\` takes workers out"
run cluster status demo --region us-east-1a
check "a zone is no region" exits 2
check "and gets its region" says "its region is us-east-1"
run frobnicate
check "a word near nothing gets the list" says "hint: commands are: train, launch, hosts"

run train --learning-rate 3
check "an unknown option is a usage error" exits 2
check "another program's name gets the one here" says "did you mean '--lr'?"
run train --frobnicate 3
check "an unknown option points at the help" says "dtrain train --help"
run train --model resnet18
check "--model is no short form of --model-prefix" exits 2
check "--model means the network" says "did you mean '--network'?"
run train --patience 5
check "and --patience the early stop" says "did you mean '--early-stop'?"
run train --batchsize 3
check "an unknown option gets the nearest name" says "did you mean '--batch-size'?"
run train -lr 3
check "a long option with one dash gets advice" says "did you mean '--lr'?"
run train -num-epochs 1
check "also where its first letter is an option" says "-num-epochs: unknown option"
check "by its name" says "did you mean '--num-epochs'?"
run --bogus
check "an unknown option without a command is a usage error" exits 2
check "an unknown option without a command is told so" says "unknown option before a command"

run train --num-epoch 2 --show-config
check "an abbreviation is refused" exits 2
check "an abbreviation gets the whole name" says "did you mean '--num-epochs'?"
run train --data- /x
check "the beginning of several options is refused" exits 2
check "the beginning of several options lists them" says "--data-train, --data-train-idx, --data-val, --data-nthreads, --data-val-idx"
run train --lr 0.2 --show-config
check "a whole name that starts others is itself" answers "lr = 0.2  (--lr)"

run data ls $'a\nb\033[31m'
check "control characters of a name are shown as escapes" same "$(head -n 1 err)" 'dtrain: a\nb\x1b[31m: no record file has such a name'
run train --lr
check "a missing value is a usage error" exits 2
check "a missing value says what is expected" says "--lr: needs a value (RATE)"
run train --lr --seed 1
check "an option is not taken for a value" says "--lr: needs a value"
run train --resume=yes
check "a switch takes no value" says "--resume: takes no value"
check "it says how it is turned on and off" says "hint: give it alone, or leave --resume out; where a file or a variable sets it: DTRAIN_RESUME=0"
run train --no-elastic
check "a switch has no opposite" says "--no-elastic: unknown option"
check "it says what turns it off" says "hint: leave --elastic out; where a file or a variable sets it: DTRAIN_ELASTIC=0"
printf '[train]\nelastic = true\n' >on.toml
DTRAIN_ELASTIC=0 run train --config on.toml --show-config
check "and that does" answers "elastic = false  (DTRAIN_ELASTIC)"
run train extra
check "a word too many is a usage error" exits 2
check "a word too many is named" says "dtrain: train: 'extra' is one word too many"
for command in stop events tail-logs "hosts list" doctor; do
  # shellcheck disable=SC2086  # two words
  run $command job
  check "$command takes its job folder as an option" says "did you mean '--job-dir job'?"
done
mkdir photos && touch p_val.rec
run train photos
check "train its data" says "did you mean '--data-train photos'?"
run train help
check "help is --help of a command" says "hint: \`dtrain train --help\` explains the command"
run eval p_val m/p
check "a prefix and records that changed places are named" says "did you mean 'dtrain eval m/p --data-val p_val'?"
run data ls one.rec two.rec
check "names that a shell made of a pattern are" says "or around a pattern such as 'd/*.rec'"
run train --help extra
check "a word after --help is a usage error" exits 2
check "a word after --help is named" says "dtrain: train: 'extra' is one word too many"

run train --load-epoch beste --show-config
check "a word that is no epoch is a usage error" exits 2
check "it says what it takes" says "dtrain: --load-epoch: must be a whole number or best, not 'beste'"
run train --gpus "" --show-config
check "an empty --gpus means the CPU" exits 0
check "an empty --gpus is empty" answers "gpus =   (--gpus)"
run train --gpus --network lenet --show-config
check "--gpus followed by an option is empty" answers "gpus =   (--gpus)"
check "the option after an empty --gpus counts" answers "network = lenet"
run train --network lenet --gpus
check "--gpus as the last word is empty" says "data/cifar10_train.rec"
run train --lr=0.3 --lr 0.4 --show-config
check "the last of several values counts" answers "lr = 0.4"
finish
