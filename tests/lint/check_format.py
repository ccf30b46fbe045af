"""Sources look as clang-format 14 (Debian 12) writes them; other versions differ in details and are skipped."""

import pathlib
import re
import shutil

from lint import Finding, Skip, Tree, parse, run_tool

STYLE = (pathlib.Path(__file__).resolve().parents[2] / ".clang-format").read_text()
CLEAN = {".clang-format": STYLE, "src/a.cpp": "int main() { return 0; }\n"}
PLANTED = {"src/a.cpp": "int main(  ) { return 0; } // HERE\n"}


def check(tree: Tree) -> list[Finding]:
    files = tree.select(".cpp", ".hpp")
    output = run_tool(tree, [program(), "--dry-run", "--ferror-limit=1", *files]) if files else ""
    return [Finding(one.path, one.line, "run clang-format -i on it") for one in first_of_each(parse(output, "warning:"))]


def program() -> str:
    name = shutil.which("clang-format-14") or "clang-format"
    version = re.search(r"version (\d+)", run_tool(Tree("."), [name, "--version"]))
    if not version or version[1] != "14":
        raise Skip(f"clang-format {version[1] if version else '?'} is not 14")
    return name


def first_of_each(findings: list[Finding]) -> list[Finding]:
    first = {}
    for finding in findings:
        first.setdefault(finding.path, finding)
    return list(first.values())
