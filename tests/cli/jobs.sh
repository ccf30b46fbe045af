#!/usr/bin/env bash
# What is refused before any worker starts; jobs that run are in tests/jobs.
set -uo pipefail
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
shapes 300
job=(train "${small_training[@]}" --num-epochs 1 --launcher local --job-dir job)
refused() { check "$1 is a usage error" exits 2; check "$1 is explained" says "$2"; }
printf 'w1\nw2\nw3\n' >hosts
run_without_programs() {
  local PATH=/nowhere
  run "$@"
}

run train "${small_training[@]}" -n 2 --launcher ssh
refused "ssh without a host file" "--launcher ssh needs hosts"
for launcher in mpi slurm sge; do
  run_without_programs train "${small_training[@]}" -n 2 --launcher $launcher -H hosts --job-dir elsewhere
  check "--launcher $launcher without its program is exit 2" exits 2
done
run_without_programs train "${small_training[@]}" -n 2 --launcher mpi -H hosts --job-dir elsewhere
refused "--launcher mpi without mpirun" "there is no program mpirun in PATH (/nowhere)"
run_without_programs train "${small_training[@]}" -n 2 --launcher slurm --job-dir elsewhere
refused "--launcher slurm without salloc" "there is no program salloc in PATH (/nowhere)"
run train "${small_training[@]}" -n 2 --launcher mpi
refused "mpi without hosts" "--launcher mpi needs hosts"
run train "${small_training[@]}" -n 2 --launcher sge -H hosts
refused "sge with hosts" "-H: Grid Engine chooses the hosts of a job"
run train "${small_training[@]}" -n 2 --launcher sge
refused "sge without a parallel environment" "--launcher sge needs a parallel environment"
run train "${small_training[@]}" -n 2 --launcher slurm --detach
refused "a detached job of a scheduler" "--detach: the job that the scheduler grants ends with the command"
run train "${small_training[@]}" -n 2 --launcher yarn
refused "yarn without its address" "--launcher yarn needs the address of a ResourceManager"
run train "${small_training[@]}" -n 2 --launcher yarn --yarn-rm http://rm:8088 -H hosts
refused "yarn with hosts" "-H: not supported by --launcher yarn, because YARN chooses the hosts"
kube=(train "${small_training[@]}" -n 2 --launcher kubernetes)
run "${kube[@]}"
refused "kubernetes without an image" "--launcher kubernetes needs an image"
run "${kube[@]}" --kube-image i --kube-name Cats
refused "a name that Kubernetes does not take" "--kube-name Cats: Kubernetes does not take this name"
run "${kube[@]}" --kube-image i --kube-memory 4gb
refused "a unit that Kubernetes does not know" "must be a number of bytes with a unit such as Mi or Gi, not '4gb'"
run "${kube[@]}" --kube-image i -H hosts
refused "kubernetes with hosts" "-H: not supported by --launcher kubernetes"
run "${job[@]}" -n 2 --kube-image i
refused "an image for another launcher" "--kube-image: not supported by --launcher local"
run_without_programs "${kube[@]}" --kube-image i --job-dir in-pods
refused "kubernetes without kubectl" "there is no program kubectl in PATH (/nowhere)"
check "nothing was made" [ ! -e in-pods ]
run_without_programs "${kube[@]}" --kube-image i --kube-print
check "manifests need no kubectl" exits 0
printf '[train]\nlr-schedule = "cosine"\nwarmup-epochs = 5\n' >warm.toml
kube_warmup() { grep -A1 -- '"--warmup-epochs"' out | sed -n 's/^ *- "\([0-9.]*\)"$/\1/p' | sort -u; }
run_without_programs "${kube[@]}" --kube-image i --kube-print --config warm.toml --num-epochs 2
check "the warm-up of a file is fitted to the run before the pods see it" same "$(kube_warmup)" 1
check "which is said" says "The warm-up of 5 epochs would fill the run: it takes 1"
run_without_programs "${kube[@]}" --kube-image i --kube-print --config warm.toml --lr-schedule one-cycle
check "one-cycle has none in the pods" same "$(kube_warmup)" 0
run_without_programs "${kube[@]}" --kube-image i --kube-print --config warm.toml --finetune w.safetensors
check "with --finetune the pods, which know the epochs, fit it" answers '"--warmup-of-file"'
run_without_programs "${kube[@]}" --kube-image i --kube-print --warmup-epochs 5 --finetune w.safetensors
check "but not one that the user gave" same "$(grep -c warmup-of-file out)" 0
run_without_programs "${kube[@]}" --kube-image i --kube-print --config warm.toml --num-epochs 2 --warmup-epochs 3
refused "a warm-up that fills the run of pods" "--warmup-epochs: the warm-up of cosine must end before the run, which has 2 epochs"
run_without_programs "${kube[@]}" --kube-image i --kube-print --model-prefix m/x --force
refused "--force in pods" "--force: after a loss, the job could continue the checkpoints that it was to replace"
run_without_programs "${kube[@]}" --kube-image i --kube-print --model-prefix m/x --load-epoch 3
refused "--load-epoch in pods" "--load-epoch: --launcher kubernetes continues a job from its newest checkpoint"
printf '[train]\nload-epoch = 3\n' >began.toml
for stronger in --resume "--pretrained w.safetensors" "--finetune w.safetensors"; do
  # shellcheck disable=SC2086  # an option of two words
  run_without_programs "${kube[@]}" --kube-image i --kube-print --model-prefix m/x --config began.toml $stronger
  check "${stronger%% *} beats a file's load-epoch in pods, too" exits 0
  check "which hear nothing of that with ${stronger%% *}" same "$(grep -c load-epoch out)" 0
