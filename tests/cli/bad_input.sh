#!/usr/bin/env bash
set -uo pipefail
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
shapes 300
training=("${small_training[@]}" --num-epochs 1)
fails() { check "$1 is a failure" exits 1; check "$1 is explained" says "$2"; }
diverges() { check "$1 would end so again" exits 93; check "$1 is explained" says "$2"; }
refused() { check "$1 is a usage error" exits 2; check "$1 is explained" says "$2"; }
flip() { printf '\x55' | dd of="$1" bs=1 seek="$2" conv=notrunc status=none; }  # flip FILE OFFSET

run train
fails "the recipe's data that was not prepared" "data/cifar10_train.rec: no such file"
check "missing data names the command that makes it" says "dtrain data prepare cifar10 --out data"
check "and the one for pictures of one's own" says "dtrain data pack"
run train --network mlp --data-train d/nothing.rec
check "a mistyped name gets those that are there" says "the record files beside it are d/shapes_train.rec, d/shapes_val.rec"
run eval m/none --load-epoch 1 --data-val d/shapes_vl.rec
check "or the nearest" says "did you mean d/shapes_val.rec?"
run data ls none/nothing.rec
check "unknown missing data gets a command that a shell runs as it stands" says "dtrain data prepare NAME --out none"
run eval m/none --load-epoch 1 --data-val d/shapes_val.rec
fails "a checkpoint that is not there" "m/none"
run eval --data-val d/shapes_val.rec
refused "a missing prefix" "eval: PREFIX is missing"
run eval m/x
refused "a missing --data-val" "eval: --data-val is missing"
run board d/shapes_train.rec --export page.html
refused "a file instead of a folder" "d/shapes_train.rec: is a file"
check "with what may stand there" says "name a folder, a --model-prefix or a --job-dir"
for address in 127.0.0.1:99999 '[::1]:6007'; do
  run board d --address "$address"
  refused "the address $address" "--address $address: holds a port"
done
for address in localhost 192.0.2.1; do
  run board d --address "$address" --port 0
  fails "the address $address" "cannot listen on port 0 of $address"
  check "with what to name instead of $address" says "name an address of this machine, without a port, in --address"
  check "and no word of another program" says_not "another program"
done
run data ls d
fails "a folder instead of record files" "d: is a folder"
check "the sets in it are named" says "name a set that is in it: d/shapes_train, d/shapes_val"
for command in "data ls" "data verify" "train --network mlp --data-train" "eval m/x --data-val"; do
  # shellcheck disable=SC2086  # words
  run $command d/shapes_train.idx
  fails "$command of an index" "d/shapes_train.idx: is the index of shapes_train.rec"
  check "$command names what is meant" says "name that file, or d/shapes_train"
done
unset AWS_REGION AWS_DEFAULT_REGION AWS_PROFILE AWS_CONFIG_FILE
export AWS_EC2_METADATA_DISABLED=true
for command in "cluster status lab" "jobs list --cluster lab"; do
  # shellcheck disable=SC2086  # words of the command
  run $command
  refused "$command of a cluster that nobody registered" "no AWS region is known"
  check "$command names what registers one" says '`dtrain cluster register lab --hosts FILE` registers one'
done
run cluster list
refused "a list of clusters without one and without AWS" "no AWS region is known"
check "it names what registers one" says 'no cluster of hosts is registered: `dtrain cluster register NAME --hosts FILE` registers one; for AWS: set AWS_REGION'
run bench allreduce --simulate 8 --link 10gbt,50us
refused "a link with a typing error" "'10gbt' is no bandwidth: give a number above 0 with kbit, mbit or gbit"
run bench allreduce --simulate 64 --shards 32 --link 10gbit,50us
refused "more simulated ranks than shards" "64 ranks are more than 32 shards"
run bench allreduce --simulate 8
refused "a simulation without a link" "--link RATE,LATENCY"

