#!/usr/bin/env bash
# `dtrain doctor`: of this machine, and of hosts over a real sshd.
set -uo pipefail
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/cli/sshd.sh
. "$here/sshd.sh"
unset SSH_AUTH_SOCK ELASTIC_WORKER_TAG WORKER_LAUNCH_TEMPLATE_ID AWS_REGION AWS_PROFILE AWS_ACCESS_KEY_ID
export AWS_EC2_METADATA_DISABLED=true

run doctor
check "it answers with findings" answers_line '^(fine|note|warning|problem) +processor '
check "it speaks of memory, disk and ssh" bash -c 'grep -q memory out && grep -q disk out && grep -q ssh out'
stranger=(setpriv --reuid=65534 --regid=65534 --clear-groups)
if [ "$(id -u)" = 0 ] && "${stranger[@]}" test -x "$DTRAIN" 2>/dev/null; then
  chmod 700 "$HOME" && chmod 755 "$scratch" "$scratch/work"
  "${stranger[@]}" "$DTRAIN" doctor >out 2>err </dev/null
  code=$?
  check "a home that cannot be looked at does not end it" answers_line '^(fine|note|warning|problem) +processor '
else
  skip "a home that cannot be looked at" "it needs another user"
fi
run doctor --json
check "--json is one document with a schema" json out 'len(lines) == 1 and d["schema"] == "dtrain.doctor/1"'
check "every finding that is not fine says why and how to fix it" json out \
  'all(f["level"] == "fine" or (f["why"] and f["fix"]) for f in d["findings"])'
check "--json has facts" json out 'd["facts"]["memory_bytes"] > 0 and d["facts"]["usable_threads"] > 0 and d["hosts"] == []'
check "without credentials AWS is not asked" json out 'not [f for f in d["findings"] if f["about"] == "aws"]'
run doctor --aws --json
check "--aws without credentials is a problem" json out '[f["level"] for f in d["findings"] if f["about"] == "aws"] == ["problem"]'
check "and exit code 1" exits 1
check "nothing else is checked" json out '{f["about"] for f in d["findings"]} == {"aws", "bundle"} and d["hosts"] == []'
check "it says whether cluster nodes can start this program" json out '[f["about"] for f in d["findings"]].count("bundle") == 1'

AWS_REGION=eu-west-1 run doctor
check "a region alone is no cluster" answers_line '^fine +cluster '

mkdir closed
printf 'h1\n' >workers
export DEEPLEARNING_WORKERS_PATH=workers DEEPLEARNING_WORKERS_COUNT=2 EFS_MOUNT=$PWD/none
run doctor --job-dir closed --json -H /dev/null
check "an empty host file is a usage error" exits 2
unset DEEPLEARNING_WORKERS_PATH
export DEEPLEARNING_WORKERS_COUNT=two
run doctor --job-dir closed
check "a problem is exit code 1" exits 1
check "variables that are missing are named" answers "not set: ELASTIC_WORKER_TAG, WORKER_LAUNCH_TEMPLATE_ID, DEEPLEARNING_WORKERS_PATH"
check "a mount that is not there is a problem" answers "EFS_MOUNT=$EFS_MOUNT: no such folder"
check "a count that is none is a problem" answers "DEEPLEARNING_WORKERS_COUNT=two: not a number"
unset DEEPLEARNING_WORKERS_COUNT
ln -s loop loop # looking at it fails, as on a file server that is gone
printf 'h1\nh2 slots=many\n' >bad-workers
export DEEPLEARNING_WORKERS_PATH=bad-workers EFS_MOUNT=$PWD/loop
run doctor
check "a host file and a mount that cannot be used do not hide the machine" answers_line '^(fine|note|warning|problem) +processor '
check "the line of the file is a problem" answers_line '^problem +cluster +DEEPLEARNING_WORKERS_PATH: bad-workers: '
check "so is the mount, with its error" answers_line "^problem +cluster +EFS_MOUNT=$EFS_MOUNT: Too many levels"
check "whose space is not that of the folder above" answers_line "^problem +disk +$EFS_MOUNT .*: Too many levels"
check "and exit code 1" exits 1
unset DEEPLEARNING_WORKERS_PATH EFS_MOUNT
run doctor --job-dir loop/job
check "a job folder below such a link is a problem as well" answers_line "^problem +disk +$PWD/loop/job .*: Too many levels"

run doctor security --job-dir .
check "doctor security without a job is a usage error" exits 2
check "and says which folder it wants" says "no job in this folder"
mkdir -m 755 ended
echo '{"schema": "dtrain.coordinator/1", "pid": 1, "host": "h", "addresses": [], "port": 1, "ended": "done"}' >ended/coordinator.json
chmod 644 ended/coordinator.json
run doctor security --job-dir ended
check "the files of a job that is over are fine" bash -c 'grep -q "the job is over: done" out && ! grep -q ^problem out'
check "and exit code 0" exits 0
chmod 666 ended/coordinator.json
run doctor security --job-dir ended --json
check "a file that all may change is a problem with its fix" json out \
  '[f["fix"] for f in d["findings"] if f["level"] == "problem"] == ["chmod o-w " + d["job_dir"] + "/coordinator.json"]'
