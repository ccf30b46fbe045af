#!/usr/bin/env bash
# Makes the packages of a build, the rpm and on Debian and Ubuntu the deb, and prints their paths.
#   packaging/packages.sh BUILD_DIR OUT_DIR
# The same build gives the same bytes, since all files get the time of the version. The deb depends on the libraries of
# this distribution. So does an rpm made on an rpm distribution. An rpm made on Debian contains the bundle instead,
# because no rpm names the libraries of Debian.
set -euo pipefail
[ $# -eq 2 ] || { echo "usage: packaging/packages.sh BUILD_DIR OUT_DIR" >&2; exit 2; }
build=$(realpath "$1")
mkdir -p "$2"
out=$(realpath "$2")
is_debian() { [ -f /etc/debian_version ]; }
tools=(cpack rpmbuild)
if is_debian; then tools+=(dpkg-shlibdeps); fi
for tool in "${tools[@]}"; do
  command -v "$tool" >/dev/null || { echo "packages: $tool is missing: run packaging/install-deps.sh test" >&2; exit 1; }
done
date=$(sed -n 's/^set(DTRAIN_DATE \([0-9-]*\)).*/\1/p' "$(dirname "${BASH_SOURCE[0]}")/../CMakeLists.txt")
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(date --utc --date="$date" +%s)}
export SOURCE_DATE_EPOCH

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
pack() {  # pack KIND [CPACK_OPTION...]
  (umask 022 && cpack --config "$build/CPackConfig.cmake" -G "$1" -B "$work/$1" "${@:2}") >"$work/log" 2>&1 ||
    { cat "$work/log" >&2; exit 1; }
}

unpack_bundle() {
  mkdir "$work/bundle"
  tar -C "$work/bundle" --strip-components 1 \
    -xf "$(DTRAIN_BUNDLE_LEVEL=1 bash "$(dirname "${BASH_SOURCE[0]}")/bundle.sh" "$build" "$work/packed")"
}

if is_debian; then
  pack DEB
  unpack_bundle
  pack RPM -D CPACK_DTRAIN_BUNDLE="$work/bundle" -D CPACK_RPM_PACKAGE_AUTOREQPROV=no
else
  pack RPM
fi
for file in "$work"/*/*.deb "$work"/*/*.rpm; do
  [ -f "$file" ] || continue  # no deb was made
  cp "$file" "$out"
  echo "$out/$(basename "$file")"
done
