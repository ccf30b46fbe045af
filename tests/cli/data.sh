#!/usr/bin/env bash
set -uo pipefail
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

run data prepare shapes --out d --train-count 40 --val-count 20
check "prepare succeeds" exits 0
check "prepare answers the files with their records" answers "d/shapes_train.rec  40 records"
check "prepare wrote the index" exists d/shapes_val.idx
run data ls d/shapes_train.rec
check "prepare stores PNG" answers "encoding png: 40"
run data prepare shapes --out raw --train-count 40 --val-count 20 --raw
run data ls raw/shapes_train.rec
check "--raw stores dtrain's own pixels" answers "encoding raw: 40"
run data prepare shapes --out raw --train-count 40 --val-count 20
check "raw records of an earlier version will do" says "already complete"
run data prepare shapes --out raw --raw --encoding png
check "two encodings are a usage error" exits 2
check "which names both" says "--raw and --encoding: both choose the encoding"
run data prepare shapes --out d --train-count 40 --val-count 20
check "prepare can be run again" says "already complete"
for option in "--shards 2" "--resize 64" "--quality 90" "--coco-labels boxes"; do
  for name in shapes cifar10; do
    # shellcheck disable=SC2086  # two words
    run data prepare $name --out refused $option
    check "prepare $name $option is a usage error" exits 2
    check "prepare $name $option says what it is for" says "${option% *}: is for photographs; the images of $name keep their size"
  done
done
run data prepare shapes-detection --out refused --coco-labels boxes
check "drawn boxes are no labels of COCO" says "--coco-labels: is for coco only"
check "nothing was written" missing refused
run data prepare shapes --out e --train-count 40 --val-count 20
check "prepare draws the same images again" cmp -s d/shapes_train.rec e/shapes_train.rec
run data prepare shapes --out f --train-count 40 --val-count 20 --seed 2
check "another seed draws other images" bash -c '! cmp -s d/shapes_train.rec f/shapes_train.rec'
for encoding in zstd png jpeg; do
  run data prepare shapes --out "$encoding" --train-count 20 --val-count 10 --encoding $encoding
  run data ls $encoding/shapes_train.rec
  check "--encoding $encoding stores $encoding" answers "encoding $encoding: 20"
done
run data ls d/shapes_train.rec
check "ls counts the records" answers "d/shapes_train.rec: 40 records"
check "ls shows the size of an image" answers "first image: 3x32x32"
check "ls shows the classes" answers_line '^class +9 +4  #+ +[a-z ]+$'
run data verify d/shapes_train.rec
check "verify says good" answers "40 records, no damage"
run data bench d/shapes_train.rec --seconds 1 --data-nthreads 1
check "bench answers a rate" answers_line '^[0-9]+ samples/sec on 1 threads'
run data bench --data-train d/shapes_train.rec --image-shape 3,16,16 --random-resized-crop --threads 1 --seconds 1
check "bench takes train's names and a bare --random-resized-crop" answers_line '^[0-9]+ samples/sec on 1 threads'
run data bench png/shapes_train.rec --image-shape 3,16,16 --cache-decoded 1 --threads 1 --seconds 1
check "bench tells how many decoded images are kept" answers_line '^[0-9]+ samples/sec .*, 20 decoded images [0-9.]+ KiB$'
run data bench raw/shapes_train.rec --cache-decoded 1 --threads 1 --seconds 1
check "raw images are not kept" answers_line ', 0 decoded images 0 B$'
run data show d/shapes_val.rec --out sheet.png --count 4 --columns 2 --pad-size 4
check "show writes a sheet of the images' own size" answers "sheet.png  70x70 pixels"
run data show d/shapes_val.rec --out new/folder/sheet.png --count 4
check "and makes its folder" exists new/folder/sheet.png
run data show d/shapes_val.rec --out sheet.png/sheet.png --count 4
check "a file instead of its folder is an error" says "sheet.png: cannot make the folder: Not a directory"
check "with the reason" says "hint: a part of this path is a file, not a folder"
run data show d/shapes_val.rec --image-shape 3,4000,4000 --count 2 --zoom 64 --out huge.png
check "a sheet that is too large is a usage error" exits 2
check "with its size" says "the sheet would have 512006 x 256004 pixels, more than the 268435456 that are drawn"
check "and what makes it smaller" says "hint: give a smaller --zoom, --count or --image-shape"
run data show d/shapes_val.rec --cutout 33
check "a cutout larger than the image is a usage error" exits 2
check "which says by how much" says "--cutout: 33 is larger than an image of 32x32"
run data ls d/shapes_train.rec,d/shapes_val.rec
check "ls counts over several files" answers "60 records"
check "ls measures the pixels" answers_line '^--rgb-mean [0-9.]+,[0-9.]+,[0-9.]+ --rgb-std'
run data verify d/shapes_train.rec d/shapes_val.rec
check "verify takes several files" answers "d/shapes_val.rec: 20 records, no damage"

