#!/usr/bin/env bash
# Lets the real libraries judge what dtrain computes and writes: tests/judge/run.sh DTRAIN [--slow]
# --slow: the judges of torchvision alone, with all that they know instead of a few networks.
# Each *.py here is one judge: exit 0 agrees, 77 cannot judge here (it says why), anything else disagrees. It finds
# the program in $DTRAIN and real data, where there is any, in $DTRAIN_TEST_DATA. A judge that imports torch runs with
# the distribution's Python (python3-torch), the others with .venv (tests/requirements.txt).
set -uo pipefail
DTRAIN=$(realpath "$1") || exit 2
export DTRAIN PYTHONDONTWRITEBYTECODE=1
more=${2:-}
cd "$(dirname "${BASH_SOURCE[0]}")" || exit 1

passed=0 failed=0 skipped=0
judges=(*.py) limit=1800
if [ -n "$more" ]; then judges=(torchvision_*.py) limit=7200; fi
for judge in "${judges[@]}"; do
  [ -f "$judge" ] || continue
  case "$judge$more" in
    _*) continue ;;                      # what several judges share
    torchvision_regions.py) continue ;;  # --slow alone: it looks for a seed without near ties
  esac
  python=../../.venv/bin/python
  if grep -qE '^\s*(import|from) torch\b' "$judge"; then python=/usr/bin/python3; fi
  begin=$SECONDS
  output=$(timeout "$limit" "$python" "$judge" ${more:+"$more"} 2>&1 </dev/null)
  case $? in
    0) passed=$((passed + 1)); echo "ok   $judge ($((SECONDS - begin)) s)" ;;
    77) skipped=$((skipped + 1)); echo "SKIP judge $judge: $(tail -n 1 <<<"$output")" ;;
    *) failed=$((failed + 1)); echo "$output" | tail -n 40; echo "FAIL $judge" ;;
  esac
done
line="$passed passed, $failed failed"
if [ $skipped -gt 0 ]; then line+=", $skipped skipped"; fi
echo "$line"
[ $failed -eq 0 ]
