#!/usr/bin/env bash
# All options of MXNet's image-classification scripts are known: they train, or are refused with the nearest thing.
set -uo pipefail
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
shapes 100
training=("${small_training[@]}" --num-epochs 1)

# common/fit.py, then common/data.py: NAME VALUE, with a value that asks for something.
options="network resnet|num-layers 20|gpus |kv-store device|num-epochs 1|lr 0.1|lr-factor 0.1|lr-step-epochs 30,60
  initializer xavier|optimizer sgd|mom 0.9|wd 0.0001|batch-size 128|disp-batches 20|model-prefix m/x|save-period 2|monitor 0
  load-epoch 1|top-k 5|loss ce|test-io 0|dtype float32|gc-type 2bit|gc-threshold 0.1|macrobatch-size 256|warmup-epochs 5
  warmup-strategy sqrt|profile-worker-suffix w|profile-server-suffix s
  data-train d/shapes_train.rec|data-train-idx d/shapes_train.idx|data-val d/shapes_val.rec|data-val-idx d/shapes_val.idx
  rgb-mean 123.68,116.779,103.939|pad-size 4|fill-value 127|image-shape 3,28,28|num-classes 10|num-examples 50
  data-nthreads 1|benchmark 0|rgb-std 58
  random-crop 1|random-mirror 1|max-random-h 36|max-random-s 50|max-random-l 50|min-random-aspect-ratio 0
  max-random-aspect-ratio 0.25|max-random-rotate-angle 10|max-random-shear-ratio 0.1|max-random-scale 1|min-random-scale 1
  max-random-area 1|min-random-area 1|min-crop-size 24|max-crop-size 32|brightness 0.4|contrast 0.4|saturation 0.4
  pca-noise 0.1|random-resized-crop 1"
known=0 refused=0
while read -r name value; do
  run train "--$name" "$value" --show-config
  known=$((known + 1))
  [ "$code" -eq 0 ] || refused=$((refused + 1))
  check "--$name is known" says_not "unknown option"
  check "--$name is taken, or refused with a hint" bash -c "[ $code -eq 0 ] || { [ $code -eq 2 ] && grep -q '^hint: ' err; }"
done < <(tr '|' '\n' <<<"$options" | sed 's/^ *//')
check "all 62 options were tried" same "$known" 62
check "6 of them are refused" same "$refused" 6
for flag in "--max-crop-size -1" "--save-period 1" "--gc-type none --gc-threshold 0.5"; do
  # shellcheck disable=SC2086
  run train $flag --show-config
  check "$flag asks for what dtrain does anyway" exits 0
done

for optimizer in dcasgd lbsgd; do
  run train "${training[@]}" --optimizer $optimizer
  check "--optimizer $optimizer is a usage error" exits 2
  check "--optimizer $optimizer is refused by its name" says "$optimizer is not supported: "
  check "--optimizer $optimizer is answered with the nearest one" says "hint: use --optimizer "
done
for name in default xavier msra normal uniform one zero; do
  run train "${training[@]}" --initializer $name --num-epochs 0 --model-prefix "m/$name"
  check "--initializer $name begins a training" exits 0
done
run train "${training[@]}" --initializer orthogonal
check "--initializer orthogonal is refused by its name" says "orthogonal is not supported: "
run train "${training[@]}" --initializer glorot
check "an initializer that does not exist is a usage error" exits 2
for name in linear power2 sqrt constant; do
  run train "${training[@]}" --warmup-epochs 1 --warmup-strategy $name --warmup-lr 0.001
  check "--warmup-strategy $name trains" exits 0
done
run train "${training[@]}" --warmup-epochs 1 --warmup-strategy cubic
check "a warm-up that does not exist is a usage error" exits 2
run train "${training[@]}" --warmup-epochs 1 --lr 0.1 --warmup-lr 0.2
check "a warm-up that begins above the rate is a usage error" exits 2
check "a warm-up that begins above the rate names both" says "warmup-lr: must be at most the learning rate 0.1, not 0.2"

run train "${training[@]}" --lr-step-epochs pow2
check "the schedule pow is refused" says "pow2 is not supported"
check "the schedule pow is answered with others" says "use --lr-schedule poly"
for store in nccl dist_sync_device; do
  run train "${training[@]}" --kv-store $store
  check "--kv-store $store trains" exits 0
done
run train --kv-store dist_sync_device --show-config
check "dist_sync_device is dist_device_sync" answers "kv-store = dist_device_sync"

run train "${training[@]}" --data-train-idx d/shapes_train.idx --data-val-idx ./d/shapes_val.idx --fill-value 0 --pad-size 2
check "the indexes beside the records and a --fill-value are taken" exits 0
run train "${training[@]}" --data-train-idx elsewhere.idx
check "an index elsewhere is a usage error" exits 2
check "an index elsewhere is answered with what links it" says 'hint: ln -s $(realpath elsewhere.idx) d/shapes_train.idx'
run train "${training[@]}" -n 2 -s 2 --job-dir job
check "-s in a job trains" exits 0
check "-s in a job is answered with a sentence" says "-s has no effect"

run train "${training[@]}" --image-shape 3,24,24 --resize 26 --rgb-mean 120,110,100 --model-prefix m/resized
run eval m/resized --data-val d/shapes_val.rec
cp out of_checkpoint
run export m/resized --to mxnet --out m/theirs
read -ra options < <(sed -n 's/.*eval and predict need //p' err)
check "export says how MXNet's files are read" says "--resize 26"
run eval m/theirs --data-val d/shapes_val.rec "${options[@]}"
check "eval takes these options" exits 0
check "and computes the same" cmp -s out of_checkpoint
params=$(echo m/theirs-*.params)
run eval "$params" --data-val d/shapes_val.rec "${options[@]}"
check "the .params beside its symbol names the same" cmp -s out of_checkpoint
run eval "$params" --load-epoch 1 --data-val d/shapes_val.rec
check "and has no epoch to choose" says "--load-epoch: $params is a file of one checkpoint"

run help mxnet
check "a topic lists what is refused" answers "--save-period EPOCHS"
# The table of the page, made of the same list.
run help train --json
/usr/bin/python3 - out "$here/../../examples/from-launch-py.md" >table <<'PYTHON'
import json, sys
tree, page = json.load(open(sys.argv[1])), open(sys.argv[2]).read()
for option in tree["commands"][0]["options"]:
    for refusal in option["refused"]:
        row = f"| `{option['name']} {refusal['value'] or option['value']}` | {refusal['reason']} | {refusal['hint']} |"
        print(row)
        if row not in page:
            print("MISSING ABOVE")
PYTHON
check "the page has a row for each of them, as in the file 'table'" bash -c '[ "$(wc -l <table)" -eq 10 ] && ! grep -q MISSING table'

finish
