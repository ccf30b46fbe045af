#!/usr/bin/env bash
# Pictures with boxes and masks: packed, drawn, checked and shown, refused by a classifier; and results that are scored.
set -uo pipefail
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
golden=$(dirname "$here")/unit/data/golden

mkdir photos
cp "$golden/grey.jpg" photos/a.jpg
cp "$golden/grey.jpg" photos/b.jpg
cp "$golden/grey.jpg" photos/unlisted.jpg
run data pack photos --train-ratio 1 --out sizes
run data ls sizes --json
read -r h w < <(/usr/bin/python3 -c 'import json; d = json.load(open("out")); print(*d["image_shape"][1:])')
image() { echo "{\"id\": $1, \"file_name\": \"$2.jpg\", \"width\": $w, \"height\": $h}"; }
object() { echo "{\"id\": $1, \"image_id\": $2, \"category_id\": $3, \"area\": 24, $4}"; }
coco() {  # coco OBJECT...
  local IFS=,
  echo "{\"images\": [$(image 5 a), $(image 6 b)], \"annotations\": [$*],
    \"categories\": [{\"id\": 1, \"name\": \"person\"}, {\"id\": 18, \"name\": \"dog\"}]}"
}
dog=$(object 1 5 18 '"bbox": [1, 1, 6, 4], "segmentation": [[1, 1, 7, 1, 7, 5, 1, 5]]')
flat=$(object 2 5 1 '"bbox": [1, 1, 0, 4]')
lost=$(object 3 99 1 '"bbox": [1, 1, 2, 4]')
coco "$dog" "$flat" "$lost" >coco.json

run data pack photos --coco coco.json --out p
check "pack takes the boxes of a COCO file" exits 0
check "it counts and names objects without an area" says "1 object was left out (its box has no area): annotation 2 of a.jpg"
check "and those of no picture" says "(its picture is not among the images): annotation 3 of image 99"
check "and pictures without objects, which it keeps" says "1 picture shows no object and is kept: b.jpg"
check "and pictures that the file does not name" says "1 file was left out (no image of the JSON file): unlisted.jpg"
check "and the objects of each class" says "2 classes with their objects: person (0), dog (1)"
check "both pictures are packed" answers "p.rec  2 records"
run data verify p
check "verify counts objects" answers "p.rec: 2 records with 1 objects, no damage"
run data ls p
check "ls counts boxes and masks" answers "objects: 1 boxes, 1 masks; 0.5 in a record on average, 1 at most, none in 1"
check "and the objects of each class" answers_line '^class +1 +1 +#+ +dog$'
run data show p --out sheet.png --count 2
check "show draws the boxes" answers "record 0: dog"
check "and says where there are none" answers "record 1: no objects"
run data show p --out sheet.png --random-mirror 0 --json
check "its JSON has names and boxes" json out 'd["images"][0]["objects"][0]["name"] == "dog" and len(d["images"][0]["objects"][0]["box"]) == 4'
printf '0\t2\t5\t1\t0.1\t0.1\t0.5\t0.5\ta.jpg\n1\t2\t5\t1\t0\t0\t40\t30\tb.jpg\n' >boxes.lst
run data pack boxes.lst --root photos --out listed
check "a box of a list in pixels is left out" says "1 object was left out (its box is far larger than the picture; sides are shares of the picture, 0 to 1, not pixels): object 0 of b.jpg"
run data ls listed --json
check "boxes of a list have no areas" json out 'd["objects"]["boxes"] == 1 and d["objects"]["small"] is None'
sed 's/"dog"/"wolf"/' coco.json >renamed.json
run data pack photos --coco renamed.json --out p
check "other names of categories are another set" says "p.rec: is there already"
run data pack photos --coco renamed.json --out p --force
check "whose names --force writes" grep -q '"wolf"' p.pack.json
coco "$(object 1 5 18 '"bbox": [1, 1, 6, 4], "segmentation": [[1, 1, 7, 1, 7, 5], [1, 1, 2, 2]]')" \
  "$(object 2 5 1 '"bbox": []')" >odd.json
run data pack photos --coco odd.json --out odd
check "an annotation that cannot be read is left out and named" says '(its "bbox" is no list of four numbers): annotation 2 of a.jpg'
check "a polygon of two corners leaves its box" says "1 object kept its box and lost polygons with fewer than three corners: annotation 1 of a.jpg"
coco "$dog" "$(object 4 6 1 '"bbox": [1, 1, 2, 4], "segmentation": []')" >bare.json
run data pack photos --coco bare.json --out bare
check "an object without a mask gets an empty one where others have masks" says \
  "1 object has no mask, others have one; a network of masks takes it for empty: annotation 4 of b.jpg"
