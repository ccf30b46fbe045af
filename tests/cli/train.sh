#!/usr/bin/env bash
set -uo pipefail
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
shapes 300

run train "${small_training[@]}" --num-epochs 2 --model-prefix m/s --top-k 3 --tensorboard tb --seed 1
check "training succeeds" exits 0
check "the start names the data" says "The run trains on the 300 images of d/shapes_train.rec and validates on the 100 images of d/shapes_val.rec"
check "the start names network and parameters" says "The network mlp has 310,090 parameters and sorts colour images of 28 x 28 pixels into 10 classes"
check "the start names the batch" says "Each step takes 50 images, an epoch 6 steps, and the run has 2 epochs"
check "the start names device, threads and dtype" says_line '^It computes on the CPU with [0-9]+ threads?, in float32$'
check "the start says where the model goes" says 'Epoch[0] ends with "m/s-0001"'
check "the start keeps details for --verbose" says_not "G = 50"
check "a log line has the seeds' form" \
  says_line $'^Epoch\\[0\\] Batch \\[2\\]\tSpeed: [0-9]+\\.[0-9]{2} samples/sec\taccuracy=0\\.[0-9]{6}\ttop_k_accuracy_3=[01]\\.[0-9]{6}$'
check "every --disp-batches steps there is one" same "$(grep -c 'Speed:' err)" 4
check "an epoch ends with its accuracy" says_line '^Epoch\[0\] Train-accuracy=0\.[0-9]{6}$'
check "an epoch ends with its time" says_line '^Epoch\[0\] Time cost=[0-9]+\.[0-9]{3}$'
check "a checkpoint is named in quotes" says 'Saved checkpoint to "m/s-0001.safetensors"'
check "validation comes after the checkpoint" says_line '^Epoch\[1\] Validation-accuracy=[01]\.[0-9]{6}$'
check "the lines of an epoch stand in the seeds' order" same \
  "$(grep -oE 'Train-accuracy|Time cost|Validation-accuracy' err | head -n 3 | tr '\n' ' ')" "Train-accuracy Time cost Validation-accuracy "
check "stdout has the result alone" same "$(wc -l <out)" 1
check "the result names accuracy and checkpoint" answers_line '^2 epochs trained; validation accuracy 0\.[0-9]+, loss [0-9.]+; checkpoint m/s-0002\.safetensors$'
check "TensorBoard's file is there" bash -c 'ls tb/events.out.tfevents.* >/dev/null'
all_written() { while read -r file; do [ -s "$file" ] || return 1; done <out; }
run train "${small_training[@]}" --num-epochs 1 -v
check "--verbose names the libraries" says_line '^dtrain [0-9.]+ on oneDNN .+; own kernels for .+$'
check "--verbose names G, V and the efficiency" says "G = 50 samples a step in V = 1 logical shard; efficiency on N workers: 1: 100 %"
check "--verbose names the memory of loaded batches" says_line '^--prefetch 4: up to [0-9.]+ MiB of samples'
run train "${small_training[@]}" --num-epochs 2 --model-prefix m/s --top-k 3 --seed 1 --loss ce,nll --force
check "--loss is logged as MXNet's metrics" says_line $'\ttop_k_accuracy_3=[01].[0-9]{6}\tcross-entropy=[0-9.]+\tnll-loss=[0-9.]+$'
check "--loss is logged of epochs" says_line '^Epoch\[1\] Train-cross-entropy=[0-9.]+$'
check "--loss is logged of validations" says_line '^Epoch\[1\] Validation-nll-loss=[0-9.]+$'
accuracy=$(sed -n 's/^Epoch\[1\] Validation-accuracy=//p' err)

run eval m/s --load-epoch 2 --data-val d/shapes_val.rec
check "eval sees what training saw" answers "accuracy=$accuracy"
run eval m/s --data-val d/shapes_val.rec
check "eval without an epoch takes the newest" answers "accuracy=$accuracy"
run eval m/s-0002.json --data-val d/shapes_val.rec --top-k 2
check "eval accepts a file" answers "accuracy=$accuracy"
check "eval reports top-k" answers top_k_accuracy_2=

hash() { "$DTRAIN" inspect "$1" --json | /usr/bin/python3 -c 'import json,sys; print(json.load(sys.stdin)["weights_sha256"])'; }
run train "${small_training[@]}" --num-epochs 2 --model-prefix m/again --seed 1
check "the same seed gives the same bits" same "$(hash m/again)" "$(hash m/s)"
run train "${small_training[@]}" --num-epochs 2 --model-prefix m/other --seed 2
check "another seed gives other bits" bash -c "[ '$(hash m/other)' != '$(hash m/s)' ]"
run train "${small_training[@]}" --num-epochs 1 --model-prefix m/v1 --logical-shards 4 --threads 1
run train "${small_training[@]}" --num-epochs 1 --model-prefix m/v2 --logical-shards 4 --threads 2 -v
check "with shards the number of threads does not matter" same "$(hash m/v1)" "$(hash m/v2)"
check "the efficiency covers the shards" says "efficiency on N workers: 1: 100 %, 2: 100 %, 3: 67 %, 4: 100 %"

