#!/usr/bin/env bash
# Every parser of data and answers under libFuzzer, one after another: tests/fuzz/libfuzzer.sh [SECONDS [TARGET...]]
# What it finds new stays in build/fuzz/corpus/TARGET; an input that shows a defect is build/fuzz/TARGET-crash-*, and is kept
# in tests/fuzz/corpus/TARGET with the mending, where dtrain_fuzz replays it. Needs clang.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
seconds=${1:-600}
shift || true
cmake --preset fuzz >/dev/null
cmake --build --preset fuzz -j "$(nproc)"
fuzzer=build/fuzz/tests/dtrain_libfuzzer
targets=("$@")
[ ${#targets[@]} -gt 0 ] || mapfile -t targets < <("$fuzzer")
# Files are written for every input.
if [ -w /dev/shm ]; then export TMPDIR=/dev/shm; fi

passed=0 failed=0
for target in "${targets[@]}"; do
  folders=(build/fuzz/corpus/"$target")
  mkdir -p "${folders[0]}"
  if [ -d tests/fuzz/corpus/"$target" ]; then folders+=(tests/fuzz/corpus/"$target"); fi
  if DTRAIN_FUZZ_TARGET=$target "$fuzzer" -max_total_time="$seconds" -max_len=16384 -timeout=30 -rss_limit_mb=2048 -malloc_limit_mb=256 \
      -print_final_stats=1 -artifact_prefix=build/fuzz/"$target"- "${folders[@]}" >build/fuzz/"$target".log 2>&1; then
    passed=$((passed + 1))
    echo "ok   $target: $(sed -n 's/^stat::number_of_executed_units: *//p' build/fuzz/"$target".log) inputs"
  else
    failed=$((failed + 1))
    echo "FAIL $target: build/fuzz/$target.log"
  fi
done
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
