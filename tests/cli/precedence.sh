#!/usr/bin/env bash
set -uo pipefail
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

value() { "$DTRAIN" train --show-config "$@" | sed -n 's/^lr = //p'; }

check "the recipe is the weakest" same "$(value)" "0.05  (recipe cifar10)"
check "another recipe has another value" same "$(value --recipe imagenet)" "0.1  (default)"
mkdir -p "$HOME/.config/dtrain"
printf '[train]\nlr = 0.2\n' >"$HOME/.config/dtrain/config.toml"
check "the user's file beats the recipe" same "$(value)" "0.2  ($HOME/.config/dtrain/config.toml:2)"
printf '# mine\n\n[train]\nlr = 0.3 # faster\n' >dtrain.toml
check "the project's file beats the user's" same "$(value)" "0.3  (dtrain.toml:4)"
export DTRAIN_LR=0.4
check "a variable beats the files" same "$(value)" "0.4  (DTRAIN_LR)"
check "a flag beats a variable" same "$(value --lr 0.5)" "0.5  (--lr)"
unset DTRAIN_LR
mkdir -p xdg/dtrain && printf '[train]\nlr = 0.7\n' >xdg/dtrain/config.toml
rm dtrain.toml
check "XDG_CONFIG_HOME moves the user's file" same "$(XDG_CONFIG_HOME=$PWD/xdg value)" "0.7  ($PWD/xdg/dtrain/config.toml:2)"
check "the recipe may come from a variable" same "$(DTRAIN_RECIPE=mnist "$DTRAIN" train --show-config | sed -n 's/^network = //p')" \
  "mlp  (recipe mnist)"
rm -r "$HOME/.config"
hosts() { "$DTRAIN" train --show-config | sed -n 's/^num-workers = //p'; }
export DEEPLEARNING_WORKERS_COUNT=3
check "a cluster's variable gives the number of hosts" same "$(hosts)" "3  (DEEPLEARNING_WORKERS_COUNT)"
printf '[train]\nnum-workers = 4\n' >dtrain.toml
check "a cluster's variable beats the files" same "$(hosts)" "3  (DEEPLEARNING_WORKERS_COUNT)"
check "dtrain's own variable beats the cluster's" same "$(DTRAIN_NUM_WORKERS=2 hosts)" "2  (DTRAIN_NUM_WORKERS)"
rm dtrain.toml
unset DEEPLEARNING_WORKERS_COUNT
gpus() { "$DTRAIN" "${@:-train}" --show-config | sed -n 's/^gpus = //p'; }
export DEEPLEARNING_WORKER_GPU_COUNT=3
check "a cluster's number of GPUs means the first ones" same "$(gpus)" "0,1,2  (DEEPLEARNING_WORKER_GPU_COUNT)"
check "one process takes the first" same "$(gpus eval)" "0  (DEEPLEARNING_WORKER_GPU_COUNT)"
check "--gpus beats it" same "$(gpus train --gpus 2)" "2  (--gpus)"
check "so does an empty --gpus" same "$(gpus train --gpus "")" "  (--gpus)"
check "--device cpu beats it" same "$(gpus train --device cpu)" "  (DEEPLEARNING_WORKER_GPU_COUNT)"
check "no GPUs are none" same "$(DEEPLEARNING_WORKER_GPU_COUNT=0 gpus)" "  (DEEPLEARNING_WORKER_GPU_COUNT)"
unset DEEPLEARNING_WORKER_GPU_COUNT
device() { "$DTRAIN" train --show-config "$@" | sed -n 's/^device = //p'; }
printf '[train]\ngpus = "0"\n' >dtrain.toml
check "--device cpu beats the GPUs of a file" same "$(gpus train --device cpu)" "  (--device)"
check "and those of a variable" same "$(DTRAIN_GPUS=0,1 gpus train --device cpu)" "  (--device)"
check "another --device leaves them" same "$(gpus train --device cuda)" "0  (dtrain.toml:2)"
check "it holds for eval, too" same "$(printf '[eval]\ngpus = "0"\n' >dtrain.toml; gpus eval --device cpu)" "  (--device)"
printf '[train]\ndevice = "cuda"\n' >dtrain.toml
check "an empty --gpus beats the device of a file" same "$(device --gpus "")" "cpu  (--gpus)"
check "one that names some leaves it" same "$(device --gpus 1)" "cuda  (dtrain.toml:2)"
printf '[train]\ndevice = "cpu"\n' >dtrain.toml
check "GPUs that are named beat the CPU of a file" same "$(device --gpus 1)" "auto  (--gpus)"
rm dtrain.toml
setting() { "$DTRAIN" train --show-config "${@:2}" | sed -n "s/^$1 = //p"; }
check "a flag beats MXNet's name for it in a variable" \
  same "$(DTRAIN_ELASTIC_TRAINING_ENABLED=False setting elastic --elastic)" "true  (--elastic)"
