#!/usr/bin/env bash
# The bundle runs where nothing else is: tests/packaging/bundle_test.sh BUILD_DIR [SUITE]
# With SUITE (bullseye), also in a bare root of that older Debian.
set -uo pipefail
build=$(realpath "$1") || exit 2
suite=${2:-}
cd "$(dirname "${BASH_SOURCE[0]}")" || exit 1
# shellcheck source=tests/packaging/roots.sh
source ./roots.sh
set +e

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
passed=0 failed=0 skipped=0

main() {
  test_case "the same build gives the same bytes" same_bytes
  test_case "it holds every library it needs" complete
  test_case "it holds the licences of dtrain, of its libraries and of the headers in it" has_licences
  test_case "its program has the part for GPUs" has_gpu_part
  mkdir -p "$work/empty/tmp"
  tar -C "$work/empty" -xf "$work/first"/*.tar.zst || exit 1
  mv "$work"/empty/dtrain-* "$work/empty/opt"
  if may_chroot; then
    cp "$build/dtrain" "$work/empty/plain"
    test_case "the plain program does not start in an empty root" not plain_program_starts
    test_case "the bundle starts in an empty root" in_empty_root --version
    test_case "it trains in an empty root" trains in_empty_root
  else
    skip "the bundle in an empty root" "no right to chroot"
  fi
  test_case "it starts through a link, from any folder, without an environment" starts_through_link
  test_case "it looks for a driver in the user's folders and in those of container runtimes, behind its own" looks_for_drivers
  if [ -n "$suite" ]; then test_old_system; fi
  local line="$passed passed, $failed failed"
  if [ $skipped -gt 0 ]; then line+=", $skipped skipped"; fi
  echo "$line"
  [ $failed -eq 0 ]
}

same_bytes() {
  ../../packaging/bundle.sh "$build" "$work/first" && ../../packaging/bundle.sh "$build" "$work/second" &&
    cmp "$work"/first/*.tar.zst "$work"/second/*.tar.zst
}

complete() {  # each library names only libraries that travel along
  mkdir "$work/tree" && tar -C "$work/tree" -xf "$work"/first/*.tar.zst || return 1
  local file needed status=0
  for file in "$work"/tree/*/bin/dtrain "$work"/tree/*/lib/*.so*; do
    for needed in $(patchelf --print-needed "$file"); do
      if ! ls "$work"/tree/*/lib/"$needed" >/dev/null; then echo "$file needs $needed"; status=1; fi
    done
  done
  return $status
}

has_licences() {
  local name
  for name in dejavu-font nlohmann-json3-dev libcli11-dev libtomlplusplus-dev libasio-dev libxxhash-dev libc6; do
    [ -s "$(echo "$work"/tree/*/share/licenses/$name)" ] || { echo "no licence of $name"; return 1; }
  done
}

has_gpu_part() { can_train_on_gpus "$build" "$work"/tree/*/bin/dtrain; }

may_chroot() { [ "$(id -u)" = 0 ] || unshare --user --map-root-user true 2>/dev/null; }

in_empty_root() {
  local chroot=("$(command -v chroot)")
  if [ "$(id -u)" != 0 ]; then chroot=("$(command -v unshare)" --user --map-root-user "${chroot[@]}"); fi
  env -i "${chroot[@]}" "$work/empty" /opt/dtrain "$@"
}

plain_program_starts() { chroot "$work/empty" /plain --version; }

trains() {  # trains RUNNER...: prepares the embedded data set and trains on it
  "$@" data prepare shapes --out /tmp/data --train-count 512 --val-count 128 &&
    "$@" train --network resnet --num-layers 8 --data-train /tmp/data/shapes_train.rec --data-val /tmp/data/shapes_val.rec \
      --num-epochs 1 --model-prefix /tmp/m/shapes &&
    "$@" eval /tmp/m/shapes --load-epoch 1 --data-val /tmp/data/shapes_val.rec
}

starts_through_link() {
  mkdir -p "$work/links" && ln -s "$work/empty/opt/dtrain" "$work/links/dt" &&
    (cd / && env -i "$work/links/dt" --version) && (cd "$work/empty/opt" && env -i ./dtrain --version) &&
    [ "$(cd "$work/empty" && env -i opt/dtrain --version)" = "$(env -i "$build/dtrain" --version)" ]
}

looks_for_drivers() {
  LD_LIBRARY_PATH=/some/where LD_DEBUG=libs "$work/empty/opt/dtrain" --version 2>&1 |
    grep -E 'search path=.*/opt/lib:.*:/some/where:.*:/usr/local/nvidia/lib64:.*\(--library-path\)'
}

test_old_system() {
  binds=''
  if ! make_root "$suite" "$work/old"; then failed=$((failed + 1)); echo "FAIL a root of $suite"; return; fi
  cp -a "$work/empty/opt" "$work/old/opt/dtrain"
  cp "$build/dtrain" "$work/old/opt/plain"
  test_case "the plain program does not start on $suite" not in_root "$work/old" /opt/plain --version
  test_case "the bundle starts on $suite" in_root "$work/old" /opt/dtrain/dtrain --version
  test_case "it trains on $suite" trains in_root "$work/old" /opt/dtrain/dtrain
}

not() { ! "$@"; }

skip() { skipped=$((skipped + 1)); echo "SKIP bundle: $1: $2"; }

main
