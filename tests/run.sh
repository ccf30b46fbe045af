#!/usr/bin/env bash
# Installs what the tests need, builds dtrain and runs its tests: tests/run.sh [--all] [PART...]
# Without PART the quick parts run; --all adds the slow ones. --help lists both.
# A part that fails does not stop the others. The last line is `N passed, N failed` (`, N skipped` where there are any),
# the exit status 0 only if nothing failed; the full output of each part is in build/test-logs/PART.log.
# Real data comes from DTRAIN_TEST_DATA, or from ../shared/data where that folder is there.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1

readonly root=$PWD logs=$PWD/build/test-logs
cores=$(nproc) || cores=2
failed=0

# After the build the quick tier runs in three lanes side by side: parts that only compute fill the time in which the two
# others wait for machines and processes, which take what is left of them in the end. The longest come first. Beside two
# busy processors they still have a tenth of one (nice 10): at 19 it is a hundredth, in which a test's patience runs out.
readonly computing=(judge unit locks tidy lint quickstart package bundle image)
readonly shells=(cli board launch hosts s3)
readonly machines=(cluster jobs strangers faults launchers)
readonly quick=(build "${computing[@]}" "${shells[@]}" "${machines[@]}")
readonly slow=(world judge-all jobs-all launch-all hosts-all faults-all launchers-all cluster-all asan tsan fuzz libfuzzer tidy-all doors-all toolkit root)

