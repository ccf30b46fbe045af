#!/usr/bin/env bash
# Manual pages and completions: those of the sources are what the program makes, and real shells complete with them.
set -uo pipefail
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
top=$here/../..

run help --generate made
check "documents are made" exits 0
check "completions of the sources are those that the program makes (dtrain help --generate .)" diff -r made/completions "$top/completions"
for page in made/man/*; do
  check "the page of the sources is the one that the program makes: ${page##*/}" cmp "$page" "$top/man/${page##*/}"
done
check "no page of the sources is left over" same "$(ls made/man)" "$(basename -a "$top"/man/*.1)"
check "a default that ends in a full stop gets no second one" bash -c '! grep -q "^Default: .*\.\.$" "$1"/*' - "$top/man"
check "the first line of a table keeps its indent" grep -qx '    0  done' "$top/man/dtrain.1"
check "an option for dtrain itself is in none" bash -c '! grep -rq -E "warmup.{1,2}of.{1,2}file" made' -
check "they are the same where fewer processors are usable" bash -c \
  'taskset -c "$(taskset -cp $$ | sed "s/.*[ ,-]//")" "$DTRAIN" help --generate fewer && diff -r made fewer'
for page in "$top"/man/*; do
  check "mandoc finds nothing wrong in ${page##*/}" bash -c 'mandoc -T lint -W warning "$1" >out' - "$page"
done

mkdir -p bin job m pics "my job/my nets"
ln -s "$DTRAIN" bin/dtrain
export PATH=$PWD/bin:$PATH
printf 'alpha\nbeta:2222 slots=2\n' >job/host_worker
cp job/host_worker "my job"
mkdir -p "$HOME/nets" "$HOME/work"
touch "$HOME/nets/own-0001.safetensors" "$HOME/nets/own-0001.json"
cp job/host_worker "$HOME/work"
touch m/net-0001.safetensors m/net-0001.json m/net-0002.safetensors m/note.txt own.json own.onnx pics/cat.png \
  "my file.rec" "my job/my nets/net-0001.safetensors"

for shell in bash zsh fish; do
  run completion $shell
  cp out "$shell.script"
done
check "completion bash prints bash's script" cmp bash.script "$top/completions/dtrain.bash"
check "completion zsh prints zsh's script" cmp zsh.script "$top/completions/_dtrain"
check "completion fish prints fish's script" cmp fish.script "$top/completions/dtrain.fish"
run completion tcsh
check "completion of another shell is a usage error" exits 2
check "completion of another shell names those that there are" says "must be one of bash, zsh, fish"

check "bash takes the script" bash -n "$top/completions/dtrain.bash"
check "zsh takes the script" zsh -n "$top/completions/_dtrain"
check "fish takes the script" fish -n "$top/completions/dtrain.fish"

in_bash() { # in_bash LINE: what bash offers behind it, one a line in `out`
  bash -c '. "$1"; COMP_LINE=$2 COMP_POINT=${#2}; COMPREPLY=(); _dtrain; printf "%s\n" "${COMPREPLY[@]}"' - \
    "$top/completions/dtrain.bash" "$1" >out 2>err
}
in_fish() {
  fish --no-config -c 'source $argv[1]; complete -C $argv[2]' "$top/completions/dtrain.fish" "$1" 2>err | cut -f1 >out
}
# In a terminal TAB shows what there is: zsh completes nowhere else, and bash splits the line in its own way there. Each
# terminal has a server of its own, since one that is ending takes no new terminals.
terminals=0
in_terminal() { # in_terminal SET_UP LINE WORD SHELL...: what TAB TAB shows behind the line, waiting for WORD, in `out`
  local set_up=$1 line=$2 word=$3 tmux=(tmux -L "dtrain$$.$((++terminals))" -f /dev/null)
  "${tmux[@]}" new-session -d -s t -x 160 -y 60 "${@:4}"
  "${tmux[@]}" send-keys -t t "$set_up; clear; echo is''ready" Enter
  wait_for_screen isready
  "${tmux[@]}" send-keys -t t -l "$line"
  "${tmux[@]}" send-keys -t t Tab Tab
  wait_for_screen "$word"
  tr -s ' ' '\n' <screen >out
  "${tmux[@]}" kill-server
}
in_zsh() {  # the script is in a folder of fpath
  in_terminal "fpath=($top/completions \$fpath); autoload -Uz compinit; compinit -u -D; LISTMAX=0; setopt no_beep auto_list no_always_last_prompt" \
    "$1" "$2" zsh -f
}
in_sourcing_zsh() {
  in_terminal "autoload -Uz compinit; compinit -u -D; source $top/completions/_dtrain; setopt no_beep auto_list" "$1" "$2" zsh -f
}
in_plain_zsh() { in_terminal "source $top/completions/_dtrain; setopt no_beep auto_list" "$1" "$2" zsh -f; }  # no compinit
in_bash_terminal() { in_terminal ". $top/completions/dtrain.bash" "$1" "$2" bash --noprofile --norc; }
wait_for_screen() {
  for _ in $(seq 300); do
    "${tmux[@]}" capture-pane -p -t t >screen
    if grep -qF -- "$1" screen; then return; fi
    sleep 0.1
  done
}
offers() { for word in "$@"; do grep -qxF -- "$word" out || return 1; done; }
offers_value() { offers "$2" || offers "$1=$2"; }  # fish offers the whole word
silent_or_blank() { ! grep -q . "$1"; }
offers_not() { ! grep -qxF -- "$1" out; }

