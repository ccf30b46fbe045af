#!/usr/bin/env bash
# Weights of another program: imported, and as the start of a training run on other classes.
set -uo pipefail
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

# Files as safetensors.torch and torch.save write them, for resnet-v1.5 with 18 layers of 2 channels and 5 classes.
/usr/bin/python3 - <<'PYTHON'
import array, io, json, os, pickle, random, struct, zipfile, zlib

def shapes(width, classes):
    yield from (("conv1.weight", [width, 3, 7, 7]),)
    def norm(name, channels):
        for end in ("weight", "bias", "running_mean", "running_var"):
            yield f"{name}.{end}", [channels]
        yield f"{name}.num_batches_tracked", []
    yield from norm("bn1", width)
    inputs = width
    for stage in range(4):
        outputs = width << stage
        for block in range(2):
            name = f"layer{stage + 1}.{block}"
            for number, (a, b) in enumerate(((inputs, outputs), (outputs, outputs)), 1):
                yield f"{name}.conv{number}.weight", [b, a, 3, 3]
                yield from norm(f"{name}.bn{number}", b)
            if inputs != outputs:
                yield f"{name}.downsample.0.weight", [outputs, inputs, 1, 1]
                yield from norm(f"{name}.downsample.1", outputs)
            inputs = outputs
    yield "fc.weight", [classes, inputs]
    yield "fc.bias", [classes]

def count(shape):
    size = 1
    for extent in shape:
        size *= extent
    return size

def safetensors(path, named):
    random.seed(1)
    header, data = {}, b""
    for name, shape in named:
        if name.endswith("tracked"):
            dtype, raw = "I64", struct.pack("<q", 3)
        else:
            dtype, raw = "F32", array.array("f", [random.uniform(0.1, 0.4) for _ in range(count(shape))]).tobytes()
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    open(path, "wb").write(struct.pack("<Q", len(text)) + text + data)

safetensors("w.safetensors", list(shapes(2, 5)))
safetensors("renamed.safetensors", [(name.replace("layer4.1.conv2", "layer4.1.konv2"), shape) for name, shape in shapes(2, 5)])
safetensors("wide.safetensors", list(shapes(4, 5)))
safetensors("twice.safetensors", [(f"{place}.{name}", shape) for place in ("ema", "model") for name, shape in shapes(2, 5)])
whole = open("w.safetensors", "rb").read()
open("cut.safetensors", "wb").write(whole[:-100])
open("huge.safetensors", "wb").write(struct.pack("<Q", 1 << 62) + whole[8:])

def field(number, content):
    assert len(content) < 128
    return bytes([number << 3 | 2, len(content)]) + content

# An ONNX model with an operator that no layer computes.
extents = b"".join(field(1, bytes([8, extent])) for extent in (1, 3, 8, 8))
image = field(1, b"image") + field(2, field(1, b"\x08\x01" + field(2, extents)))
node = field(1, b"image") + field(2, b"y") + field(3, b"odd") + field(4, b"Einsum")
open("odd.onnx", "wb").write(field(7, field(1, node) + field(11, image) + field(12, field(1, b"y"))))

class Code:
    def __reduce__(self):
        return os.system, ("touch ran",)
with zipfile.ZipFile("code.pt", "w") as archive:
    archive.writestr("code/data.pkl", pickle.dumps({"conv1.weight": Code()}, protocol=2))

def png(path, colour, side=40):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    rows = b"".join(b"\0" + bytes(c for _ in range(side) for c in colour) for _ in range(side))
    chunk = lambda kind, data: struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    with open(path, "wb") as out:
        out.write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", side, side, 8, 2 if len(colour) == 3 else 0, 0, 0, 0))
                  + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))
for i in range(8):
    png(f"photos/red/{i}.png", (200, 20 + i, 30))
    png(f"photos/green/{i}.png", (20, 210, 30 + i))
    png(f"photos/blue/{i}.png", (20, 30 + i, 210))
    png(f"small/a/{i}.png", (20 + i,), 4)
    png(f"small/b/{i}.png", (200 + i,), 4)
PYTHON
net=(--network resnet-v1.5 --num-layers 18 --width 2)

