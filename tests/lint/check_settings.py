"""Below config, messages name settings and no flags of dtrain: "setting 'num-examples'", see src/cli/settings.hpp.

Commands of other programs keep their flags: `aws ec2 ... --region`, `tar -c --hard-dereference`.
"""

import re

from lint import Finding, Tree

FOLDERS = ("src/base/", "src/nn/", "src/data/", "src/backend/", "src/comm/", "src/elastic/", "src/train/", "src/external/", "src/net/aws/", "src/net/s3/", "src/net/http/", "src/plot/", "src/cluster/plan/", "src/cluster/aws/", "src/cluster/heal/")
TEXT = re.compile(r'"(?:[^"\\]|\\.)*"')
COMMAND = re.compile(r"\b(dtrain|aws) [a-z]|\btar -")
FLAG = re.compile(r"(?<![\w-])--[a-z]")

CLEAN = {"src/data/pack.cpp": 'fail("limit it with setting \'num-examples\'", "`dtrain data ls --json` lists them");  // --lr\n'}
PLANTED = {"src/data/pack.cpp": 'fail("limit it with --num-examples");  // HERE\n'}


def check(tree: Tree) -> list[Finding]:
    found = []
    for folder in FOLDERS:
        for path in tree.select(".cpp", ".hpp", under=folder):
            for number, line in tree.lines(path):
                texts = [text for text in TEXT.findall(line.split(" //")[0]) if not COMMAND.search(text)]
                if not line.lstrip().startswith("//") and any(FLAG.search(text) for text in texts):
                    found.append(Finding(path, number, "a flag below config: write \"setting 'name'\" for --name"))
    return found