for shell in bash fish; do
  "in_$shell" 'dtrain '
  check "$shell offers commands" offers train plot doctor hosts
  "in_$shell" 'dtrain hosts '
  check "$shell offers the commands of a group" offers list add remove drain
  check "$shell offers only those" offers_not train
  "in_$shell" 'dtrain train --num-'
  check "$shell offers options" offers --num-layers --num-epochs
  "in_$shell" 'dtrain train --kv-store '
  check "$shell offers choices" offers local dist_sync
  "in_$shell" 'dtrain train --network '
  check "$shell offers networks and files of them" offers resnet vgg own.json own.onnx
  "in_$shell" 'dtrain hosts remove --job-dir job '
  check "$shell offers the hosts of a job" offers alpha beta:2222
  "in_$shell" 'dtrain plot '
  check "$shell offers jobs" offers job
  check "$shell offers what may lead to jobs" offers m/
  "in_$shell" 'dtrain inspect m/'
  check "$shell offers checkpoints" offers m/net
  check "$shell offers nothing else as checkpoints" offers_not m/note.txt
  check "$shell offers no pictures there" offers_not pics/cat.png
  "in_$shell" 'dtrain predict --top 2 m/n'
  check "$shell offers checkpoints behind an option with a value" offers m/net
  "in_$shell" 'dtrain predict m/net pics/'
  check "$shell offers pictures behind a checkpoint" offers pics/cat.png
  "in_$shell" 'dtrain predict m/net pics/cat.png m/n'
  check "$shell offers no second checkpoint" offers_not m/net
  check "$shell offers more pictures" offers m/note.txt
  "in_$shell" 'dtrain data cp own.json m/no'
  check "$shell offers files to copy to" offers m/note.txt
  "in_$shell" 'dtrain data unpack own.j'
  check "$shell offers files to unpack" offers own.json
  "in_$shell" 'dtrain launch -n 2 -- python3 own.j'
  check "$shell offers files to the program behind --" offers own.json
  "in_$shell" 'dtrain cluster ssh c -- python3 --'
  check "$shell offers that program no options of dtrain" silent_or_blank out
  "in_$shell" 'dtrain launch own.j'
  check "$shell offers no files before it" offers_not own.json
  "in_$shell" 'dtrain --'
  check "$shell offers the options of all commands" offers --version --help
  "in_$shell" 'dtrain cluster --'
  check "$shell offers them in a group" offers --version --help
  "in_$shell" 'dtrain --color '
  check "$shell offers their choices" offers always never
  "in_$shell" 'dtrain --color never '
  check "$shell offers commands behind them" offers train doctor
  "in_$shell" 'dtrain help data '
  check "$shell offers the help of the commands of a group" offers prepare ls
  check "$shell offers only that" offers_not train
  for about in train 'data prepare'; do
    "in_$shell" "dtrain help $about "
    check "$shell offers nothing behind the help of $about" offers_not data
    check "$shell offers nothing of its group behind $about" offers_not ls
  done
  "in_$shell" 'dtrain data prepare '
  check "$shell offers data sets" offers cifar10 shapes imagenet
  "in_$shell" 'dtrain help '
  check "$shell offers commands and topics of the help" offers train data exit-codes mxnet
  "in_$shell" 'dtrain completion '
  check "$shell offers shells" offers bash zsh fish
  "in_$shell" 'dtrain eval m/net --load-epoch '
  check "$shell offers the epochs of a prefix" offers 1
  check "$shell offers no epoch without its manifest" offers_not 2
  check "$shell offers no best epoch where the run did not look for it" offers_not best
  "in_$shell" 'dtrain train --lr 1 --model-prefix m/net --load-epoch '
  check "$shell offers the epochs of --model-prefix" offers 1
  "in_$shell" 'dtrain train --elastic-training-enabled '
  check "$shell offers MXNet's True and False" offers True False
  "in_$shell" 'dtrain train --network='
  check "$shell offers networks behind =" offers_value --network vgg
  "in_$shell" 'dtrain hosts remove --job-dir=job alph'
  check "$shell offers the hosts of a job behind =" offers alpha
  "in_$shell" 'dtrain hosts remove --job-dir ~/work '
  check "$shell offers the hosts of a job below ~" offers alpha beta:2222
  "in_$shell" 'dtrain train --lr '
  check "$shell offers nothing for a number" silent_or_blank out
