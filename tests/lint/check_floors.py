"""The picture of the floors in src/README.md is what the LINK lists of src/**/CMakeLists.txt say (see floors.py)."""

import floors
from lint import Finding, Tree

PICTURE = """```text
+------------------------------------------------------------------------------+
|                  data                 |                 comm                 |
+------------------------------------------------------------------------------+
|                                     base                                     |
+------------------------------------------------------------------------------+

base         -
data         base
data/record  base data
comm         base
```"""
PAGE = f"# How it is made\n\n{floors.BEGIN}\n{PICTURE}\n{floors.END}\n"

CLEAN = {
    "CMakeLists.txt": "foreach(folder base data comm)\n",
    "src/base/CMakeLists.txt": "dtrain_folder(base\n  SOURCES text.cpp)\n",
    "src/data/CMakeLists.txt": "dtrain_folder(data\n  SOURCES loader.cpp\n  LINK base)\n",
    "src/data/record/CMakeLists.txt": "dtrain_folder(record\n  SOURCES file.cpp\n  LINK base data)\n",
    "src/comm/CMakeLists.txt": "dtrain_folder(comm\n  SOURCES tree.cpp\n  LINK base\n  PRIVATE_LINK gloo)\n",
    floors.PAGE: PAGE,
}
PLANTED = {floors.PAGE: PAGE.replace("data/record  base data", "data/record  base data net HERE")}


def check(tree: Tree) -> list[Finding]:
    if floors.PAGE not in tree.files:
        return [Finding(floors.PAGE, 1, "is not there")]
    lines = tree.text(floors.PAGE).split("\n")
    markers = floors.find(lines)
    if not markers:
        return [Finding(floors.PAGE, 1, f"no picture between the lines {floors.BEGIN} and {floors.END}")]
    shown, right = lines[markers[0] + 1:markers[1]], floors.block(tree)
    if shown == right:
        return []
    same = next((number for number, (one, other) in enumerate(zip(shown, right)) if one != other), min(len(shown), len(right)))
    return [Finding(floors.PAGE, markers[0] + 2 + same, "not what the LINK lists say: python3 tests/lint/floors.py --write")]