golden=$here/../unit/data/golden
mkdir -p photos/grey photos/colour
cp "$golden"/grey*.* photos/grey/
cp "$golden"/colour*.* photos/colour/
run data pack photos --out p --resize 24 --shards 2 --train-ratio 1
check "pack succeeds" exits 0
check "pack answers its files" answers_line '^p_1.rec  3 records'
run data verify p
check "a prefix names all shards" answers "p_1.rec: 3 records, no damage"
run data pack photos --out p --resize 24 --shards 2 --train-ratio 1
check "pack can be run again" says "5 records were already there from an earlier run"
echo nothing >photos/grey/bad.jpg
run data pack photos --out q --train-ratio 1
check "a picture that cannot be read makes the work partly done" exits 3
check "and is named" says "skipped grey/bad.jpg"
ln -s nowhere/2.jpg photos/grey/lost.jpg
run data pack photos --out lost --train-ratio 1
check "so is a link that leads nowhere" says "skipped grey/lost.jpg: the link leads nowhere"
check "which makes the work partly done" exits 3
rm photos/grey/lost.jpg
mkdir -p stray/a stray/b
cp "$golden/grey.jpg" stray/
cp "$golden/grey.jpg" stray/a/
cp "$golden/grey.jpg" stray/b/
printf 'GIF89a' >stray/a/x.gif
cp stray/a/x.gif stray/b/y.jpg
run data pack stray --out stray --train-ratio 1
check "a picture beside the folders of the classes is named" says "packed as a class of their own, named '.'"
check "a picture of another kind is named" says "1 file was left out (.gif): a/x.gif; dtrain reads JPEG, PNG, WebP, BMP and TIFF"
check "a picture that is of another kind than its name is named" says "skipped b/y.jpg: the image is GIF"
check "and is not counted" says "a (1), b (1)"
mkdir -p odd/a odd/b
cp "$golden/grey.jpg" odd/a/1.jfif
cp "$golden/grey.jpg" "odd/a/WhatsApp Image at 10.00.00"
cp "$golden/grey.jpg" odd/b/2
run data pack odd --out odd --train-ratio 1
check "pictures are taken whatever their names end in" says "2 classes with their pictures: a (2), b (1)"
check "and none is left out" says_not "left out"
mkdir -p lossless/a lossless/b
cp "$golden/palette.png" "$golden/grey.jpg" lossless/a/
cp "$golden/rgb.bmp" "$golden/plain.tif" lossless/b/
run data pack lossless --out lossy --train-ratio 1
check "pictures that become JPEG are counted" says "3 pictures that were no JPEG files are stored as JPEG, which loses detail; --encoding png keeps every pixel"
run data pack lossless --out chosen --train-ratio 1 --encoding jpeg
check "without a note where that was chosen" says_not "stored as JPEG"
mkdir flat
cp "$golden/grey.jpg" "$golden"/colour*.jpg flat/
run data pack flat --out flat
check "a folder without folders of classes is named" says "no class folders in flat, so all pictures are of one class: name the folder above, or give --labels"
run data import flat --out flat_imported
check "import, which has no --labels, names the command that does" says "name the folder above, or \`dtrain data pack flat --labels FILE\`"
mkdir lists
printf '0\t0\tgrey.jpg\n' >lists/flat.lst
run data import lists/flat.lst --out elsewhere
check "pictures that are not beside their list are a failure" exits 1
check "for which import names pack's --root" says "hint: if the pictures lie elsewhere, use \`dtrain data pack lists/flat.lst --root FOLDER\`"
run data pack lists/flat.lst --out elsewhere
check "and pack its own" says "hint: if the pictures lie elsewhere, name their folder: --root FOLDER"
run data pack lists/flat.lst --root one --out elsewhere
check "but not where it was given" says_not "lie elsewhere"
for command in "data pack flat" "data import flat" "data show d/shapes_val.rec" "data unpack flat.tar"; do
  for far in s3://bucket/x.png https://bucket.example/x.png; do
    # shellcheck disable=SC2086  # words
    run $command --out $far
    check "$command --out $far is a usage error" exits 2
    check "which says why" says "--out $far: is no f"
    check "and what to do" says "\`dtrain data cp\` copies it to s3://"
  done
