#!/usr/bin/env bash
# Both set-up commands of README.md work on a machine that has nothing: a bare root of Debian 12 made with debootstrap.
#   tests/packaging/bare_root.sh [SUITE]     takes about half an hour; needs root
set -euo pipefail
suite=${1:-bookworm}
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
# shellcheck source=tests/packaging/roots.sh
source tests/packaging/roots.sh
[ "$(id -u)" = 0 ] || { echo "SKIP root: needs root for debootstrap and chroot"; exit 77; }

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
root=$work/$suite
passed=0 failed=0 binds=''

main() {
  make_root "$suite" "$root"
  give_network "$root" "$suite"
  copy_sources "$root/src/dtrain"
  local variables=()
  if [ -n "${DTRAIN_TEST_DATA:-}" ]; then
    binds="$DTRAIN_TEST_DATA /srv/data"
    variables=(DTRAIN_TEST_DATA=/srv/data)
  fi
  test_command "bash examples/quickstart.sh"
  test_command "bash tests/run.sh"
  echo "$passed passed, $failed failed"
  [ $failed -eq 0 ]
}

copy_sources() {  # as a fresh clone of the working tree has them
  mkdir -p "$1"
  git ls-files -co --exclude-standard -z | xargs -0 ls -d 2>/dev/null | tar -cf - -T - | tar -xf - -C "$1"
}

test_command() {
  local start=$SECONDS
  if in_root "$root" "${variables[@]}" bash -c "cd /src/dtrain && $1"; then
    passed=$((passed + 1))
    echo "ok   $1 ($((SECONDS - start)) s)"
  else
    failed=$((failed + 1))
    echo "FAIL $1 ($((SECONDS - start)) s)"
  fi
}

main
