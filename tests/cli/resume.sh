#!/usr/bin/env bash
set -uo pipefail
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
shapes 1000
training=("${small_training[@]}" --seed 3 --num-epochs 3)

hash() { "$DTRAIN" inspect "$1" --json | /usr/bin/python3 -c 'import json,sys; print(json.load(sys.stdin)["state_sha256"])'; }
run train "${training[@]}" --model-prefix m/whole
whole=$(hash m/whole)

run train "${training[@]}" --num-epochs 1 --model-prefix m/two
run train "${training[@]}" --model-prefix m/two --resume
check "--resume goes on" exits 0
check "--resume names what it found" says 'Resuming from "m/two-0001": epoch 1, step 0'
check "--resume trains only what is left" says_not "Epoch[0] "
check "stopping between epochs does not change a bit" same "$(hash m/two)" "$whole"
run train "${training[@]}" --model-prefix m/two --resume
check "--resume of a finished run succeeds" exits 0
check "--resume of a finished run trains nothing" says_not "Batch ["
check "--resume of a finished run says so" says "Nothing is left to train: 3 epochs are trained already, and --num-epochs 3"
run train "${training[@]}" --model-prefix m/fresh --resume
check "--resume without a checkpoint starts from the beginning" says "No checkpoint of m/fresh yet"

unrated=(--network mlp --rgb-std 58 --batch-size 50 --data-train d/shapes_train.rec --data-val d/shapes_val.rec)
rates=(--lr 0.001 --wd 0.0005 --lr-schedule cosine)
run train "${unrated[@]}" "${rates[@]}" --num-epochs 1 --model-prefix m/rates
run train "${unrated[@]}" "${rates[@]}" --num-epochs 2 --model-prefix m/rates --resume
check "--resume with the options of the first run succeeds" exits 0
check "and has nothing to say about its rates" says_not "the checkpoint was trained with"
check "but what a longer schedule makes of the rate" says_line "The cosine schedule takes 2 epochs instead of 1: the learning rate was 0 and becomes 0\.0005$"
run train "${unrated[@]}" "${rates[@]}" --model-prefix m/rates --resume --dry-run
check "--resume without --num-epochs of the first run names it" says "warning: --resume: the checkpoint was trained with --num-epochs 2, and this run goes on with 300: give"
run train "${unrated[@]}" --num-epochs 3 --model-prefix m/rates --resume
check "--resume without the rates of the first run names them" says "warning: --resume: the checkpoint was trained with --lr 0.001, --lr-schedule cosine, --wd 0.0005, and this run goes on with 0.05, step, 0.0001"
run train "${unrated[@]}" --lr-step-epochs 1 --clip-norm 1 --num-epochs 1 --model-prefix m/cuts
run train "${unrated[@]}" --num-epochs 2 --model-prefix m/cuts --resume
check "steps of the rate and cuts of the gradients are among them" says "warning: --resume: the checkpoint was trained with --lr-step-epochs 1, --clip-norm 1, and this run goes on with 200,250, 0: give"

run train "${training[@]}" --mixup 0.2 --num-epochs 1 --model-prefix m/mixed
run train "${training[@]}" --num-epochs 2 --model-prefix m/mixed --resume
check "so is what was done to images, with the way to take all of it again" says 'warning: --resume: the checkpoint was trained with --mixup 0.2, and this run goes on with 0: give the options of the first run again, as `dtrain train --config m/mixed-run/train.first.toml --resume` does'
run train --config m/mixed-run/train.first.toml --num-epochs 3 --resume
check "which is silent" says_not "the checkpoint was trained with"

interrupted() {  # interrupted SIGNAL ARGUMENTS...: sends the signal once the first log line is there
  local signal=$1 process
  shift
  : >err
  "$DTRAIN" "$@" >out 2>err </dev/null &
  process=$!
  for _ in $(seq 3000); do grep -q "Batch \[2\]" err && break; sleep 0.02; done
  kill "-$signal" "$process"
  wait "$process"
  code=$?
}
for signal in INT TERM; do
  interrupted $signal train "${training[@]}" --num-epochs 3000 --model-prefix "m/$signal"
  check "SIG$signal with a checkpoint exits 75" exits 75
  check "SIG$signal says where it stopped" says_line "dtrain: stopped by a signal at epoch [0-9]+ step [0-9]+, checkpoint saved"
  check "SIG$signal says how to go on" says "hint: the same command with --resume"
  run train "${training[@]}" --model-prefix "m/$signal" --resume
  check "after SIG$signal the run can go on" exits 0
  check "SIG$signal in the middle does not change a bit" same "$(hash "m/$signal-0003.json")" "$whole"