check "which is not shown then" \
  same "$(DTRAIN_ELASTIC_TRAINING_ENABLED=False setting elastic-training-enabled --elastic)" ""
run train --gradient-compression powersgd --gc-type none
check "two names of one setting with other values are refused" exits 2
check "both are named" says "--gradient-compression and --gc-type: two names of one setting, with other values"
run train --gradient-compression 2bit:0.25 --gc-type 2bit --show-config
check "names that say the same are taken" answers "gradient-compression = 2bit:0.25"
check "MXNet's name as a flag beats a variable" \
  same "$(DTRAIN_ELASTIC=1 setting elastic --elastic-training-enabled False)" "false  (--elastic-training-enabled)"
check "alone it counts" \
  same "$(DTRAIN_ELASTIC_TRAINING_ENABLED=True setting elastic)" "true  (DTRAIN_ELASTIC_TRAINING_ENABLED)"
printf '[train]\ngc-type = "none"\nelastic-training-enabled = false\n' >dtrain.toml
check "a flag beats MXNet's name in a file" \
  same "$(setting gradient-compression --gradient-compression 2bit:0.25)" "2bit:0.25  (--gradient-compression)"
check "so does a variable" same "$(DTRAIN_ELASTIC=true setting elastic)" "true  (DTRAIN_ELASTIC)"
printf '[train]\ngc-type = "3bit"\n' >dtrain.toml
run train --show-config --gradient-compression none
check "a bad value is refused there all the same" says "dtrain.toml:2: gc-type: must be one of none, 2bit, not '3bit'"
rm dtrain.toml
check "EFS_MOUNT is the job's folder" same "$(EFS_MOUNT=efs "$DTRAIN" train --show-config | sed -n 's/^job-dir = //p')" "efs  (EFS_MOUNT)"
check "options for a cluster are shown without asking AWS" bash -c 'env -u AWS_REGION -u AWS_DEFAULT_REGION "$DTRAIN" train \
  --cluster demo --show-config --lr 0.5 | grep -qx "lr = 0.5  (--lr)"'

