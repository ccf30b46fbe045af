"""Phrases that are wrong or clumsy English have a plain form, which BETTER names. The change log keeps its old entries."""

import re

from lint import Finding, Tree

# Written so that this file does not contain what it looks for.
BETTER = {
    "in the pl" "ace of": "instead of",
    "belong in" "to": "belong in",
    "belongs in" "to": "belongs in",
    "at the beg" "in of": "at the beginning of",
}
BREAK = r"[\s\"]+(?:(?://|#)\s*)?\"?"  # between two words: also the end of a line, of a comment or of a string literal
PHRASE = re.compile(r"\b(" + "|".join(words.replace(" ", BREAK) for words in BETTER) + r")\b", re.IGNORECASE)

CLEAN = {"a.md": "instead of it, in place of it; what belongs in the file\n", "CHANGELOG.md": "in the pl" "ace of\n"}
PLANTED = {
    "a.md": "HERE: in the pl" "ace of the other\nHERE: at the beg" "in of it\nHERE: it belongs\n" "in" "to it\n",
    "src/a.cpp": '// HERE: in the\n// pl' 'ace of it\nanswer("HERE: does not belong "\n       "' 'in' 'to it");\n',
}


def check(tree: Tree) -> list[Finding]:
    found = []
    for path in tree.files:
        if path == "CHANGELOG.md":
            continue
        text = tree.text(path)
        for match in PHRASE.finditer(text):
            plain = " ".join(re.findall(r"\w+", match[0])).lower()
            found.append(Finding(path, text.count("\n", 0, match.start()) + 1, f"'{plain}': say '{BETTER[plain]}'"))
    return found
