#!/usr/bin/env bash
# Builds Horovod 0.28.1 for the distribution's PyTorch into build/horovod, once: tests/launch/horovod.sh. PyPI has its
# source alone. Without MPI and without GPUs: gradients go over its own Gloo, and the ranks find each other through the
# rendezvous server of `dtrain launch`. Takes ten minutes on two cores.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
readonly target=build/horovod
[ -e "$target/.ready" ] && exit
if ! [ -e /usr/include/torch ] || ! [ -e /usr/include/pybind11 ]; then
  echo "horovod.sh: no headers of PyTorch here: install libtorch-dev and pybind11-dev" >&2
  exit 1
fi
/usr/bin/python3 -m venv --system-site-packages "$target"
"$target/bin/pip" install --quiet 'cmake==3.27.9' 'setuptools<70' wheel cloudpickle psutil pyyaml packaging
HOROVOD_WITH_PYTORCH=1 HOROVOD_WITH_GLOO=1 HOROVOD_WITHOUT_MPI=1 HOROVOD_WITHOUT_TENSORFLOW=1 HOROVOD_WITHOUT_MXNET=1 \
  CUDA_HOME='' PATH="$PWD/$target/bin:$PATH" \
  "$target/bin/pip" install --quiet --no-build-isolation --no-binary horovod 'horovod==0.28.1'
"$target/bin/python" -c 'import horovod.torch'
touch "$target/.ready"