refused() { check "$1 is a usage error" exits 2; check "$1 names its place" says "$2"; }
DTRAIN_LR=fast run train
refused "a bad variable" "dtrain: DTRAIN_LR: must be a number, not 'fast'"
DTRAIN_LR=fast run train --lr 0.1
refused "a bad variable under a good flag" "DTRAIN_LR: must be a number"
DEEPLEARNING_WORKER_GPU_COUNT=two run train
refused "a number of GPUs that is none" "dtrain: DEEPLEARNING_WORKER_GPU_COUNT: must be a whole number, not 'two'"
DEEPLEARNING_WORKER_GPU_COUNT=-1 run train
refused "fewer than no GPUs" "DEEPLEARNING_WORKER_GPU_COUNT: must be between 0 and 1024, not -1"
run train --batch-size 0
refused "a bad flag" "dtrain: --batch-size: must be 1 or more, not 0"
run train --lr 0
refused "a rate of zero" "--lr: must be more than 0, not 0"
run train --batch-size 1.5
refused "a fraction for a count" "--batch-size: must be a whole number, not '1.5'"
run train --batch-size 99999999999
refused "a count that is too large" "--batch-size: 99999999999 is too large"
run train --image-shape 3,28
refused "an image shape of two numbers" "--image-shape: must be channels,height,width, such as 3,28,28"
run train --recipe cifar
refused "an unknown recipe" "--recipe: must be one of cifar10, imagenet, mnist, speednet, detection, not 'cifar'"
run train --optimizer adamm
refused "an unknown optimizer" "--optimizer: "
run train --optimizer muon --muon-steps 0
refused "no steps of muon" "--muon-steps: must be between 1 and 20, not 0"
run train --optimizer muon --muon-coefficients 3.4,-4.7
refused "two coefficients of muon" "--muon-coefficients: must be three numbers separated by commas, not '3.4,-4.7'"
run train --optimizer muon --muon-coefficients 3.4,-47,2
refused "a coefficient of muon that is too large" "--muon-coefficients: must be between -10 and 10, not -47"
run train --bias-lr-factor 0
refused "a factor of zero" "--bias-lr-factor: must be more than 0 and at most 1000000, not 0"
run train --color blue
refused "a bad global option" "--color: must be one of auto, always, never"
printf '[train]\nbatch-size = "many"\n' >dtrain.toml
run train
refused "a bad value in a file" "dtrain: dtrain.toml:2: batch-size: must be a whole number, not 'many'"
printf '[train]\nbatchsize = 3\n' >dtrain.toml
run train
refused "an unknown key" "dtrain.toml:2: unknown option 'batchsize'"
check "an unknown key gets advice" says "did you mean 'batch-size'?"
printf '[train]\nepochs = 3\n' >dtrain.toml
run train
refused "another program's name as a key" "dtrain.toml:2: unknown option 'epochs'"
check "and dtrain's name is given" says "did you mean 'num-epochs'?"
printf 'lr = 0.3\n' >dtrain.toml
run train
refused "a command's key outside of a section" "dtrain.toml:1: unknown option 'lr'"
check "and the section is named" says "put it below a line [train]"
printf 'seed = 3\n' >dtrain.toml
run train
refused "an option of several commands outside of a section" "dtrain.toml:1: unknown option 'seed'"
check "and the likeliest is named" says "put it below a line that names its command, such as [train]"
printf '\n[trian]\nlr = 3\n' >dtrain.toml
run train
refused "an unknown section" "dtrain.toml:3: unknown section 'trian'"
for words in --version "help configuration" "completion bash" "train --help" "stop --job-dir none"; do
  # shellcheck disable=SC2086  # several words
  run $words
  check "$words does without a broken file" says "dtrain: warning: dtrain.toml:3: unknown section 'trian'"
