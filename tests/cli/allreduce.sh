#!/usr/bin/env bash
# bench allreduce: compressed gradients, measured and simulated, and simulated changes of membership.
set -uo pipefail
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

run bench allreduce --link 100mbit,5ms --simulate 4 --megabytes 1.1 --gradient-compression 2bit,topk:0.01,powersgd:2 --json
check "a simulation has each way to compress" json out '[r["gradients"] for r in d["simulations"]] == ["float32", "2bit:0.5", "topk:0.01", "powersgd:2"]'
check "which send less and take less time" json out 'all(r["byte_ratio"] < 0.2 and r["seconds"] < d["simulations"][0]["seconds"] for r in d["simulations"][1:])'
check "powersgd needs two exchanges" json out '[r["rounds"] for r in d["simulations"]] == [2, 2, 2, 4]'
run bench allreduce --link 100mbit,5ms --simulate 4 --megabytes 1.1 --gradient-compression powersgd
check "and names them to people" answers_line '^ +4 .* powersgd:2 '

run bench allreduce --ranks 2 --megabytes 1 --rounds 2 --mesh-ranks 0 --gradient-compression 2bit,powersgd:1 --json
check "a measurement has each way to compress" json out '[r["gradients"] for r in d["contests"][0]["compressed"]] == ["float32", "2bit:0.5", "powersgd:1"]'
check "with the bytes that a rank sends" json out '[9e5 < r["sent_bytes"] < 1.2e6 for r in d["contests"][0]["compressed"]] == [True, False, False]'
check "and with their mean over a window" json out 'all(r["sent_bytes"] < r["mean_sent_bytes"] < 2e5 for r in d["contests"][0]["compressed"][1:])'

run bench allreduce --link 1gbit,100us --simulate 4 --megabytes 0.1 --changes --newcomers 2 --state-megabytes 100 --json
check "a simulation has changes of membership" json out '[c["ranks"] for c in d["changes"]] == [4] and d["changes"][0]["newcomers"] == 2'
check "a join takes the time of the state" json out '0.8 < d["changes"][0]["join"]["state_seconds"] < d["changes"][0]["join"]["pause_seconds"] < 1'
check "a worker that hangs is noticed late, one that ends at once" json out 'd["changes"][0]["killed"]["noticed_seconds"] < 0.1 and d["changes"][0]["silent"]["noticed_seconds"] > 2.9'
check "and a lost coordinator is replaced" json out 'd["changes"][0]["takeover"]["noticed_seconds"] > 2.9 and d["changes"][0]["takeover"]["pause_seconds"] > 0'
run bench allreduce --link 1gbit,100us --simulate 4 --megabytes 0.1 --newcomers 2 --plain-data --by-tcp --rounds 3
check "a simulation goes on beside options without effect" exits 0
check "and names them" same "$(grep -o -e '--.* has no effect .*' err)" "--newcomers has no effect without --changes
--plain-data has no effect without --ranks
--rounds has no effect without --ranks
--by-tcp has no effect with --simulate"
run bench allreduce --link 1gbit,100us --simulate 4 --megabytes 0.1
check "only where they are asked for" bash -c '! grep -q "changes of membership" out'

"$DTRAIN" bench allreduce --ranks 2 --megabytes 20 --rounds 100000 --mesh-ranks 0 >out 2>err </dev/null &
bench=$!
ranks=()
for _ in $(seq 100); do
  mapfile -t ranks < <(pgrep -P $bench)
  [ ${#ranks[@]} -lt 2 ] || break
  sleep 0.1
done
check "the ranks are processes" same ${#ranks[@]} 2
kill -KILL $bench
wait $bench 2>/dev/null
rank_runs() { for rank in "${ranks[@]}"; do if grep -qs '^State:.[^ZX]' "/proc/$rank/status"; then return 0; fi; done; return 1; }
for _ in $(seq 100); do rank_runs || break; sleep 0.1; done
none_runs() { ! rank_runs; }
check "which end with a benchmark that is killed" none_runs
kill -KILL "${ranks[@]}" 2>/dev/null

# OPTIONS|MESSAGE of what cannot be meant.
while IFS='|' read -r options message; do
  # shellcheck disable=SC2086
  run bench allreduce $options
  check "$options is a usage error" exits 2
  check "$options is answered" says "$message"
done <<'OPTIONS'
--changes|--changes is of a simulation: give --simulate too
--newcomers 3|--newcomers is of a simulation: give --simulate too
--megabytes 0.000001|--megabytes: 1e-06 is less than a float
--simulate 4 --link 1gbit,1ms --megabytes 0.000001|--megabytes: 1e-06 is less than a float
--ranks= --mesh-ranks 0|--ranks and --mesh-ranks: there is nothing to measure
--gradient-compression 4bit|must be none, 2bit[:THRESHOLD], topk:SHARE or powersgd[:RANK], not '4bit'
--simulate 4 --link 1gbit,1ms --bfloat16 --gradient-compression 2bit|--bfloat16 and --gradient-compression: gradients are compressed from float32
OPTIONS
finish
