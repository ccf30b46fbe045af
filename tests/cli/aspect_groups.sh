#!/usr/bin/env bash
# Pictures of a detector that are padded to the size of their aspect, so that each step has one size.
set -uo pipefail
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

scenes() { /usr/bin/python3 "$(dirname "$here")/helpers/aspect_scenes.py" "$@"; }
scenes photos 9 5
scenes other 3 4
run data pack photos --coco photos.json --out d/train
check "pictures of two aspects are packed" exits 0
run data pack other --coco other.json --out d/val
state() { "$DTRAIN" inspect "$1" --json | grep -oE '"state_sha256":"[0-9a-f]+"'; }
differs() { [ "$1" != "$2" ]; }
layers=(--network mask-rcnn --backbone resnet-18 --proposals 16)
common=(--data-train d/train.rec --batch-size 4 --logical-shards 4 --optimizer adamw --lr 0.001
  --lr-schedule step --warmup-epochs 0 --disp-batches 1 --seed 3)
plain=("${layers[@]}" "${common[@]}")
grouped=("${plain[@]}" --aspect-groups "64x96,96x64")

run train "${grouped[@]}" --data-val d/val.rec --num-epochs 1 --model-prefix m/one
check "a run has groups" exits 0
check "it says which" says "each step has pictures of one size: 64x96 or 96x64"
check "the input of the network holds both" says "in colour images of 96 x 96 pixels"
# The first step of an epoch has no line.
check "an epoch has the remainder of each group as a step" same "$(grep -c '^Epoch\[0\] Batch' err)" 4
check "validation has groups too" says_line '^Epoch\[0\] Validation-mask-AP=[01]\.[0-9]+$'
run train "${grouped[@]}" --num-epochs 1 --model-prefix m/threads --threads 1 --data-nthreads 3 --tensorboard board
check "the number of threads changes no bit" same "$(state m/one)" "$(state m/threads)"
run train "${grouped[@]}" --global-batch 4 --data-val d/val.rec --num-epochs 1 --model-prefix m/three \
  -n 3 --launcher local --job-dir three
check "three workers train" exits 0
check "three workers change no bit" same "$(state m/one)" "$(state m/three)"
forget m/threads m/three
run train "${plain[@]}" --image-shape "3,96,96" --num-epochs 1 --model-prefix m/plain
check "one size gives other weights" differs "$(state m/one)" "$(state m/plain)"

# Stopped in the third step of an epoch, between its whole batches and the remainders.
: >err
"$DTRAIN" train "${grouped[@]}" --data-val d/val.rec --num-epochs 1 --model-prefix m/half >out 2>err </dev/null &
process=$!
for _ in $(seq 2400); do grep -q "Batch \[2\]" err && break; sleep 0.05; done
kill -TERM "$process"
wait "$process"
code=$?
check "a run is stopped in the middle of an epoch" exits 75
run train "${plain[@]}" --num-epochs 1 --data-val d/val.rec --model-prefix m/half --resume
check "which a resumed run finds" says_line 'Resuming from .*: epoch 0, step [34]'
check "a resumed run takes the groups of its checkpoint" says "each step has pictures of one size: 64x96 or 96x64"
check "and goes on with the same bits" same "$(state m/one)" "$(state m/half)"

