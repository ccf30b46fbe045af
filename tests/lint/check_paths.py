"""A path in backticks in the pages about the sources (src/README.md, src/docs, tests/README.md) exists.

`X/Y.hpp` stands in src, include/dtrain, tests or the root, or ends the path of a file there, as `kernels/sums.hpp` does;
`*` matches any name. A name of a source file is always taken for a path. A name without a suffix is one where it begins
with a folder of the project: a folder, or a file whose suffix the page leaves out. PLACEHOLDERS are in capitals.
"""

import fnmatch
import functools
import posixpath
import re

from lint import Finding, Tree

QUOTED = re.compile(r"`([^`]+)`")
PATH = re.compile(r"[\w.*-]+(?:/[\w.*-]+)*/?")
SOURCE = re.compile(r"\.(?:cpp|hpp|cu|py|sh)$")
SUFFIX = re.compile(r"\.\w+$")
PLACEHOLDER = re.compile(r"[A-Z]+(?:[._-].*)?")
ROOTS = ("", "src/", "include/dtrain/", "tests/")

CLEAN = {
    "src/README.md": "`base/text.hpp`, `base/text`, `text.cpp`, `data/*.cpp`, `tests/unit`, `X/Y.hpp`, `unit/FOLDER`\n"
                     "`python3 tests/run.sh`, `runs/7/step`, `logs/one.log`, `--out s3://a/b`\n",
    "include/dtrain/base/text.hpp": "", "src/base/text.cpp": "", "src/data/pack/box.cpp": "", "src/data/read.cpp": "",
    "tests/unit/text_test.cpp": "", "tests/run.sh": "", "src/docs/page.md": "`pack/box.cpp`, `elsewhere/gone`\n",
    "examples/a.md": "`base/gone.hpp`: a page about the use of dtrain\n",
}
PLANTED = {
    "src/docs/page.md": "`base/gone.hpp` HERE\n`box.hpp` HERE\n`data/x*.cpp` HERE\n`data/gone` HERE\n`bash tests/gone.sh` HERE\n",
    "tests/README.md": "`unit/gone_test.cpp` HERE\n",
}


def check(tree: Tree) -> list[Finding]:
    pages = [path for path in tree.select(".md", under="src/") + ["tests/README.md"] if path in tree.files]
    places = places_of(tuple(tree.files))
    return [Finding(page, number, f"{word}: there is no such file or folder")
            for page in pages for number, line in tree.lines(page)
            for word in words_of(line) if is_path(word, places) and not exists(word, places)]


@functools.cache
def places_of(files: tuple[str, ...]) -> frozenset[str]:
    """The files, with and without their suffix, and the folders, by each name that a page may use for them."""
    names = set(files)
    for path in files:
        names.add(SUFFIX.sub("", path))
        while path := posixpath.dirname(path):
            names.add(path)
    return frozenset(names | {name.removeprefix(root) for name in names for root in ROOTS if name.startswith(root)})


def words_of(line: str) -> list[str]:
    return [word.rstrip("/") for quoted in QUOTED.findall(line) for word in quoted.split() if PATH.fullmatch(word)]


def is_path(word: str, places: frozenset[str]) -> bool:
    parts = word.split("/")
    if any(PLACEHOLDER.fullmatch(part) for part in parts):
        return False
    if SOURCE.search(word):
        return True
    return len(parts) > 1 and not SUFFIX.search(word) and parts[0] in places


def exists(word: str, places: frozenset[str]) -> bool:
    if "*" in word:
        return any(fnmatch.fnmatchcase(place, word) or fnmatch.fnmatchcase(place, f"*/{word}") for place in places)
    return word in places or any(place.endswith(f"/{word}") for place in places)
