#!/usr/bin/env bash
# Makes the relocatable bundle and prints the path of its archive.
#   packaging/bundle.sh [BUILD_DIR [OUT_DIR]]      (default: build/release build)
# BUILD_DIR is what `cmake --preset release && cmake --build --preset release` makes.
# The bundle runs on any x86-64 Linux with a kernel of 2019 or newer, because it contains every library that the program
# needs, its own loader and its own libc:
#   dtrain-VERSION-linux-x86_64/dtrain                       launcher, static: runs the next line
#   lib/ld-linux-x86-64.so.2 --argv0 dtrain --library-path lib:... bin/dtrain
#   bin/dtrain  lib/*.so*  share/licenses/PACKAGE  LICENSE
# The same build with the same distribution packages gives the same bytes.
set -euo pipefail
[ $# -le 2 ] || { echo "usage: packaging/bundle.sh [BUILD_DIR [OUT_DIR]]" >&2; exit 2; }
source_dir=$(realpath "$(dirname "${BASH_SOURCE[0]}")/..")
build=$(realpath "${1:-$source_dir/build/release}")
out=${2:-$source_dir/build}
mkdir -p "$out"
out=$(realpath "$out")
readonly loader=ld-linux-x86-64.so.2
readonly header_only=(nlohmann-json3-dev libcli11-dev libtomlplusplus-dev libasio-dev libxxhash-dev)  # Debian's packages

main() {
  local tool name
  for tool in patchelf zstd ldd strip c++; do
    command -v $tool >/dev/null || fail "$tool is missing: run packaging/install-deps.sh build"
  done
  [ -x "$build/dtrain" ] ||
    fail "$build/dtrain does not exist: build it with 'cmake --preset release && cmake --build --preset release'"
  if grep -q 'was built without CUDA' "$build/dtrain"; then
    echo "bundle: this program trains on CPUs only; packaging/cuda-toolkit.sh brings nvcc for a build" >&2
  fi
  name=dtrain-$(sed -n 's/^CMAKE_PROJECT_VERSION:STATIC=//p' "$build/CMakeCache.txt")-linux-x86_64
  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
  tree=$work/$name
  mkdir -p "$tree/bin" "$tree/lib"

  copy_program
  copy_libraries
  make_launcher
  copy_licences
  pack "$name"
  echo "$out/$name.tar.zst"
}

copy_program() {
  install -m 755 "$build/dtrain" "$tree/bin/dtrain"
  strip "$tree/bin/dtrain"
  patchelf --set-rpath '$ORIGIN/../lib' "$tree/bin/dtrain"
}

copy_libraries() {  # every library that ldd lists, under the name by which the program loads it
  local listing name path
  listing=$(ldd "$build/dtrain")
  if grep -q 'not found' <<<"$listing"; then fail "this machine lacks libraries of the program: $listing"; fi
  while read -r name path; do
    install -m 755 "$path" "$tree/lib/$name"
    if [ "$name" = $loader ] || [ "$name" = libc.so.6 ]; then continue; fi  # these two load no other library
    patchelf --set-rpath '$ORIGIN' "$tree/lib/$name"
  done < <(libraries <<<"$listing")
  [ -x "$tree/lib/$loader" ] || fail "$build/dtrain does not use $loader: the bundle is for x86-64 with glibc"
}

libraries() {  # `name path` for each line of ldd; the loader's line has the path alone
  awk '$2 == "=>" { print $1, $3 } $1 ~ /^\// { n = split($1, part, "/"); print part[n], $1 }'
}

make_launcher() {
  c++ -std=c++20 -O2 -static -s -o "$tree/dtrain" "$source_dir/packaging/launcher.cpp"
}

copy_licences() {  # the licences of dtrain, of the headers compiled into it and of each package that has a library here
  local path package
  install -m 644 "$source_dir/LICENSE" "$tree/LICENSE"
  install -D -m 644 "$source_dir/src/plot/font/LICENSE" "$tree/share/licenses/dejavu-font"
  command -v dpkg-query >/dev/null || return 0
  for package in "${header_only[@]}"; do copy_licence_of "$package"; done
  while read -r _ path; do
    package=$(owner_of "$path")
    if [ -n "$package" ]; then copy_licence_of "$package"; fi
  done < <(ldd "$build/dtrain" | libraries)
}

copy_licence_of() {  # copy_licence_of PACKAGE
  local file=/usr/share/doc/$1/copyright
  if [ -f "$file" ]; then install -D -m 644 "$file" "$tree/share/licenses/$1"; fi
}

owner_of() {  # owner_of FILE: its package; where /lib is a link to /usr/lib, dpkg knows only one of the two names
  local path
  for path in "$1" "$(realpath "$1")" "/usr$(realpath "$1")" "$(realpath "$1" | sed 's#^/usr##')"; do
    if dpkg-query -S "$path" 2>/dev/null | sed 's/:.*//' | head -n 1 | grep .; then return 0; fi
  done
}

pack() {  # sorted names, no owners, one time stamp, so that the bytes depend on the content alone
  tar --sort=name --owner=0 --group=0 --numeric-owner --mtime=@"${SOURCE_DATE_EPOCH:-0}" --mode=go-w \
    --format=gnu -C "$work" -cf - "$1" | zstd -q -f -"${DTRAIN_BUNDLE_LEVEL:-12}" -T1 -o "$out/$1.tar.zst"
}

fail() { echo "bundle: $*" >&2; exit 1; }

main