done
interrupted INT train "${training[@]}" --num-epochs 3000
check "SIGINT without a checkpoint ends by the signal" exits 130
check "SIGINT without a checkpoint says that nothing was saved" says "nothing saved"
interrupted TERM train "${training[@]}" --num-epochs 3000
check "SIGTERM without a checkpoint ends by the signal" exits 143

mkdir bad && cp d/shapes_train.rec d/shapes_train.idx bad/
# Every tenth record: its picture begins 32 bytes after its frame.
awk 'NR % 10 == 0 { print $2 + 32 }' bad/shapes_train.idx | while read -r offset; do
  printf '\x55\x55' | dd of=bad/shapes_train.rec bs=1 seek="$offset" conv=notrunc status=none
done
interrupted TERM train "${training[@]}" --num-epochs 3000 --data-train bad/shapes_train.rec --max-bad-records 200
check "SIGTERM ends a training with replaced records" exits 143
check "the first of them is said when it comes up" says_line "bad/shapes_train.rec: record [0-9]+ .*; passed over"
check "all are counted at the end, stopped or not" says_line "[0-9]+ records could not be decoded and were replaced"

run train "${training[@]}" --model-prefix m/every --checkpoint-every 7
check "--checkpoint-every saves inside an epoch" exists m/every-0000-step00000007.json
check "checkpoints inside epochs do not change a bit" same "$(hash m/every)" "$whole"
mkdir n && cp m/every-0000-step00000007.* n/
run train "${training[@]}" --model-prefix n/every --resume
check "a checkpoint inside an epoch can be resumed" says "epoch 0, step 7"
check "resuming inside an epoch does not change a bit" same "$(hash n/every)" "$whole"

run train "${training[@]}" --model-prefix n/every --resume --num-epochs 4 --num-examples 500
check "--resume over other data at an epoch's end succeeds" exits 0
check "it says what is other" says "the training data has 500 samples an epoch, not the 1000 of the checkpoint: the rates go on by whole epochs"
run inspect n/every --json
check "the run goes on by epochs" json out 'd["samples_seen"] == 4 * 500 and d["samples"] == 500'
mkdir o && cp m/every-0001-step00000007.* o/
run train "${training[@]}" --model-prefix o/every --resume --num-examples 500
check "--resume over other data inside an epoch is refused" exits 1
check "it says why" says "stands at sample 350 of an epoch, and the training data has 500 samples an epoch, not the 1000"
check "with another way" says "or begin with these data by --load-epoch 1"
"$DTRAIN" data prepare shapes --out again --train-count 1000 --val-count 100 --seed 2 >/dev/null
run train "${training[@]}" --model-prefix o/every --resume --data-train again/shapes_train.rec
check "--resume over as many other records inside an epoch is refused" exits 1
check "it says what is other" says_line "stands at sample 350 of an epoch, .* their (sizes|labels or pictures) differ"
run train "${training[@]}" --model-prefix o/every --resume --shuffle-block 50
check "--resume in another order inside an epoch is a usage error" exits 2
check "which names the order of the checkpoint" says "--shuffle-block 50: the checkpoint was trained with 0"

# Weights that hardly move: no epoch is better than the first one.
still=("${small_training[@]}" --lr 1e-9)
"$DTRAIN" data prepare shapes --out other --train-count 10 --val-count 50 --seed 2 >/dev/null
run train "${still[@]}" --num-epochs 2 --model-prefix m/judged
run train "${still[@]}" --num-epochs 3 --model-prefix m/judged --early-stop 1 --resume --data-val other/shapes_val.rec
check "--resume with other validation data does not stop by the accuracy of the first" answers_line '^3 epochs trained; '
check "it says so" says "the validation data has 50 samples, not the 100 of the checkpoint; the best epoch is looked for from epoch 2 on"
check "the best is one of the new data" answers_line '; best: m/judged-0003$'
run train "${still[@]}" --num-epochs 3 --model-prefix m/judged --early-stop 1 --resume --data-val other/shapes_val.rec
check "with the same data as before it has nothing to say" says_not "the best epoch is looked for"
run train "${still[@]}" --num-epochs 4 --model-prefix m/judged --resume --data-val other/shapes_val.rec --test-views 2
check "so do other views" says "--test-views 2: the checkpoint's validation averaged 1 view; the best epoch is looked for from epoch 3 on"
run train "${still[@]}" --num-epochs 5 --model-prefix m/judged --resume --data-val other/shapes_val.rec
check "which are those of the checkpoint by default" says_not "the best epoch is looked for"

