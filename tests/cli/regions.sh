#!/usr/bin/env bash
# Two-stage detectors from the command line: masks are learned, evaluated and shown; and what they refuse.
set -uo pipefail
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

run data prepare shapes-detection --out d --train-count 8 --val-count 6
small=(--backbone resnet-18 --proposals 16 --image-shape "3,64,64" --data-train d/shapes-detection_train
  --batch-size 4 --logical-shards 2 --optimizer sgd --lr 0.001 --lr-schedule step --warmup-epochs 0 --disp-batches 1)
masks=(--network mask-rcnn "${small[@]}")
run train "${masks[@]}" --data-val d/shapes-detection_val --num-epochs 1 --model-prefix m/one --job-dir one
check "Mask R-CNN is trained" exits 0
check "the parts of its loss are in the log" says_line '^Epoch\[0\] Batch \[1\].*loss=[0-9.]+.objectness=[0-9.]+.rpn_box_reg=[0-9.]+.classifier=[0-9.]+.box_reg=[0-9.]+.mask=[0-9.]+$'
check "so are both average precisions" says_line '^Epoch\[0\] Validation-mask-AP=[01]\.[0-9]+$'
check "and the curves have each part" json one/steps.jsonl 'd["mask"] > 0 and d["objectness"] > 0 and "accuracy" not in d'
run plot one --out one.png
check "which can be drawn" exists one.png
run train "${masks[@]}" --num-epochs 1 --model-prefix m/two --batch-size 2 -n 2
check "two workers train it" exits 0
hash_of() { /usr/bin/python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["state_sha256"])' "m/$1.json"; }
check "to the same bits" same "$(hash_of one-0001)" "$(hash_of two-0001)"
forget m/two
run train "${masks[@]}" --num-epochs 1 --model-prefix m/brief --dtype bfloat16
if [ "$code" -eq 2 ] && says "bfloat16 needs a CPU with AVX-512"; then
  skip "bfloat16 trains it" "this CPU lacks AVX-512"
else
  check "bfloat16 trains it" says_line '^Epoch\[0\] Train-loss=[0-9.]+$'
fi
forget m/brief

run eval m/one --data-val d/shapes-detection_val
check "eval prints twelve numbers of boxes" same "$(grep -cE '^box_a[pr]' out)" 12
check "and twelve of masks" same "$(grep -cE '^mask_a[pr]' out)" 12
run eval m/one --data-val d/shapes-detection_val --json
check "its JSON has both" json out '"ap" in d["boxes"] and "ap" in d["masks"] and d["samples"] == 6'
mkdir photos
cp "$(dirname "$here")/unit/data/golden/grey.jpg" photos/a.jpg
run predict m/one photos --min-score 0.01 --json --out-dir drawn
check "predict names masks" json out 'len(d["objects"]) > 0 and len(d["objects"][0]["segmentation"]["size"]) == 2'
check "and draws them" exists drawn/a.png

