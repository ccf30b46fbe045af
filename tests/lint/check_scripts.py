"""Bash scripts pass shellcheck and refuse unset variables."""

import re

from lint import Finding, Tree, parse, run_tool

STRICT = re.compile(r"^(set -[eux]*u|(\.|source) .*lib\.sh)", re.M)  # a suite is as strict as the library it begins with
# $ in single quotes is meant for another program; a function may have arguments that most of its callers leave out.
ALLOWED = "SC2016,SC2119,SC2120"

CLEAN = {"a.sh": '#!/usr/bin/env bash\nset -euo pipefail\necho "$1"\n'}
PLANTED = {
    "a.sh": "#!/usr/bin/env bash\nset -euo pipefail\necho $1 # HERE\n",
    "b": "#!/usr/bin/env bash\nset -u\necho $1 # HERE\n",
    "c.sh": "# HERE: no 'set'\necho\n",
}


def check(tree: Tree) -> list[Finding]:
    files = tree.scripts()
    loose = [Finding(path, 1, "neither 'set -u' nor 'set -euo pipefail'") for path in files
             if not STRICT.search(tree.text(path))]
    return loose + (parse(run_tool(tree, ["shellcheck", "-x", "-s", "bash", "-e", ALLOWED, "-f", "gcc", *files])) if files else [])
