#!/usr/bin/env bash
# Detectors from the command line: trained by one worker and by two, evaluated, asked about pictures; and what they refuse.
set -uo pipefail
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

run data prepare shapes-detection --out d --train-count 8 --val-count 6
detector=(--network retinanet --backbone resnet-18 --image-shape "3,64,64" --data-train d/shapes-detection_train
  --batch-size 4 --logical-shards 2 --optimizer sgd --lr 0.001 --lr-schedule step --warmup-epochs 0 --disp-batches 1)
run train "${detector[@]}" --data-val d/shapes-detection_val --num-epochs 2 --model-prefix m/one --job-dir one
check "a detector is trained" exits 0
check "the log says what it does" says_line 'retinanet-resnet-18 has [0-9,]+ parameters and finds objects of 6 classes in colour images of 64 x 64 pixels'
check "the parts of its loss are in the log" says_line '^Epoch\[0\] Batch \[1\].*loss=[0-9.]+.classification=[0-9.]+.bbox_regression=[0-9.]+$'
check "so is the average precision" says_line '^Epoch\[1\] Validation-AP=[01]\.[0-9]+$'
check "and nothing of an accuracy" says_not accuracy
check "the last line has it" answers_line 'validation AP [01]\.[0-9]+; checkpoint m/one-0002'
check "and the curves" json one/steps.jsonl 'd["classification"] > 0 and d["bbox_regression"] > 0 and "accuracy" not in d'
run plot one --out one.png
check "which can be drawn" exists one.png
run train "${detector[@]}" --data-val d/shapes-detection_val --num-epochs 2 --model-prefix m/two --batch-size 2 -n 2
check "two workers train it" exits 0
check "and report the same precision" says_line '^Epoch\[1\] Validation-AP=[01]\.[0-9]+$'
hash_of() { /usr/bin/python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["state_sha256"])' "m/$1.json"; }
check "to the same bits" same "$(hash_of one-0002)" "$(hash_of two-0002)"
forget m/two
run train "${detector[@]}" --num-epochs 1 --model-prefix m/resumed
run train "${detector[@]}" --num-epochs 2 --model-prefix m/resumed --resume
check "a run goes on" exits 0
check "to the same bits again" same "$(hash_of one-0002)" "$(hash_of resumed-0002)"
run train --data-train d/shapes-detection_train --num-epochs 3 --model-prefix m/resumed --resume
check "a run that goes on without its network is a usage error" exits 2
check "because of the defaults" says 'the checkpoint holds retinanet-resnet-18, a detector, and the defaults of --recipe cifar10 are for other networks'
forget m/resumed

run eval m/one --data-val d/shapes-detection_val --per-class
check "eval prints the twelve numbers" same "$(grep -cE '^box_a[pr]' out)" 12
check "and those of each class" answers_line '^triangle +[01]\.[0-9]{4} '
run eval m/one --data-val d/shapes-detection_val --json
check "its JSON has both" json out 'd["schema"] == "dtrain.eval-detector/1" and len(d["boxes"]["per_class"]) == 6 and d["samples"] == 6'
run eval m/one --data-val d/shapes-detection_val --report r
check "a report of classes is refused" says "hint: --per-class prints what a detector finds of each class"
run eval m/one --data-val d/shapes-detection_val --top-k 3
check "so is --top-k" says "--top-k: judges classifiers"

