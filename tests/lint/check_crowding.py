"""A folder holds a number of modules that a reader can overlook, and its sub-folders stand in the PARTS of its CMakeLists.txt.

A module is a name with a source, a header or both.
"""

import collections
import posixpath

import check_direction
from lint import Finding, Tree

LIMIT = 25

CLEAN = {
    "CMakeLists.txt": "foreach(folder a)\n",
    "src/a/CMakeLists.txt": "dtrain_folder(a\n  SOURCES x.cpp\n  PARTS one two)\n",
    **{f"src/a/one/m{number}.{end}": "" for number in range(LIMIT) for end in ("cpp", "hpp")},
    "src/a/two/x.cpp": "",
}
PLANTED = {
    **{f"src/a/two/n{number}.cpp": "" for number in range(LIMIT)},
    "src/a/two/n0.cpp": "// HERE\n",
    "src/a/three/y.cpp": "// HERE\n",
}


def check(tree: Tree) -> list[Finding]:
    _, homes, parts, _ = check_direction.read_rows(tree)
    files = tree.select(".cpp", ".hpp", under="src/")
    return crowded(files) + unlisted(files, homes, parts)


def crowded(files: list[str]) -> list[Finding]:
    modules, first = collections.defaultdict(set), {}
    for path in files:
        folder = posixpath.dirname(path)
        modules[folder].add(posixpath.splitext(path)[0])
        first[folder] = min(first.get(folder, path), path)
    return [Finding(first[folder], 1, f"{folder} holds {len(names)} modules (limit {LIMIT}): give some a folder of their own")
            for folder, names in sorted(modules.items()) if len(names) > LIMIT]


def unlisted(files: list[str], homes, parts) -> list[Finding]:
    found = {}
    for path in files:
        words = path.split("/")
        root = "/".join(words[:2])
        if len(words) > 3 and root in homes and f"{root}/{words[2]}" not in homes and words[2] not in parts[homes[root]]:
            found.setdefault(f"{root}/{words[2]}", Finding(path, 1, f"{root}/CMakeLists.txt: PARTS lacks {words[2]}"))
    return list(found.values())
