#!/usr/bin/env bash
# Names of what pictures show: files, folders, patterns, standard input; tables, CSV, JSON; copies by class.
set -uo pipefail
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

/usr/bin/python3 - <<'PYTHON'
import os, struct, zlib
def png(path, colour, side=40, spot=0):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    rows = b"".join(b"\0" + bytes(c if (x + y) % 7 else (c + spot) % 256 for x in range(side) for c in colour) for y in range(side))
    chunk = lambda kind, data: struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    with open(path, "wb") as out:
        out.write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0))
                  + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))
for i in range(12):
    png(f"photos/red, dark/{i}.png", (200, 20 + i, 30), 36 + i, i)
    png(f"photos/blue/{i}.png", (20, 30 + i, 210), 36 + i, i)
for name in ("red", "blue"):
    for i in range(2):
        png(f"large/{name}/{i}.png", (200, 20, 30), 500)
png("odd/no ending", (20, 30, 210))
png("odd/below/line\nend.png", (200, 20, 30))
open("odd/text.png", "w").write("no picture\n")
PYTHON
run data pack photos --out p --train-ratio 1 --encoding png
check "pack prints the classes with their pictures" says '2 classes with their pictures: blue (12), red, dark (12)'
check "and the command that trains on them" says 'next: dtrain train --recipe imagenet --network resnet --num-layers 18 --rgb-mean 124,117,104 --rgb-std 58,57,57 --data-train p '
run data pack large --out large --train-ratio 1
check "which sees most of each picture where they are large" says '--num-layers 18 --resize 256 --random-resized-crop 1 --rgb-mean'
check "with a note that they can be packed smaller" says "the pictures have about 500 pixels at their shorter edge, and networks see about 224: --resize 256 makes"
small_windows=(train --network mlp --image-shape "3,28,28" --batch-size 4 --num-epochs 1 --rgb-std 58 --data-train large)
run "${small_windows[@]}"
check "train warns where the network would see little of each picture" says "warning: the pictures of large have about 500 pixels at their shorter edge, and training and evaluation see windows of 28x28 pixels: --resize 32 --random-resized-crop 1 shows"
run "${small_windows[@]}" --resize 32
check "but not where they are resized" says_not "warning: the pictures"
run train --network mlp --image-shape 3,28,28 --resize 32 --batch-size 8 --num-epochs 2 --lr 0.0005 --rgb-std 58,57,56 \
  --data-train p.rec --model-prefix m/p
check "a network is trained on two colours, with as many classes" exits 0

run predict m/p "photos/red, dark/3.png" photos/blue/4.png
check "predict names two pictures" exits 0
check "by the folders' names" answers_line '^photos/blue/4.png +blue +0\.[0-9]{6}$'
check "and nothing else is said" silent_on err
run predict m/p "photos/red, dark/3.png" --top 9
check "--top K lists no more than there are classes" same "$(wc -l <out)" 3
run predict m/p photos --csv
check "--csv quotes a name with a comma" answers_line '^"photos/red, dark/0.png",1,1,"red, dark",0\.[0-9]+$'
check "a folder stands for all pictures below it" same "$(wc -l <out)" 25
run predict m/p 'photos/b*/?.png' --json
check "a pattern that the shell left alone is expanded" json out 'len(lines) == 10 and all(d["class"] == "blue" for d in lines)'
check "--json gives one object for each picture" json out 'd["schema"] == "dtrain.predict/1" and abs(sum(t["probability"] for t in d["top"])) <= 1'
find photos/blue -name '1*.png' | sort | "$DTRAIN" predict m/p - --csv >out 2>err
check "names come from standard input" same "$(wc -l <out)" 4
find odd -type f -print0 | "$DTRAIN" predict m/p - --json >out 2>err
code=$?
check "also with zero bytes between them" json out 'any(d["path"] == "odd/below/line\nend.png" for d in lines)'
check "a file that is no picture is named, the others go on" exits 3
check "with the reason" json out '[d["path"] for d in lines if "error" in d] == ["odd/text.png"] and len(lines) == 3'
run predict m/p odd
check "pictures are found by their content, and what is named as one is reported" exits 3
check "by its name" says 'odd/text.png: no image of a kind that dtrain reads'
check "a name with a line end is one line" answers 'odd/below/line^Jend.png'
check "a table has a line for each" same "$(wc -l <out)" 3
printf 'photos/blue/10.png\r\nphotos/blue/11.png\r\n' | "$DTRAIN" predict m/p - --csv >out 2>err
code=$?
check "lines of a list may end with CRLF" exits 0
run predict m/p -p.png
check "a name that begins with a dash is no option" exits 2
check "it says where to put it" says "put a name that begins with - after --"
printf '' | "$DTRAIN" predict m/p - >out 2>err
code=$?
check "an empty list is refused" exits 2