done
kube_launch=(launch --launcher kubernetes --kube-image i --kube-print)
run_without_programs "${kube_launch[@]}" --nnodes 3 --kube-gpus 2 --nproc-per-node gpu --redirects 3 -m train -- --lr 1
check "the names of torchrun make manifests" exits 0
check "with a worker for each node" answers_line '^ *replicas: 3$'
kube_words() { sed -n 's/^ *- "\(.*\)"$/\1/p' out | tr '\n' ' '; }
check "with a number of ranks that the pods need not count" same "$(kube_words | grep -c -e '--nproc-per-node 2 ')" 1
check "and with the module once" same "$(kube_words | grep -o -e '--module train' -e 'python3 -m' | wc -l)" 1
for wrong in "" "--stop-signal FOO -- true" "--redirects 7 -- true" "--nproc-per-host 0 -- true" \
  "--nnodes 3 -n 2 -- true" "--standalone -- true" "--nproc-per-host gpu -- true" "--retries 2 -- true" \
  "--down-when-done --detach -- true" "--job-dir ../x -- true" "--job-dir /efs/x -- true"; do
  # shellcheck disable=SC2086  # several words
  run_without_programs "${kube_launch[@]}" $wrong
  check "no manifest is made of launch ${wrong:-without a command}" exits 2
done
run_without_programs "${kube[@]}" --kube-image i --kube-print --kube-name cats --kube-namespace pets --env TOKEN=x
check "the secret of a printed job is to be made in its namespace" says \
  "kubectl create secret generic cats-env -n pets --from-env-file=FILE"
run_without_programs "${kube[@]}" --kube-image i --kube-print --detach --priority 5
refused "a priority in pods" "--priority: not supported by --launcher kubernetes, which has a queue of its own"
run_without_programs "${kube[@]}" --kube-image i --kube-print --job-dir /efs/x
refused "a job folder outside of the volume" "--job-dir /efs/x: outside of /work, where all pods mount the shared volume"
DTRAIN_QUEUE=gpu DTRAIN_PRIORITY=4 DTRAIN_SYNC_BINARY=0 run_without_programs "${kube[@]}" --kube-image i --kube-print
check "pods hear nothing of other launchers" same "$(grep -c -e --queue -e --priority -e --sync-binary out)" 0
run_without_programs "${kube_launch[@]}" --grace 300 -- true
check "pods have the time that programs may take to end" answers_line '^ *terminationGracePeriodSeconds: 350$'
run "${job[@]}" -n 2 --queue q
refused "a queue without a scheduler" "--queue: not supported by --launcher local"
check "who knows queues is named" says "use it with --launcher slurm, sge, yarn"
run train "${small_training[@]}" -n 2 --launcher mpi -H hosts --ssh-config c
refused "ssh's configuration for mpi" "--ssh-config: not supported by --launcher mpi"
run "${job[@]}" -H nothing
refused "a host file that is not there" "--hostfile nothing: no such file"
run "${job[@]}" -H hosts -n 4
refused "more hosts than the file has" "--num-workers 4: hosts has 3 hosts"
: >empty
run "${job[@]}" -H empty
refused "an empty host file" "empty: no host in it"
printf 'w1\nw 2\n' >bad
run "${job[@]}" -H bad
refused "a line that is no host" "bad: "
run "${job[@]}" -n 2 --kv-store dist
refused "an unknown store" "must be one of local, device, dist_sync, dist_device_sync"
run "${job[@]}" -n 8 --logical-shards 4
refused "more workers than shards" "8 workers for 4 logical shards"
run "${job[@]}" -n 2 --elastic --max-workers 16 --logical-shards 8
refused "more of the most workers than shards" "--max-workers 16: a step has 8 logical shards to share"
run "${job[@]}" -n 2 --elastic --max-workers 2 --min-workers 3
refused "a most below a least" "--max-workers 2: must be at least --min-workers 3"
run "${job[@]}" -n 2 --elastic-batch per-worker
refused "a batch for each worker in a fixed job" "needs --elastic"
run "${job[@]}" -n 2 --elastic --elastic-batch per-worker --batch-size 50 --global-batch 100
refused "a fixed batch for each worker" "--global-batch: with --elastic-batch per-worker a step has --batch-size samples"
run "${job[@]}" -n 2 --elastic --elastic-batch per-worker --logical-shards 4
refused "shards of a batch for each worker" "--logical-shards: with --elastic-batch per-worker"
run "${job[@]}" -n 2 --elastic --elastic-lr linear
refused "a rate that follows a fixed batch" "--elastic-lr: the learning rate follows the batch only with"
run "${job[@]}" -n 2 --test-io 1
refused "--test-io of a job" "--test-io: reading is measured in one process"
run train "${small_training[@]}" --detach
refused "--detach of one process" "--detach: needs a job with a job folder"
run train "${small_training[@]}" --elastic-batch per-worker
refused "a batch for each worker in one process" "--elastic-batch per-worker needs --elastic"
run train "${small_training[@]}" --num-epochs 1 -n 1 --launcher local --min-workers 2 --env A=1 --gradient-dtype bfloat16
check "one process trains with what only jobs use" exits 0
check "which is named in one line" says "warning: --env, --min-workers have no effect without a job: add -n with 2 or more, -H or --elastic"
run "${job[@]}" -n 2 --prepare true
refused "a prepare command of a fixed job" "--prepare: no host joins later without --elastic"
run "${job[@]}" -n 2 --elastic-training-enabled perhaps
refused "an unclear value of MXNet's option" "--elastic-training-enabled: must be 1 or 0"
run train --elastic-training-enabled True --show-config
check "MXNet's option switches elasticity on" answers_line '^elastic = true '
check "nothing of a refused job is left" missing job

