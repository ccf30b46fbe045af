"""A queue of jobs, with its commands and its runners."""

from __future__ import annotations

import json
import pathlib
import subprocess

from world import World, eventually


class Queue:
    def __init__(self, world: World):
        self.world, self.folder, self.runners = world, world.folder / "q", 0

    def run(self, *words) -> subprocess.Popen:
        """A runner. Its notes are in its own file."""
        self.runners += 1
        with open(self.world.folder / f"runner{self.runners}.err", "wb") as log:
            return subprocess.Popen(self.world.command(["jobs", "run", "--job-queue", self.folder, *words]),
                                    cwd=self.world.folder, env=self.world.environment, stdin=subprocess.DEVNULL,
                                    stdout=log, stderr=log)

    def said(self, number: int) -> str:
        return (self.world.folder / f"runner{number}.err").read_text()

    def give(self, *words, before=(), check: bool = True) -> subprocess.CompletedProcess:
        at = words.index("--") if "--" in words else len(words)
        return self.world.run(*words[:at], *before, "--detach", "--job-queue", self.folder, *words[at:], check=check)

    def jobs(self, verb: str, *words, check: bool = True, timeout: float = 120) -> subprocess.CompletedProcess:
        return self.world.run("jobs", verb, *words, "--job-queue", self.folder, check=check, timeout=timeout)

    def show(self, number: int) -> dict:
        return json.loads(self.jobs("show", number, "--json").stdout)

    def wait_for(self, number: int, condition, what: str, seconds: float = 60) -> dict:
        try:
            return eventually(lambda: (seen := self.show(number)) and condition(seen) and seen, what, seconds)
        except AssertionError as error:
            log = self.folder / f"{number:04d}" / "output.log"
            raise AssertionError(f"{error}\n{self.show(number)}\n{log.read_text() if log.exists() else 'no output'}") from None

    def process(self, number: int) -> int:
        record = self.folder / f"{number:04d}" / "attempt.pid"
        return int(eventually(lambda: record.exists() and record.read_text().split(), f"{record} is written")[0])


def end(runner: subprocess.Popen) -> None:
    runner.terminate()
    assert runner.wait(60) == 0


def checkpoints(prefix: pathlib.Path) -> list[str]:
    return sorted(path.name for path in prefix.parent.glob(f"{prefix.name}-*.json"))


def give_training(queue: Queue, job, epochs: int) -> None:
    queue.give(*job.training_arguments, "--num-epochs", epochs, "--model-prefix", job.prefix)