run import w.safetensors "${net[@]}" --out m/w
check "import makes a checkpoint" exits 0
check "and prints its file" answers_line '^m/w-0000.safetensors$'
check "and says which pixels it assumes" says 'w.safetensors does not say how its pixels are prepared: they are taken as by --image-shape 3,224,224 --rgb-mean 123.675,116.28,103.53 --rgb-std 58.395,57.12,57.375 --resize 256; these options choose otherwise'
run inspect m/w --json
check "of as many classes as the last layer has" json out '[t["shape"] for t in d["tensors"] if t["name"] == "fc_weight"] == [[5, 16]]'
check "with the pixels of ImageNet" json out 'd["preprocessing"]["image_shape"] == [3, 224, 224] and d["preprocessing"]["resize"] == 256 and d["preprocessing"]["rgb_mean"] == [123.675, 116.28, 103.53]'
run predict m/w photos/red/1.png
check "it names pictures at once" exits 0
check "by their number, since the file has no names" answers_line '^photos/red/1.png +[0-4] +[01]\.[0-9]{6}$'
run import w.safetensors "${net[@]}" --out m/w2 --json
check "--json says what fits" json out 'd["schema"] == "dtrain.import/1" and d["tensors"] == 102 and d["unused"] == 0 and d["classes"] == 5'

run import w.safetensors "${net[@]}" --out m/w
check "checkpoints are not imported over" exits 2
check "which the newest shows" says '--out m/w: has checkpoints already, the newest is m/w-0000'
run import w.safetensors "${net[@]}" --out m/w --force
check "unless --force says so" exits 0
for ending in onnx safetensors json params; do
  run import w.safetensors "${net[@]}" --out m/w.$ending --force
  check "a prefix does not end in .$ending" exits 2
  check "which is said" says "leave .$ending out: --out m/w"
done
run export m/w --to safetensors --out narrow.safetensors
run import narrow.safetensors --network resnet-v1.5 --out m/narrow
check "an export says how wide its network is" exits 0
run import narrow.safetensors --network resnet-v1.5 --width 4 --out m/wider
check "unless the user says it" exits 1
/usr/bin/python3 - <<'PYTHON'
import json, struct
data = bytearray(open("w.safetensors", "rb").read())
size = struct.unpack("<Q", data[:8])[0]
at = 8 + size + json.loads(data[8:8 + size])["fc.bias"]["data_offsets"][0]
data[at + 4:at + 8] = struct.pack("<f", float("nan"))
open("nan.safetensors", "wb").write(data)
PYTHON
run import nan.safetensors "${net[@]}" --out m/nan
check "weights that are no numbers are refused" exits 1
check "with the tensor and the place" says "nan.safetensors: value 1 of the tensor 'fc_bias' is nan"
check "and nothing is written" missing m/nan-0000.json

run data pack photos --out p --train-ratio 1 --encoding png
run eval m/w --data-val p.rec
check "a checkpoint without names is not judged by data with other classes" exits 1
check "whose numbers are said" says 'p.rec: names 3 classes, but the checkpoint has 5, without names'
start=(train "${net[@]}" --data-train p.rec --global-batch 8 --logical-shards 2 --lr 0.01 --num-epochs 1 --image-shape "3,40,40" --pad-size 0 --max-random-h 0 --max-random-s 0 --max-random-l 0)
run "${start[@]}" --pretrained w.safetensors --model-prefix m/p
check "a run begins with the weights" exits 0
check "and says how many fit" says_line '^Loaded "w.safetensors": 100 of the 102 tensors of resnet-v1.5-18$'
check "and which pixels it assumes" says 'w.safetensors does not say how its pixels are prepared: they are taken as by --image-shape 3,40,40 '
check "the last layer has as many classes as the records name" says_line '^The last layer begins anew: fc.weight \[3, 16\]: \[5, 16\] in the file$'
run inspect m/p --json
check "the checkpoint keeps the pixels of the weights" json out 'd["preprocessing"]["rgb_std"] == [58.395, 57.12, 57.375] and d["preprocessing"]["resize"] == 45'
check "and the classes of the pictures" json out 'd["preprocessing"]["classes"] == ["blue", "green", "red"]'
alone=$(grep -o '"weights_sha256": *"[0-9a-f]*"' out)
run "${start[@]}" --pretrained w.safetensors -n 2 --launcher local --job-dir job --model-prefix m/j
check "workers of a job begin with them, too" exits 0
run inspect m/j --json
check "and end with the same bits" same "$(grep -o '"weights_sha256": *"[0-9a-f]*"' out)" "$alone"
run "${start[@]}" --pretrained w.safetensors --resume --bce-loss --model-prefix m/anew
check "with nothing to resume, such a run chooses its loss" exits 0
run "${start[@]}" --pretrained m/p-0001.safetensors --new-head --model-prefix m/q
check "a checkpoint's tensors are weights as well" exits 0
check "which say how pixels are prepared" says_not "does not say how its pixels are prepared"
check "--new-head replaces a last layer that would fit" says_line '^The last layer begins anew: --new-head$'
mkdir m/p
for name in m/p m/p-0001 m/p-0001.json; do
  run import $name "${net[@]}" --out "m/again-$(basename $name .json)" --force
  check "a checkpoint is weights by the name $name" exits 0