done
check "nothing is written into a folder s3:" missing s3:
check "nor https:" missing https:
run train --network mlp --image-shape 3,24,24 --batch-size 1 --num-epochs 1 --data-train flat.rec
check "a classifier of its one class is refused" exits 2
check "as one of --num-classes 1 is" says "--num-classes: mlp is a classifier, which needs at least 2 classes"
mkdir -p one/a
cp "$golden/grey.jpg" one/a/
run data pack one --out one
check "a single class is a warning" says "warning: all pictures are of one class, a, and a classifier needs at least two"
printf 'a/grey.jpg,2\n' >numbers.csv
run data pack one --out numbers --labels numbers.csv
check "labels that are numbers come with what training needs" says "--num-classes of \`dtrain train\` is the largest plus 1"
check "where each picture has one" says_not "without a label"
cp "$golden/grey.jpg" one/a/more1.jpg
cp "$golden/grey.jpg" one/a/more2.jpg
run data pack one --out labelled --labels numbers.csv
check "pictures that no line names are counted" says "2 pictures without a label were skipped in the folders that the labels name"
run data pack one --out labelled --labels numbers.csv --force --json
check "in JSON, too" json out 'd["unlabelled"] == 2'
mkdir one/b && cp "$golden/grey.jpg" one/b/
run data pack one --out labelled --labels numbers.csv --force
check "and folders of which no line names a picture are told" says "1 folder was left out (no row names a picture in it): b"
rm -r one/b
rm one/a/more1.jpg one/a/more2.jpg
mkdir -p few/a few/b
cp "$golden/grey.jpg" few/a/
cp "$golden/grey.jpg" few/b/
run data pack few --out split
check "classes of one picture are too few for two sets" says "split_val: the classes have too few pictures for a set of its own"
check "which says how to make one" says "--train-ratio 1 packs all pictures into one set"
mkdir -p many/a many/b
for i in 1 2 3 4 5; do cp "$golden/grey.jpg" "many/a/$i.jpg" && cp "$golden/grey.jpg" "many/b/$i.jpg"; done
run data pack many --out json --json
check "the shares are those that were meant" json out 'd["shares"] == {"train": 0.8, "validation": 0.2, "test": 0} and d["unvalidated"] == []'
run data pack many --out many
check "a folder of classes is split" answers_line '^many_val.rec  2 records'
check "with the shares" says "of each class 80 % go to many_train, 20 % to many_val; --train-ratio 1 makes one set"
check "and the command for both sets" says "--data-train many_train --data-val many_val --model-prefix m/many --batch-size 4 --lr 0.01"
for command in ls verify; do
  run data $command many
  check "data $command of their prefix names them" says "name a split that is there: many_train, many_val"
