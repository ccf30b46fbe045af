#!/usr/bin/env python3
"""Runs the checks of this folder: tests/lint/run.py [NAME...]. Each first proves on a planted tree that it can fail.

Findings are printed as path:line: message. The last line is `N passed, N failed` (`, N skipped`).
"""

import importlib
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.dont_write_bytecode = True
sys.path.insert(0, str(HERE))

import lint  # noqa: E402  (found through the line above)


def main(names: list[str]) -> int:
    tree = lint.Tree(HERE.parent.parent)
    count = {"passed": 0, "failed": 0, "skipped": 0}
    for name in names or sorted(path.stem.removeprefix("check_") for path in HERE.glob("check_*.py")):
        check = importlib.import_module(f"check_{name}")
        count[run_one(name, check, tree)] += 1
    skipped = f", {count['skipped']} skipped" if count["skipped"] else ""
    print(f"{count['passed']} passed, {count['failed']} failed{skipped}")
    return 1 if count["failed"] else 0


def run_one(name: str, check, tree: lint.Tree) -> str:
    try:
        distrust = lint.self_test(check)
        findings = sorted(check.check(tree))
    except lint.Skip as reason:
        print(f"SKIP {name}: {reason}")
        return "skipped"
    for finding in findings:
        print(finding)
    if distrust:
        print(f"tests/lint/check_{name}.py:1: self test: {distrust}")
    if findings or distrust:
        print(f"FAIL {name}")
        return "failed"
    print(f"ok   {name}")
    return "passed"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