main() {
  local group=test rest=() chosen=() name
  for name in "$@"; do
    case "$name" in
      --all) group=all rest=("${slow[@]}") ;;
      -h | --help) usage; exit 0 ;;
      *)
        case " ${quick[*]} ${slow[*]} " in
          *" $name "*) chosen+=("$name") ;;
          *) echo "tests/run.sh: unknown part '$name' (--help lists them)" >&2; exit 2 ;;
        esac ;;
    esac
  done
  case " ${chosen[*]} " in *" root "*) group=all ;; esac
  mkdir -p "$logs"
  rm -f "$logs"/*.counts

  prepare packages packaging/install-deps.sh "$group"
  prepare python make_venv
  prepare torchvision add_torchvision
  prepare data find_data
  export DTRAIN=$root/build/release/dtrain
  if [ ${#chosen[@]} -gt 0 ]; then run_parts "${chosen[@]}"; else
    run_part build
    run_lanes
    run_parts "${rest[@]}"
  fi
  tell_sum
}

run_lanes() {
  local lanes=()
  rm -rf "$logs/taken"
  mkdir "$logs/taken"
  set -m # a process group for each lane, which a signal can end; Ctrl-C reaches that of the terminal only
  compute </dev/null &
  lanes+=($!)
  ( trap 'exit 130' INT; run_parts "${machines[@]}"; compute ) </dev/null &
  lanes+=($!)
  set +m
  trap end_lanes INT TERM
  run_parts "${shells[@]}"
  compute
  wait
  trap - INT TERM
}

end_lanes() {  # an interrupt lets Python clean up; what goes on then is ended
  kill -INT -- "${lanes[@]/#/-}" 2>/dev/null
  sleep 5
  kill -TERM -- "${lanes[@]/#/-}" 2>/dev/null
  exit 130
}

compute() (  # the computing parts that no lane has taken yet, one after another
  trap 'exit 130' INT  # a part that ends by itself after an interrupt is the last one
  renice -n 10 $BASHPID >/dev/null
  for name in "${computing[@]}"; do
    if mkdir "$logs/taken/$name" 2>/dev/null; then run_part "$name"; fi
  done
)

run_parts() {  # run_parts NAME...: one after another
  local name
  for name in "$@"; do run_part "$name"; done
}

usage() {
  sed -n '2,/^set/{/^#/s/^# \?//p}' "${BASH_SOURCE[0]}"
  printf '\n  quick:      %s\n  --all adds: %s\n' "${quick[*]}" "${slow[*]}"
}

prepare() {  # prepare NAME COMMAND...: counts only when it fails; what it writes to build/test-logs/NAME.env is kept
  local name=$1; shift
  printf '%-12s' "$name"
  local start=$SECONDS
  ( set -e; "$@" ) >"$logs/$name.log" 2>&1
  local status=$?
  if [ $status -eq 0 ]; then echo "ready ($((SECONDS - start)) s)"; else
    failed=$((failed + 1))
    echo "FAILED ($((SECONDS - start)) s)"
    show "$name"
  fi
  # shellcheck disable=SC1090  # written by the command just run
  if [ -f "$logs/$name.env" ]; then . "$logs/$name.env"; fi
}

run_part() {  # run_part NAME: runs part_NAME; what it counted is in build/test-logs/NAME.counts
  local name=$1 start=$SECONDS self=$BASHPID computed line counts='^([0-9]+) passed, ([0-9]+) failed(, ([0-9]+) skipped)?$'
  computed=$(cpu_seconds "$self")
  ( set -e; "part_$name" ) >"$logs/$name.log" 2>&1
  local status=$?
  computed=$(($(cpu_seconds "$self") - computed))
  line=$(grep -E "$counts" "$logs/$name.log" | tail -n 1)
  if [ -z "$line" ]; then
    case $status in
      0) line='1 passed, 0 failed' ;;
      77) line='0 passed, 0 failed, 1 skipped' ;;
      *) line='0 passed, 1 failed' ;;
    esac
  fi
  if [ "$line" = '0 passed, 0 failed' ]; then line='0 passed, 1 failed'; echo 'FAIL it ran no test' >>"$logs/$name.log"; fi
  [[ $line =~ $counts ]]
  local bad=${BASH_REMATCH[2]}
  if [ $status -ne 0 ] && [ $status -ne 77 ] && [ "$bad" -eq 0 ]; then
    bad=1
    line="${BASH_REMATCH[1]} passed, 1 failed (ended with status $status)"
  fi
  echo "${BASH_REMATCH[1]} $bad ${BASH_REMATCH[4]:-0}" >"$logs/$name.counts"
  report "$name" "$line ($((SECONDS - start)) s, $computed s of CPU)" "$bad"
}

cpu_seconds() {  # cpu_seconds PID: what its ended children computed
  awk -v hz="$(getconf CLK_TCK)" '{ sub(/.*\) /, ""); print int(($14 + $15) / hz) }' "/proc/$1/stat"
}

report() {  # report NAME LINE FAILED: at once, because several lanes write
  local text
  text=$(
    printf '%-12s%s\n' "$1" "$2"
    if [ "$3" -gt 0 ]; then show "$1"; fi
    grep -hE '^SKIP ' "$logs/$1.log" | head -n 20
  )
  echo "$text"
}

show() {  # the end of a part's output, indented
  grep -vE '^ *[0-9]+/[0-9]+ Test .* Passed|^ *Start +[0-9]+:|^ok ' "$logs/$1.log" | tail -n 100 | sed 's/^/    | /'
}

tell_sum() {  # what all parts counted, and what could not be prepared
  local good bad off passed=0 skipped=0
  while read -r good bad off; do
    passed=$((passed + good)) failed=$((failed + bad)) skipped=$((skipped + off))
  done < <(cat "$logs"/*.counts)
  tell_counts $passed $failed $skipped
  [ $failed -eq 0 ]
}

tell_counts() {  # tell_counts PASSED FAILED SKIPPED: the closing line
  local line="$1 passed, $2 failed"
  if [ "$3" -gt 0 ]; then line+=", $3 skipped"; fi
  echo "$line"
}

# What has to be there before the parts.

make_venv() {  # .venv with tests/requirements.txt, made once for each content of that file
  rm -f "$logs/python.env"
  if ! cmp -s tests/requirements.txt .venv/installed.txt; then
    /usr/bin/python3 -m venv --clear .venv
    .venv/bin/pip install --quiet --disable-pip-version-check -r tests/requirements.txt
    cp tests/requirements.txt .venv/installed.txt
  fi
}

add_torchvision() {  # build/torchvision with tests/torchvision.txt, likewise
  if ! cmp -s tests/torchvision.txt build/torchvision/installed.txt; then
    rm -rf build/torchvision
    .venv/bin/pip install --quiet --disable-pip-version-check --no-deps --target build/torchvision -r tests/torchvision.txt
    cp tests/torchvision.txt build/torchvision/installed.txt
  fi
}

find_data() {
  if [ -z "${DTRAIN_TEST_DATA:-}" ] && [ -f ../shared/data/unpack.sh ]; then
    printf 'export DTRAIN_TEST_DATA=%q\n' "$(bash ../shared/data/unpack.sh)" >"$logs/data.env"
  else
    rm -f "$logs/data.env"
  fi
}

# The parts. Each runs in a subshell that stops at the first error.

part_build() {  # a warning about dtrain's own lines is a failure; a fresh clone compiles every file
  if [ -f build/release/CMakeCache.txt ]; then build release; else build check; fi
  # ccache makes the names of files relative to the build folder. This output goes to the same log, which grep would
  # refuse to read.
  local own
  own=$(grep -nE "^($root/|(\.\./)+)?(src|include|tests)/.*: warning:" "$logs/build.log") || return 0
  echo "$own"
  return 1
}

part_quickstart() {  # the first command of the README; what its build compiles as part_build did comes from ccache
  bash examples/quickstart.sh build/quickstart-test
  grep -qE '^accuracy=0\.9' "$logs/quickstart.log"
}

part_lint() {
  /usr/bin/python3 tests/lint/run.py
}

part_unit() {
  /usr/bin/python3 tests/unit/run.py build/release "$cores"
}

part_cli() {
  need_program
  bash tests/cli/run.sh "$DTRAIN"
}

part_world() {  # more schedules than ctest tries, in four processes: they mostly wait
  build release
  local shard shards=()
  for shard in 0 1 2 3; do
    DTRAIN_WORLD_SEEDS=200 GTEST_TOTAL_SHARDS=4 GTEST_SHARD_INDEX=$shard build/release/tests/dtrain_world &
    shards+=($!)
  done
  set +e
  for shard in "${shards[@]}"; do wait "$shard" || echo "FAIL a quarter of the schedules ended with status $?"; done
  tell_counts "$(grep -c '^\[       OK \]' "$logs/world.log")" "$(grep -cE '^FAIL |^\[  FAILED  \].* ms\)$' "$logs/world.log")" 0
}

part_jobs() {
  need_program
  bash tests/jobs/run.sh "$DTRAIN"
}

part_jobs-all() {
  need_program
  bash tests/jobs/run.sh "$DTRAIN" --slow
}

part_board() {
  need_program
  bash tests/board/run.sh "$DTRAIN"
}

part_launch() {
  need_program
  bash tests/launch/run.sh "$DTRAIN"
}

part_launch-all() {
  need_program
  bash tests/launch/horovod.sh || echo "its tests are skipped" >&2
  bash tests/launch/run.sh "$DTRAIN" --slow
}

part_hosts() {
  need_program
  bash tests/hosts/run.sh "$DTRAIN"
}

part_hosts-all() {
  need_program
  bash tests/hosts/run.sh "$DTRAIN" --slow
}

part_strangers() {
  need_program
  bash tests/strangers/run.sh "$DTRAIN"
}

part_faults() {
  need_program
  bash tests/faults/run.sh "$DTRAIN"
}

part_faults-all() {
  need_program
  bash tests/faults/run.sh "$DTRAIN" --slow
}

part_launchers() {
  need_program
  bash tests/launchers/run.sh "$DTRAIN"
}

part_launchers-all() {
  need_program
  bash tests/launchers/run.sh "$DTRAIN" --slow
}

part_s3() {
  need_program
  bash tests/s3/run.sh "$DTRAIN" build/release/tests/dtrain_sign
}

part_cluster() {
  need_program
  bash tests/cluster/run.sh "$DTRAIN"
}

part_cluster-all() {
  need_program
  bash tests/cluster/run.sh "$DTRAIN" --slow
}

part_judge() {
  need_program
  bash tests/judge/run.sh "$DTRAIN"
}

part_judge-all() {
  need_program
  bash tests/judge/run.sh "$DTRAIN" --slow
}

part_bundle() {
  need_program
  bash tests/packaging/bundle_test.sh build/release
}

part_image() {
  need_program
  bash tests/packaging/image_test.sh build/release
}

part_package() {
  need_program
  bash tests/packaging/packages_test.sh build/release
}

part_asan() {
  build asan
  /usr/bin/python3 tests/unit/run.py build/asan "$cores"
}

part_tsan() {
  build tsan
  export TSAN_OPTIONS="suppressions=$root/tests/tsan_suppressions.txt" OMP_NUM_THREADS=1
  /usr/bin/python3 tests/unit/run.py build/tsan "$cores"
}

part_fuzz() {
  bash tests/fuzz/run.sh
}

part_libfuzzer() {
  bash tests/fuzz/libfuzzer.sh 60
}

part_tidy() {
  need_program
  bash tests/lint/tidy.sh --last 12
}

part_locks() {
  need_program
  bash tests/lint/thread_safety.sh
}

part_tidy-all() {
  need_program
  bash tests/lint/tidy.sh
}

part_doors-all() {
  DTRAIN_LINT_ALL=1 /usr/bin/python3 tests/lint/run.py doors
}

part_toolkit() {  # downloads 470 MB
  bash tests/packaging/cuda_toolkit_test.sh
}

part_root() {
  need_program
  bash tests/packaging/bundle_test.sh build/release bullseye
  bash tests/packaging/packages_test.sh build/release bookworm
  bash tests/packaging/bare_root.sh
}

build() {  # build PRESET
  cmake --preset "$1"
  cmake --build --preset "$1" -j "$cores"
}

need_program() {
  [ -x "$DTRAIN" ] || { echo "no $DTRAIN: the build failed"; exit 1; }
}

main "$@"