run eval m/one --data-val d/val.rec --json
check "eval computes pictures in their groups" json out 'd["samples"] == 7 and "ap" in d["masks"]'
cp out grouped.json
run eval m/one --data-val d/val.rec --batch-size 3 --json
check "in batches of any size" same "$(sed 's/"seconds".*//' out)" "$(sed 's/"seconds".*//' grouped.json)"
run predict m/one photos --min-score 0.01 --json
check "predict takes pictures of both" exits 0
run export m/one --to onnx --out m/one.onnx
check "the checkpoint is exported in the size that holds both" exits 0
check "which other programs compute otherwise" says "other programs pad it to 96x96, the only size that the model takes"
check "and how a model of each group is made" says "give --image-shape 3,64,96 or --image-shape 3,96,64"
run export m/one --to onnx --out m/wide.onnx --image-shape "3,64,96"
check "a model of one group" exits 0
check "needs no such words" silent_on err
shape_of() { "$DTRAIN" inspect "$1" --json | /usr/bin/python3 -c 'import json,sys; d=json.load(sys.stdin); print(d["preprocessing"]["image_shape"], "aspect_groups" in d["preprocessing"])'; }
check "has its size alone" same "$(shape_of m/wide.onnx)" "[3, 64, 96] False"
mapfile -t wide < <(/usr/bin/python3 -c 'import json
print(*("photos/" + i["file_name"] for i in json.load(open("photos.json"))["images"] if i["width"] > i["height"]), sep="\n")')
run predict m/one "${wide[@]}" --min-score 0 --json
cp out wide.json
run predict m/wide.onnx "${wide[@]}" --min-score 0 --json
check "finds what the checkpoint does in pictures of the group" cmp -s out wide.json
run export m/one --to onnx --out m/no.onnx --image-shape "3,64,64"
check "another size is refused" exits 2
check "with the sizes that there are" says "give --image-shape 3,64,96 or --image-shape 3,96,64, or leave it out"
run import m/one-0001.safetensors "${layers[@]}" --out m/import
check "an import keeps the groups" exits 0
pixels() { "$DTRAIN" inspect "$1" --json | /usr/bin/python3 -c 'import json,sys; print(json.load(sys.stdin)["preprocessing"])'; }
check "with all that the checkpoint says of its pixels" same "$(pixels m/import)" "$(pixels m/one)"
run train "${grouped[@]}" --dry-run
check "a dry run has groups" answers "images/sec"

refused() {  # refused SENTENCE WORDS ARGUMENTS...
  local sentence=$1 words=$2
  shift 2
  run train "$@" --num-epochs 1 --model-prefix m/no
  check "$sentence: exit code" exits 2
  check "$sentence" says "$words"
}
refused "a side that no stride divides" "--aspect-groups: 100 is no multiple of 32, the stride of detectors: 96 is" \
  "${plain[@]}" --aspect-groups "64x100"
refused "a side alone" "must be HEIGHTxWIDTH such as 320x448, not '64'" "${plain[@]}" --aspect-groups "64"
refused "a group that is there twice" "64x96 is there twice" "${plain[@]}" --aspect-groups "64x96,64x96"
refused "a group that is too small" "--aspect-groups" "${plain[@]}" --aspect-groups "32x96"
refused "a group without pictures" "no picture of d/train.rec belongs to the group 64x64" \
  "${plain[@]}" --aspect-groups "64x96,96x64,64x64"
refused "a group that the input does not hold" \
  "--aspect-groups with --image-shape 3,64,96: the group 96x64 does not fit into it" \
  "${grouped[@]}" --image-shape "3,64,96"
refused "a classifier" "--aspect-groups with a classifier" --network resnet --num-layers 18 "${common[@]}" \
  --aspect-groups "64x96,96x64" --num-classes 2
refused "batches that follow the workers" "--aspect-groups with --elastic-batch per-worker" "${layers[@]}" \
  --data-train d/train.rec --batch-size 4 --aspect-groups "64x96,96x64" -n 2 --elastic --elastic-batch per-worker
refused "local steps" "--aspect-groups with --local-steps" "${grouped[@]}" --local-steps 2
refused "repeated pictures" "pictures in groups come once in an epoch" "${grouped[@]}" --repeated-augment 2
refused "a test of loading" "--aspect-groups with --benchmark or --test-io" "${grouped[@]}" --test-io 1
run train "${common[@]}" --num-epochs 2 --model-prefix m/one --resume --aspect-groups "96x96"
check "other groups than those of the checkpoint are refused" exits 2
check "both are named" says "--aspect-groups 96x96: the checkpoint was trained with 64x96,96x64"
run train "${common[@]}" "${layers[@]}" --image-shape "3,96,96" --num-epochs 2 --model-prefix m/plain --resume \
  --aspect-groups "64x96,96x64"
check "so are groups where the checkpoint has none" says "the checkpoint was trained with none"
finish
