#!/usr/bin/env bash
# What a training leaves beside its checkpoints: its records, and its options as a file that --config takes again.
set -uo pipefail
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

shapes 300
hash() { "$DTRAIN" inspect "$1" --json | /usr/bin/python3 -c 'import json,sys; print(json.load(sys.stdin)["weights_sha256"])'; }

run train "${small_training[@]}" --num-epochs 3 --seed 7 --lr 0.003 --lr-step-epochs 1,2 --rgb-mean "120.5,110,100" \
  --label-smoothing 0.1 --loss ce --muon-coefficients "3.4,-4.7,2" --model-prefix m/a
check "a training succeeds" exits 0
check "its options are a file beside the checkpoints" exists m/a-run/train.toml
check "options of the recipe stand in comments" grep -q '^# max-random-h = 36  (recipe cifar10)$' m/a-run/train.toml
check "its metrics are lines of JSON" json m/a-run/events.jsonl 'sum(line["event"] == "evaluation" and "accuracy" in line for line in lines) == 3 and d["event"] == "finish"'
check "of the steps, too" json m/a-run/steps.jsonl 'lines[0]["begins"] and all("loss" in line for line in lines[1:]) and len(lines) >= 4'
run train --config m/a-run/train.toml
check "the file is accepted whole, with its prefix" says "--model-prefix m/a: has checkpoints already"
run train --config m/a-run/train.toml --model-prefix m/b
check "with another prefix it is the same training" exits 0
check "to the last bit" same "$(hash m/b)" "$(hash m/a)"
run train --config m/a-run/train.toml --model-prefix m/c --seed 8
check "an option replaces one of the file" bash -c '[ "$1" != "$2" ]' - "$(hash m/c)" "$(hash m/a)"

cp m/a-run/train.toml kept.toml
run train --config m/a-run/train.toml --num-epochs 4 --resume
check "a training is resumed by its file" exits 0
check "which says then how far it goes" grep -q '^num-epochs = 4$' m/a-run/train.toml
check "and keeps the options of the first start" cmp -s kept.toml m/a-run/train.first.toml
check "its records go on" json m/a-run/steps.jsonl 'sum("begins" in line for line in lines) == 2'
run train "${small_training[@]}" --num-epochs 1 --gc-type none --elastic-training-enabled False --model-prefix m/mx
run train "${small_training[@]}" --num-epochs 2 --gc-type none --elastic-training-enabled False --load-epoch 1 --model-prefix m/mx
check "a training begins with a checkpoint of its prefix" exits 0
check "where it began stands in a comment" grep -q '^# load-epoch = 1 ' m/mx-run/train.toml
run train --config m/mx-run/train.toml --num-epochs 3 --resume
check "so that its file resumes it, MXNet's names among the options" exits 0
printf '[train]\nload-epoch = 1\n' >began.toml
run train "${small_training[@]}" --config began.toml --num-epochs 4 --model-prefix m/mx --resume
check "--resume beats a file's load-epoch" says 'Resuming from "m/mx-0003"'
check "so that the run did not begin there" bash -c '! grep -q load-epoch m/mx-run/train.toml'
run train "${small_training[@]}" --config began.toml --num-epochs 5 --model-prefix m/mx --resume --detach --job-queue q
check "in a queue it does so, too" exits 0
run train "${small_training[@]}" --num-epochs 4 --model-prefix m/mx --resume --load-epoch 1
check "both as flags contradict each other" says "--resume and --load-epoch: both choose where to begin"
run train --model-prefix m/a --num-epochs 5 --resume
check "one that leaves its data out does not get on with the recipe's" exits 1
check "and learns where its options are" says "dtrain train --config m/a-run/train.first.toml --resume"
run train --config m/b-run/train.toml --force
check "a training that begins again begins its records again" json m/b-run/steps.jsonl 'sum("begins" in line for line in lines) == 1'

run train "${small_training[@]}" --num-epochs 1 --lr 1e30 --model-prefix m/bad
check "a training whose loss is not finite would be so again" exits 93
check "in its records, too" json m/bad-run/events.jsonl 'd["event"] == "finish" and d["exit_code"] == 93 and "not finite" in d["reason"]'
run plot m/bad --out bad.svg --json
check "and its picture" json out 'd["runs"][0]["diverged"] and d["runs"][0]["loss"] is None'

run plot m/a --out a.png
check "plot finds the records of a prefix" exits 0
run plot m/a --out a.png
check "which a second one replaces" exits 0
cp "$here/../unit/data/golden/palette.png" own.png
run plot m/a --out own.png
check "but no picture of others" says "--out own.png: is there and is no picture that dtrain drew"
run plot m/a --out new/a.svg
check "plot makes the folder of the picture" exists new/a.svg
run plot m/a m/b m/c-run --out all.svg
check "plot compares runs" exits 0
check "under a heading" answers_line '^run +epochs +time +train loss +val accuracy +best val$'
check "with a line of figures for each" answers_line '^c-run +3\.0 +[0-9.]+ m?s +[0-9.]+ +[01]\.[0-9]{4} +[01]\.[0-9]{4}$'
check "and a legend" grep -q '>c-run<' all.svg
run plot m/a m/b --out all.png --json
check "as JSON, too" json out '[r["run"] for r in d["runs"]] == ["a", "b"] and d["runs"][0]["epochs"] == 4 and d["runs"][1]["best_validation_accuracy"] >= d["runs"][1]["validation_accuracy"]'
for detector in near far; do
  mkdir "$detector"
  for second in 1 2; do
    printf '{"time":"2026-01-31T00:00:0%s.0Z","epoch":%s,"step":9,"steps":10,"samples":9,"seconds":0.5,"loss":1.5}\n' \
      "$second" $((second - 1)) >>"$detector/steps.jsonl"
    printf '{"time":"2026-01-31T00:00:0%s.5Z","event":"evaluation","epoch":%s,"loss":null,"accuracy":0.%s5,"boxes":{"ap":0.%s5}}\n' \
      "$second" $((second - 1)) "$second" "$second" >>"$detector/events.jsonl"
  done
