#!/usr/bin/env bash
# `dtrain run` and `dtrain sync`, over a real sshd.
set -uo pipefail
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/cli/sshd.sh
. "$here/sshd.sh"
nobody_runs() {  # nobody_runs COMMAND-LINE: soon
  for _ in $(seq 300); do pgrep -xf "$1" >/dev/null || return 0; sleep 0.1; done
  return 1
}
start_sshd
hosts 3 >three
hosts 1 >one

run run -H three -- true
check "hosts whose keys nobody knows are refused" exits 4
check "the way to take their keys is named" says "ssh-keyscan -p $PORT 127.0.1.1 >> "
run run -H three --accept-new-hosts -- sh -c 'echo out; echo err >&2'
check "three hosts run a command" exits 0
check "standard output names its host" answers "127.0.1.2:$PORT: out"
check "standard error names its host" says "127.0.1.3:$PORT: err"
run run -H three -- sh -c 'exit 5'
check "a command that fails everywhere is a failure" exits 1
check "the code of each host is said" says "127.0.1.2:$PORT: exit code 5"

ssh-keygen -q -t ed25519 -N '' -f other
echo "[127.0.1.2]:$PORT $(cut -d' ' -f1,2 other.pub)" >changed
run run -H three --known-hosts changed --accept-new-hosts -- true
check "a changed key is refused, the others run" exits 3
check "the way to take the new key is named" says "ssh-keygen -R '[127.0.1.2]:$PORT' -f changed"

run run -H three --json -- sh -c 'exit 5'
tail -n 1 err >last
check "under --json the last line is an error" json last 'd["error"]["message"] == "failed on each of 3 hosts"'
run run -H one --json -- sh -c 'exit 5'
check "one host passes its code" exits 5
echo "127.0.1.9:$(free_port)" >nobody
for command in "run -H nobody --json -- true" "sync one there -H nobody --json" "doctor -H nobody --json"; do
  # shellcheck disable=SC2086  # words
  run $command
  check "'$command' reaches nobody" exits 4
  tail -n 1 err >last
  check "'$command' ends with that" json last 'd["error"]["kind"] == "remote" and d["error"]["message"] == "reached none of 1 host"'
done

words=('' ' a  b ' "it's" '"' '$HOME' '`id`' '*' '~' $'line\nbreak' $'\\n' 'ä€' '-n' '--' '--json' '!!' '&;|<>(){}' $'\xff\x01')
run run -H one -- printf '%s\0' "${words[@]}"
check "a command with odd words runs" exits 0
printf '%s\0' "${words[@]}" | sed 's/^/x/' | sed "s/^x/127.0.1.1:$PORT: /" >expected
echo >>expected
check "every word arrives byte for byte" cmp out expected
run run -H one printf '%s\n' --json -H two
check "the first plain word begins the command" answers "127.0.1.1:$PORT: --json"
run run -H one --shell -- 'for i in 1 2; do echo "<$i>"; done | tail -n 1'
check "--shell hands text to the shell" answers "127.0.1.1:$PORT: <2>"

run run -H one -- sh -c 'exit 42'
check "one host passes its code" exits 42
run run -H one -- sh -c 'kill -TERM $$'
check "one host passes its signal" exits 143
run run -H one -- /no/such/program
check "a program that is not there is 127" exits 127

{ cat three; echo "127.0.1.9:$(free_port)"; } >dead
run run -H dead -- echo here
check "one dead host does not stop the others" exits 3
check "the others ran" answers "127.0.1.3:$PORT: here"
check "the dead one is named with its reason" says_line 'warning: 127.0.1.9:.* Connection refused'
run run -H dead --json -- sh -c 'echo line; exit 0'
check "--json gives one object a line" json out 'len([l for l in lines if "line" in l]) == 3'
check "--json has every host's ending" json out 'sorted(str(l["exit_code"]) for l in lines if "exit_code" in l) == ["0", "0", "0", "None"]'
check "--json has the reason and the next step" json out 'any(l.get("error") and "refused" in l["error"] and l["hint"] for l in lines)'

/usr/bin/python3 -c 'import socket, sys, time; s = socket.socket(); s.bind(("127.0.0.1", 0)); s.listen(); print(s.getsockname()[1], flush=True); time.sleep(600)' >silent &
silent=$!
until [ -s silent ]; do sleep 0.05; done
{ cat three; echo "127.0.0.1:$(cat silent)"; } >hung
run run -H hung --connect-timeout 1 -- true
kill $silent
check "a host that accepts and says nothing is given up" exits 3
check "it is told so" says "no answer in time"

