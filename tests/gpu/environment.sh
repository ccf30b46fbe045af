#!/usr/bin/env bash
# Where the driver, cuDNN, NCCL and PyTorch are on this machine. Part of run-gpu.sh, whose variables it uses.
# shellcheck disable=SC2154
set -uo pipefail

pythons=${DTRAIN_GPU_PYTHON:-python3 python /usr/bin/python3 /opt/*/bin/python3}

# Exports DTRAIN_CUDA_PATH and LD_LIBRARY_PATH where the usual places do not do.
find_libraries() {
  local driver
  if [ -z "${DTRAIN_CUDA_PATH:-}" ]; then
    DTRAIN_CUDA_PATH=$(wheels_of_nvidia)
    export DTRAIN_CUDA_PATH
  fi
  if ! ldconfig -p 2>/dev/null | grep -q 'libcuda\.so\.1 '; then
    driver=$(find /usr/local/nvidia /usr/local/cuda*/compat /usr/lib /usr/lib64 -name libcuda.so.1 2>/dev/null | head -n 1)
    # The launcher hands LD_LIBRARY_PATH to the bundle's loader, behind its own libraries.
    if [ -n "$driver" ]; then
      LD_LIBRARY_PATH=${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}$(dirname "$driver")
      export LD_LIBRARY_PATH
    fi
  fi
}

# The folder of NVIDIA's packages (nvidia-cudnn-cu13 and others) in a Python, or nothing.
wheels_of_nvidia() {
  local python
  for python in $pythons; do
    command -v "$python" >/dev/null || continue
    "$python" - 2>/dev/null <<'END' && return
import importlib.util, pathlib, sys
spec = importlib.util.find_spec("nvidia")
for folder in spec.submodule_search_locations if spec else []:
    if (pathlib.Path(folder) / "cudnn" / "lib").is_dir():
        print(folder)
        sys.exit()
sys.exit(1)
END
  done
}

# What the bundle's loader searches, as the launcher says it (packaging/launcher.cpp).
own_libraries() { echo "$here/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}:/usr/local/nvidia/lib64:/usr/local/nvidia/lib"; }

# The Python whose PyTorch can be the peer; nothing where there is none. What is known of it goes to pytorch.txt.
# find_pytorch RESULTS
find_pytorch() {
  local python
  for python in $pythons; do
    command -v "$python" >/dev/null || continue
    if "$python" - "$device" >"$1/pytorch.txt" 2>&1 <<'END'; then
import sys, torch
if sys.argv[1] == "cuda" and not torch.cuda.is_available():
    sys.exit(f"PyTorch {torch.__version__} sees no GPU")
print(f"PyTorch {torch.__version__}")
END
      echo "$python"
      return
    fi
  done
  python=$(tail -n 1 "$1/pytorch.txt")
  echo "none: $python" >"$1/pytorch.txt"
}
