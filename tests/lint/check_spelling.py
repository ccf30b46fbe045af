"""Words are spelt right; words that codespell does not know stand in spelling-words.txt."""

import pathlib

from lint import Finding, Tree, parse, run_tool

WORDS = pathlib.Path(__file__).resolve().parent / "spelling-words.txt"
MISTAKE = "recie" + "ve"

CLEAN = {"a.md": "receive\n"}
PLANTED = {"a.md": f"{MISTAKE} HERE\n"}


def check(tree: Tree) -> list[Finding]:
    text = [path for path in tree.files if b"\0" not in (tree.root / path).read_bytes()[:8192]]
    own = str(WORDS.relative_to(WORDS.parents[2]))
    return parse(run_tool(tree, ["codespell", "-I", str(WORDS), *[path for path in text if path != own]]))
