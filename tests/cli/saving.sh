#!/usr/bin/env bash
# Checkpoints that cannot be written, and files of others in the way.
set -uo pipefail
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
shapes 200
training=("${small_training[@]}" --data-val "")

: >file
run train "${training[@]}" --num-epochs 1 --model-prefix file/s
check "a checkpoint folder that cannot be made is refused before training" exits 1
check "the refusal names the folder" says "file: cannot make the folder"
check "nothing was trained" says_not "Train-accuracy"

run train "${training[@]}" --num-epochs 1 --model-prefix m/s
check "a new prefix is trained" exits 0
good=$(sha256sum m/s-0001.safetensors)
code=$(ulimit -f 64 && "$DTRAIN" train "${training[@]}" --num-epochs 3 --model-prefix m/s --resume >out 2>err </dev/null; echo $?)
check "a run whose last weights are nowhere fails" exits 1
check "it names what is lost" says_line "^dtrain: 3 epochs trained, but the weights of m/s-0003 are lost: .*File too large; this process has saved none since it started"
check "it told of each failure" says_line "warning: checkpoint not saved: m/s-0002.safetensors: cannot write: File too large; training goes on,"
check "the last good checkpoint stays" same "$(sha256sum m/s-0001.safetensors)" "$good"
check "nothing half written stays" same "$(find m -name '*000[23]*' | wc -l)" 0

code=$(ulimit -f 64 && "$DTRAIN" train "${training[@]}" --num-epochs 1 --model-prefix m/first >out 2>err </dev/null; echo $?)
check "one without any checkpoint fails" exits 1
check "and has nothing to resume" says_line "^hint: .*, and run the same command again$"

