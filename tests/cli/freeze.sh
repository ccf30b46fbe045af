#!/usr/bin/env bash
# Layers that stay as they are while the others learn.
set -uo pipefail
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
shapes 400
training=(--network resnet-v1 --num-layers 8 --lr 0.01 --rgb-std 58 --global-batch 50 --logical-shards 2 --disp-batches 2
  --data-train d/shapes_train.rec --data-val d/shapes_val.rec --seed 3)

# The tensors of two checkpoints that differ, a line each.
differing() {
  /usr/bin/python3 - "$1" "$2" <<'PYTHON'
import json, struct, sys

def tensors(path):
    data = open(path, "rb").read()
    size = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + size])
    return {name: data[8 + size + at["data_offsets"][0]:8 + size + at["data_offsets"][1]]
            for name, at in header.items() if name != "__metadata__" and not name.startswith("optimizer/")}

first, second = tensors(sys.argv[1]), tensors(sys.argv[2])
print(*sorted(name for name in first if first[name] != second[name]), sep="\n")
PYTHON
}
hash() { "$DTRAIN" inspect "$1" --json | /usr/bin/python3 -c 'import json,sys; print(json.load(sys.stdin)["state_sha256"])'; }

run train "${training[@]}" --num-epochs 1 --model-prefix m/start
mkdir -p tuned two
cp m/start-0001.* tuned/
cp m/start-0001.* two/

run train "${training[@]}" --num-epochs 2 --load-epoch 1 --freeze backbone --model-prefix tuned/start
check "a run with --freeze ends well" exits 0
check "and says how much is frozen" says_line '^[0-9]+ of the [0-9]+ tensors of resnet-v1-8 stay as they are$'
check "backbone leaves the last layer to learn, and nothing else moves" same "$(differing m/start-0001.safetensors tuned/start-0002.safetensors | tr '\n' ' ')" "fc1_bias fc1_weight "

run train "${training[@]}" --num-epochs 2 --load-epoch 1 --freeze 'conv0,bn0,stage1_*' --model-prefix two/start
moved=$(differing m/start-0001.safetensors two/start-0002.safetensors)
check "patterns name layers" same "$(grep -cE '^(conv0|bn0|stage1_)' <<<"$moved")" 0
check "the others learn, with the statistics of their norms" grep -q '^stage2_.*_moving_mean$' <<<"$moved"

run train "${training[@]}" --num-epochs 3 --resume --model-prefix tuned/start
check "a resumed run keeps layers frozen" same "$(differing m/start-0001.safetensors tuned/start-0003.safetensors | tr '\n' ' ')" "fc1_bias fc1_weight "
alone=$(hash tuned/start)
run train "${training[@]}" --num-epochs 4 --resume --freeze 2 --model-prefix tuned/start
check "a resumed run freezes no other layers" exits 2
check "and says so" says '--freeze 2: the checkpoint was trained with other layers frozen'

mkdir job2
cp m/start-0001.* job2/
run train "${training[@]}" --num-epochs 3 --load-epoch 1 --freeze backbone -n 2 --launcher local --job-dir job --model-prefix job2/start
check "workers of a job freeze them, too" exits 0
check "and end with the same bits" same "$(hash job2/start)" "$alone"

mkdir loaded
cp tuned/start-0002.* loaded/
run train "${training[@]}" --num-epochs 3 --load-epoch 2 --model-prefix loaded/start
check "a run that begins with frozen layers says so" says_line '^[0-9]+ of the [0-9]+ tensors of resnet-v1-8 stay as they are, as the checkpoint says; --freeze 0 lets all learn$'
run train "${training[@]}" --num-epochs 3 --load-epoch 2 --freeze 0 --force --model-prefix loaded/start
check "--freeze 0 lets them learn" exits 0
check "all of them" grep -q '^conv0_weight$' <(differing loaded/start-0002.safetensors loaded/start-0003.safetensors)

run train "${training[@]}" --num-epochs 1 --freeze fc9 --model-prefix m/x
check "a pattern without a layer is refused" exits 2
check "with the nearest name" says 'the nearest name is fc1'
run train "${training[@]}" --num-epochs 1 --freeze '*' --model-prefix m/x
check "freezing everything is refused" exits 2
check "with the reason" says 'is left to learn'
finish