run train "${small_training[@]}" -s 2 --num-epochs 1
check "-s is accepted" exits 0
check "-s is answered with one sentence" says "-s has no effect"
run train "${small_training[@]}" --num-epochs 1 --kv-store dist_device_sync --gpus "" -n 1
check "the seeds' line of one host runs" exits 0
run train "${small_training[@]}" --num-epochs 1 --data-val ""
check "training without validation succeeds" exits 0
check "training without validation has no validation line" says_not "Validation-accuracy"
run train "${small_training[@]}" --num-epochs 1 --monitor 3
check "--monitor logs the tensors" says_line '^Batch: +2 fc1_weight +[0-9.]+'
run train "${small_training[@]}" --test-io 1
check "--test-io answers the speed of loading" answers_line $'^Batch \\[1\\]\tSpeed: [0-9.]+ samples/sec$'
run train --network mlp --benchmark 1 --num-epochs 1 --batch-size 32
check "--benchmark needs no data" exits 0
run train "${small_training[@]}" --num-epochs 1 --checkpoint-format mxnet --model-prefix m/x
check "--checkpoint-format mxnet writes the symbol too" exists m/x-symbol.json
check "--checkpoint-format mxnet writes the parameters too" exists m/x-0001.params
run train "${small_training[@]}" --num-epochs 0
check "no epochs is a run that does nothing" exits 0

run inspect m/s --load-epoch 2
check "inspect lists hashes" answers weights_sha256
check "inspect lists tensors" answers_line '^fc1_weight +\[128, 2352\]$'
for name in m/s-0001 ./m/s-0001; do
  run inspect $name --json
  check "$name, as messages name it, is the checkpoint of epoch 1" json out 'd["epoch"] == 1'
done
run eval m/s-0001 --data-val d/shapes_val.rec
check "eval takes that name, too" exits 0
for name in m/s-0001 m/s-0001.json m/s-0001.safetensors; do
  run inspect $name --load-epoch 1
  check "--load-epoch of $name is a usage error" exits 2
  check "with the reason for $name" says "--load-epoch: $name is a file of one checkpoint"
done
run train "${small_training[@]}" --num-epochs 1 --pretrained m/s-0001
check "--pretrained takes that name, too" exits 0
for name in m/s m/s-0001; do
  run train "${small_training[@]}" --num-epochs 1 --pretrained $name --model-prefix m/queued --detach --job-queue queue
  check "a queue takes $name, too" exits 0
  rm -rf queue
done
run train "${small_training[@]}" --num-epochs 1 --pretrained m/none --model-prefix m/queued --detach --job-queue queue
check "a queue refuses weights that are not there" says "m/none: neither a file nor a checkpoint's prefix"
run inspect m/s-0009
check "a checkpoint that is not there is not found" says "m/s-0009: no checkpoint of this prefix"
"$DTRAIN" inspect m/s --load-epoch 2 --graph >net.json
run train "${small_training[@]}" --num-epochs 1 --network net.json --model-prefix m/file --seed 1
check "a graph that inspect printed can be trained" exits 0
run train "${small_training[@]}" --num-epochs 1 --model-prefix m/name --seed 1
check "a network from a file is the network by name" same "$(hash m/file)" "$(hash m/name)"
for format in onnx mxnet safetensors; do
  run export m/s --load-epoch 2 --to $format --out "x/$format"
  check "export to $format succeeds" exits 0
  check "export to $format wrote what it names" all_written
done
run export m/s --load-epoch 2 --to mxnet --out x/mxnet
check "export to mxnet says what its files lack" says_line "eval and predict need --image-shape 3,28,28 --rgb-mean 123.68,116.779,103.939 --rgb-std 58,58,58$"
run eval x/mxnet --load-epoch 2 --data-val d/shapes_val.rec --image-shape 3,28,28 --rgb-std 58
check "MXNet's files give the same accuracy" answers "accuracy=$accuracy"
check "eval says which pixels it assumes" says "x/mxnet does not say how its pixels are prepared: they are taken as by --image-shape 3,28,28 --rgb-mean 123.68,116.779,103.939 --rgb-std 58,58,58"
run inspect x/mxnet --json
check "inspect of MXNet's files asks for the size of the images" says "--image-shape"
run inspect x/mxnet --image-shape 3,28,28 --json
check "and takes it" json out 'len(d["tensors"]) == 6'
run export x/mxnet --image-shape 3,28,28 --to onnx --out x/of-mxnet.onnx
check "so does export" exits 0
run eval x/mxnet --load-epoch 2 --data-val d/shapes_val.rec --image-shape 3,28,28 --rgb-mean 0 --rgb-std 58
check "but where it is told" says_not "does not say how its pixels"

finish