# The background process refuses; the one that the user started says so, whatever it may leave out.
detached=(train "${small_training[@]}" --num-epochs 1 --launcher local --job-dir detached -n 8 --logical-shards 4 --detach)
for quiet in "" --quiet; do
  # shellcheck disable=SC2086  # an empty word is none
  run "${detached[@]}" $quiet
  refused "a detached job ${quiet:-that cannot run}" "dtrain: 8 workers for 4 logical shards"
done
run "${detached[@]}" --quiet --json
check "with --json it exits 2, too" exits 2
tail -n 1 err >last
check "and the last line is its error" json last 'd["error"]["kind"] == "usage" and "8 workers" in d["error"]["message"]'
for json in "" --json; do
  # shellcheck disable=SC2086  # an empty word is none
  (ulimit -f 0 && exec "$DTRAIN" "${detached[@]}" $json 2>&1 >/dev/null </dev/null) | cat >err
  code=${PIPESTATUS[0]}
  check "a detached job whose log cannot be written says so $json" says "detached: the job did not start (exit code 2), and detached/logs/coordinator.log does not say why"
done
rm -r detached

for command in "hosts list" "hosts add w4" "hosts remove w1" "hosts drain w1" stop events tail-logs; do
  # shellcheck disable=SC2086
  run $command --job-dir job
  refused "$command without a job" "job: no job"
done
run hosts add --job-dir job
refused "hosts add without a host" "hosts add: HOST is missing"
mkdir job
echo '{"schema": "dtrain.coordinator/1", "pid": 1, "host": "h", "addresses": ["127.0.0.1"], "port": 9, "ended": "done"}' >job/coordinator.json
run hosts list --job-dir job
check "a job that is over is a failure" exits 1
check "a job that is over is told" says "job: the job has already ended: done"
cp -r job "my job"
run hosts list --job-dir "my job"
check "the command of a hint can be pasted" says "\`dtrain events --job-dir 'my job'\` shows what happened"
rm -r "my job"
run stop --job-dir job
check "a job that is over can be stopped again" exits 0
check "a stop says that the job is over" answers_line '^the job has already ended: done$'
sed -i 's/"ended": "done"/"token": "00"/; s/"h"/"'"$(uname -n)"'"/' job/coordinator.json
run hosts list --job-dir job
check "a coordinator that is gone exits 4" exits 4
check "a coordinator that is gone is told with what to do" says "--resume"
sed -i 's/"pid"/"runs_program": true, "pid"/' job/coordinator.json
for command in "hosts list" stop; do
  # shellcheck disable=SC2086
  run $command --job-dir job
  check "$command of a program that is gone says what to do" says "run the same command again; the program finds its own checkpoint"
  check "and names no option that launch lacks" says_not --resume
done
echo '{' >job/coordinator.json
run stop --job-dir job
check "a damaged file is a failure" exits 1
check "a damaged file is named" says "job/coordinator.json"

run jobs run --job-queue nowhere/q
refused "a queue in a folder that is not there" "--job-queue nowhere/q: no such folder, and $PWD/nowhere is not there either"
check "and no folder is made for it" missing nowhere
run jobs run --job-queue new/ --until-empty
check "a runner that was to wait for the end of a new queue ends" exits 0
check "and says that the queue is new" says "$PWD/new is a new, empty queue"
check "and why it ends" says "the runner has ended: all jobs of the queue are over"
run jobs run --job-queue new --until-empty
check "a queue that is there is not new" says_not "is a new, empty queue"
run jobs list --job-queue new/
check "a slash behind the name of a queue changes nothing" exits 0
mkdir no-queue
run jobs list --job-queue no-queue
refused "a folder that is no queue" "--job-queue $PWD/no-queue: is no queue: it holds no job, and none of a queue's files"
run jobs show 9 --job-queue new
refused "a job that the queue does not have" "there is no job 9 in the queue $PWD/new"
check "and the list of its jobs is named with the queue" says "\`dtrain jobs list --job-queue $PWD/new\` shows the jobs"

finish
