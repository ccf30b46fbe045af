#!/usr/bin/env bash
# Prints the folder of a CUDA toolkit, for CUDA_PATH of a build: this machine's, or one made in FOLDER of Python wheels.
#   CUDA_PATH=$(packaging/cuda-toolkit.sh FOLDER) cmake ... -DDTRAIN_CUDA=ON
# packaging/release.sh calls it, so that packages can train on GPUs wherever they are built. The quick start does not:
# the wheels are 470 MB to download. 270 MB of them are kept, as of cuDNN only the headers are needed.
# You can run it again: a complete FOLDER is used as it is.
set -euo pipefail
[ $# -eq 1 ] || { echo "usage: packaging/cuda-toolkit.sh FOLDER" >&2; exit 2; }
wheels=$(realpath "$(dirname "${BASH_SOURCE[0]}")")/cuda-wheels.txt
folder=$(realpath -m "$1")

main() {
  local own
  own=$(own_toolkit)
  if [ -n "$own" ]; then echo "$own"; return; fi
  if ! cmp -s "$wheels" "$folder/installed.txt"; then make_folder; fi
  nvidia_packages
}

own_toolkit() {  # with the parts and the versions that packaging/cmake/Cuda.cmake looks for
  local root
  for root in "${CUDA_PATH:-/usr/local/cuda}" "$(dirname "$(dirname "$(command -v nvcc || echo /none/none/none)")")"; do
    if [ -x "$root/bin/nvcc" ] && has_runtime "$root" && has_cudnn "$root"; then echo "$root"; return; fi
  done
}

has_runtime() { grep -qE 'define CUDART_VERSION +13' "$1/include/cuda_runtime_api.h" 2>/dev/null; }

has_cudnn() {  # the first place that has its headers decides, as for Cuda.cmake
  local place
  for place in "$1/include" "$1/../cudnn/include" /usr/include/x86_64-linux-gnu /usr/local/include /usr/include; do
    [ -f "$place/cudnn.h" ] || continue
    grep -qE 'define CUDNN_MAJOR +9' "$place/cudnn_version.h" 2>/dev/null
    return
  done
  return 1
}

make_folder() {
  python3 -c 'import venv, ensurepip' 2>/dev/null || fail "python3 with venv is missing: run packaging/install-deps.sh test"
  rm -rf "$folder"
  python3 -m venv "$folder" || fail "cannot make a virtual environment in $folder"
  "$folder/bin/pip" install --quiet --no-cache-dir --disable-pip-version-check --no-deps --require-hashes -r "$wheels" >&2 ||
    fail "cannot install $wheels: see the lines above"
  rm -rf "$(nvidia_packages)/../cudnn/lib"
  cp "$wheels" "$folder/installed.txt"
}

nvidia_packages() { echo "$folder"/lib/python3*/site-packages/nvidia/cu13; }

fail() { echo "cuda-toolkit: $*" >&2; exit 1; }

main
