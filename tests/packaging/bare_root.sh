#!/usr/bin/env bash
# Both set-up commands of README.md work on a machine that has nothing: a bare root of Debian 12 made with debootstrap. A
# new user who may sudo follows the quick start in a clone; root, without whom half of the tests are skipped, runs the tests.
#   tests/packaging/bare_root.sh [SUITE [quickstart | tests]]     takes about an hour; needs root. Default: bookworm, both.
# With CCACHE_DIR what that cache holds is not compiled again: CCACHE_BASEDIR=/srv CCACHE_NOHASHDIR=1 finds it there.
set -euo pipefail
suite=${1:-bookworm} chosen=${2:-both}
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
# shellcheck source=tests/packaging/roots.sh
source tests/packaging/roots.sh
[ "$(id -u)" = 0 ] || { echo "SKIP root: needs root for debootstrap and namespaces"; exit 77; }

readonly user=newcomer home=/srv/newcomer/dtrain
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
root=$work/$suite
passed=0 failed=0 binds='' variables=()

main() {
  make_root "$suite" "$root"
  give_network "$root" "$suite"
  make_user
  clone "$root$home"
  lend_data
  lend_ccache
  if [ "$chosen" != tests ]; then test_command $user "bash examples/quickstart.sh"; fi
  if [ "$chosen" != quickstart ]; then test_command root "bash tests/run.sh"; fi
  echo "$passed passed, $failed failed"
  [ $failed -eq 0 ]
}

make_user() {  # as the installation of a system leaves one: with sudo and nothing else
  in_root "$root" bash -euc "apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends sudo >/dev/null
    useradd --create-home --home-dir /srv/$user --shell /bin/bash $user
    echo '$user ALL=(ALL) NOPASSWD: ALL' >/etc/sudoers.d/$user"
}

clone() {  # with what is not committed yet
  git clone --quiet --no-local . "$1"
  git ls-files -co --exclude-standard -z | xargs -0 ls -d 2>/dev/null | tar -cf - -T - | tar -xf - -C "$1"
}

lend_data() {
  [ -n "${DTRAIN_TEST_DATA:-}" ] || return 0
  binds+="$DTRAIN_TEST_DATA /srv/data"$'\n'
  variables+=(DTRAIN_TEST_DATA=/srv/data)
}

lend_ccache() {  # read only, as it belongs to another user; the language is a part of what it looks results up by
  [ -n "${CCACHE_DIR:-}" ] || return 0
  binds+="$CCACHE_DIR /srv/ccache"$'\n'
  local variable
  for variable in "${!CCACHE_@}"; do variables+=("$variable=${!variable}"); done
  variables+=(CCACHE_DIR=/srv/ccache CCACHE_READONLY=1 CCACHE_TEMPDIR=/tmp "LANG=${LANG:-}")
}

test_command() {  # test_command USER COMMAND
  local start=$SECONDS as=()
  in_root "$root" chown -R "$1:" "$home"
  if [ "$1" != root ]; then as=(setpriv --reuid "$1" --regid "$1" --init-groups env HOME="/srv/$1" USER="$1"); fi
  if in_root "$root" "${variables[@]}" "${as[@]}" bash -c "cd $home && $2" 2>&1 | stamp; then
    passed=$((passed + 1))
    echo "ok   $2 ($((SECONDS - start)) s)"
  else
    failed=$((failed + 1))
    echo "FAIL $2 ($((SECONDS - start)) s)"
  fi
}

stamp() {  # a stopwatch before each line
  local start=$SECONDS line
  while IFS= read -r line; do printf '%5d s  %s\n' $((SECONDS - start)) "$line"; done
}

main
