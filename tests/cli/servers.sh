#!/usr/bin/env bash
# Parameter servers: what is refused, and what a training says and leaves.
set -uo pipefail
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
shapes 400
state() { "$DTRAIN" inspect "$1" --json | grep -oE '"state_sha256":"[0-9a-f]+"'; }
refused() { check "$1 is a usage error" exits 2; check "$1 is explained" says "$2"; }
training=("${small_training[@]}" --seed 1 --threads 1)
async=(train "${training[@]}" --kv-store dist_async --launcher local)

run "${async[@]}" -n 3 -s 2 --batch-size 20 --num-epochs 2 --model-prefix m/async --job-dir job --sample-ledger
check "workers train by servers" exits 0
check "the job says that the bits are not repeatable" says "2 parameter servers; each worker is as far ahead of the slowest one as it gets, so two runs do not end in the same bits"
check "log lines count the batches of all workers" says "Epoch[1] Batch [18]"
run events --job-dir job --ledger --json
check "each sample counts once an epoch" json out "all(sorted(s for l in lines if l['epoch'] == e for s in l['samples']) == list(range(400)) for e in (0, 1))"
run eval m/async --load-epoch 2 --data-val d/shapes_val.rec
check "eval takes the checkpoint" exits 0
run "${async[@]}" -n 2 --batch-size 20 --num-epochs 3 --model-prefix m/async --job-dir job --resume --reset-hosts --max-staleness 2
check "another number of workers resumes" says "2 parameter servers; each worker is at most 2 steps ahead of the slowest one"
check "and ends" exits 0

run train "${training[@]}" --global-batch 48 --logical-shards 4 --num-epochs 2 --model-prefix m/alone
run "${async[@]}" -n 3 -s 2 --max-staleness 0 --global-batch 48 --logical-shards 4 --num-epochs 2 --model-prefix m/sync --job-dir job2
check "--max-staleness 0 has the bits of dist_sync" same "$(state m/alone)" "$(state m/sync)"
check "and says that steps are of all" says "2 parameter servers; all workers take each step together"

run "${async[@]}" --num-epochs 1
refused "one process" "--kv-store dist_async with one process: it has no other worker to share parameters with"
run train "${training[@]}" -n 2 --launcher local --job-dir job3 --num-epochs 1 --max-staleness 3
refused "a staleness without servers" "--max-staleness: without --kv-store dist_async no worker is ahead of another"
run "${async[@]}" -n 2 --job-dir job3 --num-epochs 1 --max-staleness -1
refused "a negative staleness" "--max-staleness: must be between 0 and 65536"
run "${async[@]}" -n 2 -s 3 --job-dir job3 --num-epochs 1
refused "more servers than workers" "--kv-store dist_async with -s 3: a server lives beside a worker, and the job begins with 2"
run "${async[@]}" -n 2 -s 0 --job-dir job3 --num-epochs 1
refused "no server" "--kv-store dist_async with -s 0: parameters need a server"
run "${async[@]}" -n 2 --job-dir job3 --num-epochs 1 --local-steps 3
refused "--local-steps" "--kv-store dist_async with --local-steps: replicas exchange weights, and servers take gradients"
run "${async[@]}" -n 2 --job-dir job3 --num-epochs 1 --clip-norm 1
refused "the norm of all gradients" "--kv-store dist_async with --clip-norm and 2 servers: none of them knows the norm of all gradients"
run "${async[@]}" -n 2 --job-dir job3 --num-epochs 1 --global-batch 100
refused "a global batch" "--kv-store dist_async with --global-batch: each worker updates the weights with its own --batch-size"
run train "${training[@]}" -n 2 -s 2 --launcher local --job-dir job4 --num-epochs 1
check "-s without dist_async is answered" says "-s has no effect: the workers add their gradients themselves, without servers"
finish
