"""Nothing half done: no reminders to ourselves and no code that is switched off."""

import re

from lint import Finding, Tree

# Written so that this file does not contain what it looks for.
LEFTOVER = re.compile(r"\b(TO" r"DO|FIX" r"ME|XX" r"X|HA" r"CK)\b|^\s*#\s*if\s+0\b|^<{7} |^>{7} ")

CLEAN = {"src/a.cpp": "int mktemp_template;  // name.XXXXXX is a template of mktemp\n"}
PLANTED = {"src/a.cpp": "// TO" + "DO HERE\n#if 0  // HERE\n#endif\n"}


def check(tree: Tree) -> list[Finding]:
    return [Finding(path, number, f"'{match[0].strip()}': finish it or leave it out")
            for path in tree.files for number, line in tree.lines(path) for match in [LEFTOVER.search(line)] if match]
