"""Every source is in its CMakeLists.txt and every folder of unit tests is built: a forgotten test is silent."""

import posixpath
import re

from lint import Finding, Tree

CLEAN = {
    "src/a/CMakeLists.txt": "dtrain_folder(a\n  SOURCES one.cpp local/two.cpp)\n",
    "src/a/one.cpp": "", "src/a/local/two.cpp": "",
    "tests/CMakeLists.txt": "file(GLOB sources unit/common/*.cpp)\nforeach(folder a)\n",
    "tests/unit/a/one.cpp": "", "tests/unit/common/one.cpp": "",
}
PLANTED = {"src/a/three.cpp": "// HERE\n", "tests/unit/b/two.cpp": "// HERE\n", "tests/unit/three.cpp": "// HERE\n"}


def check(tree: Tree) -> list[Finding]:
    text = tree.text("tests/CMakeLists.txt")
    built = " ".join(re.findall(r"foreach\(folder ([\w ]+)\)", text)).split() + re.findall(r"unit/(\w+)/\*[.]cpp", text)
    found = []
    for path in tree.select(".cpp", under="src/"):
        lists, name = nearest_list(tree, path)
        if not re.search(rf"(?<![\w/.]){re.escape(name)}(?![\w.])", tree.text(lists)):
            found.append(Finding(path, 1, f"not listed in {lists}"))
    for path in tree.select(".cpp", under="tests/unit/"):
        if path.count("/") < 3 or path.split("/")[2] not in built:
            found.append(Finding(path, 1, "no program of tests/CMakeLists.txt builds this"))
    return found


def nearest_list(tree: Tree, path: str) -> tuple[str, str]:
    """The CMakeLists.txt that should list `path`, and the name it has there (src/main.cpp: the top one)."""
    folder = posixpath.dirname(path)
    while folder and f"{folder}/CMakeLists.txt" not in tree.files:
        folder = posixpath.dirname(folder)
    return posixpath.join(folder, "CMakeLists.txt"), posixpath.relpath(path, folder or ".")
