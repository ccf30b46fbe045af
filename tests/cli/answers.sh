#!/usr/bin/env bash
# From photographs and the weights of another program to answers: the commands that a new user types, on real photographs and
# a ResNet-50 of random weights.
set -uo pipefail
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

if [ -z "${DTRAIN_TEST_DATA:-}" ]; then
  skip "answers about photographs" "set DTRAIN_TEST_DATA to the folder that holds coco_ccby/"
  finish
  exit
fi

# photos/ with a folder for each of three classes, by the largest object; new-photos/ with photographs that stay aside; and
# resnet50.safetensors, with torchvision's names and shapes.
/usr/bin/python3 - "$DTRAIN_TEST_DATA/coco_ccby" <<'PYTHON'
import array, json, os, pathlib, random, struct, sys

source = pathlib.Path(sys.argv[1])
document = json.loads((source / "annotations/instances_train.json").read_text())
names = {each["id"]: each["name"] for each in document["categories"]}
files = {each["id"]: each["file_name"] for each in document["images"]}
largest = {}
for box in document["annotations"]:
    size = box["bbox"][2] * box["bbox"][3]
    if size > largest.get(box["image_id"], (0, ""))[0]:
        largest[box["image_id"]] = (size, names[box["category_id"]])
taken = {"person": 0, "dining table": 0, "bus": 0}
for image, (_, name) in sorted(largest.items()):
    if name not in taken:
        continue
    taken[name] += 1
    folder = pathlib.Path("new-photos" if taken[name] == 1 else f"photos/{name}")
    folder.mkdir(parents=True, exist_ok=True)
    os.symlink(source / "train" / files[image], folder / files[image])

random.seed(1)
noise = array.array("f", [random.uniform(-1, 1) for _ in range(65521)])  # a prime, so that filters differ

def tensors():
    def norm(name, channels):
        yield f"{name}.weight", [channels], 1
        yield f"{name}.bias", [channels], 0
        yield f"{name}.running_mean", [channels], 0
        yield f"{name}.running_var", [channels], 1
    yield "conv1.weight", [64, 3, 7, 7], None
    yield from norm("bn1", 64)
    inputs = 64
    for stage, blocks in enumerate((3, 4, 6, 3)):
        inner = 64 << stage
        for block in range(blocks):
            name = f"layer{stage + 1}.{block}"
            for k, shape in enumerate(([inner, inputs, 1, 1], [inner, inner, 3, 3], [4 * inner, inner, 1, 1]), 1):
                yield f"{name}.conv{k}.weight", shape, None
                yield from norm(f"{name}.bn{k}", shape[0])
            if block == 0:
                yield f"{name}.downsample.0.weight", [4 * inner, inputs, 1, 1], None
                yield from norm(f"{name}.downsample.1", 4 * inner)
            inputs = 4 * inner
    yield "fc.weight", [1000, inputs], None
    yield "fc.bias", [1000], 0