cp m/s-0001.json m/s-0001.safetensors .
run train "${training[@]}" --num-epochs 1 --model-prefix m/s
check "checkpoints of a run before are not trained over" exits 2
check "the refusal names the newest and --force" says_line "m/s: has checkpoints already, the newest is m/s-0001"
check "the hint says how" says "--force trains again"
run train "${training[@]}" --num-epochs 2 --model-prefix m/s --load-epoch 1
check "--load-epoch continues the newest" exits 0
run train "${training[@]}" --num-epochs 2 --model-prefix m/s --load-epoch 1
check "--load-epoch does not train over newer ones" exits 2
check "with the way to train on from it" says "copy m/s-0001.* to another prefix and train on there, or --force replaces"
rm m/*.json
run train "${training[@]}" --num-epochs 2 --model-prefix m/s --resume
check "--resume does not train over tensors without manifest" exits 2
check "it names them" says "m/s-0001.safetensors is there without its manifest"
run train "${training[@]}" --num-epochs 1 --model-prefix m/s --force
check "--force trains over them" exits 0

run train "${training[@]}" --num-epochs 0 --model-prefix m/none
check "a run without epochs promises no checkpoint" says_not "The model is saved after each epoch"

run train "${training[@]}" --num-epochs 2 --model-prefix m/mx --checkpoint-format mxnet
check "the last line of a run names its own checkpoint, not MXNet's file" answers_line '; checkpoint m/mx-0002.safetensors$'
for file in m/mx-0002.safetensors m/mx-0002.params; do
  run eval $file --data-val d/shapes_val.rec
  check "eval takes $file" exits 0
done
rm m/mx-000?.json m/mx-000?.safetensors
theirs=$(sha256sum m/mx-000?.params)
run train "${training[@]}" --num-epochs 2 --model-prefix m/mx --checkpoint-format mxnet --load-epoch 1
check "--load-epoch does not train over newer parameters of MXNet" exits 2
check "it names them" says "m/mx: has parameters in MXNet's format already, the newest are m/mx-0002.params"
check "they are as they were" same "$(sha256sum m/mx-000?.params)" "$theirs"
run train "${training[@]}" --num-epochs 3 --model-prefix m/mx --checkpoint-format mxnet --load-epoch 2
check "--load-epoch continues the newest of them" exits 0

run train "${training[@]}" --num-epochs 4 --model-prefix m/again
run train "${training[@]}" --num-epochs 2 --model-prefix m/again --force --pretrained m/again-0004.safetensors
check "--force does not remove the weights that the run begins with" exits 2
check "it says which" says "--force: replaces m/again-0004.safetensors, the weights of --pretrained"
ln -s m linked
for weights in "$PWD/m/again-0004.safetensors" linked/again-0004.safetensors m/../m/again-0004.safetensors m/again; do
  run train "${training[@]}" --num-epochs 2 --model-prefix m/again --force --pretrained "$weights"
  check "nor by another name, $weights" says "-0004.safetensors, the weights of --pretrained"
done
check "they are still there" exists m/again-0004.safetensors
run train "${training[@]}" --num-epochs 2 --model-prefix m/again --force --lr 0.02
check "--force says what it replaces" says "--force: replaces the checkpoints of m/again up to m/again-0004"
check "no later checkpoint of the earlier run is left" same "$(cd m && echo again-*.json)" "again-0001.json again-0002.json"
run train "${training[@]}" --num-epochs 3 --model-prefix m/again --resume --lr 0.02
check "--resume continues the new run" says 'Resuming from "m/again-0002"'

"$DTRAIN" train "${training[@]}" --num-epochs 100000 --model-prefix m/two --resume >first 2>&1 </dev/null &
first=$!
for _ in $(seq 600); do [ -e m/two-0001.json ] && break; sleep 0.1; done
run train "${training[@]}" --num-epochs 1 --model-prefix m/two --resume
check "two runs do not write under one prefix" exits 1
check "the second one says why" says "m/two: another run is writing its checkpoints there"
run import m/again-0001.safetensors --network mlp --image-shape 3,28,28 --out m/two --force
check "nor does an import" says "--out m/two: another run is writing its checkpoints there"
kill -KILL $first
wait $first 2>/dev/null
touch -d '2 minutes ago' "m/two-0002.safetensors.tmp.$first" "m/other-0002.safetensors.tmp.$first"
run train "${training[@]}" --num-epochs 1 --model-prefix m/two --resume
check "the prefix is free once the first is dead" exits 0
check "what a killed run left is removed" missing "m/two-0002.safetensors.tmp.$first"
check "what belongs to another prefix stays" exists "m/other-0002.safetensors.tmp.$first"

# What commands leave behind that are killed, or stopped by Ctrl-C.
mkdir made r
left=(made/few.onnx made/import-0000.safetensors made/few.svg r/per_class.csv)
for file in "${left[@]}"; do touch -d '2 minutes ago' "$file.tmp.$first"; done
touch -d '2 minutes ago' "r/mine.csv.tmp.$first"
run export m/two --to onnx --out made/few.onnx
run import m/two-0001.safetensors --network mlp --out made/import
run plot m/two --out made/few.svg
run eval m/two --data-val d/shapes_val.rec --report r
for file in "${left[@]}"; do
  check "$file is written" exists "$file"
  check "and what a killed command left of it is removed" missing "$file.tmp.$first"
done
check "what is not the report's own stays" exists "r/mine.csv.tmp.$first"

run train "${training[@]}" --num-epochs 4 --model-prefix m/few --keep-checkpoints 2
check "--keep-checkpoints keeps the newest" same "$(cd m && echo few-*.json)" "few-0003.json few-0004.json"
for prefix in mm/ . mm/..; do
  run train "${training[@]}" --num-epochs 1 --model-prefix $prefix
  check "--model-prefix $prefix is a usage error" exits 2
  check "which says what $prefix is" says "--model-prefix: $prefix names a folder"
done
long=mm/$(printf 'x%.0s' {1..240})
run train "${training[@]}" --num-epochs 1 --model-prefix "$long"
check "a --model-prefix whose files would have too long names is a usage error" exits 2
check "which says so before training" says "the names of its files would be of up to "
check "no hidden file was written" same "$(find . -name '.*-0001*' -o -name '-0001*')" ""
for command in "export m/s --to mxnet" "import m/s-0001.safetensors --network mlp" "data pack d"; do
  # shellcheck disable=SC2086  # words
  run $command --out mm/
  check "$command --out mm/ is a usage error" exits 2
  check "with a name for $command" says "add a name, such as mm/model"
done
for option in --model-prefix --pretrained --hostfile; do
  run train "${training[@]}" --num-epochs 1 $option ""
  check "an empty $option is refused" exits 2
  check "the refusal names $option" says "$option: must not be empty"
done
DTRAIN_MODEL_PREFIX="" run train "${training[@]}" --num-epochs 1
check "so is an empty variable" says "DTRAIN_MODEL_PREFIX: must not be empty"
run train "${training[@]}" --num-epochs 1
check "without --model-prefix the run says that nothing is kept" says "Without --model-prefix no checkpoint is written"

before=$(sha256sum d/shapes_val.rec d/shapes_val.idx m/s-0001.*)
run data show d/shapes_val.rec --out d/shapes_val.rec
check "data show does not draw over its input" exits 2
run data show d/shapes_val.rec --out d/shapes_val.idx
check "data show does not draw over an index" exits 2
run data show d/shapes_val.rec --out sheet.png
run data show d/shapes_val.rec --out sheet.png
check "data show draws over its own picture" exits 0
cp "$here/../unit/data/golden/palette.png" own.png
run data show d/shapes_val.rec --out own.png
check "data show does not draw over a picture of others" exits 2
check "which is said" says "--out own.png: is there and is no picture that dtrain drew"
check "and left alone" cmp -s own.png "$here/../unit/data/golden/palette.png"
run data show d/shapes_val.rec --out sheet.jpg
check "data show writes a PNG under no other name" says "--out sheet.jpg: the file name must end in .png"
for target in "safetensors m/s-0001.safetensors" "onnx m/s-0001.json"; do
  # shellcheck disable=SC2086  # two words
  set -- $target
  run export m/s --to "$1" --out "$2"
  check "export does not write over $2" exits 2
done
run data prepare shapes --out d --train-count 10 --val-count 10
check "data prepare does not write over another data set" exits 2
check "and names --force" says "--force writes over it"
check "no file was touched" same "$(sha256sum d/shapes_val.rec d/shapes_val.idx m/s-0001.*)" "$before"
run data prepare shapes --out d --train-count 10 --val-count 10 --force
check "data prepare --force writes over it" exits 0
mkdir -p photos/a photos/b other/a other/b
cp sheet.png photos/a && cp sheet.png photos/b && cp sheet.png other/a && cp sheet.png other/b/two.png
run data pack photos --out p --train-ratio 1
check "pictures are packed" exits 0
run data pack other --out p --train-ratio 1
check "data pack does not write over another data set" exits 2
run data pack other --out p --train-ratio 1 --force
check "data pack --force writes over it" exits 0

mkdir -p split/train/cat split/train/dog split/val/cat split/val/dog
for place in train/cat train/dog val/cat val/dog; do cp sheet.png split/$place; done
: >split/train/cat/picture.gif
run data pack split --out s
check "folders of training and validation are two splits" exists s_val.rec
check "what is left out is listed by its reason" says "1 file was left out (.gif): train/cat/picture.gif"
mkdir outer && cp -r split outer/
tar -cf split.tar split
for source in outer split.tar; do
  run data pack $source --out s-$source
  check "so are those in the only folder of $source" exists s-${source}_val.rec
  check "with the names of the classes" says "2 classes with their pictures: cat (2), dog (2)"
done
run data ls s_train.rec
check "data ls names the classes" answers_line "class +1 +1 .* dog"
run data show s_train.rec --out named.png
check "data show names the labels" answers "row 1: 0 cat, 1 dog"
run train --network mlp --image-shape 3,28,28 --num-classes 2 --batch-size 2 --num-epochs 1 --data-train s_train.rec --data-val s_val.rec --model-prefix m/c
run inspect m/c --json
check "a checkpoint holds the names of the classes" json out 'd["preprocessing"]["classes"] == ["cat", "dog"]'
run export m/c --to onnx --out c.onnx
check "ONNX holds them too" grep -q '\["cat","dog"\]' c.onnx
run eval m/c --data-val s_val.rec --top-k 1 --json
check "eval names them" json out 'd["classes"] == ["cat", "dog"]'
check "eval of the same classes does not warn" silent_on err
sed -i s/cat/bird/ s.pack.json
run eval m/c --data-val s_val.rec --top-k 1
check "eval of other classes is refused" exits 1
check "the first difference is named" says 's_val.rec: class 0 is "bird", but in the checkpoint it is "cat"'
run train --network mlp --image-shape 3,28,28 --num-classes 2 --batch-size 2 --num-epochs 2 --data-train s_train.rec --model-prefix m/c --resume
check "a run does not go on with other classes" says 's_train.rec: class 0 is "bird", but in the checkpoint it is "cat"'
cp s_val.rec t.rec && cp s_val.idx t.idx && echo '{"classes": ["cat", "emu"]}' >t.pack.json
sed -i s/bird/cat/ s.pack.json
run train --network mlp --image-shape 3,28,28 --num-classes 2 --batch-size 2 --num-epochs 1 --data-train s_train.rec --data-val t.rec
check "validation data of other classes are refused" says 't.rec: class 1 is "emu", but in s_train.rec it is "dog"'
run eval m/c --data-val s_val.rec --top-k 1 --per-class
check "eval prints a line for each class by its name" answers_line '^dog +1 +[01]\.[0-9]{4} +[01]\.[0-9]{4} +[01]\.[0-9]{4}$'
run eval m/c --data-val s_val.rec --top-k 1 --json
check "and its JSON counts them" json out '[c["class"] for c in d["per_class"]] == ["cat", "dog"] and sum(c["samples"] for c in d["per_class"]) == 2'
run data prepare cifar10 --train-count 4000 --out c
check "--train-count of a published set is refused" exits 2
: >empty.tar
run data unpack empty.tar --out u
check "an empty file is no archive" exits 1
mkdir -p tree/sub u2 elsewhere && echo x >tree/sub/file && tar cf tree.tar -C tree . && ln -s "$PWD/elsewhere" u2/sub
run data unpack tree.tar --out u2
check "a link inside the target folder is not followed" exits 1
check "nothing was written where it leads" missing elsewhere/file
run bench train --network mlp --image-shape 3,28,28 --data-train d/shapes_val.rec --batch-size 128 --steps 1
check "bench train names a file smaller than a step" says "d/shapes_val.rec: has 10 records, less than the 128 of a step"
run train "${training[@]}" --threads 40000
check "--threads has an upper bound" exits 2

ln -s loop loop
run data ls loop
check "a loop of links is no surprise" says_not unexpected
run train "${training[@]}" --num-epochs 1 --model-prefix loop/m
check "a loop of links as the folder is no surprise" says_not unexpected
run data ls "$(printf 'x%.0s' $(seq 300)).rec"
check "a long name is no surprise" says_not unexpected
run train "${training[@]}" --num-epochs 1 --model-prefix "m/$(printf 'x%.0s' $(seq 300))"
check "a long prefix is no surprise" says_not unexpected

# The hint of a refusal is about what was refused.
stranger=(setpriv --reuid=65534 --regid=65534 --clear-groups)
if [ "$(id -u)" = 0 ] && "${stranger[@]}" test -x "$DTRAIN" 2>/dev/null; then
  chmod 755 "$scratch" "$scratch/work" d && mkdir -m 755 closed && chmod 644 d/*
  HOME=$scratch/none "${stranger[@]}" "$DTRAIN" train "${training[@]}" --num-epochs 1 --model-prefix closed/s >out 2>err </dev/null
  code=$?
  check "a folder that takes no files is refused" exits 1
  check "the hint names the option" says "choose a folder that this user can write to: --model-prefix"
  mkdir -m 755 closed/job
  (cd closed && HOME=$scratch/none "${stranger[@]}" "$DTRAIN" train "${training[@]/d\//../d/}" --num-epochs 1 -n 2 \
    --launcher local --job-dir job >../out 2>../err </dev/null)
  check "a job folder that takes no files is refused in one line" same "$(grep -c '^dtrain: ' err) $(grep -c Permission err)" "1 1"
  chmod 755 m && chmod 600 m/s-0001.json
  HOME=$scratch/none "${stranger[@]}" "$DTRAIN" inspect m/s --load-epoch 1 >out 2>err </dev/null
  check "who may not read a file learns how to" says "hint: its owner can let you read it"
  chmod 644 m/s-0001.json
else
  skip "hints where permission is denied" "they need another user"
fi

HOME=$PWD/loop run data ls d/shapes_val.rec
check "a home folder that cannot be reached has no configuration" exits 0
mkdir gone && cd gone && rmdir ../gone
"$DTRAIN" data ls x >../out 2>../err </dev/null
cd ..
check "a deleted current folder is no surprise" says_not unexpected

finish
