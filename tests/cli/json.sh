#!/usr/bin/env bash
set -uo pipefail
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
shapes 300

run train --json --lr x
check "a usage error under --json exits 2" exits 2
check "a usage error under --json is a document on stderr" json err 'd["error"]["kind"] == "usage" and "--lr" in d["error"]["message"]'
run --json trian
check "an unknown command under --json is a document with its hint" json err '"dtrain train" in d["error"]["hint"]'
check "stdout stays empty" silent_on out
run --json
check "no command under --json exits 2" exits 2
check "it is a document that names the commands" json err 'd["error"]["kind"] == "usage" and "train" in d["error"]["hint"]'
run data --json
check "so is a group without a command" json err 'd["error"]["message"] == "data: a command is missing" and "pack" in d["error"]["hint"]'
for word in 1 true yes on; do
  DTRAIN_JSON=$word run trian
  check "so it is under DTRAIN_JSON=$word" json err '"dtrain train" in d["error"]["hint"]'
done
run data ls nothing.rec --json
check "missing data under --json is of kind data" json err 'd["error"]["kind"] == "data"'
run data ls --json d/shapes_train.rec
check "--json may stand after the command" json out 'd["schema"] == "dtrain.data-ls/1" and d["records"] == 300'
run --json data ls d/shapes_train.rec
check "--json may stand before the command" json out 'd["records"] == 300'
DTRAIN_JSON=1 run data ls d/shapes_train.rec
check "--json may come from the environment" json out 'd["classes"]["0"] == 30'

run train --json "${small_training[@]}" --num-epochs 1 --model-prefix m/s
check "training under --json succeeds" exits 0
check "every line has a schema" json out 'all(line["schema"] == "dtrain.train/1" for line in lines)'
check "the events come in their order" \
  json out '[line["event"] for line in lines] == ["start"] + ["step"] * 6 + ["epoch", "checkpoint", "evaluation", "result"]'
check "the steps count the samples" json out '[line["samples_seen"] for line in lines if line["event"] == "step"][-1] == 300'
check "steps, epochs and evaluations say how long they took" \
  json out 'all(line["seconds"] > 0 for line in lines if line["event"] in ("step", "epoch", "evaluation"))'
check "the log lines stay on stderr" says "Epoch[0] Train-accuracy="
check "the result names the checkpoint and the evaluation" json out 'd["exit_code"] == 0 and d["epochs"] == 1 and d["checkpoint"] == "m/s-0001.safetensors" and d["best"] is None and 0 <= d["evaluation"]["accuracy"] <= 1'
check "no event has a top-K accuracy that nobody asked for" \
  json out 'not any("top_k" in line or "top_k_accuracy" in line or "top_k_accuracy" in line.get("evaluation", {}) for line in lines)'
run train --json "${small_training[@]}" --num-epochs 1 --top-k 3
check "with --top-k all have it" \
  json out 'all(line["accuracy"] <= line["top_k_accuracy"] <= 1 for line in lines if line["event"] in ("step", "epoch", "evaluation"))'
check "and the evaluation says which" json out 'd["evaluation"]["top_k"] == 3'
run train --json "${small_training[@]}" --num-epochs 1 --model-prefix m/s --resume
check "that of a run that was complete does, too" json out 'd["event"] == "result" and d["checkpoint"] == "m/s-0001.safetensors"'
run train "${small_training[@]}" --num-epochs 1 --model-prefix m/s --resume
check "so does its last line" answers "1 epoch trained; checkpoint m/s-0001.safetensors"
check "no epoch is announced that is not trained" says_not "ends with"
run train --json --quiet "${small_training[@]}" --num-epochs 1
check "--quiet leaves stderr empty" silent_on err

run train --json "${small_training[@]}" --test-io 1
check "--test-io answers documents" json out 'all(line["schema"] == "dtrain.test-io/1" for line in lines)'
check "one every --disp-batches, and one of the epoch" \
  json out '[(line["event"], line["batch"], line["samples"]) for line in lines] == [("batch", n, 100) for n in (1, 3, 5)] + [("result", 5, 300)]'
check "with the speed" json out 'all(line["seconds"] > 0 and line["samples_per_second"] > 0 for line in lines)'
run train --json "${small_training[@]}" --disp-batches 100 --test-io 1
check "an epoch of fewer batches is answered, too" json out 'd["event"] == "result" and d["samples"] == 300'
run train "${small_training[@]}" --disp-batches 100 --test-io 1
check "also as text" answers_line '^300 samples in [0-9.]+ s: [0-9.]+ samples/sec$'

run train "${small_training[@]}" --num-epochs 1 --detach --job-queue q
printf 'one\n"two"\n' >"$(find q -mindepth 1 -maxdepth 1 -type d -name '*1')/output.log"
run jobs logs 1 --job-queue q --json
check "jobs logs answers a document for each line" \
  json out '[(line["schema"], line["job"], line["line"]) for line in lines] == [("dtrain.job-log/1", 1, "one"), ("dtrain.job-log/1", 1, "\"two\"")]'
run jobs logs 1 --job-queue q
check "as text, the lines" same "$(cat out)" "$(printf 'one\n"two"')"

run eval m/s --load-epoch 1 --data-val d/shapes_val.rec --json
check "eval answers one document" json out 'd["schema"] == "dtrain.eval/1" and d["samples"] == 100 and d["seconds"] > 0 and 0 <= d["accuracy"] <= d["top_k_accuracy"] <= 1'
run inspect m/s --load-epoch 1 --json
check "inspect has both hashes" json out 'len(d["weights_sha256"]) == 64 and len(d["state_sha256"]) == 64'
run inspect m/s --load-epoch 1 --graph --json
check "inspect --graph is a graph" json out 'd["schema"].startswith("dtrain.graph/")'
run export m/s --load-epoch 1 --to safetensors --out x/w.safetensors --json
check "export names the files" json out 'd["files"] == ["x/w.safetensors"]'
run data verify d/shapes_val.rec --json
check "verify says good" json out 'd["good"] and d["records"] == 100'
run data bench d/shapes_train.rec --seconds 1 --json
check "data bench has a rate" json out 'd["samples_per_second"] > 0'
run bench train --network mlp --batch-size 32 --steps 3 --warmup 1 --json
check "bench train has rate, spread and memory" \
  json out 'd["steps"] == 3 and d["images_per_second_low"] <= d["images_per_second"] <= d["images_per_second_high"] and d["peak_memory_bytes"] > 1e6'
check "bench train lists operations" json out 'len(d["operations"]) > 3'
check "bench train says where a step's time and bytes go" \
  json out '{"dense", "optimizer", "loader", "waiting"} < {p["part"] for p in d["parts"]} and d["parts"][1]["bytes"] > 0 and d["parts"][1]["limit_seconds"] > 0'

finish