# The same numbers as evaluation computes for the same pictures.
run eval m/p --data-val p.rec --report r
check "eval writes a report" exits 0
check "with a summary" answers_line '^macro_f1=[01]\.[0-9]{6}$'
check "and the calibration" answers_line '^calibration_error=[01]\.[0-9]{6}$'
for name in per_class.csv confusion.csv reliability.csv predictions.csv confusion.png reliability.png mistakes.png; do
  check "the report holds $name" test -s r/$name
done
run eval m/p --data-val p.rec --report r
check "a second report replaces the first" exits 0
mkdir own && echo mine >own/predictions.csv
run eval m/p --data-val p.rec --report own
check "but no table of others" says "--report own/predictions.csv: is there and is no table that dtrain wrote"
check "which stays, and nothing is written beside it" same "$(cat own/*)" mine
check "the tables agree with each other" /usr/bin/python3 - <<'PYTHON'
import csv
scores = list(csv.DictReader(open("r/per_class.csv")))
rows = list(csv.reader(open("r/confusion.csv")))
bins = list(csv.DictReader(open("r/reliability.csv")))
assert [s["class"] for s in scores] == rows[0][1:] == ["blue", "red, dark"], rows
assert [sum(map(int, row[1:])) for row in rows[1:]] == [int(s["support"]) for s in scores] == [12, 12]
assert [int(row[i + 1]) for i, row in enumerate(rows[1:])] == [int(s["correct"]) for s in scores]
assert len(bins) == 15 and sum(int(b["samples"]) for b in bins) == 24
PYTHON
run data show p.rec --out sheet.png
run eval m/p --data-val p.rec --report sheet.png
check "a report is not written over a file" exits 1
agrees_with() {  # agrees_with REPORT: the answers in `out`
  /usr/bin/python3 - "$1/predictions.csv" <<'PYTHON'
import csv, sys
places = {line.split("\t")[0]: line.rstrip("\n").split("\t")[-1] for line in open("p.lst")}
judged = {"photos/" + places[row["sample"]]: (row["predicted"], row["probability"]) for row in csv.DictReader(open(sys.argv[1]))}
said = {row["path"]: (row["class"], row["probability"]) for row in csv.DictReader(open("out"))}
assert len(said) == 24 and said == judged, sorted(set(said.items()) ^ set(judged.items()))
assert all(row["file"] == places[row["sample"]] for row in csv.DictReader(open(sys.argv[1]))), "the files"
PYTHON
}
run predict m/p photos --csv --batch-size 128
check "predict and eval give the same probabilities, digit for digit" agrees_with r
run train --network mlp --image-shape 3,28,28 --resize 32 --batch-size 8 --num-epochs 2 --lr 0.0005 --rgb-std 58,57,56 \
  --data-train p.rec --test-views 6 --bce-loss --model-prefix v/p
run eval v/p --data-val p.rec --report views
run predict v/p photos --csv --batch-size 128
check "also of a network that learned with several views and by --bce-loss" agrees_with views
run eval v/p --data-val p.rec --report view --test-views 1
run predict v/p photos --csv --batch-size 128 --test-views 1
check "predict --test-views chooses another number, as that of eval does" agrees_with view
check "which is another answer" bash -c '! cmp -s view/predictions.csv views/predictions.csv'
run predict v/p photos/blue/1.png --top 2 --json
check "probabilities of --bce-loss are those of each class by itself" json out 'abs(sum(t["probability"] for t in d["top"]) - 1) > 1e-6'

run predict m/p photos odd --out-dir sorted
check "--out-dir makes a folder for each class" exists "sorted/red, dark/line
end.png"
check "no file is overwritten" same "$(find sorted -type f -printf x | wc -c)" 26
run predict m/p photos odd --out-dir sorted
check "pictures that are there already are not copied again" same "$(find sorted -type f -printf x | wc -c)" 26
mkdir other && cp photos/blue/5.png other/4.png
run predict m/p other --out-dir sorted --json
check "another picture of the same name gets a number" json out 'd["copy"] == "sorted/blue/4-2.png"'
check "the first one stays" cmp -s sorted/blue/4.png photos/blue/4.png
ln -s photos album
for place in "photos is the folder of" "photos/ is the folder of" "album is the folder of" "photos/new lies in" ". contains"; do
  run predict m/p photos --out-dir "${place%% *}"
  check "--out-dir ${place%% *} is no folder for answers" exits 2
  check "which is said" says "--out-dir ${place%% *}: ${place#* } PATH photos, and the pictures there"