done
rmdir m/p
run train --data-train p.rec --lr 0.01 --num-epochs 1 --batch-size 8 --seed 4 --logical-shards 4 --sync-bn --focal-gamma 1 \
  -n 2 --launcher local --job-dir again --resume --model-prefix m/again-p
check "--resume begins a run with imported weights, which chooses freely" exits 0
run inspect m/again-p --json
check "what a checkpoint of a run would have chosen" json out 'd["seed"] == 4 and d["global_batch"] == 16 and d["logical_shards"] == 4'
cp m/p-0001.json m/bad-0001.json
/usr/bin/python3 - <<'PYTHON'
import struct
data = bytearray(open("m/p-0001.safetensors", "rb").read())
data[8 + struct.unpack("<Q", data[:8])[0]] ^= 1
open("m/bad-0001.safetensors", "wb").write(data)
PYTHON
run import m/bad-0001.safetensors "${net[@]}" --out m/x
check "a damaged checkpoint is not imported" exits 1
check "which names the tensor" says "m/bad-0001.safetensors: damaged: tensor '"
run "${start[@]}" --pretrained m/bad-0001.safetensors --model-prefix m/x
check "nor does a run begin with it" exits 1
mkdir fruit && cp -r photos/red fruit/cherry && cp -r photos/green fruit/apple && cp -r photos/blue fruit/plum
run data pack fruit --out f --train-ratio 1 --encoding png
run "${start[@]/p.rec/f.rec}" --pretrained m/p-0001.safetensors --model-prefix m/f
check "a last layer of as many classes with other names begins anew" says_line '^The last layer begins anew: the weights know the classes blue, green, red, the data have apple, cherry, plum$'
run "${start[@]/p.rec/f.rec}" --pretrained m/p-0001.safetensors -n 2 --launcher local --job-dir fruits --model-prefix m/g
check "in workers too" same "$("$DTRAIN" inspect m/g --json | grep -o '"weights_sha256": *"[0-9a-f]*"')" "$("$DTRAIN" inspect m/f --json | grep -o '"weights_sha256": *"[0-9a-f]*"')"
run "${start[@]}" --pretrained m/p-0001.safetensors --resume --model-prefix m/p
check "--resume prefers the checkpoint" says 'Resuming from "m/p-0001"'

whole=(train "${net[@]}" --data-train p.rec --global-batch 8 --logical-shards 2 --lr 0.01 --model-prefix m/whole)
run "${whole[@]}" --pretrained w.safetensors --num-epochs 1
check "without --image-shape a run has images of the weights' size" exits 0
run "${whole[@]}" --pretrained w.safetensors --num-epochs 2 --resume
check "and the same command resumes it" exits 0
run train --config m/whole-run/train.toml --num-epochs 3 --resume
check "so does the file of its options" exits 0
DTRAIN_RESUME=true run "${whole[@]}" --pretrained w.safetensors --num-epochs 4 -n 2 --launcher local --job-dir whole
check "and a job that begins again" exits 0
run inspect m/whole --json
check "with images of that size" json out 'd["epoch"] == 4 and d["preprocessing"]["image_shape"] == [3, 224, 224]'
run "${whole[@]}" --num-epochs 5 --load-epoch 4
check "and one from an epoch" exits 0
run "${whole[@]}" --num-epochs 6 --resume --image-shape 3,40,40
check "another size is refused" exits 2
check "with both" says "its images are 3,224,224, not 3,40,40"

run train --network lenet --data-train p.rec --batch-size 8 --lr 0.001 --num-epochs 1 --model-prefix m/l
run export m/l --to mxnet --out m/theirs
run import m/theirs-0001.params --network lenet --out m/lenet
check "MXNet's weights of one of its networks are prepared as its scripts do" exits 0
check "which is said" says 'm/theirs-0001.params does not say how its pixels are prepared: they are taken as by --image-shape 3,28,28 --rgb-mean 123.68,116.779,103.939 --rgb-std 1,1,1; these options choose otherwise'
run inspect m/lenet --json
check "as in the checkpoint that they were made of" json out 'd["preprocessing"]["rgb_std"] == [1, 1, 1] and d["preprocessing"]["image_shape"] == [3, 28, 28] and "resize" not in d["preprocessing"]'