done
run plot near far --out x.svg
check "detectors have no accuracy" answers_line '^run +epochs +time +train loss +val AP +best val$'
check "but an average precision" answers_line '^far +2\.0 +1\.0 s +1\.5000 +0\.2500 +0\.2500$'
run plot m/b near --out x.svg
check "beside a classifier both have a column" answers_line '^run +epochs +time +train loss +val accuracy +val AP +best val$'
check "of which a detector fills one" answers_line '^near +2\.0 +1\.0 s +1\.5000 +- +0\.2500 +0\.2500$'
check "and a classifier the other" answers_line '^b +3\.0 +[0-9.]+ m?s +[0-9.]+ +[01]\.[0-9]{4} +- +[01]\.[0-9]{4}$'
check "the panel says so" grep -q '>accuracy, or average precision of boxes<' x.svg
run events --job-dir near
check "events name the parts of an object" answers_line 'evaluation .*boxes\.ap=0\.15'
cp -r near grown
printf '{"time":"2026-01-31T00:00:03.0Z","epoch":2,"step":4,"steps":10,"samples":9,"seconds":0.5,"loss":4.3e24}\n' >>grown/steps.jsonl
run plot near grown --out x.svg
check "a huge loss has an exponent" answers_line '^grown +2\.5 +2\.0 s +4\.300e\+24 '
printf '{"time":"2026-01-31T00:00:04.0Z","epoch":2,"step":5,"steps":10,"samples":9,"seconds":0.5,"loss":null}\n' >>grown/steps.jsonl
run plot near grown --out x.svg
check "a loss that is not finite is said to be so" answers_line '^grown +2\.6 +3\.0 s +not finite '
run plot near grown --out x.svg --json
check "as JSON, too" json out 'd["runs"][1]["diverged"] and d["runs"][1]["loss"] is None and d["runs"][0]["loss"] == 1.5'
cp -r near ended
printf '{"time":"2026-01-31T00:00:02.2Z","event":"epoch","epoch":1,"loss":1.25,"accuracy":0.5,"seconds":1.0}\n' >>ended/events.jsonl
run plot ended --out x.svg --json
check "the loss is that of the newest epoch" json out 'd["runs"][0]["loss"] == 1.25'
cp -r near other
for epoch in 2 3; do
  printf '{"time":"2026-01-31T00:00:02.%sZ","event":"evaluation","epoch":%s,"samples":7,"loss":1.0,"accuracy":0.0%s}\n' \
    $((epoch + 4)) $epoch $epoch >>other/events.jsonl
done
sed -i '1,2s/"event":"evaluation"/&,"samples":9/' other/events.jsonl
run plot other --out x.svg --json
check "the best accuracy is one of the validation data of the last" json out 'd["runs"][0]["best_validation_accuracy"] == 0.03'
run plot m/a m/nothing --out x.png
check "a run without records is named" says "m/nothing/steps.jsonl: no record of a training run"
run plot m/a m/a m/a m/a m/a m/a m/a m/a --out x.png
check "more runs than colours are refused" exits 2

run train "${small_training[@]}" --num-epochs 1 -n 2 --launcher local --logical-shards 2 --job-dir job --model-prefix m/j
check "a job keeps its options in its folder" exists job/train.toml
run train --config job/train.toml --job-dir job2 --model-prefix m/k
check "which make the same job" same "$(hash m/k)" "$(hash m/j)"
run train "${small_training[@]}" --num-epochs 1 --job-dir other --model-prefix m/l
check "--job-dir chooses the folder" exists other/train.toml
check "and nothing else is left" missing m/l-run
check "its options leave the folder out" bash -c '! grep -q "^job-dir" other/train.toml'
run train --config other/train.toml --model-prefix m/n
check "so that they train again beside the new checkpoints" exists m/n-run/steps.jsonl
cp other/steps.jsonl first.jsonl
run train --config other/train.toml --model-prefix m/o --job-dir other
check "a folder with the records of another prefix is taken" exits 0
check "it says where those are" says "other has the records of another run, --model-prefix m/l: they are in other/run-1 now"
check "they are whole" cmp -s first.jsonl other/run-1/steps.jsonl
check "the new ones are of one run" json other/events.jsonl 'sum(line["event"] == "finish" for line in lines) == 1'
run train --config other/train.toml --job-dir other --resume --num-epochs 2
check "a resumed run goes on with its records" json other/steps.jsonl 'sum("begins" in line for line in lines) == 2'
run train "${small_training[@]}" --num-epochs 1 -n 2 --launcher local --logical-shards 2 --job-dir job --model-prefix m/p
check "a job keeps the records of another one apart, too" exists job/run-1/steps.jsonl
run train --config kept.toml --force
check "a training that begins again forgets what an earlier one began with" missing m/a-run/train.first.toml
finish
