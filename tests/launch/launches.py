"""`dtrain launch` in a scratch folder, and what the programs that it runs tell about themselves."""

from __future__ import annotations

import json
import os
import pathlib
import re
import subprocess
import sys

from world import Job, PATIENCE, World, alive, eventually

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
PROGRAMS = REPOSITORY / "tests" / "launch" / "programs"
PYTHON = sys.executable
DDP = REPOSITORY / "examples" / "launch" / "ddp.py"


class Launches(World):
    """One test's launches, in an environment that says nothing to any framework."""

    def __init__(self, folder: pathlib.Path, data: pathlib.Path):
        super().__init__(folder, data)
        self.environment = {name: value for name, value in self.environment.items()
                            if name in ("PATH", "HOME", "LC_ALL", "DTRAIN_TEST_MARK") or name.startswith("OPENBLAS_")}

    @property
    def job_type(self):
        return Launch

    def launch(self, *words, options=(), check: bool = True, name: str = "job") -> subprocess.CompletedProcess:
        """To its end. `words` are the program's command line."""
        return self.run("launch", "--job-dir", self.folder / name, *options, "--", *words, check=check, timeout=2 * PATIENCE)

    def program(self, name: str) -> pathlib.Path:
        return PROGRAMS / name


class Launch(Job):
    """`dtrain launch` that goes on."""

    def __init__(self, world: World, name: str, words, options=()):
        self.world, self.name, self.folder = world, name, world.folder / name
        self.arguments = ["launch", "--job-dir", self.folder, *options, "--", *words]
        self.process: subprocess.Popen | None = None

    def start(self, *more) -> Launch:
        assert not more, "the program's words come last"
        with open(self.log_path, "ab") as log, open(self.output_path, "ab") as out:
            self.process = subprocess.Popen(self.world.command(self.arguments), cwd=self.world.folder, stdout=out, stderr=log,
                                            env=self.world.environment, stdin=subprocess.DEVNULL)
        return self

    @property
    def output_path(self) -> pathlib.Path:
        return self.world.folder / f"{self.name}.out"

    def output(self) -> str:
        return self.output_path.read_text(errors="replace")

    def wait_line(self, pattern: str, count: int = 1) -> list:
        """Until its ranks printed so many lines that match: all matches."""
        return eventually(lambda: found if len(found := re.findall(pattern, self.output())) >= count else None,
                          f"the output has {count} x {pattern}", 120.0, self)

    def last_words(self) -> str:
        return self.said() + self.output()[-2000:]


class Crew(Launch):
    """Ranks of programs/member.py: each says in a file who it is, and they go on until told to end."""

    def __init__(self, world: World, name: str = "job", options=(), members=(), program=PROGRAMS / "member.py"):
        self.facts = world.folder / f"{name}.members"
        self.facts.mkdir()
        super().__init__(world, name, [PYTHON, program, self.facts, *members], options)
        world.jobs.append(self)

    def members(self, generation: int | None = None) -> list[dict]:
        """By rank; those of the last generation that anybody began."""
        known = [json.loads(path.read_text()) for path in self.facts.glob("*.json")]
        last = generation or max((member["generation"] for member in known), default=0)
        return sorted((member for member in known if member["generation"] == last), key=lambda member: member["rank"])

    def wait_crew(self, world_size: int, after: int = 0) -> list[dict]:
        """Until a later generation than `after` has all of its ranks, so many."""
        def whole():
            members = self.members()
            complete = [member["rank"] for member in members] == list(range(world_size))
            return members if complete and members[0]["generation"] > after else None
        return eventually(whole, f"{world_size} ranks run after generation {after}", job=self)

    def let_end(self) -> Crew:
        (self.facts / "end").touch()
        return self

    def signals(self) -> list[str]:
        """'RANK NUMBER' in the order in which they came."""
        path = self.facts / "signals"
        return path.read_text().splitlines() if path.exists() else []


def expect_gone(pids: list[int], seconds: float = 15) -> None:
    eventually(lambda: not any(alive(pid) for pid in pids), f"the processes {pids} are gone", seconds)


def kill_now(pid: int) -> None:
    os.kill(pid, 9)
