"""Bash scripts pass shellcheck and stop at the first error."""

import re

from lint import Finding, Tree, parse, run_tool

STRICT = re.compile(r"^set -[eux]*u", re.M)

CLEAN = {"a.sh": '#!/usr/bin/env bash\nset -euo pipefail\necho "$1"\n'}
PLANTED = {
    "a.sh": "#!/usr/bin/env bash\nset -euo pipefail\necho $1 # HERE\n",
    "b": "#!/usr/bin/env bash\nset -u\necho $1 # HERE\n",
    "c.sh": "# shellcheck shell=bash HERE: no 'set'\necho\n",
}


def check(tree: Tree) -> list[Finding]:
    files = tree.scripts()
    loose = [Finding(path, 1, "no 'set -u' or 'set -euo pipefail'") for path in files
             if not STRICT.search(tree.text(path))]
    return loose + (parse(run_tool(tree, ["shellcheck", "-x", "-f", "gcc", *files])) if files else [])