done

in_bash 'dtrain inspect ~/nets/o'
check "bash offers checkpoints below ~" offers "$HOME/nets/own"
in_fish 'dtrain inspect ~/nets/o'
check "fish offers checkpoints below ~" offers \~/nets/own
in_bash 'dtrain hosts remove --job-dir job beta:'
check "bash offers what follows a colon" offers 2222
in_bash 'dtrain train --optimizer='
check "bash offers choices behind =" offers sgd

in_bash 'dtrain data ls my\ f'
check "bash offers files with blanks" offers 'my file.rec'
in_bash "dtrain data ls 'my f"
check "bash offers them behind a quote" offers 'my file.rec'
in_bash 'dtrain inspect my\ job/my\ nets/n'
check "bash offers checkpoints with blanks as they are written" offers 'my\ job/my\ nets/net'
in_bash 'dtrain hosts remove --job-dir "my job" '
check "bash offers the hosts of a job with a blank" offers alpha beta:2222
in_fish 'dtrain hosts remove --job-dir "my job" '
check "fish offers the hosts of a job with a blank" offers alpha beta:2222

in_bash_terminal 'dtrain hosts ' remove
check "bash offers the commands of a group in a terminal" offers list add remove drain
in_bash_terminal 'dtrain hosts remove --job-dir job ' beta:2222
check "bash offers the hosts of a job in a terminal" offers alpha beta:2222
in_bash_terminal 'dtrain hosts remove --job-dir job b' beta:2222
check "bash completes a host with its port" offers beta:2222
in_bash_terminal 'dtrain plot ' made/
check "bash offers jobs in a terminal" offers job m/
in_bash_terminal 'dtrain train --network ' vgg
check "bash offers networks in a terminal" offers resnet vgg own.json
in_bash_terminal 'dtrain inspect m/' m/net
check "bash completes a checkpoint" offers m/net
in_bash_terminal 'dtrain data ls my\ f' file.rec
check "bash completes a file with a blank" offers "my\\" file.rec
in_bash_terminal 'dtrain data cp own.json m/no' note.txt
check "bash completes the second file of two" offers m/note.txt
in_bash_terminal 'dtrain inspect ~/nets/o' nets/own
check "bash completes a checkpoint below ~" offers "$HOME/nets/own"

several_rests() {  # the commands of zsh's script for which two words are offered at any place, which it refuses
  awk -F "'" "/^    '/ { command = \$2; rests = 0 } \$2 ~ /^\\*:/ && ++rests > 1 { print command }" "$top/completions/_dtrain"
}
check "zsh's script offers one word at most at any place" same "$(several_rests)" ""
in_zsh 'dtrain ho' list
check "zsh offers the commands of a group" offers list add
in_zsh 'dtrain train --kv-store d' dist_sync
check "zsh offers choices" offers dist_sync dist_device_sync
in_zsh 'dtrain hosts remove --job-dir job ' alpha
check "zsh offers the hosts of a job" offers alpha
in_zsh 'dtrain inspect m/n' m/net
check "zsh completes a checkpoint" offers m/net
in_zsh 'dtrain predict m/n' m/net
check "zsh completes a checkpoint before pictures" offers m/net
in_zsh 'dtrain predict m/net pics/c' pics/cat.png
check "zsh completes pictures behind it" offers pics/cat.png
in_zsh 'dtrain data cp own.json m/no' note.txt
check "zsh completes the second file of two" offers m/note.txt
in_zsh 'dtrain launch -n 2 -- ls pics/c' pics/cat.png
check "zsh completes the words of the program behind --" offers pics/cat.png
in_zsh 'dtrain cluster --vers' --version
check "zsh completes the options of all commands in a group" offers --version
in_zsh 'dtrain help data ' prepare
check "zsh offers the help of the commands of a group" offers prepare ls
in_zsh 'dtrain hosts remove --job-dir my\ job a' alpha
check "zsh completes a host of a job with a blank" offers alpha
in_zsh 'dtrain inspect ~/nets/o' nets/own
check "zsh completes a checkpoint below ~" offers "$HOME/nets/own"
in_zsh 'dtrain hosts remove --job-dir ~/work a' alpha
check "zsh completes a host of a job below ~" offers alpha
in_sourcing_zsh 'dtrain train --kv-store d' dist_sync
check "zsh completes after a shell sourced the script" offers dist_sync dist_device_sync
in_plain_zsh 'dtrain train --kv-store d' dist_sync
check "zsh completes where the shell had not set up its completion" offers dist_sync dist_device_sync

finish
