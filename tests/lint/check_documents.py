"""What the documents tell a reader to open or to run is there: links, scripts, presets and dtrain's subcommands."""

import functools
import os
import posixpath
import re
import subprocess

from lint import Finding, Tree

LINK = re.compile(r"\]\(([^)#\s:]+)(?:#[^)]*)?\)")
SCRIPT = re.compile(r"(?:^|[\s`])(?:bash |\./)?((?:examples|tests|packaging|\.ci)/[\w./-]*\w)")
PRESET = re.compile(r"--preset[ =](\w+)")
COMMAND = re.compile(r"^\s*(?:\$ )?dtrain ([a-z][\w-]*)")

CLEAN = {
    "README.md": "[design](src/README.md) and `bash tests/run.sh`\n", "src/README.md": "", "tests/run.sh": "",
    "CMakePresets.json": '{"name": "dev"}\n',
}
PLANTED = {
    "README.md": "[design](src/GONE.md) HERE\nbash tests/gone.sh # HERE\ncmake --preset gone # HERE\n",
}


def check(tree: Tree) -> list[Finding]:
    found = []
    for path in tree.select(".md"):
        is_code = False
        for number, line in tree.lines(path):
            is_code ^= line.lstrip().startswith("```")
            gone = missing(tree, path, line) + (commands(line) if is_code else [])
            found += [Finding(path, number, f"{target} is not there") for target in gone]
    return found


def missing(tree: Tree, path: str, line: str) -> list[str]:
    folder = posixpath.dirname(path)
    links = [posixpath.normpath(posixpath.join(folder, target)) for target in LINK.findall(line)]
    files = [name for name in links + SCRIPT.findall(line)
             if not (tree.root / name).exists() and not (tree.root / folder / name).exists()]
    presets = tree.text("CMakePresets.json") if "CMakePresets.json" in tree.files else ""
    presets = [f"preset {name}" for name in PRESET.findall(line) if f'"name": "{name}"' not in presets]
    return files + presets


def commands(line: str) -> list[str]:
    return [f"dtrain {name}" for name in COMMAND.findall(line) if not is_command(name)]


@functools.cache
def is_command(name: str) -> bool:
    """Asks the program of $DTRAIN, which tests/run.sh sets; without it every name is believed."""
    program = os.environ.get("DTRAIN")
    if not program or not os.path.exists(program):
        return True
    return subprocess.run([program, name, "--help"], capture_output=True, check=False).returncode == 0