header, pieces, at = {}, [], 0
for name, shape, value in tensors():
    size, fan_in = 1, 1
    for extent in shape:
        size *= extent
    for extent in shape[1:]:
        fan_in *= extent
    if value is None:
        scale = (6 / fan_in) ** 0.5
        scaled = array.array("f", [scale * x for x in noise])
        raw = (scaled * (size // len(scaled) + 1))[:size].tobytes()
    else:
        raw = array.array("f", [value] * size).tobytes()
    header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [at, at + len(raw)]}
    pieces.append(raw)
    at += len(raw)
text = json.dumps(header).encode()
with open("resnet50.safetensors", "wb") as out:
    out.write(struct.pack("<Q", len(text)) + text)
    for raw in pieces:
        out.write(raw)
PYTHON
small=(--image-shape "3,64,64" --batch-size 8 --num-epochs 2 --lr 0.01)

run data pack photos/ --out p
check "pack makes both sets" exits 0
check "one to train on" answers_line '^p_train.rec  [0-9]+ records'
check "and one to validate with" answers_line '^p_val.rec  [0-9]+ records'
check "and prints the classes" says "3 classes with their pictures: bus (3), dining table (10), person (19)"
check "and the command from weights of others" says "dtrain train --finetune WEIGHTS --data-train p_train --data-val p_val --model-prefix m/p"
run train --network resnet-v1.5 --num-layers 50 --pretrained resnet50.safetensors --data-train p_train.rec --data-val p_val.rec \
  --model-prefix m/p "${small[@]}"
check "training begins with the weights" exits 0
check "all of them but the last layer's" says 'Loaded "resnet50.safetensors": 265 of the 267 tensors of resnet-v1.5-50'
check "validation counts" says_line '^Epoch\[1\] Validation-accuracy=[01]\.[0-9]{6}$'
check "it leaves its options and curves" exists m/p-run/train.toml
run predict m/p new-photos/ --top 3
check "predict names photographs never seen" exits 0
check "three answers for each of three" same "$(wc -l <out)" 10
check "by the names of the folders" answers_line '^new-photos/[0-9]+\.jpg +(bus|dining table|person) +[01]\.[0-9]{6}$'
run eval m/p --data-val p_val.rec --report report/
check "eval writes a report" exits 0
check "with the worst mistakes, the confusion and the calibration" bash -c 'for each in mistakes confusion reliability; do [ -s "report/$each.png" ] || exit 1; done'
check "whose tables agree with the records" /usr/bin/python3 - <<'PYTHON'
import csv
scores = {row["class"]: row for row in csv.DictReader(open("report/per_class.csv"))}
rows = list(csv.reader(open("report/confusion.csv")))[1:]
samples = list(csv.DictReader(open("report/predictions.csv")))
labels = [line.split("\t")[1] for line in open("p_val.lst")]
assert list(scores) == ["bus", "dining table", "person"], scores
assert len(labels) == len(samples) == sum(int(n) for row in rows for n in row[1:])
assert [sum(int(n) for n in row[1:]) for row in rows] == [labels.count(f"{k}.000000") for k in range(3)]
for row in scores.values():
    assert 0 <= float(row["precision"]) <= 1 and 0 <= float(row["recall"]) <= 1
PYTHON

fine=(train --finetune resnet50.safetensors --data-train p_train.rec --data-val p_val.rec --image-shape "3,64,64")
run "${fine[@]}" --num-epochs 1 --model-prefix m/f
check "--finetune needs no other option" exits 0
check "it knows the network by the tensors, and says what it chose" says_line '^--finetune chose for 2[0-9] pictures of 3 classes: --network resnet50 --global-batch 8 --warmup-epochs 0 --optimizer sgd --lr 0.025 .*--freeze backbone'
check "the choice stands in the file of options" grep -q '^# network = "resnet50"  (--finetune)$' m/f-run/train.toml
hash() { "$DTRAIN" inspect "$1" --json | /usr/bin/python3 -c 'import json,sys; print(json.load(sys.stdin)["weights_sha256"])'; }
run train --config m/f-run/train.toml --model-prefix m/g
check "which repeats the run" same "$(hash m/g)" "$(hash m/f)"
run "${fine[@]}" --num-epochs 1 --freeze "" --global-batch 16 --model-prefix m/h
check "every option may be chosen instead" says_line '^--finetune chose for .* --network resnet50 --warmup-epochs 0 --optimizer sgd --lr 0.0071 .*--head-lr-factor 10'
check "none is chosen twice" bash -c '! grep -qE "finetune chose.*--(freeze|global-batch|num-epochs)" err'
run "${fine[@]}" --num-epochs 2 --model-prefix m/w
whole=$(hash m/w)
rm m/w-0002.*
run "${fine[@]}" --num-epochs 2 --model-prefix m/w --resume
check "a resumed run prepares its images as before" same "$(hash m/w)" "$whole"
run predict m/f photos --image-shape 3,32,32
check "another size of images is refused where the network is given" exits 2
check "with the network's" says "--image-shape 3,32,32: the network takes images of 3,64,64"
run train --finetune m/f --data-train p_train.rec --num-epochs 1 --model-prefix m/i
check "the prefix of a checkpoint knows its network and its images" says_line '^--finetune chose for .*--network resnet50 '
run inspect m/i --json
check "and gives their size" json out 'd["preprocessing"]["image_shape"] == [3, 64, 64]'
run "${fine[@]}" --recipe imagenet
check "a recipe besides is refused" exits 2
check "since both choose" says "--finetune and --recipe: both choose how to begin"
run train --finetune resnet50.safetensors
check "the pictures are needed" says "--finetune: --data-train is missing"
printf 'no weights' >none.pt
run train --finetune none.pt --data-train p_train.rec
check "a file of no weights is refused" says "none.pt: is no file of weights that dtrain knows"
run train --finetune resnet18 --data-train p_train.rec
check "so is the name of a network" says "hint: it is the name of a network: give a file with its weights"
finish
