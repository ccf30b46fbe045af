#!/usr/bin/env bash
# What pretrained weights are worth: tests/bench/fine_tuning.sh [PAIR...]. For each pair of CIFAR-10's classes, such as
# 8,9, trains ResNet-20 on the other eight, and then on 50 pictures of each of the two: from random weights, from those
# weights with all layers learning, with the last one alone, and with what --finetune chooses. Prints the accuracy on the
# 2,000 test pictures.
# DTRAIN: the program; DTRAIN_TEST_DATA: the folder that holds cifar-10-batches-bin/; SEEDS (3), EPOCHS on the eight (10).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
dtrain=$(realpath "${DTRAIN:-build/release/dtrain}")
data=$(realpath "${DTRAIN_TEST_DATA:?the folder with cifar-10-batches-bin/}")
seeds=${SEEDS:-3}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

network=(--network resnet-v1 --num-layers 20 --dtype auto --image-shape "3,32,32" --pad-size 4
  --rgb-mean "125.3,123,113.9" --rgb-std "63,62.1,66.7" --lr-schedule cosine --label-smoothing 0.1)

# CIFAR-10's own files as folders of PNG pictures: others/ with eight classes, few/ with 50 pictures of each of the two,
# test/ with all test pictures of the two.
draw_pictures() {  # draw_pictures A,B
  /usr/bin/python3 - "$data/cifar-10-batches-bin" "$1" <<'PYTHON'
import pathlib, struct, sys, zlib

source, pair = pathlib.Path(sys.argv[1]), [int(n) for n in sys.argv[2].split(",")]
names = (source / "batches.meta.txt").read_text().split()

def png(path, planes):
    rows = b"".join(b"\0" + bytes(planes[c * 1024 + y * 32 + x] for x in range(32) for c in range(3)) for y in range(32))
    chunk = lambda kind, body: struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 32, 32, 8, 2, 0, 0, 0))
                     + chunk(b"IDAT", zlib.compress(rows, 1)) + chunk(b"IEND", b""))

def draw(files, choose):
    seen = [0] * 10
    for file in files:
        content = file.read_bytes()
        for at in range(0, len(content), 3073):
            label = content[at]
            folder = choose(label, seen[label])
            seen[label] += 1
            if folder:
                png(pathlib.Path(folder) / names[label] / f"{seen[label]:05}.png", content[at + 1:at + 3073])

training = [source / f"data_batch_{k}.bin" for k in range(1, 6)]
draw(training, lambda label, n: ("few" if n < 50 else None) if label in pair else "others")
draw([source / "test_batch.bin"], lambda label, n: "test" if label in pair else None)
PYTHON
  for set in others few test; do "$dtrain" data pack "$set" --out "$set" --train-ratio 1 --encoding png >/dev/null 2>&1; done
}

accuracy_of() {  # accuracy_of OPTIONS...: of the last epoch, in percent
  "$dtrain" train --data-train few.rec --data-val test.rec "$@" >log 2>&1 || { tail -n 5 log >&2; return 1; }
  grep -oE 'validation accuracy [0-9.]+' log | tail -n 1 | awk '{ printf "%.2f", 100 * $3 }'
}
accuracy() {  # accuracy SEED EPOCHS RATE OPTIONS...
  local seed=$1 epochs=$2 rate=$3
  shift 3
  accuracy_of "${network[@]}" --seed "$seed" --num-epochs "$epochs" --lr "$rate" --global-batch 20 "$@"
}

printf '| pair | seed | random weights | all layers tuned | last layer tuned | --finetune |\n|---|---|---|---|---|---|\n'
for pair in "${@:-8,9}"; do
  rm -rf others few test m
  draw_pictures "$pair"
  "$dtrain" train "${network[@]}" --data-train others.rec --data-val "" --num-epochs "${EPOCHS:-10}" --lr 0.1 --wd 5e-4 \
    --global-batch 128 --model-prefix m/m >log 2>&1 || { tail -n 5 log >&2; exit 1; }
  weights=$(find m -name 'm-*.safetensors' | sort | tail -n 1)
  for seed in $(seq "$seeds"); do
    printf '| %s | %s | %s | %s | %s | %s |\n' "$pair" "$seed" "$(accuracy "$seed" 60 0.05)" \
      "$(accuracy "$seed" 30 0.01 --pretrained "$weights" --new-head)" \
      "$(accuracy "$seed" 30 0.05 --pretrained "$weights" --new-head --freeze backbone)" \
      "$(accuracy_of --finetune "$weights" --new-head --dtype auto --seed "$seed")"
  done
done