bad() { mkdir -p b && cp d/shapes_train.rec d/shapes_train.idx b/; }
try() { run train "${training[@]}" --data-train b/shapes_train.rec "$@"; }
bad; : >b/shapes_train.rec
try; fails "an empty .rec" b/shapes_train.rec
bad; truncate -s 100000 b/shapes_train.rec
try; fails "a truncated .rec" "shapes_train.rec: it lists a record at byte"
bad; flip b/shapes_train.rec 0
try; fails "a broken frame" "b/shapes_train.rec: byte 0: no record begins here"
run data verify b/shapes_train.rec
fails "a broken frame under verify" "offset 0"
bad; : >b/shapes_train.idx
try; fails "an empty .idx" b/shapes_train.idx
bad; sed -i '7s/.*/6\t999999999/' b/shapes_train.idx
try; fails "an .idx that points outside" b/shapes_train.idx
bad; rm b/shapes_train.idx
try
check "a missing .idx is made up for by a scan" exits 0
bad; printf 'not a record file' >b/shapes_train.rec
try; fails "another file" "does not fit shapes_train.rec"

# The payload of a record begins 32 bytes after its frame: 8 of the frame, 24 of MXNet's header.
bad; flip b/shapes_train.rec 32; flip b/shapes_train.rec 33
try; fails "an undecodable image" b/shapes_train.rec
try --max-bad-records 1
check "an undecodable image may be skipped" exits 0
check "a skipped image is counted and named" says "1 records could not be decoded"
run data verify b/shapes_train.rec
fails "an undecodable image under verify" b/shapes_train.rec
check "which advises to make the file again" says "make the file again with"
bad
second=$(sed -n 2p b/shapes_train.idx | cut -f 2)
flip b/shapes_train.rec $((second + 32)); flip b/shapes_train.rec $((second + 33))
for command in bench show; do
  run data $command b/shapes_train.rec
  fails "an undecodable image under $command" "dtrain data verify b/shapes_train.rec lists them"
  check "$command names no option that it does not have" says_not "max-bad-records"
done
bad; sed -i 1d b/shapes_train.idx
run data verify b/shapes_train.rec
fails "an .idx without a record under verify" "the .idx does not list"
check "which is deleted instead of both" says "if only the .idx is wrong, delete b/shapes_train.idx, and the .rec is scanned instead"

# An evaluation leaves a bad record out, where training takes its neighbour in its place.
mkdir v && cp d/shapes_val.rec d/shapes_val.idx v/
flip v/shapes_val.rec 32; flip v/shapes_val.rec 33
left_out="1 records could not be decoded and were left out of the evaluation; the first: v/shapes_val.rec: record 0"
validating=(train "${training[@]}" --data-val v/shapes_val.rec --max-bad-records 1 --global-batch 50 --logical-shards 4 --seed 1)
run "${validating[@]}" --model-prefix m/v
check "training validates without an undecodable image" says "$left_out"
accuracy=$(sed -n 's/^Epoch\[0\] Validation-accuracy=//p' err)
run "${validating[@]}" -n 2 --launcher local --job-dir job
check "workers of a job, too" exits 0
check "with the same accuracy" says "Epoch[0] Validation-accuracy=$accuracy"
run eval m/v --data-val d/shapes_val.rec --report whole
run eval m/v --data-val v/shapes_val.rec
fails "an undecodable image under eval" v/shapes_val.rec
run eval m/v --data-val v/shapes_val.rec --max-bad-records 1 --report part
check "eval leaves it out when it is told to" exits 0
check "and says so" says "$left_out"
check "the accuracy is that of the other images" answers "accuracy=$accuracy"
check "the report has a row for each of them" /usr/bin/python3 - "$accuracy" <<'PYTHON'
import csv, sys
whole, part = (list(csv.DictReader(open(f"{name}/predictions.csv"))) for name in ("whole", "part"))
said = lambda rows: [(row["sample"], row["label"], row["predicted_label"]) for row in rows]
assert len(whole) == 100 and said(part) == [row for row in said(whole) if row[0] != "0"], part
right = sum(row["label"] == row["predicted_label"] for row in part)
assert abs(right / 99 - float(sys.argv[1])) < 1e-5, right
PYTHON
run eval m/v --data-val v/shapes_val.rec --max-bad-records 1 --batch-size 1 --json
check "--json counts and names it" json out 'd["samples"] == 99 and d["bad_records"] == 1 and "shapes_val.rec: record 0" in d["first_bad_record"]'
run eval m/v --data-val d/shapes_val.rec --max-bad-records 1 --json
check "without one there is nothing to name" json out 'd["samples"] == 100 and d["bad_records"] == 0 and d["first_bad_record"] is None'

