"""Folders know only what stands to their left (src/README.md), and so do the sub-folders of each.

The rows are the LINK lists of src/**/CMakeLists.txt, so what is checked here and what is linked cannot differ; PARTS in these
lists is the order of a folder's sub-folders. Files directly in a folder may be used by its sub-folders and may use them.
Libraries meet through public headers, <dtrain/...>; the folders of the application, which nothing else links, include each
other's headers by their path below src.
"""

import posixpath
import re

from lint import Finding, Tree

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
ROW = re.compile(r"dtrain_folder\((\w+)(.*?)\)", re.S)
ORDER = re.compile(r"foreach\(folder ([\w ]+)\)")
APPLICATION = {"config", "job", "board", "doctor", "plot", "bench", "cli"}
GENERATED = re.compile(r"configure_file\(\S+ \S*?([\w.]+) @ONLY\)")
KEYWORDS = ("SOURCES", "ALONE", "PARTS", "LINK", "PRIVATE_LINK")

CLEAN = {
    "CMakeLists.txt": "foreach(folder base data config job)\n",
    "src/base/CMakeLists.txt": "dtrain_folder(base\n  SOURCES text.cpp)\n",
    "src/data/CMakeLists.txt": "dtrain_folder(data\n  SOURCES record.cpp pack/box.cpp\n  PARTS codec pack\n  LINK base)\n",
    "src/data/frame.hpp": "#pragma once\n",
    "src/data/codec/png.hpp": '#include "frame.hpp"\n',
    "src/data/pack/box.cpp": '#include "codec/png.hpp"\n',
    "src/data/record.cpp": '#include <dtrain/data/record.hpp>\n#include <dtrain/base/text.hpp>\n#include "frame.hpp"\n',
    "src/config/CMakeLists.txt": "dtrain_folder(config\n  SOURCES a.cpp\n  LINK base)\n",
    "src/config/options.hpp": "#pragma once\n",
    "src/job/CMakeLists.txt": "dtrain_folder(job\n  SOURCES b.cpp\n  LINK base config)\n",
    "src/job/run.cpp": '#include "config/options.hpp"\n',
    "include/dtrain/base/text.hpp": "#include <string>\n",
    "include/dtrain/data/record.hpp": "#include <dtrain/base/text.hpp>\n",
}
PLANTED = {
    "src/base/CMakeLists.txt": "dtrain_folder(base\n  SOURCES text.cpp\n  LINK data) # HERE: data stands to the right\n",
    "src/base/text.cpp": '#include "../data/frame.hpp"  // HERE: a library has public headers\n',
    "src/data/record.cpp": "#include <dtrain/train/plan.hpp>  // HERE: not in the row\n",
    "src/data/codec/png.hpp": '#include "pack/box.hpp"  // HERE: a part to the right\n#include "data/frame.hpp"  // HERE: a long way\n',
    "src/data/pack/box.hpp": '#include "gone.hpp"  // HERE: no such file\n',
    "src/config/options.hpp": '#include "job/work.hpp"  // HERE: config does not know job\n',
    "src/job/work.hpp": "#pragma once\n",
    "include/dtrain/data/record.hpp": '#include "frame.hpp"  // HERE: public headers name public headers\n#include <dtrain/cli/run.hpp>  // HERE\n',
}


def check(tree: Tree) -> list[Finding]:
    rows, homes, parts, found = read_rows(tree)
    made = {name for path in tree.select("CMakeLists.txt", under="src/") for name in GENERATED.findall(tree.text(path))}
    for path in tree.select(".cpp", ".hpp", ".h", ".inc", under="src/") + tree.select(".hpp", under="include/"):
        folder = folder_of(path, homes)
        if not folder:
            continue
        for number, line in tree.lines(path):
            match = INCLUDE.match(line)
            if not match or match[2] in made:
                continue
            reason = (why_quoted(tree, path, folder, rows, parts, match[2]) if match[1] == '"'
                      else why_public(path, folder, rows, match[2]))
            if reason:
                found.append(Finding(path, number, reason))
    return found


def read_rows(tree: Tree):
    """rows {folder: folders it may use}, homes {src path: folder}, parts {folder: its sub-folders in order}, and findings of
    rows that point to the right."""
    order = (ORDER.search(tree.text("CMakeLists.txt")) or [None, ""])[1].split()
    rows, homes, parts, found = {}, {}, {}, []
    for path in tree.select("CMakeLists.txt", under="src/"):
        text = tree.text(path)
        for match in ROW.finditer(text):
            lists = keyword_lists(match[2].split())
            links = lists.get("LINK", [])
            rows[match[1]] = set(links)
            parts[match[1]] = lists.get("PARTS", [])
            homes[posixpath.dirname(path)] = match[1]
            end = text[:match.end()].count("\n") + 1
            if match[1] in order:
                late = [name for name in links if name in order and order.index(name) > order.index(match[1])]
                found += [Finding(path, end, f"{match[1]} links {name}, which stands to its right") for name in late]
    return rows, homes, parts, found


def keyword_lists(words: list[str]) -> dict[str, list[str]]:
    lists, current = {}, None
    for word in words:
        if word in KEYWORDS:
            current = lists.setdefault(word, [])
        elif current is not None:
            current.append(word)
    return lists


def folder_of(path: str, homes: dict[str, str]) -> str:
    if path.startswith("include/dtrain/"):
        return path.split("/")[2]
    home = posixpath.dirname(path)
    while home and home not in homes:
        home = posixpath.dirname(home)
    return homes.get(home, "")


def why_quoted(tree: Tree, path: str, folder: str, rows, parts, name: str) -> str:
    if path.startswith("include/"):
        return f'"{name}": a public header includes only <dtrain/...> and the standard library'
    root = "/".join(path.split("/")[:2])
    top = root.split("/")[1]
    beside = posixpath.normpath(posixpath.join(posixpath.dirname(path), name))
    target = next((one for one in (beside, f"{root}/{name}", f"src/{name}") if one in tree.files), "")
    if not target:
        return f'"{name}": no such file'
    other = target.split("/")[1]
    if other != top:
        if top not in APPLICATION or other not in APPLICATION:
            return f'"{name}" leaves {root}: use a public header, <dtrain/...>'
        return "" if other in rows.get(top, set()) else f'"{name}": {top} does not know {other} (LINK of its CMakeLists.txt)'
    if target == f"src/{name}" and top not in APPLICATION:
        return f'"{name}": inside {root} paths begin there'
    mine, theirs = part_of(path, parts.get(folder, [])), part_of(target, parts.get(folder, []))
    if mine is not None and theirs is not None and theirs > mine:
        return f'"{name}": {parts[folder][mine]} does not know {parts[folder][theirs]} (PARTS of {root}/CMakeLists.txt)'
    return ""


def part_of(path: str, parts: list[str]):
    """The place of the file's sub-folder among `parts`; None for a file directly in the folder."""
    words = path.split("/")
    return parts.index(words[2]) if len(words) > 3 and words[2] in parts else None


def why_public(path: str, folder: str, rows, name: str) -> str:
    if not name.startswith("dtrain/"):
        return ""
    other = name.split("/")[1]
    home = path.split("/")[1] if path.startswith("src/") else folder
    if other in (folder, home) or other in rows.get(folder, set()) | rows.get(home, set()):
        return ""
    return f"<{name}>: {folder} does not know {other} (LINK of its CMakeLists.txt)"
