#!/usr/bin/env bash
# Makes the files of a release, in OUT:
#   packaging/release.sh OUT [--twice]
#   dtrain_VERSION-1_amd64.deb (on Debian and Ubuntu)  dtrain-VERSION-1.x86_64.rpm  SHA256SUMS
#   dtrain-VERSION-linux-x86_64.tar.zst  dtrain-VERSION-linux-x86_64-oci.tar
# It builds the last commit in a temporary folder, with the part for GPUs (packaging/cuda-toolkit.sh finds nvcc, or brings
# it in Python wheels). With --twice it builds again in another folder and compares the bytes. Version and date are
# defined in CMakeLists.txt only; the script checks that CHANGELOG.md has an entry for them.
set -euo pipefail
[ $# -ge 1 ] || { echo "usage: packaging/release.sh OUT [--twice]" >&2; exit 2; }
mkdir -p "$1"
out=$(realpath "$1") twice=${2:-}
cd "$(dirname "${BASH_SOURCE[0]}")/.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

main() {
  check_changelog
  CUDA_PATH=$(packaging/cuda-toolkit.sh "$work/cuda")
  export CUDA_PATH
  make_all "$work/first"
  if [ -n "$twice" ]; then
    make_all "$work/the-second-one"
    diff -r "$work/first/made" "$work/the-second-one/made" || fail "the two builds differ"
  fi
  cp "$work"/first/made/* "$out"
  (cd "$out" && shopt -s nullglob && sha256sum -- *.deb *.rpm *.tar.zst *-oci.tar >SHA256SUMS && cat SHA256SUMS)
}

check_changelog() {
  local version date
  version=$(sed -n 's/^project(dtrain VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
  date=$(sed -n 's/^set(DTRAIN_DATE \([0-9-]*\)).*/\1/p' CMakeLists.txt)
  grep -qxF "## $version, $date" CHANGELOG.md || fail "CHANGELOG.md lacks the heading '## $version, $date' (from CMakeLists.txt)"
}

make_all() {  # make_all FOLDER: sources, build and packages below FOLDER, whose path does not show in the program
  local folder=$1 map="-ffile-prefix-map=$1/source=."
  mkdir -p "$folder/source" "$folder/made"
  git archive HEAD | tar -C "$folder/source" -xf -
  SOURCE_DATE_EPOCH=$(date --utc --date="$(sed -n 's/^set(DTRAIN_DATE \([0-9-]*\)).*/\1/p' CMakeLists.txt)" +%s)
  export SOURCE_DATE_EPOCH CCACHE_DISABLE=1
  cmake -S "$folder/source" -B "$folder/build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DDTRAIN_TESTS=OFF -DDTRAIN_CUDA=ON \
    -DCMAKE_CXX_FLAGS="$map" -DCMAKE_C_FLAGS="$map"
  cmake --build "$folder/build" -j "$(nproc)" --target dtrain
  bash packaging/packages.sh "$folder/build" "$folder/made"
  bash packaging/image.sh "$(bash packaging/bundle.sh "$folder/build" "$folder/made")"
}

fail() { echo "release: $*" >&2; exit 1; }

main