run train "${training[@]}" --num-classes 5
fails "a label too large" "label"
run train "${training[@]}" --image-shape 0,28,28
refused "an image shape with a zero" "--image-shape"
run train "${training[@]}" --image-shape 2,28,28
refused "an image shape of two channels" "must have 1 or 3 channels"
run train "${training[@]}" --optimizer adam --layer-decay 0.8 -n 2 --launcher local --job-dir refused
refused "a decay by layer of another optimizer in a job" "optimizer adam: its rates do not decay by layer"
check "before it starts workers" says_not "Launching worker node"
run train "${training[@]}" --network resnett
refused "an unknown network" "resnet"
run train "${training[@]}" --network resnet --num-layers 9
refused "an unknown depth" "9"
echo '{"nodes": 3}' >net.json
run train "${training[@]}" --network net.json
fails "a file that is no network" net.json
run train "${training[@]}" --network none.json
fails "a network file that is not there" none.json
run train "${training[@]}" --dtype float16
refused "a dtype that the CPU lacks" "--dtype float16"
run train "${training[@]}" --dtype float99
refused "an unknown dtype" "--dtype: must be one of float32, bfloat16, float16, auto, not 'float99'"
run train "${training[@]}" --cache-decoded=-1
refused "memory below nothing" "--cache-decoded: must be between 0 and 65536, not -1"
run train "${training[@]}" --logical-shards 3
refused "shards that are no power of two" "--logical-shards: must be a power of two, not 3"
run train "${training[@]}" --logical-shards 64
refused "more shards than samples" "64 shards are more than the 50 samples of a step"

run train "${training[@]}" --lr 1e30 --num-epochs 3 --model-prefix m/nan
diverges "a loss that is not finite" "the loss is not finite at epoch"
check "a loss that is not finite names the rate" says "learning rate 1e+30"
run train "${training[@]}" --lr 1e20 --num-examples 50 --num-epochs 3 --model-prefix m/broken
diverges "a loss that a checkpoint gives" "the loss is not finite at epoch 1 step 0"
check "the checkpoint is not called good" says "the weights of m/broken-0001 give no finite loss: begin again with a smaller --lr"
run train "${training[@]}" --lr 3.4e38 --rgb-std 1 --num-examples 50 --num-epochs 1 --model-prefix m/infinite
diverges "weights that the last step broke" "a weight is not finite at epoch 0"
check "are told from those of a full disk" says "no checkpoint has been saved yet"
run train "${training[@]}" --lr 3.4e38 --rgb-std 1 --num-examples 50 --num-epochs 1
diverges "also where nothing is saved" "a weight is not finite at epoch 0"
run train "${training[@]}" --lr 1e38 --num-examples 50 --num-epochs 1
diverges "a validation loss at the end that is not finite" "the validation loss is not finite at epoch 0, with which the run ends"
check "the way out is named with its flag" says "begin again with a smaller --lr"
run train "${training[@]}" --lr 1e38 --num-examples 50 --num-epochs 1 --json
check "the result has the exit code" json out '[each["exit_code"] for each in lines if each.get("event") == "result"] == [93]'