mkdir photos
cp "$(dirname "$here")/unit/data/golden/grey.jpg" photos/a.jpg
cp photos/a.jpg photos/b.jpg
echo "no picture" >photos/c.jpg
run predict m/one photos --min-score 0.001 --out-dir drawn
check "predict says that a file is no picture" exits 3
check "and names what it finds in the others" answers_line '^photos/a\.jpg +[a-z]+ +0\.[0-9]{4}  [0-9]+x[0-9]+ at [0-9]+,[0-9]+$'
check "pictures are drawn" exists drawn/b.png
rm photos/c.jpg
run predict m/one photos --min-score 1
check "a picture without objects has a line too" answers_line '^photos/a\.jpg +no object of score 1 or more$'
run predict m/one photos --min-score 0.001 --json
check "JSON has boxes" json out 'len(lines) == 2 and len(d["objects"][0]["box"]) == 4 and d["objects"][0]["score"] >= 0.001'
run predict m/one photos --min-score 0.001 --csv
check "so has CSV" answers_line '^photos/a\.jpg,[0-5],[a-z]+,0\.[0-9]+,[0-9.]+,[0-9.]+,[0-9.]+,[0-9.]+$'
image() { echo "{\"id\": $1, \"file_name\": \"$2.jpg\", \"width\": 8, \"height\": 8}"; }
categories() {
  local id=10 name list=()
  for name in "$@"; do list+=("{\"id\": $((id += 1)), \"name\": \"$name\"}"); done
  (IFS=, && echo "${list[*]}")
}
coco() {  # coco NAME...
  echo "{\"images\": [$(image 70 a), $(image 71 b)], \"categories\": [$(categories "$@")],
    \"annotations\": [{\"id\": 1, \"image_id\": 70, \"category_id\": 12, \"area\": 24, \"bbox\": [1, 1, 6, 4]}]}"
}
coco circle square triangle cross ring star >truth.json
run predict m/one photos --coco-results found.json --annotations truth.json
check "COCO's results have the numbers of the annotations" json found.json '{r["image_id"] for r in d} <= {70, 71} and all(11 <= r["category_id"] <= 16 for r in d)'
run eval --results found.json --annotations truth.json
check "and can be scored" exits 0
coco circle square >few.json
run predict m/one photos --min-score 0.001 --coco-results found.json --annotations few.json
check "classes that the annotations lack are named" says_line 'few.json has no category [a-z]+, [a-z]+, [a-z]+ and 1 more, which the network finds'
check "objects of the others are kept" json found.json '{r["category_id"] for r in d} <= {11, 12}'
mkdir -p cameras/one cameras/two
cp photos/a.jpg cameras/one/
cp photos/a.jpg cameras/two/
coco circle square triangle cross ring star | sed 's/"a.jpg"/"one\/a.jpg"/; s/"b.jpg"/"two\/a.jpg"/; s/"annotations"/"info"/' >images.json
run predict m/one cameras/one cameras/two --min-score 0.001 --coco-results found.json --annotations images.json
check "images and categories are enough, as of COCO's test images" exits 0
check "pictures of one name are told by their folders" json found.json '{r["image_id"] for r in d} == {70, 71}'
run predict m/one photos/a.jpg --coco-results found.json --annotations images.json
check "a picture that may be two images is refused" says "photos/a.jpg: may be one/a.jpg or two/a.jpg of images.json"
run predict m/one photos --coco-results found.json
check "--coco-results needs the numbers" says "--coco-results and --annotations need each other"
: >blocked
run predict m/one photos --coco-results blocked/found.json --annotations truth.json
check "a results file that cannot be written is an error" exits 1
check "before the first picture" silent_on out
cp truth.json kept.json
run predict m/one photos --coco-results ./truth.json --annotations truth.json
check "results do not replace the annotations" exits 2
check "which stay" cmp -s truth.json kept.json
run predict m/one photos --top 2
check "a detector has no --top" says "--top: retinanet-resnet-18 is a detector"
run predict m/one photos --resize 37
check "nor --resize" says "--resize: retinanet-resnet-18 is a detector, which scales pictures"
run eval m/one --data-val d/shapes-detection_val --resize 37
check "neither has eval" says "--resize: retinanet-resnet-18 is a detector, which scales pictures"

