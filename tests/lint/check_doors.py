"""Every door compiles as a translation unit of its own, so that it may be included first.

Each takes a second or more: the doors that changed last are checked, all of them with DTRAIN_LINT_ALL=1.
"""

import concurrent.futures
import os
import shlex

from lint import Finding, Tree, parse, run_tool

CLEAN = {"include/dtrain/base/text.hpp": "#pragma once\n#include <string>\nstd::string trim(std::string text);\n"}
PLANTED = {"include/dtrain/base/units.hpp": "#pragma once\nstd::string trim(); // HERE: no <string>\n"}


CHECKED = 60


def check(tree: Tree) -> list[Finding]:
    doors = tree.select(".hpp", under="include/")
    if os.environ.get("DTRAIN_LINT_ALL") != "1":
        doors = tree.changed_last(doors, CHECKED)
    with concurrent.futures.ThreadPoolExecutor(max_workers=2) as pool:
        results = pool.map(lambda path: compile_alone(tree, path), doors)
    return [finding for result in results for finding in result]


def compile_alone(tree: Tree, path: str) -> list[Finding]:
    compiler = shlex.split(os.environ.get("CXX", "c++"))
    flags = ["-std=c++20", "-fsyntax-only", "-Wall", "-Wextra", "-Iinclude", "-x", "c++", "-include", path, os.devnull]
    output = run_tool(tree, compiler + flags)
    findings = parse(output, "error:") or parse(output, "warning:")
    if not findings and "error" in output:
        findings = [Finding(path, 1, output.splitlines()[0])]
    return findings[:1]
