"""Below config, messages name settings and no flags of the command line: "setting 'num-examples'", see src/cli/settings.hpp."""

import re

from lint import Finding, Tree

FOLDERS = ("src/base/", "src/nn/", "src/data/", "src/backend/", "src/comm/", "src/elastic/", "src/train/", "src/external/")
TEXT = re.compile(r'"(?:[^"\\]|\\.)*"')
FLAG = re.compile(r"(?<![\w-])--[a-z]")

CLEAN = {"src/data/pack.cpp": 'fail("limit it with setting \'num-examples\'", "`dtrain data ls --json` lists them");  // --lr\n'}
PLANTED = {"src/data/pack.cpp": 'fail("limit it with --num-examples");  // HERE\n'}


def check(tree: Tree) -> list[Finding]:
    found = []
    for folder in FOLDERS:
        for path in tree.select(".cpp", ".hpp", under=folder):
            for number, line in tree.lines(path):
                texts = [text for text in TEXT.findall(line.split(" //")[0]) if "dtrain " not in text]
                if not line.lstrip().startswith("//") and any(FLAG.search(text) for text in texts):
                    found.append(Finding(path, number, "a flag below config: write \"setting 'name'\" for --name"))
    return found