run run -H three --timeout 1 -- sleep 98761
check "--timeout ends the command" exits 1
check "--timeout is told" says "ran longer than --timeout"
check "--timeout leaves nothing running" nobody_runs "sleep 98761"
run run -H one --timeout 1 -- sh -c 'trap "exit 0" TERM; while :; do sleep 0.1; done'
check "--timeout is a failure of one host, however its program leaves" exits 1
"$DTRAIN" run -H three -- sleep 98762 >out 2>err </dev/null &
pid=$!
until [ "$(pgrep -cxf 'sleep 98762')" -eq 3 ]; do sleep 0.1; done
kill -INT $pid
wait $pid
code=$?
check "Ctrl-C ends by its signal" exits 130
check "Ctrl-C ends the command on all hosts" nobody_runs "sleep 98762"

run run -H three -- awk 'BEGIN { for (i = 0; i < 20000; ++i) print "0123456789012345678901234567890123456789" }'
check "much output is whole" same "$(wc -l <out)" 60000
check "no line is torn" bash -c "! grep -qvxE '127.0.1.[123]:$PORT: (0123456789){4}' out"

for bad in "run -- true" "run -H three" "run -H three -- -x" "sync a b"; do
  # shellcheck disable=SC2086
  run $bad
  check "'$bad' is a usage error" exits 2
done

mkdir -p 'src/deep/er' src/.git
for name in 'a b' "it's" 'deep/er/x' $'deep/line\nbreak' 'back\slash' .git/config; do echo "$name" >"src/$name"; done
head -c 3000000 /dev/urandom >src/large
chmod 750 src/large
chmod 700 src/deep
ln -s large src/link
run sync src there/all --exclude .git -H one
check "a folder is copied" exits 0
check "it says how much" answers "7 of 7 files copied"
at=$(getent passwd "$(id -un)" | cut -d: -f6)/there
trap 'stop_sshd; rm -rf "$scratch" "$at"' EXIT
cp -rL src expected.d && rm -rf expected.d/.git
check "it is the same there" diff -r expected.d "$at/all"
check "permissions too" same "$(stat -c %a "$at/all/large")" 750
check "those of new folders too" same "$(stat -c %a "$at/all/deep") $(stat -c %a "$at/all/deep/er")" \
  "700 $(stat -c %a src/deep/er)"
run sync src there/all --exclude .git -H one
check "nothing travels when nothing changed" answers "0 of 7 files copied"
echo changed >"src/a b"
touch src/large
run sync src there/all --exclude .git -H one
check "only what changed travels" answers "1 of 7 files copied"
check "the change is there" grep -q changed "$at/all/a b"
chmod 700 src/large
run sync src there/all --exclude .git -H one
check "permissions that changed travel alone" answers "0 of 7 files copied, permissions of 2 set"  # of the link too
check "the permissions are there" same "$(stat -c %a "$at/all/large")" 700
run sync src there/all --exclude .git -H one --json
check "then nothing is left to do" json out 'lines[0]["copied"] == 0 and lines[0]["modes"] == 0'
cp "/proc/$$/comm" comm && chmod 664 comm  # not even root may set the permissions of a file of /proc
run sync comm "/proc/$$/" -H one
check "a file whose permissions cannot be set is not sent again" answers "0 of 1 files copied"
check "a warning says that they stay" says_line "warning: 127.0.1.1:$PORT: permissions of 1 file differ and stay"
run sync comm "/proc/$$/" -H one --json
check "--json counts it" json out 'lines[0]["refused_modes"] == 1 and lines[0]["modes"] == 0 and not lines[0]["error"]'
run sync src/large there/new -H one
check "a file gets the name that is asked for" cmp src/large "$at/new"
run sync src/large there/all/deep -H one
check "a file goes into a folder that is there" cmp src/large "$at/all/deep/large"
run sync src/large there/none/ -H one
check "a file goes into a folder that is to be made" cmp src/large "$at/none/large"
run sync src/large there/new/below -H one
check "what cannot be written is a failure" exits 1
run sync src/large there/new/below -H one --json
check "how far it came is not known" json out 'd["error"] and d["files"] is None and d["copied"] is None and d["bytes"] is None'
run sync src/large there/new/below -H one
check "the host and the place are named" says_line "127.0.1.1:$PORT: cannot make the folder there/new"
mkdir cut && head -c 500000000 /dev/zero >cut/zeros
left() { compgen -G "$at/cut/zeros.tmp.*"; }
"$DTRAIN" sync cut there/cut -H one >out 2>err </dev/null &
process=$!
for _ in $(seq 2400); do left >/dev/null && break; sleep 0.01; done
kill -KILL "$process"
wait "$process" 2>/dev/null
check "a sync that is killed leaves what it had sent" left
touch "$at/cut/other.tmp.1.01234567.01234567"
run sync cut there/cut -H one
check "the same sync copies the file" cmp cut/zeros "$at/cut/zeros"
check "and removes what was left" same "$(left)" ""
check "and nothing of other machines" exists "$at/cut/other.tmp.1.01234567.01234567"
run sync nothing there -H one
check "a source that is not there is a usage error" exits 2
run sync src there/all -H dead --json
check "some hosts that fail are told" exits 3
check "sync --json has every host" json out 'len(lines) == 4 and sum(1 for l in lines if l["error"]) == 1'

finish