done
run data pack many --out "my, own/p"
check "the command has quotes where a name needs them" says "--data-train 'my, own/p_train' --data-val 'my, own/p_val' --model-prefix m/p"
run data ls "my, own/p_train"
check "a name with a comma is one name" answers_line '^my, own/p_train: 8 records'
mkdir -p many/.ipynb_checkpoints many/empty
cp many/a/1.jpg many/.ipynb_checkpoints/
run data pack many --out with-others
check "hidden folders are no classes" says "2 classes with their pictures: a (5), b (5)"
check "and are counted" says "1 file was left out (hidden): .ipynb_checkpoints"
check "a folder without pictures is named" says "1 folder holds no picture and is no class: empty"
run data pack many --out many --train-ratio 1
check "a set does not get files beside those of an earlier one" exits 2
check "which is named" says "many_train.rec: is there already, of an earlier set of this prefix"
run data pack many --out many --train-ratio 1 --force
check "--force packs it" exists many.rec
check "and removes the earlier one" missing many_train.rec
run data pack many --out whole --train-ratio 1 --json
check "--train-ratio 1 makes one set" json out 'd["files"][0]["file"] == "whole.rec" and d["shares"] is None'
mkdir renamed && cp -r many/a renamed/x && cp -r many/b renamed/b
run data pack renamed --out renamed --train-ratio 1
run data ls whole,renamed
check "sets with other classes can be looked at" answers "whole,renamed: 20 records"
check "without the names, and the first difference is said" says 'renamed.rec: class 0 is "b", but in whole.rec it is "a"'
run data show whole,renamed --out other.png --count 2
check "which show says too" says 'renamed.rec: class 0 is "b", but in whole.rec it is "a"'
check "and draws them" exists other.png
run train --network mlp --data-train whole,renamed --image-shape 1,8,8 --num-epochs 0
check "but not trained on together" says 'renamed.rec: class 0 is "b", but in whole.rec it is "a"'
run data import whole.rec renamed.rec --out both
check "nor imported into one set" says 'renamed.rec: class 0 is "b", but in whole.rec it is "a"'
run data import whole --out copy --shuffle --json
check "import keeps the names of the classes" json out 'd["classes"] == ["a", "b"]'
printf '0\t0\t1.jpg\n1\t0\t1\t2.jpg\n' >two.lst
run data pack two.lst --root many/a --out several
check "pack takes pictures with several labels, and says who does not" says "1 record carries several labels, and a classifier takes one label"
run data verify several
check "as verify does" answers "several.rec: 1 record carries several labels, and a classifier takes one label"
run data verify several --json
check "also in JSON" json out 'd["several_labels"] == 1 and d["good"]'
printf '0\t1.5\t1.jpg\n1\t0\t2.jpg\n' >fraction.lst
run data pack fraction.lst --root many/a --out half
run data verify half
check "verify names a label that is no class" says "half.rec: has labels that no training takes, first at offset 0: the label is 1.5, which is no whole number"
check "which is no damage of the file" says "correct the list"
run data ls half
check "ls shows it as it is" answers_line '^label +1.5 +1 '
printf oops | dd of=half.rec bs=1 seek="$(awk 'NR == 2 { print $2 }' half.idx)" conv=notrunc 2>/dev/null
run data verify half --limit 1
check "damage counts more, also behind the problems that are listed" says "half.rec: damaged, first at offset"
printf x | dd of=whole.rec bs=1 seek=32 conv=notrunc 2>/dev/null
run data verify whole
check "verify says how a damaged file is made again" says "with --force"
check "and what --force does after an interrupted run" says "only finishes that run's set"
run data pack many --out whole --train-ratio 1 --force
check "which is so" says_not "already there"
run data verify whole
check "and it is good" exits 0
mkdir -p torn/a torn/b
cp many/a/1.jpg torn/a/
printf nothing >torn/b/1.jpg
run data pack torn --out torn --train-ratio 1
check "a class without a picture that can be read is named" says "1 class has no picture to train on: b"
check "and no training is proposed" says_not "next: dtrain train"
printf 'gone,cat\n1.jpg,dog\n' >gone.csv
run data pack many/a --out gone --labels gone.csv
check "what is taken for the names of columns is said" says "the first row, gone,cat, names no picture and is taken for the names of the columns"
: >nothing.csv
run data pack many/a --out nothing --labels nothing.csv
check "a table without a row is named" says 'nothing.csv: no row "path,label"'
cp two.lst kept.lst
run data pack two.lst --root many/a --out two --force
check "a set does not write over the list that it is made from" says "two.lst: the pictures come from this file, which the new set would write over"
check "also by force" cmp -s two.lst kept.lst
mkdir named && cp many/a/[1-4].jpg named/
printf '0\t0\t1.jpg\n1\t1\t2.jpg\n2\t0\t3.jpg\n3\t1\t4.jpg\n4\t0\t1.jpg\n' >named/names.txt
run data import named/names.txt --format list --out named
check "import takes a list by any name with --format list" answers "named.rec  5 records"
run data import named/names.txt --format list --train-ratio 0.5 --out parted
check "and each picture once where it is split" says "warning: 1 file was left out (listed more than once): 1.jpg"
printf '0\t0\t1.jpg\n1\t1\t1.jpg\n' >named/names.txt
run data import named/names.txt --format list --out differ
check "but no picture with two labels" says "named/names.txt: lines 1 and 2 give 1.jpg different labels"
for option in "--root many" "--coco-labels boxes"; do
  # shellcheck disable=SC2086  # two words
  run data pack photos --out refused $option
  check "${option% *} for a folder is a usage error" exits 2
  check "which says so" says "${option% *}: photos "