check "and exit code 1" exits 1
tail -n 1 err >last
check "with --json it ends with an error, as doctor does" json last 'd["error"]["message"] == "doctor found problems"'

SSH_AUTH_SOCK=$PWD/none run doctor
check "an agent that does not answer is a warning with its fix" bash -c 'grep -q "no agent answers" out && grep -q ssh-agent out'
eval "$(ssh-agent -a "$PWD/agent")" >/dev/null
ssh-keygen -q -t ed25519 -N '' -f loose && ssh-add -q loose
run doctor
check "the keys of an agent are counted" answers "an agent with 1 keys"
kill "$SSH_AGENT_PID"
unset SSH_AUTH_SOCK

# The host 127.0.1.8 has another dtrain.
cat >other-version <<'SCRIPT'
#!/bin/sh
case $SSH_ORIGINAL_COMMAND in
  *--part*) eval "${SSH_ORIGINAL_COMMAND%%;*}" && echo '{"time_ns": 1}' ;;
  *sftp*) exec "$(ls -d /usr/lib/openssh/sftp-server /usr/libexec/openssh/sftp-server 2>/dev/null | head -n 1)" ;;
  *) exec sh -c "$SSH_ORIGINAL_COMMAND" ;;
esac
SCRIPT
chmod +x other-version
start_sshd "Match LocalAddress 127.0.1.8" "ForceCommand $PWD/other-version"
hosts 3 >three
mkdir job
run doctor -H three --json
check "the key of a new host is a note, as a job accepts it" json out \
  'all([(f["level"], f["about"]) for f in h["findings"]] == [("note", "ssh")] and "at its first login" in h["findings"][0]["why"] for h in d["hosts"])'
check "its fix names the option that accepts it now" json out 'all("--accept-new-hosts" in h["findings"][0]["fix"] for h in d["hosts"])'
check "no host counts as one that was not reached" bash -c "[ $code != 3 ] && [ $code != 4 ]"
check "no key was accepted" bash -c "! grep -q 127.0.1 '$HOME/.ssh/known_hosts' 2>/dev/null"
printf 'StrictHostKeyChecking yes\n' >strict
run doctor -H three --ssh-config strict --json
check "where the configuration refuses new keys, they are a problem" json out \
  'all([f["level"] for f in h["findings"]] == ["problem"] for h in d["hosts"])'
check "and exit code 4" exits 4
run doctor -H three --accept-new-hosts --job-dir "$PWD/job" --json
check "every host answers" json out 'all(h["answered"] and h["facts"]["threads"] > 0 for h in d["hosts"]) and len(d["hosts"]) == 3'
check "names of one machine are a note" json out \
  '[(f["level"], f["what"].endswith(" are one machine")) for f in d["together"] if f["about"] == "machine"] == [("note", True)]'
check "every host reaches every other" json out 'all(l["reached"] for h in d["hosts"] for l in h["links"].values()) and all(len(h["links"]) == 2 for h in d["hosts"])'
check "clocks agree as far as the question shows" json out 'all(h["clock_offset_seconds"][0] <= 0 <= h["clock_offset_seconds"][1] for h in d["hosts"])'
check "the folder is seen to be shared" json out '[f["level"] for f in d["together"] if f["about"] == "shared folder"] == ["fine"]'
check "nothing of it is left there" same "$(ls -A job)" ""
parts_run() { # of this suite: others may examine their own hosts now
  for process in $(pgrep -f 'doctor --part'); do
    if grep -qzF "HOME=$PWD/sshd/home" "/proc/$process/environ" 2>/dev/null; then return 0; fi
  done
  return 1
}
for _ in $(seq 600); do parts_run || break; sleep 0.1; done
none_runs() { ! parts_run; }
check "nothing of it runs on" none_runs
run doctor -H three --job-dir "$PWD/nowhere"
check "a folder that is not there is a problem" bash -c 'grep -q "no such folder" out'
check "and exit code 1" exits 1
run doctor -H three --job-dir "$PWD/nowhere" --json
tail -n 1 err >last
check "with --json it ends with an error, too" json last 'd["error"]["message"] == "doctor found problems"'
echo "127.0.1.8:$PORT" >other
timeout -k 5 60 "$DTRAIN" doctor -H other --accept-new-hosts >out 2>err </dev/null
code=$?
check "an answer that is not understood is a problem of its host" answers_line '^problem +ssh +.*the key "write_error" is missing'
check "after which the check ends" exits 1
{ cat three; echo "127.0.1.9:$(free_port)"; } >dead
run doctor -H dead
check "a dead host is named with its reason" answers_line '^problem +ssh +127.0.1.9:.* Connection refused'
check "and exit code 3" exits 3

finish
