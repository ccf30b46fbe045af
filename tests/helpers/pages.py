"""The command lines of a page in Markdown: pages.py parse DTRAIN PAGE... tries every `dtrain` line of ```sh blocks and of
indented ones with --show-config; pages.py script PAGE prints what its ```sh run blocks say, as one script."""

import pathlib
import re
import shlex
import subprocess
import sys

FENCE = re.compile(r"^```(.*)$")


def blocks(text: str):
    """(info, [lines]) of fenced blocks; indented lines are blocks with the info "sh"."""
    info, lines = None, []
    for line in text.splitlines():
        fence = FENCE.match(line)
        if fence and info is None:
            info, lines = fence[1].strip(), []
        elif fence:
            yield info, lines
            info = None
        elif info is not None:
            lines.append(line)
        elif line.startswith("    dtrain "):
            yield "sh", [line.strip()]


def commands(lines: list[str]):
    """Words of each `dtrain` command, without pipes, redirections, comments and `...`."""
    for line in "\n".join(lines).replace("\\\n", " ").splitlines():
        lexer = shlex.shlex(line, posix=True, punctuation_chars="();<>|&")
        lexer.whitespace_split = True
        words: list[str] = []
        for word in [*lexer, ";"]:
            if not set(word) <= set("();<>|&"):
                words += [word] if word != "..." else []
                continue
            if words[:1] == ["dtrain"]:
                yield words[1:]
            words = []


def parse(program: str, pages: list[str]) -> int:
    bad = count = 0
    for page in pages:
        for info, lines in blocks(pathlib.Path(page).read_text()):
            for words in commands(lines) if info.split()[:1] == ["sh"] else []:
                count += 1
                answer = subprocess.run([program, "--show-config", *words], capture_output=True, text=True, check=False)
                if answer.returncode != 0:
                    bad += 1
                    print(f"{page}: dtrain {shlex.join(words)}: {answer.stderr.strip()}")
    print(f"{count} commands")
    return 1 if bad or not count else 0


def script(page: str) -> int:
    for info, lines in blocks(pathlib.Path(page).read_text()):
        if info == "sh run":
            print("\n".join(lines))
    return 0


if __name__ == "__main__":
    sys.exit(parse(sys.argv[2], sys.argv[3:]) if sys.argv[1] == "parse" else script(sys.argv[2]))