done
check "stop looks for the job" says "none"
printf '\n[eval]\nlr = 3\n' >dtrain.toml
run train --show-config
check "what other commands would refuse is no error" exits 0
check "it is a warning" says "warning: dtrain.toml:3: unknown option 'lr'"
printf '[data.pack]\nresize = -1\n[train]\nlr = 0.7777\n' >dtrain.toml
run train --show-config
check "a bad value of another command is no error" exits 0
check "it is a warning" says_line "^dtrain: warning: dtrain.toml:2: resize: must be "
run data pack --show-config
refused "it for its own command" "dtrain.toml:2: resize: must be "
run help train
check "help shows the defaults, whatever a file says" bash -c '! grep -q 0.7777 out'
# The file is dtrain's alone: a section of no command was meant for one, which would run with its defaults.
strange() {  # strange SECTION HINT
  printf '[%s]\nlr = 0.7\n' "$1" >dtrain.toml
  run train --show-config
  refused "the section [$1] of no command" "dtrain.toml:2: unknown section '$1'"
  check "[$1] gets advice" says "hint: $2"
}
strange training "did you mean [train]?"
strange dtrain.train "did you mean [train]?"
strange cluster "did you mean one of [cluster.plan], [cluster.up], "
strange pack "did you mean [data.pack]?"
strange nonsense "tables have the names of commands, such as [train]"
run events
refused "a section of no command for another command" "dtrain.toml:2: unknown section 'nonsense'"
run stop --job-dir none
check "stop warns of it" says "warning: dtrain.toml:2: unknown section 'nonsense'"
check "and goes on" says "dtrain: none: no job in this folder"
printf '[train]\nlr-factor = 0.1\nlr_factor = 0.2\n' >dtrain.toml
run train
refused "a key in two spellings" "dtrain.toml:3: 'lr-factor' is set twice, first in line 2"
printf 'lr\n' >dtrain.toml
run --version
check "--version does without a file that is not TOML" exits 0
check "and says so" says "goes on without this file"
run train
refused "a line without a value" "dtrain.toml:1: "
check "a line that is not TOML gets advice" says "texts stand in quotes"
printf '[train]\nmodel-prefix = "m\n' >dtrain.toml
run train
refused "an open quote" "dtrain.toml:2: "
printf '[train]\nlr = [0.1, 0.2]\n' >dtrain.toml
run train
refused "a list for one value" "dtrain.toml:2: lr: takes one value, not a list"
printf '[train]\nlr-step-epochs = [60, 30]\n' >dtrain.toml
run train
refused "a list out of order" "dtrain.toml:2: lr-step-epochs: must be numbers above 0 in ascending order"
rm dtrain.toml
run train --lr-step-epochs -1
refused "a step before the first epoch" "--lr-step-epochs: must be numbers above 0 in ascending order, such as 30,60, not '-1'"
run train --lr-step-epochs 5,3
refused "steps out of order" "--lr-step-epochs: must be numbers above 0 in ascending order"
run train --random-resized-crop ''
refused "an empty text for a switch with a value" "--random-resized-crop: must be 1 or 0, not ''"
run train --deterministic ''
refused "an empty --deterministic" "--deterministic: must be on or off, not ''"
run train --threads 5000
refused "more threads than any machine has processors" "--threads: must be between 1 and 1024, not 5000"
run train --notice-url bogus
refused "a notice URL that is none" "--notice-url: must be auto, none or a URL that begins with http:// or https://, not 'bogus'"
run train --pad-size 60000
refused "more padding than the loader takes" "--pad-size: must be between 0 and 4096, not 60000"
run train --min-random-area 0
refused "an area that the loader refuses" "--min-random-area: must be between 0.0001 and 1, not 0"
run train --mom 1
refused "a momentum that the optimizer refuses" "--mom: must be at least 0 and less than 1, not 1"
run hosts add ""
refused "an empty host" "hosts add: HOST is empty"
run train --config none.toml
refused "a file of --config that is not there" "--config none.toml: no such file"
run train --config ""
refused "an empty --config" "--config is empty"
DTRAIN_CONFIG=none.toml run train
refused "a file of DTRAIN_CONFIG that is not there" "DTRAIN_CONFIG none.toml: no such file"
for words in --version --help "help configuration" "completion bash" "train --help" "stop --job-dir none"; do
  # shellcheck disable=SC2086  # several words
  DTRAIN_CONFIG=none.toml run $words
  check "$words does without it" says "warning: DTRAIN_CONFIG none.toml: no such file; goes on without this file"
  case $words in
    stop*) check "$words looks for the job" says "dtrain: none: no job in this folder" ;;
    *) check "$words answers" exits 0 ;;
  esac
done
run train --help --config none.toml
refused "a file of --config that is not there, for help" "--config none.toml: no such file"
printf '[train]\nlr = 0.6\n' >named.toml
check "DTRAIN_CONFIG names a file" same "$(DTRAIN_CONFIG=named.toml value)" "0.6  (named.toml:2)"
DTRAIN_NUM_EPOCH=7 DTRAIN_HELP=1 DTRAIN_WORLD=2 DTRAIN_SOMETHING_ELSE=1 run train --show-config
check "a misspelt variable is a warning" says "warning: DTRAIN_NUM_EPOCH has no effect: there is no option --num-epoch; did you mean '--num-epochs'?"
check "so is that of a flag" says "warning: DTRAIN_HELP has no effect: --help is read from the command line only"
check "dtrain's own variables and those of others are none" same "$(grep -c warning err)" 2

# The shape of errors is that of the options.
DTRAIN_JSON=true run inspect none
check "errors are JSON by a variable" json err '"none" in d["error"]["message"]'
printf 'json = true\n' >dtrain.toml
run inspect none
check "and by a file" json err '"none" in d["error"]["message"]'
rm dtrain.toml
run launch --launcher nonsense -- prog --json
check "the words of another program do not choose it" says_line '^dtrain: --launcher'
run inspect none --color always
check "--color holds for errors" grep -q $'\033' err
DTRAIN_COLOR=always run inspect none --color never
check "and --color never does" plain err