sed 's|"file_name": "|&photos/|g' coco.json >above.json
run data pack photos --coco above.json --out above
check "names may be relative to the folder above" says 'no picture is in photos by its "file_name"; all are in ., and are taken from there'
check "where the pictures are found" answers "above.rec  2 records"
sed "0,/\"width\": $w/s//\"width\": $((3 * w))/" odd.json >size.json
run data pack photos --coco size.json --out size
check "a picture of another shape than its annotations say is bad" exits 3
check "and named" says "skipped a.jpg: its picture is of ${w}x$h pixels, and its objects are of a picture of $((3 * w))x$h"
check "the others are packed" answers "size.rec  1 records"
run data pack photos --coco gone.json --out q
check "a JSON file that is not there is an error" exits 1
run data pack gone --coco coco.json --out q
check "so is a folder that is not there" says "gone: no such folder or archive"
run data pack photos --coco coco.json --labels x.csv --out q
check "--coco and --labels are a usage error" exits 2
run data pack photos --coco coco.json --coco-labels largest --out largest
check "--coco-labels largest packs for a classifier" answers "largest.rec  1 records"
run data ls largest
check "with the category of the largest box" answers_line '^class +1 +1 +#+ +dog$'
run train --network mlp --image-shape 3,16,16 --data-train p --model-prefix m/x --num-epochs 1 --batch-size 2
check "a classifier refuses boxes" exits 1
check "and says why" says "has boxes for object detection in place of a class"

run data prepare shapes-detection --out d --train-count 30 --val-count 10
check "scenes are drawn" answers "d/shapes-detection_train.rec  30 records"
run data verify d/shapes-detection_train d/shapes-detection_val
check "their boxes and masks are good" exits 0
run data prepare shapes-detection --out d --train-count 30 --val-count 10
check "they are drawn once" says "already complete"
run data show d/shapes-detection_val --count 4 --columns 2 --out scenes.png
check "and can be looked at" answers "scenes.png  518x518 pixels"

run data bench d/shapes-detection_val --seconds 1
check "bench measures no records with boxes" says "d/shapes-detection_val: its records have boxes, and data bench measures the records of classifiers"
check "but names the command for them" says "hint: measure a detector on them: dtrain bench train --network retinanet --data-train d/shapes-detection_val"

result() { echo "{\"image_id\": $1, \"category_id\": $2, \"score\": $3, \"bbox\": $4}"; }
coco "$dog" "$(object 4 6 1 '"bbox": [0, 0, 5, 5], "segmentation": [[0, 0, 5, 0, 5, 5]]')" >truth.json
echo "[$(result 5 18 0.9 '[1, 1, 6, 4]'), $(result 6 1 0.4 '[0, 0, 5, 3.2]'), $(result 6 1 0.5 '[6, 6, 2, 2]')]" >found.json
run eval --results found.json --annotations truth.json
check "results are scored" answers_line '^box_ap=0\.5750  '
check "as lines with what they mean" answers "box_ap50=0.7500  AP at overlap 0.50"
check "with - where there is nothing to measure" answers_line '^box_ap_large=-  '
run eval --results found.json --annotations truth.json --per-class --json
check "JSON has every class" json out '[c["class"] for c in d["boxes"]["per_class"]] == ["person", "dog"] and d["masks"] is None'
check "and COCO's numbers" json out 'abs(d["boxes"]["per_class"][1]["ap"] - 1) < 1e-9 and d["boxes"]["ap_large"] == -1'
run eval --results found.json --annotations truth.json --pictures photos --report rep
check "a report draws what was annotated and what was found" answers "rep/objects.png"
check "with the scores of each class" grep -q '^dog,1.000000,1.000000,' rep/per_class.csv
check "as a picture" bash -c 'head -c 4 rep/objects.png | grep -q PNG'
mkdir -p cameras/one cameras/two
cp photos/a.jpg cameras/one/
cp photos/a.jpg cameras/two/
sed 's/"a.jpg"/"one\/a.jpg"/; s/"b.jpg"/"two\/a.jpg"/' truth.json >cameras.json
run eval --results found.json --annotations cameras.json --pictures cameras --report rep3
check "pictures of one name are found in the folders that the annotations name" silent_on err
run eval --results found.json --annotations cameras.json --pictures cameras/one --report rep3
check "and not in another one's" says "2 pictures with many mistakes cannot be read in cameras/one"
run eval --results found.json --annotations truth.json --pictures gone --report rep2
check "pictures that are missing are counted" says "2 pictures with many mistakes cannot be read in gone"
run eval --results found.json --annotations truth.json --pictures photos
check "pictures need a report" exits 2
run eval --results found.json
check "results need annotations" exits 2
run eval --results truth.json --annotations found.json
check "files that changed places are named" says "truth.json: is no list of results"
check "with where such a file belongs" says 'an object with "images" and "categories" is for --annotations'
run eval --results found.json --annotations gone.json
check "a file that is not there is named" says "gone.json: no such file"
check "with what to give" says "hint: name a JSON file of COCO's format"
run eval --results found.json --annotations found.json
check "a list instead of annotations is named" says "found.json: is a list, such as of results"
check "with where it belongs" says "results are for --results"
for other in "m/one" "--data-val d/shapes-detection_val"; do
  # shellcheck disable=SC2086  # words
  run eval $other --results found.json --annotations truth.json
  check "results are scored without $other" exits 2
  check "which is named" says "--results and --annotations are scored without a checkpoint"
done
echo "[$(result 77 18 0.9 '[1, 1, 6, 4]')]" >found.json
run eval --results found.json --annotations truth.json
check "results of other images are an error" says "1 results are of images that the annotations do not list: 77"
echo '[{"image_id": 5}]' >found.json
run eval --results found.json --annotations truth.json
check "so is a file that is none" says 'found.json: result 1: its "category_id" is missing'
run eval
check "eval without anything says what is missing" says "eval: PREFIX is missing"
finish
