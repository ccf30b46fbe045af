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
  test_case "one of another version is not" refuses_other_version
  test_case "CMake's words for yes and no count" takes_words
  test_case "other words are refused" refuses_words
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
make_own() {  # make_own FOLDER CUDA CUDNN: what CMake and the script look for, with these versions
  mkdir -p "$1/bin" "$1/include" "$1/lib64" && install -m 755 /bin/true "$1/bin/nvcc" &&
    touch "$1/include/cuda_runtime.h" "$1/include/cudnn.h" "$1/lib64/libcudart_static.a" &&
    echo "#define CUDART_VERSION  $2" >"$1/include/cuda_runtime_api.h" &&
    echo "#define CUDNN_MAJOR $3" >"$1/include/cudnn_version.h"
}
takes_installed() {
  make_own "$work/own" 13000 9 &&
    [ "$(CUDA_PATH=$work/own "$top/packaging/cuda-toolkit.sh" "$work/not-made")" = "$work/own" ] &&
    [ ! -e "$work/not-made" ]
}
refuses_other_version() {
  local own
  make_own "$work/old-cuda" 12080 9 && make_own "$work/old-cudnn" 13000 8 &&
    for own in old-cuda old-cudnn; do
      [ "$(CUDA_PATH=$work/$own "$top/packaging/cuda-toolkit.sh" "$work/cuda")" = "$(cat "$work/path")" ] || return 1
    done
}
gpu_part() {  # gpu_part CUDA_PATH WORD: what CMake says of -DDTRAIN_CUDA=WORD
  CUDA_PATH=$1 cmake "-DDTRAIN_CUDA=$2" -DCMAKE_FIND_LIBRARY_PREFIXES=lib -DCMAKE_FIND_LIBRARY_SUFFIXES=.a \
    -P "$top/packaging/cmake/Cuda.cmake" 2>&1
}
takes_words() {
  local word
  for word in 0 FALSE off NO; do gpu_part "$work/own" $word | grep -qx -- '-- GPUs: OFF' || return 1; done
  for word in 1 TRUE on Yes AUTO; do gpu_part "$work/own" $word | grep -qx -- '-- GPUs: ON' || return 1; done
  ! gpu_part "$work/old-cuda" 1 >"$work/said" && grep -q 'needs the CUDA toolkit' "$work/said"
}
refuses_words() { ! gpu_part "$work/own" maybe >"$work/said" && grep -q 'must be AUTO, ON or OFF' "$work/said"; }

main
