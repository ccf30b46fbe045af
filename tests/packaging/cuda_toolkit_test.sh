#!/usr/bin/env bash
# Where nvcc is not installed, packaging/cuda-toolkit.sh brings what dtrain's part for GPUs is compiled with:
#   tests/packaging/cuda_toolkit_test.sh
# It downloads 470 MB of Python wheels, configures dtrain with them alone and compiles one file of kernels.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 1
# shellcheck source=tests/packaging/roots.sh
source tests/packaging/roots.sh
set +e
top=$PWD
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
passed=0 failed=0
export CUDA_PATH=$work/nowhere PATH=/usr/bin:/bin  # as if this machine had no toolkit

main() {
  test_case "a toolkit is made of wheels" make_toolkit
  test_case "it is used again as it is" use_again
  test_case "cuDNN's libraries are not kept" without_libraries
  test_case "a build finds nvcc, the static runtime and the headers there" configure
  test_case "it compiles a kernel for each GPU that dtrain trains on" compile
  test_case "an installed toolkit is taken in its place" takes_installed
  echo "$passed passed, $failed failed"
  [ $failed -eq 0 ]
}

make_toolkit() { "$top/packaging/cuda-toolkit.sh" "$work/cuda" >"$work/path" && [ -x "$(cat "$work/path")/bin/nvcc" ]; }
use_again() {
  local before
  before=$(stat -c %Z "$work/cuda/installed.txt") &&
    [ "$("$top/packaging/cuda-toolkit.sh" "$work/cuda")" = "$(cat "$work/path")" ] &&
    [ "$(stat -c %Z "$work/cuda/installed.txt")" = "$before" ]
}
without_libraries() { [ "$(du -sm "$work/cuda" | cut -f1)" -lt 400 ]; }
configure() {
  CUDA_PATH=$(cat "$work/path") cmake -S "$top" -B "$work/build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DDTRAIN_TESTS=OFF \
    -DDTRAIN_CUDA=ON &&
    [ "$(grep -cE "^DTRAIN_(NVCC|CUDA_INCLUDE|CUDNN_INCLUDE|CUDART):.*=$work/cuda/" "$work/build/CMakeCache.txt")" = 4 ]
}
compile() {
  ninja -C "$work/build" src/backend/cuda/reduction_kernels.o &&
    for chip in sm_80 sm_90; do grep -q "$chip" "$work/build/src/backend/cuda/reduction_kernels.o" || return 1; done
}
takes_installed() {
  mkdir -p "$work/own/bin" "$work/own/include" && touch "$work/own/include/cudnn.h" &&
    install -m 755 /bin/true "$work/own/bin/nvcc" &&
    [ "$(CUDA_PATH=$work/own "$top/packaging/cuda-toolkit.sh" "$work/not-made")" = "$work/own" ] &&
    [ ! -e "$work/not-made" ]
}

main
