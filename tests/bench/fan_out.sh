#!/usr/bin/env bash
# One command on many hosts: dtrain run, parallel-ssh and clush (where they are installed) in turn against one sshd that stands for
# all hosts, first with room for everybody, then with MaxStartups 3:50:5. Prints a row a run: limit, tool, seconds, hosts done.
# Usage: DTRAIN=build/release/dtrain tests/bench/fan_out.sh [HOSTS] [ROUNDS]
set -uo pipefail
count=${1:-128} rounds=${2:-3}
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/../cli/lib.sh"
# shellcheck source=tests/cli/sshd.sh
. "${here:?}/../cli/sshd.sh"

ssh_options=(-o "IdentityFile=$HOME/.ssh/id_ed25519" -o "UserKnownHostsFile=$PWD/known" -o StrictHostKeyChecking=accept-new)

with_dtrain() { "$DTRAIN" run -H hosts -j 32 --accept-new-hosts -- hostname; }
with_parallel-ssh() { parallel-ssh -h hosts -p 32 -t 60 -i "${ssh_options[@]/#-o/-O}" hostname; }
with_clush() { clush -S -w "$(paste -sd, <(sed 's/:.*//' hosts))" -f 32 -o "-p $PORT ${ssh_options[*]}" hostname; }

measure() {  # measure LIMIT TOOL
  command -v "${2/dtrain/$DTRAIN}" >/dev/null || return 0
  local began=$EPOCHREALTIME seconds
  "with_$2" >out 2>err </dev/null
  seconds=$(awk "BEGIN { printf \"%.2f\", $EPOCHREALTIME - $began }")
  echo "$1 $2 $seconds $(grep -cE "(: |^)$(uname -n)\$" out)/$count"
}

for limit in 1000 3:50:5; do
  start_sshd "MaxStartups $limit"
  for n in $(seq "$count"); do echo "127.0.$((n / 250 + 1)).$((n % 250 + 1)):$PORT"; done >hosts
  "$DTRAIN" run -H hosts -j 8 --accept-new-hosts --connect-timeout 60 -- true >/dev/null 2>&1  # keys are known from here on
  cp "$HOME/.ssh/known_hosts" known
  for _ in $(seq "$rounds"); do
    for tool in dtrain parallel-ssh clush; do measure "$limit" $tool; done
  done
  stop_sshd
  rm -rf sshd "$HOME/.ssh"
done
