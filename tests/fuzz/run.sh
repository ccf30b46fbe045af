#!/usr/bin/env bash
# Damaged input for every parser, under AddressSanitizer and UBSan: tests/fuzz/run.sh [ROUNDS [TARGET...]]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
rounds=${1:-20000}
shift || true
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

cmake --preset asan >/dev/null
cmake --build --preset asan --target dtrain_fuzz -j "$(nproc)"
# A parser that believes a damaged length must not ask for more memory than this.
export ASAN_OPTIONS=max_allocation_size_mb=256:allocator_may_return_null=0
if ! timeout 3600 build/asan/tests/dtrain_fuzz "$work" "$rounds" "$@"; then
  echo "the input that was parsed last: build/asan/fuzz-input"
  cp "$work/input" build/asan/fuzz-input
  exit 1
fi
