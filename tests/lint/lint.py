"""What every check of this folder shares: the tree under test, findings, and the proof that a check can fail.

A check is a module `check_NAME.py` with
    check(tree) -> list of Finding
    CLEAN   {path: text}: a small tree in which it finds nothing
    PLANTED {path: text}: files laid over CLEAN; the text `HERE` marks each line that must be found, and no other
"""

from __future__ import annotations

import dataclasses
import os
import pathlib
import subprocess
import tempfile


class Skip(Exception):
    """The check's tool is missing here, or another version than the one the project is formatted with."""


@dataclasses.dataclass(frozen=True, order=True)
class Finding:
    path: str
    line: int
    message: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.message}"


class Tree:
    """The files of the project: what git tracks or would track; every file where there is no git."""

    def __init__(self, root: str | os.PathLike[str]):
        self.root = pathlib.Path(root)
        self.files = sorted(path for path in self._list() if (self.root / path).is_file())

    def text(self, path: str) -> str:
        return (self.root / path).read_text(encoding="utf-8", errors="replace")

    def lines(self, path: str):
        """(number from 1, line) of a file."""
        return enumerate(self.text(path).split("\n"), start=1)

    def select(self, *suffixes: str, under: str = "") -> list[str]:
        return [path for path in self.files if path.startswith(under) and path.endswith(suffixes)]

    def scripts(self) -> list[str]:
        """Bash scripts, by name or by first line."""
        return [path for path in self.files if path.endswith(".sh") or self._first_line(path).endswith("bash")]

    def changed_last(self, paths: list[str], count: int) -> list[str]:
        """Those of the paths that changed last; all of them where no history says."""
        log = ["git", "-c", "safe.directory=*", "-C", str(self.root), "log", "-n", "300", "--format=", "--name-only"]
        answer = subprocess.run(log, capture_output=True, text=True, check=False)
        known = set(paths)
        newest = [path for path in dict.fromkeys(answer.stdout.split("\n")) if path in known]
        return sorted(newest[:count]) or paths

    def _first_line(self, path: str) -> str:
        with open(self.root / path, "rb") as file:
            first = file.readline(80)
        return first.decode(errors="replace").strip() if first.startswith(b"#!") else ""

    def _list(self) -> list[str]:
        git = ["git", "-c", "safe.directory=*", "-C", str(self.root), "ls-files", "-co", "--exclude-standard", "-z"]
        if (self.root / ".git").exists():
            answer = subprocess.run(git, capture_output=True, text=True, check=False)
            if answer.returncode == 0:
                return [path for path in answer.stdout.split("\0") if path]
        ignored = {".git", ".venv", "build", "__pycache__"}
        found = []
        for folder, folders, names in os.walk(self.root):
            folders[:] = [name for name in folders if name not in ignored]
            found += [os.path.relpath(os.path.join(folder, name), self.root) for name in names]
        return found


def run_tool(tree: Tree, command: list[str]) -> str:
    """Output of a checking tool, run in the tree's root; a missing tool is a Skip."""
    try:
        answer = subprocess.run(command, cwd=tree.root, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        raise Skip(f"{command[0]} is not installed (packaging/install-deps.sh test)") from None
    return answer.stdout + answer.stderr


def parse(output: str, keep: str = "") -> list[Finding]:
    """Findings from the `path:line[:column]: message` lines of a tool's output that contain `keep`."""
    found = []
    for line in output.splitlines():
        path, _, rest = line.partition(":")
        number, _, message = rest.partition(":")
        if number.isdigit() and keep in message:
            found.append(Finding(path.removeprefix("./"), int(number), message.strip()))
    return found


def self_test(check) -> str:
    """Why the check cannot be trusted; empty if it finds exactly what is planted, and nothing in the clean tree."""
    clean = _findings_in(check, check.CLEAN)
    if clean:
        return f"finds something in its clean tree: {clean[0]}"
    planted = {**check.CLEAN, **check.PLANTED}
    expected = {(path, number) for path, text in check.PLANTED.items()
                for number, line in enumerate(text.split("\n"), start=1) if "HERE" in line}
    found = {(finding.path, finding.line) for finding in _findings_in(check, planted)}
    if not expected or found != expected:
        return f"planted {sorted(expected)}, found {sorted(found)}"
    return ""


def _findings_in(check, files: dict[str, str]) -> list[Finding]:
    with tempfile.TemporaryDirectory() as folder:
        for path, text in files.items():
            target = pathlib.Path(folder) / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text)
        return check.check(Tree(folder))
