"""One idea a file: none is longer than 400 lines."""

from lint import Finding, Tree

LIMIT = 400

CLEAN = {"src/a.cpp": "int a;\n" * LIMIT}
PLANTED = {"src/b.cpp": "int b;\n" * LIMIT + "int b;  // HERE\n"}


def check(tree: Tree) -> list[Finding]:
    return [Finding(path, LIMIT + 1, f"{count} lines: look for the second idea (limit {LIMIT})")
            for path in tree.select(".cpp", ".hpp", ".py", ".sh", ".cmake", "CMakeLists.txt", ".md")
            for count in [tree.text(path).count("\n")] if count > LIMIT]
