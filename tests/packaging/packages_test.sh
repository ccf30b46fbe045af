#!/usr/bin/env bash
# deb and rpm: tests/packaging/packages_test.sh BUILD_DIR [SUITE]. With SUITE (bookworm) the deb is also installed with
# its dependencies in a bare root of that Debian, used and removed.
set -uo pipefail
build=$(realpath "$1") || exit 2
suite=${2:-}
cd "$(dirname "${BASH_SOURCE[0]}")" || exit 1
# shellcheck source=tests/packaging/roots.sh
source ./roots.sh
set +e
top=$(realpath ../..)

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
passed=0 failed=0 skipped=0

main() {
  test_case "deb and rpm are made" make_packages first
  sleep 1.1  # a time in them would differ now
  test_case "the same build gives the same bytes" same_bytes
  test_case "both have the program's version" same_version
  test_case "lintian is content" lintian_is_content
  test_case "rpmlint is content" rpmlint_is_content
  test_case "a deb has page, completions and the libraries it needs" deb_is_whole
  test_case "the program of a deb has the part for GPUs" has_gpu_part
  test_case "an rpm has page, completions and every library" rpm_is_whole
  if [ "$(id -u)" = 0 ]; then
    test_case "the rpm goes into an empty root, trains there and leaves nothing when removed" rpm_comes_and_goes
    test_case "the deb goes into a fresh root and leaves nothing when removed" deb_comes_and_goes
  else
    skip "installing" "needs root"
  fi
  if [ -n "$suite" ]; then test_case "the deb is installed, trains and is removed on $suite" deb_in_root; fi
  local line="$passed passed, $failed failed"
  if [ $skipped -gt 0 ]; then line+=", $skipped skipped"; fi
  echo "$line"
  [ $failed -eq 0 ]
}

make_packages() { "$top/packaging/packages.sh" "$build" "$work/$1"; }
same_bytes() { make_packages second && diff -r "$work/first" "$work/second"; }
deb() { echo "$work"/first/*.deb; }
rpm_file() { echo "$work"/first/*.rpm; }

same_version() {
  local version
  version=$("$build/dtrain" --version | cut -d' ' -f2)
  [ "$(dpkg-deb -f "$(deb)" Version)" = "$version-1" ] && [ "$(rpm -qp --qf '%{VERSION}-%{RELEASE}' "$(rpm_file)")" = "$version-1" ]
}

lintian_is_content() {
  local said
  said=$(lintian --allow-root --fail-on error,warning "$(deb)" 2>&1)
  local status=$?
  echo "$said"
  [ $status -eq 0 ] && ! grep -q '^[EW]:' <<<"$said"
}

rpmlint_is_content() { rpmlint -c "$top/packaging/rpmlint.toml" "$(rpm_file)" | tee "$work/rpmlint" | grep -q ' 0 errors, 0 warnings'; }

deb_is_whole() {
  dpkg-deb -c "$(deb)" >"$work/list"
  dpkg-deb -f "$(deb)" Depends >"$work/needs"
  has usr/bin/dtrain usr/share/man/man1/dtrain-train.1.gz usr/share/man/man5/dtrain-job.5.gz \
    usr/share/bash-completion/completions/dtrain usr/share/zsh/vendor-completions/_dtrain \
    usr/share/fish/vendor_completions.d/dtrain.fish usr/share/doc/dtrain/copyright && grep -q 'libdnnl.*libssh' "$work/needs"
}

has_gpu_part() {
  dpkg-deb --fsys-tarfile "$(deb)" | tar -xO ./usr/bin/dtrain >"$work/program" && can_train_on_gpus "$build" "$work/program"
}

rpm_is_whole() {
  rpm -qpl "$(rpm_file)" >"$work/list"
  rpm -qp --requires "$(rpm_file)" >"$work/needs"
  has usr/bin/dtrain usr/share/man/man1/dtrain-train.1.gz usr/share/zsh/site-functions/_dtrain usr/lib/dtrain/lib/libdnnl.so.2 \
    usr/lib/dtrain/lib/libc.so.6 && ! grep -v '^rpmlib(' "$work/needs"
}

has() {
  local path
  for path in "$@"; do grep -q "/$path\$" "$work/list" || { echo "no $path"; return 1; }; done
}

rpm_comes_and_goes() {
  local root=$work/rpm-root
  mkdir -p "$root"
  rpm --root "$root" --initdb && rpm --root "$root" -i "$(rpm_file)" && train_in "$root" && rpm --root "$root" -V dtrain &&
    rpm --root "$root" -e dtrain && nothing_left "$root"
}

deb_comes_and_goes() {
  local root=$work/deb-root
  mkdir -p "$root/var/lib/dpkg/"{info,updates} && touch "$root/var/lib/dpkg/"{status,available}
  dpkg --root="$root" --force-depends -i "$(deb)" && "$root/usr/bin/dtrain" --version &&
    dpkg --root="$root" --force-depends -P dtrain && nothing_left "$root"
}

train_in() {  # train_in ROOT: as it was installed, with nothing else there
  mkdir -p "$1/tmp" && chroot "$1" /usr/bin/dtrain --version &&
    chroot "$1" /usr/bin/dtrain data prepare shapes --out /tmp/d --train-count 256 --val-count 64 &&
    chroot "$1" /usr/bin/dtrain train --network resnet --num-layers 8 --data-train /tmp/d/shapes_train.rec \
      --data-val /tmp/d/shapes_val.rec --num-epochs 1
}

nothing_left() { ! find "$1" -path '*/var/*' -prune -o -name '*dtrain*' -print | grep .; }

deb_in_root() {
  local root=$work/root
  binds=''
  make_root "$suite" "$root" && give_network "$root" "$suite" && cp "$(deb)" "$root/dtrain.deb" && in_root "$root" bash -euc '
    apt-get update -qq && apt-get install -y -qq --no-install-recommends /dtrain.deb
    cd /tmp && dtrain data prepare shapes --out d --train-count 256 --val-count 64
    dtrain train --network resnet --num-layers 8 --data-train d/shapes_train.rec --data-val d/shapes_val.rec --num-epochs 1
    apt-get purge -y -qq dtrain' && nothing_left_in_root "$root"
}

nothing_left_in_root() { ! find "$1/usr" "$1/etc" -name '*dtrain*' | grep .; }

skip() { skipped=$((skipped + 1)); echo "SKIP packages: $1: $2"; }

main
