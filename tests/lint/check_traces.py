"""No path of one machine and no registry's host in any file: they would be wrong everywhere else."""

import re

from lint import Finding, Tree

# Written so that this file does not contain what it looks for.
PATHS = r"/(root|work|home)/(?!ubuntu\b|ec2-user\b)[\w.]|/tmp/(wt|issue|brief)"
HOSTS = r"\b(pypi|pythonhosted|debian|ubuntu|npmjs|fedoraproject|crates|rubygems)[.](org|com|io|net)\b"
TRACE = re.compile(f"(?<![\\w.$}}/-])(?:{PATHS})|{HOSTS}")

CLEAN = {"a.sh": "cd \"$HOME/work/dtrain\" && ls ../shared/data\n", "b.md": "see the site example.org\n"}
PLANTED = {"a.sh": "cd /" + "root/x # HERE\ncp /" + "home/jane/x . # HERE\n", "b.md": "from deb.debian." + "org HERE\n"}


def check(tree: Tree) -> list[Finding]:
    return [Finding(path, number, f"'{match[0]}': a path or host of one machine")
            for path in tree.files for number, line in tree.lines(path) for match in [TRACE.search(line)] if match]