run "${start[@]}" --pretrained renamed.safetensors --model-prefix m/r
check "half-matching names are a warning" exits 0
check "with the nearest name" says_line 'layer4.1.conv2.weight \[16, 16, 3, 3\]: not in the file, the nearest is layer4.1.konv2.weight \[16, 16, 3, 3\]'
run import twice.safetensors "${net[@]}" --out m/twice
check "of two sets of weights one is imported" exits 0
check "which is said" says "twice.safetensors: of its whole sets of weights those of 'model' are read, not those of 'ema'"
run import renamed.safetensors "${net[@]}" --out m/x
check "import takes a whole network only" exits 1
run "${start[@]}" --pretrained wide.safetensors --model-prefix m/x
check "weights of another network are refused" exits 1
check "with the options that choose it" says "choose their network with --network, --num-layers, --width and --image-shape"
check "with the number that fits and the shapes that differ" says_line 'the weights of another network: 0 of the 102 tensors .* conv1.weight \[2, 3, 7, 7\]: \[4, 3, 7, 7\] in the file'
run import code.pt "${net[@]}" --out m/x
check "a pickle that would run code is refused" exits 1
check "by name" says_line 'it would run (posix|os)\.system'
check "and nothing ran" test ! -e ran
for file in cut huge; do
  run import "$file.safetensors" "${net[@]}" --out m/x
  check "a $file file is refused" exits 1
done
run "${start[@]}" --pretrained w.safetensors --load-epoch 1 --model-prefix m/p
check "two starts are refused" exits 2
run import s3://bucket/w.safetensors "${net[@]}" --out m/x
check "weights behind a URL are refused without their hash" exits 2
check "with what to do" says 's3://bucket/w.safetensors#sha256=HEX with the 64 digits that'
run predict odd.onnx photos/red/1.png
check "an ONNX model with an unknown operator is refused" exits 1
check "by its node" says_line 'odd.onnx: node odd \(Einsum\): dtrain has no layer for the operator Einsum'
golden=$here/../unit/train/golden/model.onnx
run data pack small --out s --train-ratio 1 --encoding png
shop=(train --network "$golden" --data-train s.rec --batch-size 8 --lr 0.01 --pad-size 0 --model-prefix m/s)
run "${shop[@]}" --pretrained "$golden" --num-epochs 1
check "an ONNX model of another program is a network" exits 0
check "with its weights" says_line '^Loaded ".*model.onnx": 5 of the 7 tensors of model$'
check "and a last layer for the classes of the pictures" says_line '^The last layer begins anew: .*\[2, 8\]: \[3, 8\] in the file$'
run "${shop[@]}" --pretrained "$golden" --num-epochs 2 --resume
check "the same command resumes it" exits 0
run train --config m/s-run/train.toml --num-epochs 3 --resume
check "so does the file of its options, too" exits 0
run "${shop[@]}" --num-epochs 4 --load-epoch 3
check "and a run from an epoch" exits 0
run "${shop[@]}" --num-epochs 5 --resume --num-classes 3
check "another number of classes is refused" exits 2
check "with both numbers" says "it has 2 classes, not 3"
run predict "$golden" small/a/1.png --json
check "predict names pictures with it" json out 'd["label"] in (0, 1, 2)'
check "and says which pixels it assumes" says 'does not say how its pixels are prepared'
/usr/bin/python3 - "$golden" <<'PYTHON'
import sys
def field(number, content):
    return bytes([number << 3 | 2, len(content)]) + content
names = field(14, field(1, b"names") + field(2, b"{0: 'red fox', 1: 'owl', 2: \"cow's\"}"))
open("named.onnx", "wb").write(open(sys.argv[1], "rb").read() + names)
PYTHON
run predict named.onnx small/a/1.png --top 3 --json
check "names in a model's metadata are those of its classes" json out 'sorted(g["class"] for g in d["top"]) == ["cow'"'"'s", "owl", "red fox"]'
check "which says nothing of its pixels" says 'does not say how its pixels are prepared'
run import named.onnx --out m/named
run predict m/named small/a/1.png --top 3 --json
check "a checkpoint of it, which is its own network, keeps them" json out 'sorted(g["class"] for g in d["top"]) == ["cow'"'"'s", "owl", "red fox"]'
run import w.safetensors "${net[@]}" --out m/p --force
check "an import beside a newer checkpoint says that it is not the one used" says 'm/p-0001 is newer, and stays the one that is used: --load-epoch 0 takes the import'
run "${start[@]}" --new-head
check "--new-head without weights is refused" exits 2
finish
