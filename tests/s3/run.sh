#!/usr/bin/env bash
# Tests against moto and botocore: tests/s3/run.sh DTRAIN SIGN_PROGRAM. They come with tests/requirements.txt; without
# them it says so and ends with 77. The last line is `N passed, N failed`.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")" || exit 1

program=$(realpath -m "$OLDPWD/$1") sign=$(realpath -m "$OLDPWD/$2")
case $1 in /*) program=$1 ;; esac
case $2 in /*) sign=$2 ;; esac
python=../../.venv/bin/python
if ! "$python" -c 'import moto.server, boto3' 2>/dev/null; then
  echo "SKIP s3: no moto here; tests/run.sh installs it"
  exit 77
fi

passed=0 failed=0
for test in "test_signatures.py $sign" "test_copies.py $program" "test_training.py $program" "test_board.py $program"; do
  # shellcheck disable=SC2086  # a script and its argument
  output=$("$python" $test 2>&1)
  echo "$output"
  line=$(grep -E '^[0-9]+ passed, [0-9]+ failed$' <<<"$output" | tail -n 1)
  if [ -z "$line" ]; then line='0 passed, 1 failed'; fi
  read -r good _ bad _ <<<"$line"
  passed=$((passed + good)) failed=$((failed + bad))
done
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
