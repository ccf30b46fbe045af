"""Folders know only what stands to their left (src/README.md).

The rows are the LINK lists of src/**/CMakeLists.txt, so what is checked here and what is linked cannot differ.
"""

import posixpath
import re

from lint import Finding, Tree

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
ROW = re.compile(r"dtrain_folder\((\w+)(.*?)\)", re.S)
ORDER = re.compile(r"foreach\(folder ([\w ]+)\)")

CLEAN = {
    "CMakeLists.txt": "foreach(folder base data)\n",
    "src/base/CMakeLists.txt": "dtrain_folder(base\n  SOURCES text.cpp)\n",
    "src/data/CMakeLists.txt": "dtrain_folder(data\n  SOURCES record.cpp\n  LINK base)\n",
    "src/data/frame.hpp": "#pragma once\n",
    "src/data/record.cpp": '#include <dtrain/data/record.hpp>\n#include <dtrain/base/text.hpp>\n#include "frame.hpp"\n',
    "include/dtrain/base/text.hpp": "#include <string>\n",
    "include/dtrain/data/record.hpp": "#include <dtrain/base/text.hpp>\n",
}
PLANTED = {
    "src/base/CMakeLists.txt": "dtrain_folder(base\n  SOURCES text.cpp\n  LINK data) # HERE: data stands to the right\n",
    "src/base/text.cpp": '#include "../data/frame.hpp"  // HERE: quotes stay in the folder\n',
    "src/data/record.cpp": "#include <dtrain/train/plan.hpp>  // HERE: not in the row\n",
    "include/dtrain/data/record.hpp": '#include "frame.hpp"  // HERE: doors name doors\n#include <dtrain/cli/run.hpp>  // HERE\n',
}


def check(tree: Tree) -> list[Finding]:
    rows, homes, found = read_rows(tree)
    for path in tree.select(".cpp", ".hpp", ".h", ".inc", under="src/") + tree.select(".hpp", under="include/"):
        folder = folder_of(path, homes)
        if not folder:
            continue
        for number, line in tree.lines(path):
            match = INCLUDE.match(line)
            reason = why_wrong(tree, path, folder, rows, match[1], match[2]) if match else ""
            if reason:
                found.append(Finding(path, number, reason))
    return found


def read_rows(tree: Tree):
    """rows {folder: folders it may use}, homes {src path: folder}, and findings of rows that point to the right."""
    order = (ORDER.search(tree.text("CMakeLists.txt")) or [None, ""])[1].split()
    rows, homes, found = {}, {}, []
    for path in tree.select("CMakeLists.txt", under="src/"):
        text = tree.text(path)
        for match in ROW.finditer(text):
            words = match[2].split()
            links = words[words.index("LINK") + 1:] if "LINK" in words else []
            links = links[:links.index("PRIVATE_LINK")] if "PRIVATE_LINK" in links else links
            rows[match[1]] = set(links)
            homes[posixpath.dirname(path)] = match[1]
            end = text[:match.end()].count("\n") + 1
            if match[1] in order:
                late = [name for name in links if name in order and order.index(name) > order.index(match[1])]
                found += [Finding(path, end, f"{match[1]} links {name}, which stands to its right") for name in late]
    return rows, homes, found


def folder_of(path: str, homes: dict[str, str]) -> str:
    if path.startswith("include/dtrain/"):
        return path.split("/")[2]
    home = posixpath.dirname(path)
    while home and home not in homes:
        home = posixpath.dirname(home)
    return homes.get(home, "")


def why_wrong(tree: Tree, path: str, folder: str, rows, bracket: str, name: str) -> str:
    if bracket == '"':
        if path.startswith("include/"):
            return f'"{name}": a door includes only <dtrain/...> and the standard library'
        target = posixpath.normpath(posixpath.join(posixpath.dirname(path), name))
        root = "/".join(path.split("/")[:2])
        inside = target.startswith(root + "/") or f"{root}/{name}" in tree.files
        return "" if inside else f'"{name}" leaves {root}: use a door, <dtrain/...>'
    if not name.startswith("dtrain/"):
        return ""
    other = name.split("/")[1]
    home = path.split("/")[1] if path.startswith("src/") else folder
    if other in (folder, home) or other in rows.get(folder, set()) | rows.get(home, set()):
        return ""
    return f"<{name}>: {folder} does not know {other} (LINK of its CMakeLists.txt)"