done
mkdir -p kaggle/train/cat kaggle/train/dog kaggle/test
for of in train/cat train/dog test; do cp "$golden/grey.jpg" kaggle/$of/; done
run data pack kaggle --out kaggle
check "folders of splits, one without classes, are refused" says "kaggle: its folder train holds folders of classes, and test beside it holds none"
check "with what to name" says "pack kaggle/train alone"
tar -cf kaggle.tar kaggle
run data import kaggle.tar --out kaggle
check "in an archive with what to do first" says "unpack it, then pack kaggle/train alone"
rm -r kaggle/train/* && cp "$golden/grey.jpg" kaggle/train/
run data pack kaggle --out kaggle
check "sets without classes are no classes" says "kaggle: its folders test, train have the names of data sets, not of classes"
check "which says what to do" says "pack one of them alone; --labels and --coco take the classes from a file"
check "and is a failure" exits 1
run data import photos --format list --out q
check "a folder is no list" says "photos: is a folder, and --format list names a file"
check "which is a usage error" exits 2
run train --network mlp --image-shape 3,8,8 --batch-size 4 --num-epochs 1 --data-train whole
check "a colour network trains on grey pictures" exits 0
check "which it says" says "whole.rec: its first pictures are grey: a network that takes colour sees a grey picture in all 3 channels"
run train --network mlp --image-shape 1,8,8 --batch-size 1 --num-epochs 1 --data-train d/shapes_train.rec
check "a grey network does not train on colour pictures" says "holds images of 3,32,32 (channels, height, width), the network takes 1,8,8"
run data pack photos --out q --encoding png --quality 3
check "--quality without JPEG is a usage error" exits 2
run data pack "$golden/grey.jpg" --out q
check "a picture instead of a folder is a usage error" exits 2
check "with what to name" says "name the folder of the class folders; other files: dtrain data import"
run data pack nowhere --out q
check "a source that is not there is a failure" says "nowhere: no such folder or file"

printf '\0\0\10\3\0\0\0\2\0\0\0\1\0\0\0\1ab' >x-images-idx3-ubyte
printf '\0\0\10\1\0\0\0\2\3\4' >x-labels-idx1-ubyte
run data import x-images-idx3-ubyte --out x
check "import finds the labels beside IDX images" answers "x.rec  2 records"
mkdir -p __MACOSX/grey && cp photos/grey/grey.jpg __MACOSX/grey/._grey.jpg
tar --exclude bad.jpg -cf photos.tar -C photos colour grey -C .. __MACOSX
run data import photos.tar --out t --resize 24 --shards 2 --encoding jpeg
check "import takes an archive" exits 0
check "without what macOS adds" says "1 file was left out (hidden): __MACOSX/grey/._grey.jpg"
check "and packs it as the folder" cmp -s t_1.rec p_1.rec
tar -b 1 --exclude bad.jpg -cf whole.tar -C photos colour grey
run data unpack whole.tar --out unpacked
check "an archive with its end mark is whole" says_not "cut short"
head -c "$(($(stat -c %s whole.tar) - 1024))" whole.tar >cut.tar
run data unpack cut.tar --out unpacked
check "an archive without an end mark is unpacked" exits 0
check "with a warning" says "cut.tar: the archive ends without the mark that tar writes at its end, so it may be cut short"
run data import cut.tar --out cut
check "as import warns" says "cut.tar: the archive ends without the mark"
run data import t --out again --encoding png --json
check "import makes new records of old ones" json out 'd["files"][0]["records"] == 5 and d["schema"] == "dtrain.data-pack/1"'
mkdir part && cp t.pack.json t_0.rec t_0.idx part/
run data ls part/t
check "a set without its last part is incomplete" says "part/t_1.rec is not there, but part/t.pack.json names it"
cp t_1.* part/
sed -i 's/"classes"/"unfinished": ["t_1.rec"], "classes"/' part/t.pack.json
for command in "data ls" "data verify" "eval m/none --data-val"; do
  # shellcheck disable=SC2086
  run $command part/t
  check "$command refuses a set that an interrupted pack has yet to make" exits 1
done
for command in "data ls" "data verify"; do
  # shellcheck disable=SC2086
  run $command part/t_1.rec
  check "$command refuses its file, too" says "part/t_1.rec: is not finished, as part/t.pack.json says"
  check "with what to do" says "run the same command again"
done
run data ls part/t_0.rec
check "a part that is finished can be read" exits 0
run data import t photos.tar --out u
check "import takes one kind at a time" says "are of different kinds"

mkdir -p coco/train coco/val coco/annotations
cp "$golden/grey.jpg" coco/train/
cp "$golden/grey.jpg" coco/val/
annotations='{"images": [{"id": 1, "file_name": "grey.jpg", "width": 8, "height": 8}], "categories": [{"id": 7, "name": "cat"}],
  "annotations": [{"image_id": 1, "category_id": 7, "bbox": [0, 0, 4, 4]}]}'
echo "$annotations" | tee coco/annotations/instances_train.json >coco/annotations/instances_val.json
run data prepare coco --from coco --out c
check "prepare packs COCO's photographs" answers "c/coco_train.rec  1 records"
run data prepare imagenet --out c
check "prepare says that ImageNet cannot be downloaded" says "name their folder with --from"

run data prepare shape --out d
check "an unknown set is a usage error" exits 2
check "an unknown set gets advice" says shapes
run data prepare --out d
check "a missing name is a usage error" says "data prepare: NAME is missing"
run data prepare cifar10 --from nowhere --out d
check "a folder without the files is a failure" exits 1
check "a folder without the files is named" says nowhere
run data prepare mnist --from http://127.0.0.1:9/ --out d
check "a server that is not there exits 4" exits 4
check "nothing half done is left" missing d/mnist_train.rec

finish
