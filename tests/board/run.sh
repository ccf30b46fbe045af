#!/usr/bin/env bash
# The live page in a real browser: tests/board/run.sh DTRAIN [SUITE...]. Suites are the test_*.py beside this file. Needs
# chromium with its driver, and selenium of the virtual environment. DTRAIN_KEEP_SCREENS=FOLDER keeps the screenshots.
# The last line is the sum.
set -euo pipefail
[ $# -ge 1 ] || { echo "usage: tests/board/run.sh DTRAIN [SUITE...]" >&2; exit 2; }
DTRAIN=$(realpath "$1")
export DTRAIN PYTHONDONTWRITEBYTECODE=1
shift
here=$(dirname "${BASH_SOURCE[0]}")
python=$here/../../.venv/bin/python
if ! command -v chromedriver >/dev/null || ! "$python" -c 'import selenium, axe_core_python' 2>/dev/null; then
  echo 'SKIP board: no chromedriver, or no selenium in the virtual environment (tests/run.sh installs both)'
  exit 77
fi
exec "$python" "$here/suite.py" "$@"