# The project's file may come with a downloaded folder: it chooses no machine and runs no command.
untrusted() {  # untrusted SECTION KEY VALUE
  printf '[%s]\n%s = %s\n' "$1" "$2" "$3" >dtrain.toml
  # shellcheck disable=SC2086  # a command of two words
  run ${1//./ } --show-config
  refused "$2 of [$1] in the project's file" "dtrain.toml:2: $2: the file of a folder must not set it"
  check "$2 of [$1] is referred to the user's file" says "hint: move it to $HOME/.config/dtrain/config.toml, give --$2, or trust this file with --config dtrain.toml"
}
for key in prepare hostfile ssh-config launcher yarn-rm notice-url announce sync-dst-dir; do untrusted train "$key" '"none"'; done
for key in prepare hostfile ssh-config launcher; do untrusted launch "$key" '"none"'; done
for key in hostfile identity known-hosts; do untrusted run "$key" '"none"'; done
untrusted doctor accept-new-hosts true
for key in prepare image key ssh-from profile; do untrusted cluster.up "$key" '"none"'; done
# Nor does it lift protection. Neither it nor a variable says what is done once, to a job that runs.
for section in train import data.pack data.import data.prepare; do untrusted $section force true; done
for section in train launch; do untrusted $section allow-mass-remove true; done
by_flag_only() {  # by_flag_only SECTION KEY ARGUMENTS...
  printf '[%s]\n%s = true\n' "$1" "$2" >dtrain.toml
  run "${@:3}"
  check "$2 of [$1] is no option of a file" says "dtrain.toml:2: $2: --$2 is read from the command line only"
}
by_flag_only stop now stop --job-dir none
for key in yes allow-mass-remove; do by_flag_only hosts.remove $key hosts remove w1 --job-dir none; done
check "it belongs on the command line" says "hint: remove it from the file, and give --allow-mass-remove with the command"
rm dtrain.toml
DTRAIN_NOW=true DTRAIN_YES=true run stop --job-dir none
check "no variable makes stop end a job at once" says "DTRAIN_NOW has no effect: --now is read from the command line only"
check "nor agrees to a removal" says "DTRAIN_YES has no effect: --yes is read from the command line only"
run help environment
check "nor allows one of most hosts" answers_line '^  DTRAIN_ALLOW_MASS_REMOVE +train, launch$'
printf '[train]\nprepare = "true"\n' >dtrain.toml
run train --show-config --config dtrain.toml
check "--config trusts the project's file" answers "prepare = true  (dtrain.toml:2)"
mv dtrain.toml lab.toml
mkdir -p "$HOME/.config/dtrain"
printf '[train]\nprepare = "false"\nlr = 0.2\nseed = 4\n' >"$HOME/.config/dtrain/config.toml"
printf '[train]\nlr = 0.3\n' >dtrain.toml
run train --show-config
check "the user's file may set what the project's must not" answers "prepare = false  ($HOME/.config/dtrain/config.toml:2)"
printf '[train]\nprepare = "true"\nlr = 0.4\n' >lab.toml
run train --show-config --config lab.toml
check "the file of --config beats the others" answers "lr = 0.4  (lab.toml:3)"
check "what it leaves out comes from the others" answers "seed = 4  ($HOME/.config/dtrain/config.toml:4)"
run --config lab.toml train --show-config
check "--config may stand before the command" answers "prepare = true  (lab.toml:2)"
DTRAIN_LR=0.5 run train --show-config --config lab.toml
check "a variable beats the file of --config" answers "lr = 0.5  (DTRAIN_LR)"
rm -r "$HOME/.config" lab.toml dtrain.toml
check "--config reads a pipe" same "$(value --config <(printf '[train]\nlr = 0.8\n') | cut -d' ' -f1)" 0.8
check "and standard input" same "$(printf '[train]\nlr = 0.8\n' | value --config /dev/stdin)" "0.8  (/dev/stdin:2)"
run train --config /dev/stdin
refused "a pipe that holds nothing" "--config /dev/stdin: holds nothing"
check "it says why" says "hint: a pipe can be read once"
run train --show-config --config /dev/null
check "/dev/null is no configuration" exits 0
printf 'train.lr-step-epochs = [30, 60]\ntrain.data-train = ["a.rec", "b.rec"]\n' >dtrain.toml
run train --show-config
check "a list sets an option of several numbers" answers "lr-step-epochs = 30,60  (dtrain.toml:1)"
check "a list sets an option of several names" answers "data-train = a.rec,b.rec  (dtrain.toml:2)"

printf 'color = "never"\n[train]\nmodel_prefix = "my models/m"\nrandom-mirror = false\n[data.prepare]\nout = "d"\n' >dtrain.toml
run train --show-config
check "underscores in keys count as dashes" answers "model-prefix = my models/m  (dtrain.toml:3)"
check "false is 0" answers "random-mirror = 0"
check "options of every command stand before the sections" answers "color = never  (dtrain.toml:1)"
run data prepare shapes --show-config
check "a command of two words has a section with a dot" answers "out = d  (dtrain.toml:6)"
rm dtrain.toml
run train --show-config --json
check "--show-config --json is one document" json out 'd["schema"] == "dtrain.config/1" and d["command"] == "train"'
check "--show-config --json holds names, values and origins" \
  json out '{"name": "lr", "value": "0.05", "origin": "recipe cifar10", "env": "DTRAIN_LR"} in d["values"]'

# Variables of these names belong to batch scripts: one that made the agent another program would end every job.
export DTRAIN_HEAD=h1 DTRAIN_NODE=4 DTRAIN_JOBS=4 DTRAIN_HEAL=true DTRAIN_GUARD=1
run launch -n 1 -- echo "a rank ran"
check "an agent is what its command line says, whatever the variables are" exits 0
check "and runs the program" answers "a rank ran"
unset DTRAIN_HEAD DTRAIN_NODE DTRAIN_JOBS DTRAIN_HEAL DTRAIN_GUARD
run agent --show-config
check "no variable or file says what an agent is" bash -c '! grep -E "^(head|node|jobs|heal|guard) = " out'

bench() { "$DTRAIN" data bench d/a.rec --show-config "${@:2}" | sed -n "s/^$1 = //p"; }
check "a flag beats the short name of a variable" same "$(DTRAIN_THREADS=1 bench data-nthreads --data-nthreads 2)" "2  (--data-nthreads)"
check "a short name beats a variable" same "$(DTRAIN_DATA_NTHREADS=1 bench threads --threads 2)" "2  (--threads)"
check "FILES beat a variable" same "$(DTRAIN_DATA_TRAIN=d/b.rec bench FILES)" "d/a.rec  (FILES)"
launching() { "$DTRAIN" launch --show-config "${@:2}" -- true | sed -n "s/^$1 = //p"; }
check "--nnodes beats a variable" same "$(DEEPLEARNING_WORKERS_COUNT=3 launching num-workers --nnodes 2)" "2  (--nnodes)"
printf '[launch]\nnum-workers = 3\njob-dir = "j"\n' >dtrain.toml
check "and a file" same "$(launching num-workers --nnodes 2)" "2  (--nnodes)"
check "--log-dir beats a file" same "$(launching job-dir --log-dir l)" "l  (--log-dir)"
rm dtrain.toml
check "and a variable" same "$(EFS_MOUNT=$PWD launching job-dir --log-dir l)" "l  (--log-dir)"
check "--job-dir beats it" same "$(launching job-dir --log-dir l --job-dir j)" "j  (--job-dir)"
printf '[data.prepare]\nencoding = "png"\n' >dtrain.toml
run data prepare shapes --train-count 8 --val-count 8 --out raw --raw
check "--raw beats the encoding of a file" exits 0
printf '[data.prepare]\nencoding = "png"\nraw = true\n' >dtrain.toml
run data prepare shapes --train-count 8 --val-count 8 --out both
check "two of one file are refused" exits 2
check "with their places" says "--raw (dtrain.toml:3) and --encoding png (dtrain.toml:2): both choose the encoding"
rm dtrain.toml
finish