# Ends in the evaluation of the first epoch, which takes a few seconds.
slow=("${small_training[@]}" --network resnet --num-layers 20 --image-shape "3,28,28" --num-examples 50 --num-epochs 1
  --logical-shards 2 --data-val d/shapes_train.rec --test-views 2)
"$DTRAIN" train "${slow[@]}" --model-prefix m/killed >out 2>err </dev/null &
for _ in $(seq 3000); do grep -qs '"evaluation_due": true' m/killed-0001.json && break; sleep 0.01; done
kill -KILL $!
wait $! 2>/dev/null
check "an epoch is saved before it is evaluated" grep -q '"evaluation_due": true' m/killed-0001.json
before=$(hash m/killed)
mkdir k && cp m/killed-0001.* k/
run train "${slow[@]}" --model-prefix m/killed --resume
check "--resume evaluates it, though no epoch is left" says "Epoch[0] Validation-accuracy="
check "and says why" says "the run ended before the last epoch of the checkpoint was evaluated: that is done first"
check "the last line has the accuracy" answers_line '^1 epoch trained; validation accuracy [0-9.]+, loss [0-9.]+; checkpoint m/killed-0001.safetensors$'
check "the weights stay as they are" same "$(hash m/killed)" "$before"
run train "${slow[@]}" --model-prefix m/killed --resume
check "once" says_not "Validation-accuracy="
run train "${slow[@]}" --model-prefix k/killed --resume -n 2 --launcher local --job-dir job
check "so do the workers of a job" answers_line '^1 epoch trained; validation accuracy [0-9.]+, loss [0-9.]+; checkpoint k/killed-0001.safetensors$'
check "whose manifest has it, too" bash -c '! grep -q evaluation_due k/killed-0001.json'

run train "${training[@]}" --model-prefix m/two --load-epoch 1 --force
check "--load-epoch begins with that checkpoint" says 'Loaded model "m/two-0001"'
check "--load-epoch trains the epochs after it" says "Epoch[1] Train-accuracy="
run train "${training[@]}" --model-prefix m/two --load-epoch 9
check "--load-epoch of an epoch that is not there fails" exits 1
run train "${training[@]}" --resume
check "--resume without a prefix is a usage error" exits 2
run train "${training[@]}" --model-prefix m/two --resume --seed 4
check "--resume with another seed is a usage error" exits 2
check "--resume with another seed says the checkpoint's" says "--seed 4: the checkpoint was trained with 3"
run train "${training[@]}" --model-prefix m/two --resume --batch-size 10
check "--resume with another batch is a usage error" says "--batch-size 10: the checkpoint was trained with 50 samples a step"
run train "${training[@]}" --model-prefix m/two --resume --rgb-std 20
check "--resume with other pixels is a usage error" exits 2
check "--resume with other pixels says the checkpoint's" says "--rgb-std 20,20,20: the checkpoint was trained with 58,58,58"
run train "${training[@]}" --model-prefix m/two --resume --network lenet
check "--resume with another network is a usage error" says "the checkpoint holds mlp, not the lenet"

flip() { printf '\x55' | dd of="$1" bs=1 seek="$2" conv=notrunc status=none; }  # flip FILE OFFSET
flip m/two-0003.safetensors 200000
run train "${training[@]}" --model-prefix m/two --resume
check "a damaged newest checkpoint is passed over" exits 0
check "a damaged checkpoint is named with its tensor" says_line "warning: .*m/two-0003.*fc1_weight"
check "the checkpoint before a damaged one is used" says 'Resuming from "m/two-0002"'
check "after a damaged checkpoint not a bit is changed" same "$(hash m/two)" "$whole"
for file in m/two-000?.safetensors; do flip "$file" 200000; done
run train "${training[@]}" --model-prefix m/two --resume
check "only damaged checkpoints are a failure" exits 1
check "only damaged checkpoints are told" says "m/two: every checkpoint is damaged"

finish