done
check "nothing is written there" missing photos/new
run predict m/p . --out-dir fresh
check "nor below the current folder" exits 2
check "also where it is not there yet" missing fresh
run predict m/p photos/blue/4.png --out-dir .
check "a picture by its name may lie in any folder" exits 0
check "its answer too" cmp -s blue/4.png photos/blue/4.png
pictures=$(find photos -type f -printf x | wc -c)
for place in photos photos/blue album; do
  run predict m/p photos/blue/?.png --out-dir $place
  check "--out-dir $place is no folder for answers of pictures in it" exits 2
  check "with one of them" says "--out-dir $place: contains photos/blue/0.png, and the pictures there would be mixed with"
  run predict m/p 'photos/*/1.png' --out-dir $place
  check "nor of those of a pattern" exits 2
  find photos/blue -name '1*.png' | "$DTRAIN" predict m/p - --out-dir $place >out 2>err
  code=$?
  check "nor of those that standard input names" exits 2
done
check "nothing is written there" same "$(find photos -type f -printf x | wc -c)" "$pictures"

mkdir half && : >"half/red, dark"
run predict m/p "photos/red, dark/3.png" photos/blue/4.png --out-dir half
check "a picture that cannot be copied is named with the reason" says 'photos/red, dark/3.png: half/red, dark'
check "the others are answered" answers_line '^photos/blue/4.png +blue '
check "and copied" exists half/blue/4.png
check "as where some pictures cannot be read" exits 3

mkdir broken && cp photos/blue/4.png broken/ && ln -s nowhere/1.jpg broken/1.jpg
run predict m/p broken
check "a link that leads nowhere is named" says 'broken/1.jpg: the link leads nowhere'
check "as a picture that cannot be read" exits 3
check "beside the others" answers_line '^broken/4.png +blue '

mkdir mixed && cp photos/blue/4.png mixed/ && printf 'GIF89a' >mixed/still.gif
run predict m/p mixed
check "a folder's picture of a kind that dtrain does not read is named" says 'mixed/still.gif: the image is GIF'
check "as a picture that cannot be read, too" exits 3