run data prepare shapes --out s --train-count 8 --val-count 4
{
  echo "{\"images\": [$(image 70 a), $(image 71 b)], \"categories\": [{\"id\": 5, \"name\": \"cell\"}], \"annotations\": ["
  echo '{"id": 1, "image_id": 70, "category_id": 5, "bbox": [1, 1, 5, 5]},'
  echo '{"id": 2, "image_id": 71, "category_id": 5, "bbox": [2, 2, 5, 4]}]}'
} >cells.json
mkdir cells-photos
for name in a b; do cp "$(dirname "$here")/unit/data/golden/cmyk.jpg" "cells-photos/$name.jpg"; done
run data pack cells-photos --coco cells.json --train-ratio 1 --out cells
one_class=("${detector[@]}" --data-train cells --batch-size 2 --logical-shards 1)
run train "${one_class[@]}" --num-epochs 1 --model-prefix m/cells
check "one class is enough for a detector" says_line 'finds objects of 1 class in '
run predict m/cells photos --min-score 0.001 --coco-results found.json --annotations cells.json
check "its results have the class's number" json found.json 'len(d) > 0 and {r["category_id"] for r in d} == {5}'
run train "${one_class[@]}" --num-classes 1 --num-epochs 1 --model-prefix m/cells1
check "which may be given" same "$(hash_of cells1-0001)" "$(hash_of cells-0001)"
forget m/cells m/cells1
run train --network lenet --num-classes 1 --data-train s/shapes_train --num-epochs 1 --model-prefix m/x
check "but not for a classifier" says "--num-classes: lenet is a classifier, which needs at least 2 classes"
run train "${detector[@]}" --data-train s/shapes_train --num-epochs 1 --model-prefix m/x
check "records without boxes are refused" says "has a class for the whole picture and no boxes, which a detector learns from"
run train "${detector[@]}" --image-shape 3,32,32 --num-epochs 1 --model-prefix m/x
check "so are pictures that are too small" says "images of 32 x 32 pixels are too small for retinanet"
run train "${detector[@]}" --image-shape 3,64,100 --num-epochs 1 --model-prefix m/x
check "and sides that the stride does not divide" says "hint: give 3,64,128 or 3,64,96; pictures are padded to it"
run train "${detector[@]}" --backbone resnet-19 --num-epochs 1 --model-prefix m/x
check "and a backbone that there is not" says "resnet-19 is no backbone of a detector"
run train "${detector[@]}" --pad-size 4 --num-epochs 1 --model-prefix m/x
check "and what would cut boxes" says "pad-size"
run train "${detector[@]}" --num-epochs 1 --min-size-train 32,48,64 --model-prefix m/sizes
check "pictures of several sizes train it" exits 0
run train "${detector[@]}" --num-epochs 1 --min-size-train 32,48,64 --model-prefix m/sizes2 --batch-size 2 -n 2
check "two workers draw the same sizes" same "$(hash_of sizes-0001)" "$(hash_of sizes2-0001)"
run train "${detector[@]}" --num-epochs 1 --model-prefix m/whole
check "which are not those of whole pictures" bash -c '[ "$0" != "$1" ]' "$(hash_of sizes-0001)" "$(hash_of whole-0001)"
forget m/sizes m/sizes2 m/whole
run train "${detector[@]}" --min-size-train 32,4.5 --num-epochs 1 --model-prefix m/x
check "half a pixel is refused" says "--min-size-train: must be whole numbers between 1 and 16384, not 4.5"
run train --network lenet --min-size-train 20 --data-train s/shapes_train --image-shape 3,32,32 --num-epochs 1 --model-prefix m/x
check "and sizes of a classifier's pictures" says "draws the size of a detector's pictures"
run train "${detector[@]}" --mixup 0.2 --num-epochs 1 --model-prefix m/x
check "and mixed pictures" says "pictures of a detector are not mixed"
run train "${detector[@]}" --top-k 5 --num-epochs 1 --model-prefix m/x
check "and options of classifiers" says "--top-k: a detector has an average precision"
run train "${detector[@]}" --focal-gamma 2 --num-epochs 1 --model-prefix m/x
check "of their loss too" says "--focal-gamma: a detector's loss is its own"
run train "${detector[@]}" --benchmark 1 --num-epochs 1
check "drawn scenes show how fast it trains" exits 0
run bench train --network retinanet --backbone resnet-18 --image-shape "3,64,64" --batch-size 2 --steps 2 --warmup 1
check "so does the benchmark" answers_line '^[0-9]+ images/sec '
run bench train --network retinanet --backbone resnet-18 --image-shape "3,64,64" --num-classes 3
check "which needs the classes of its scenes" says "--num-classes: the drawn scenes show objects of 6 classes"
run train --network retinanet --data-train d/shapes-detection_train --show-config
check "a detector has defaults of its own" answers "lr-schedule = cosine  (recipe detection)"
run train --network lenet --backbone resnet-18 --benchmark 1 --num-epochs 1
check "a classifier has no backbone" exits 2
run export m/one --to onnx --with-preprocessing --out one.onnx
check "ONNX is written" exists one.onnx
weights_of() { "$DTRAIN" inspect "$1" --json | /usr/bin/python3 -c 'import json, sys; print(json.load(sys.stdin)["weights_sha256"])'; }
check "with the weights that it had" same "$(weights_of m/one)" "$(weights_of one.onnx)"
run predict one.onnx photos --min-score 0 --json
cp out from-onnx
run predict m/one photos --min-score 0 --json
check "dtrain finds the same with it" cmp -s out from-onnx
run export m/one --to onnx --softmax --out x.onnx
check "a detector has no softmax" says "--softmax: retinanet-resnet-18 is a detector, whose scores are shares already"
run export m/one --to mxnet --out x
check "MXNet is refused by name" exits 2
check "without a note of what its files lack" says_not "MXNet's files hold neither"
run export m/one --to safetensors --out one.safetensors
check "safetensors are written" exists one.safetensors
older=$(/usr/bin/python3 "$here/older_names.py" one.safetensors older.safetensors)
check "torchvision's older releases call 28 of its tensors otherwise" same "$older" 28
run import older.safetensors --network retinanet --backbone resnet-18 --image-shape 3,64,64 --out m/older
check "a file with those names is read" exits 0
check "as the same weights" same "$(weights_of m/older)" "$(weights_of m/one)"
run predict m/older photos --min-score 0.001 --csv
cut -d , -f 1,2,4- out >from-older
run predict m/one photos --min-score 0.001 --csv
check "which find the same" cmp -s <(cut -d , -f 1,2,4- out) from-older
forget m/older
rm -f one.onnx one.safetensors older.safetensors
cp d/shapes-detection_train.rec nameless.rec
run train "${detector[@]}" --data-train nameless.rec --num-classes 6 --num-epochs 1 --model-prefix m/nameless
run eval m/nameless --data-val cells
check "without names, records of another number of classes are a warning" says "cells: names 1 class, but the checkpoint finds 6, without names"
check "and are evaluated" answers_line '^samples=2$'
run eval m/nameless --data-val d/shapes-detection_val
check "those of as many are none" says_not "without names"
forget m/nameless
run inspect m/one
check "inspect shows it" answers "retinanet-resnet-18"

run train --network resnet-v1.5 --num-layers 18 --image-shape 3,32,32 --data-train s/shapes_train --batch-size 4 --num-epochs 1 \
  --model-prefix m/body
run train "${detector[@]}" --pretrained m/body-0001.safetensors --num-epochs 1 --model-prefix m/fine
check "a classifier's weights become the backbone" says 'Loaded "m/body-0001.safetensors": 100 of the 100 tensors of retinanet-resnet-18'
check "the rest begins anew" says "so do the pyramid and the other head, as the file has the weights of a backbone alone"
forget m/fine
run train "${detector[@]}" --pretrained m/one-0002.safetensors --num-epochs 1 --model-prefix m/again
check "a detector's weights are taken whole" says_not "begins anew"
run train --finetune m/body --network retinanet --image-shape 3,64,64 --data-train d/shapes-detection_train --num-epochs 1 --model-prefix m/tuned
check "--finetune knows the backbone by a classifier's weights" says_line '^--finetune chose for 8 pictures of 6 classes: --backbone resnet-18 --global-batch 8 --warmup-epochs 0.05 --optimizer adamw --lr 0.0005 '
check "and trains the detector" exits 0
finish