run train --network faster-rcnn "${small[@]}" --data-val d/shapes-detection_val --num-epochs 1 --model-prefix m/boxes
check "Faster R-CNN is trained" says_line '^Epoch\[0\] Batch \[1\].*box_reg=[0-9.]+$'
check "it has no masks" says_not mask
run train "${masks[@]}" --num-epochs 1 --model-prefix m/begun --pretrained m/boxes-0001.safetensors
check "Mask R-CNN begins with its weights" says "tensors of mask-rcnn-resnet-18"
forget m/boxes m/begun
run train --finetune m/one --data-train d/shapes-detection_train --num-epochs 1 --model-prefix m/tuned
check "--finetune takes network, backbone and regions from the weights" says_line '^--finetune chose for 8 pictures of 6 classes: --network mask-rcnn --backbone resnet-18 --proposals 16 --global-batch 8 --warmup-epochs 0.05 --optimizer adamw --lr 0.0005 --wd 0.01 --lr-schedule cosine --freeze backbone$'
check "and trains it" exits 0
check "from the whole weights" says_not "begins anew"
check "which know the size of their images" says "in colour images of 64 x 64 pixels"
forget m/tuned
run train "${masks[@]}" --anchor-size 8 --num-epochs 1 --model-prefix m/fine
check "smaller anchors are trained" exits 0
run train "${masks[@]}" --anchor-size 16 --num-epochs 2 --model-prefix m/fine --resume
check "and belong to the checkpoint" says "it was trained with --anchor-size 8, not 16"
check "from which they need not be taken back one by one" says "leave --backbone, --proposals, --anchor-size, --image-shape out"
run train --network mask-rcnn --data-train d/shapes-detection_train --num-epochs 2 --model-prefix m/fine --resume
check "a run goes on with the checkpoint's backbone, regions and anchors" exits 0
run inspect m/fine --graph
check "which are those of its first epoch" same "$(grep -c '"anchor_size": 8' out)" 2
run train --finetune m/fine --data-train d/shapes-detection_train --num-epochs 1 --model-prefix m/finer
check "--finetune takes their size from the weights" says "--proposals 16 --anchor-size 8 --global-batch 8"
forget m/finer
run train "${masks[@]}" --pretrained m/fine --num-epochs 1 --model-prefix m/also-fine
run inspect m/also-fine --graph
check "so does --pretrained" same "$(grep -c '"anchor_size": 8' out)" 2
forget m/also-fine
run export m/fine --to safetensors --out fine.safetensors
run import fine.safetensors --network mask-rcnn --backbone resnet-18 --proposals 16 --image-shape 3,64,64 --num-classes 6 --out m/again
run inspect m/again --graph
check "and import, of exported weights" same "$(grep -c '"anchor_size": 8' out)" 2
forget m/fine m/again
rm -f fine.safetensors
run train "${masks[@]}" --anchor-size 2 --num-epochs 1 --model-prefix m/no
check "anchors smaller than the pixels of the first level are refused" says "anchors of 2 pixels are out of range"
run bench train --network resnet --anchor-size 8
check "and those of a classifier" says "resnet has no choice of --anchor-size"
run inspect m/one
check "inspect shows it" answers "mask-rcnn-resnet-18"

run train --network mask-rcnn "${small[@]}" --proposals 8 --num-epochs 1 --model-prefix m/no
check "too few regions are refused" says "8 regions of a picture are too few"
run train --network retinanet "${small[@]}" --num-epochs 1 --model-prefix m/no
check "a network of one stage has no regions" says "retinanet has no choice of --proposals"
run train "${masks[@]}" --image-shape "3,32,32" --num-epochs 1 --model-prefix m/no
check "small pictures are refused" says "images of 32 x 32 pixels are too small for mask-rcnn"
run export m/one --to onnx --out m/one.onnx
check "ONNX is written" exists m/one.onnx
run predict m/one.onnx photos --min-score 0.01 --json
check "and dtrain finds masks with it" json out 'len(d["objects"]) > 0 and "segmentation" in d["objects"][0]'
rm -f m/one.onnx
mkdir plain
cp photos/a.jpg plain/
echo '{"images": [{"id": 1, "file_name": "a.jpg", "width": 64, "height": 64}], "categories": [{"id": 1, "name": "thing"}, {"id": 2, "name": "other"}],
  "annotations": [{"id": 1, "image_id": 1, "category_id": 1, "bbox": [1, 1, 20, 20], "area": 400, "iscrowd": 0}]}' >plain.json
run data pack plain --coco plain.json --out p
run train "${masks[@]}" --data-train p --image-shape "1,64,64" --num-classes 2 --num-epochs 1 --model-prefix m/no
check "boxes without masks are refused" says "has a box without the mask that this network learns from"
run export m/one --to safetensors --out one.safetensors
/usr/bin/python3 "$here/older_names.py" one.safetensors older.safetensors >older
check "torchvision's older releases call 26 of its tensors otherwise" same "$(cat older)" 26
run import older.safetensors --network mask-rcnn --backbone resnet-18 --proposals 16 --image-shape 3,64,64 --out m/older
check "a file with those names is read" exits 0
weights_of() { "$DTRAIN" inspect "$1" --json | /usr/bin/python3 -c 'import json, sys; print(json.load(sys.stdin)["weights_sha256"])'; }
check "as the same weights" same "$(weights_of m/older)" "$(weights_of m/one)"
finish