run predict m/p nothing.jpg
check "a missing picture is named" says 'nothing.jpg: no such file or folder'
check "without any picture predict fails" exits 1
check "which is the error itself" says 'dtrain: nothing.jpg: no such file or folder'
check "and nothing speaks of kinds of pictures" says_not 'dtrain reads'
run predict m/p nothing.jpg none.jpg
check "of several each is named" says 'none.jpg: no such file or folder'
check "and the error counts them" says 'none of the 2 names stands for a picture'
run predict m/p nothing.jpg --json
check "--json still has a line for each" json out 'd["path"] == "nothing.jpg" and "error" in d'
run predict m/p p.rec
check "a record file is no picture" exits 1
check "and the command that takes it is named" says '`dtrain eval m/p --data-val p.rec` takes record files'
run predict m/p http://127.0.0.1:9/x.png
check "a machine that cannot be reached is no matter of the picture" exits 4
check "nor of its kind" says_not 'dtrain reads'
: >empty.png
run predict m/p empty.png
check "nor is an empty file" says_not 'dtrain reads'
check "whose reason is above" says 'empty.png: the file is empty'
run predict photos m/p
check "pictures instead of the network are refused" says 'photos: no checkpoint of this prefix'
check "with the right order" says 'the network comes first: `dtrain predict m/p photos`'
mkdir empty
run predict m/p empty photos/blue/1.png
check "an empty folder is named" says 'empty: no picture in this folder or below it'
check "the others go on" exits 3
mkdir -p drive/lost+found linked && cp photos/blue/1.png drive/ && chmod 0 drive/lost+found
ln -s ../photos/blue linked/blue
ordinary=() # root may list every folder, unless it gives up its capabilities
[ "$(id -u)" != 0 ] || ordinary=(setpriv --bounding-set -all --inh-caps -all)
"${ordinary[@]}" "$DTRAIN" predict m/p drive linked --csv >out 2>err </dev/null
code=$?
check "a folder that may not be listed is named" says 'drive/lost+found: cannot list the folder: Permission denied'
check "pictures beside it are answered" exits 3
check "and those behind a link" same "$(wc -l <out)" 14
run predict m/p photos --csv
cp out of_checkpoint
run export m/p --to onnx --softmax --with-preprocessing --out p.onnx
run predict p.onnx photos --csv
check "an exported ONNX model gives the same answers, with names" cmp -s out of_checkpoint
run eval p.onnx --data-val p.rec --json
check "and can be evaluated" json out 'd["samples"] == 24 and d["classes"] == ["blue", "red, dark"]'
/usr/bin/python3 - <<'PYTHON'
import json, struct
data = open("m/p-0002.safetensors", "rb").read()
start = 8 + struct.unpack("<Q", data[:8])[0]
begin, end = json.loads(data[8:start])["fc3_bias"]["data_offsets"]
model, bias = open("p.onnx", "rb").read(), data[start + begin:start + end]
assert model.count(bias) == 1
open("nan.onnx", "wb").write(model.replace(bias, struct.pack("<2f", float("nan"), float("nan"))))
PYTHON
run predict nan.onnx photos/blue/1.png --out-dir unsorted
check "a network that computes no numbers has no answer" exits 1
check "which is said" says 'photos/blue/1.png: the network computes no number for it'
check "and nothing is copied" missing unsorted/blue
run eval nan.onnx --data-val p.rec --report r
check "eval warns of it" says '24 of the 24 samples get no numbers of the network'
check "and reports what is left" exits 0
head -c 3000 p.onnx >cut.onnx
run predict cut.onnx photos
check "one that is cut short is refused" exits 1
check "by its name" says 'cut.onnx: byte '
sed 's/dtrain_graph/dtrain_grapf/' p.onnx >foreign.onnx
run predict foreign.onnx photos
check "one of another program that takes bytes is refused" says 'foreign.onnx: the input pixels is no float32 [n, channels, height, width]'
run predict m/other photos
check "a network that is not there is named" says 'm/other: no checkpoint of this prefix'
run predict m photos
check "a folder is no prefix" says 'm: no checkpoint of this prefix'
check "those in it are named" says_line 'hint: it is a folder; name a prefix that is in it: m/p$'
run predict m/p photos --csv --json
check "two forms at once are refused" exits 2
DTRAIN_CSV=1 run predict m/p photos --json
check "--json beats the form of a variable" json out 'd["schema"] == "dtrain.predict/1"'
DTRAIN_JSON=1 run predict m/p photos --csv
check "and so does --csv" answers_line '^path,rank,label,class,probability$'
run predict m/p photos --out-dir s3://bucket/x
check "copies stay on this machine" exits 2
for command in "eval m/p --data-val p.rec --report" "eval --results r.json --annotations a.json --report" "plot m/p --out"; do
  # shellcheck disable=SC2086  # words
  run $command s3://bucket/x.svg
  check "$command stays on this machine" exits 2
  check "which is said" says 's3://bucket/x.svg: is no f'
done
check "nothing is written into a folder s3:" missing s3:
run export m/p --to mxnet --softmax --out x
check "only ONNX holds a softmax" exits 2
run export m/p --to mxnet --out x/a
run predict x/a photos/blue/1.png --load-epoch 2 --json
cp out of_epoch
run predict x/a photos/blue/1.png --json
check "the newest of MXNet's files of a prefix is found" exits 0
check "and names the same as by its epoch" cmp -s out of_epoch
run export m/p --to safetensors --out bare.safetensors
run predict bare.safetensors photos/blue/1.png
check "weights without a manifest are refused" exits 1
check "by what is missing" says 'bare.safetensors: is no checkpoint: there is no bare.json beside it'
check "with the command that makes a checkpoint" says 'dtrain import bare.safetensors --network NAME --out PREFIX'
cp x/a-0002.params bare.params
run predict bare.params photos/blue/1.png
check "so are those of another program" says 'dtrain import bare.params --network NAME --out PREFIX'
run export m/p --to onnx --softmax --with-preprocessing --out p2.onnx
check "the model holds pixels and probabilities" grep -q probabilities p2.onnx
run predict m/p
check "a picture is needed" exits 2
run train --network mlp --image-shape 3,28,28 --resize 32 --batch-size 8 --num-epochs 3 --lr 0.0005 --rgb-std 58,57,56 \
  --data-train p.rec --model-prefix m/p --resume
check "the same command goes on with as many classes as it counted" exits 0
sed -i 's#"blue"#"../../evil"#' p.pack.json
run train --network mlp --image-shape 3,28,28 --num-classes 2 --batch-size 8 --num-epochs 1 --lr 0.0001 --data-train p.rec --model-prefix m/evil
run predict m/evil photos/blue photos/red* --out-dir sorted
check "a class that would lead out of the folder is refused" says 'would be written outside of the folder'
run predict m/evil photos/red* --out-dir elsewhere
check "before the first picture of any class" missing elsewhere
check "by its number and name" says_line '^.*--out-dir elsewhere: class 0 is named "../../evil": '
check "as a failure" exits 1

finish
