#!/usr/bin/env bash
# Makes deb and rpm of a build: packaging/packages.sh BUILD_DIR OUT_DIR, prints their paths. The same build gives the same
# bytes: all files get the time of the version.
set -euo pipefail
[ $# -eq 2 ] || { echo "usage: packaging/packages.sh BUILD_DIR OUT_DIR" >&2; exit 2; }
build=$(realpath "$1")
mkdir -p "$2"
out=$(realpath "$2")
for tool in cpack dpkg-shlibdeps rpmbuild; do
  command -v $tool >/dev/null || { echo "packages: $tool is missing: run packaging/install-deps.sh test" >&2; exit 1; }
done
date=$(sed -n 's/^set(DTRAIN_DATE \([0-9-]*\)).*/\1/p' "$(dirname "${BASH_SOURCE[0]}")/../CMakeLists.txt")
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(date --utc --date="$date" +%s)}
export SOURCE_DATE_EPOCH

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for kind in DEB RPM; do
  (umask 022 && cpack --config "$build/CPackConfig.cmake" -G $kind -B "$work/$kind") >"$work/log" 2>&1 || { cat "$work/log" >&2; exit 1; }
done
for file in "$work"/*/*.deb "$work"/*/*.rpm; do
  cp "$file" "$out"
  echo "$out/$(basename "$file")"
done