run train "${training[@]}" --model-prefix m/full
good=$(sha256sum m/full-0001.safetensors)
code=$(trap '' XFSZ && ulimit -f 64 && "$DTRAIN" train "${training[@]}" --num-epochs 2 --model-prefix m/full --resume >out 2>err </dev/null; echo $?)
check "a disk without room for the last checkpoint is a failure" exits 1
check "a disk without room is told with what is kept" says_line "warning: checkpoint not saved: .*File too large; (training goes on|the run waits)"
check "with the cause as the hint" says_line "hint: .*ulimit -f.*; --resume goes on from the last good checkpoint"
check "a disk without room leaves the last good checkpoint" same "$(sha256sum m/full-0001.safetensors)" "$good"
check "a disk without room leaves nothing half written" same "$(find m -name "*0002*" | wc -l)" 0

run export m/none --to onnx --out x
fails "an export of nothing" m/none
for command in "export m/full --to onnx --out y.onnx" "inspect m/full"; do
  # shellcheck disable=SC2086  # words
  run $command --image-shape 3,99,99
  refused "$command with another size" "--image-shape 3,99,99: the network takes images of 3,28,28"
done
run eval m/full --data-val d/shapes_val.rec --pictures d
refused "--pictures without --results" "--pictures: only --results draws pictures"
mkdir e && echo notes >e/t.txt && echo '{"step": 1}' >e/steps.jsonl && cp d/shapes_val.rec e/v.rec && echo '{}' >e/x-symbol.json
before=$(cat e/* | sha256sum)
for target in "onnx e/t.txt" "safetensors e/steps.jsonl" "onnx e/v.rec" "mxnet e/x"; do
  # shellcheck disable=SC2086  # two words
  set -- $target
  run export m/full --to "$1" --out "$2"
  refused "an export over $2" "is there already and is no earlier export"
  check "with the way to do it" says "--force writes over it; or name another file"
done
for target in "safetensors e/full.onnx" "mxnet e/full.onnx" "onnx e/full.safetensors" "onnx e/full.pt" "safetensors e/full.npz"; do
  # shellcheck disable=SC2086  # two words
  set -- $target
  run export m/full --to "$1" --out "$2"
  refused "--to $1 by the name $2" "--out $2: --to $1 writes no .${2#*.} file"
done
run export m/full --to onnx --out -
refused "an export into a pipe" "--out -: an export is a file, which no pipe can be"
check "none of these files was touched" same "$(cat e/* | sha256sum)" "$before"
for format in onnx safetensors mxnet; do
  run export m/full --to $format --out e/$format
  run export m/full --to $format --out e/$format
  check "export to $format writes over its own file" exits 0
done
cp e/mxnet-0001.params e/mxnet-0007.params && sed -i 's/_weight"/_kernel"/' e/mxnet-symbol.json
run export m/full --to mxnet --out e/mxnet
refused "an export over another network's symbol" \
  "e/mxnet-symbol.json: is the symbol of another network, to which mxnet-0007.params belongs"
run export m/full --to mxnet --out e/mxnet --force
check "export --force writes over that symbol" exits 0
check "with a warning of a later epoch that is there" says "e/mxnet-0007.params: is there already"
run export m/full --to mxnet --out e/mxnet
refused "an export below a later epoch" "e/mxnet-0007.params: is there already, and eval, predict and export take this highest epoch"
run export m/full --to onnx --out e/t.txt --force
check "export --force writes over another file" exits 0

mkfifo fifo fifo.json
for command in "inspect fifo.json" "train --config fifo --show-config"; do
  # shellcheck disable=SC2086  # words
  timeout 30 "$DTRAIN" $command >out 2>err </dev/null
  code=$?
  fails "$command, which no program writes to," "is a FIFO, not a file"
done
"$DTRAIN" launch --launcher local --hostfile <(sleep 0.2 && echo localhost) -n 1 -- echo ran >out 2>err </dev/null
code=$?
check "what another program writes is read to its end" answers ran

finish
