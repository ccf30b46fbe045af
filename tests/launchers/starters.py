"""The common part of the launchers' tests: a short job under a process starter, checked like any other job."""

from __future__ import annotations

import json
import os
import pathlib
import shutil
import signal
import subprocess

from cluster import PROGRAM, Cluster, HostsJob
from runner import Skip
from world import PATIENCE, eventually, send_signal

EPOCHS = 2


def need(*programs: str) -> None:
    for program in programs:
        if not shutil.which(program):
            raise Skip(f"no program {program} here")


def expect_same_bits(world: Cluster, job: HostsJob) -> None:
    """A successful job computed the same as one process."""
    assert job.state_hash() == world.alone(job, EPOCHS), "other bits"
    job.expect_exactly_once(EPOCHS)


def without_hosts(job: HostsJob) -> HostsJob:
    """No -H: the scheduler chooses the hosts."""
    at = job.arguments.index("-H")
    del job.arguments[at:at + 2]
    return job


def start_inside(job: HostsJob, *words: str) -> HostsJob:
    """The words before the command, which they run."""
    world = job.world
    with open(job.log_path, "ab") as log:
        job.process = subprocess.Popen(world.seat.command([*words, PROGRAM, *job.arguments], world.folder),
                                       env=world.environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    return job


def expect_token_in_no_sight(world: Cluster, job: HostsJob) -> None:
    """Neither a command line nor an environment holds the token, and no file of the folder does but the coordinator's."""
    token = json.loads((job.folder / "coordinator.json").read_text())["token"].encode()
    for host in world.lab.hosts:
        for pid in host.processes():
            for part in ("cmdline", "environ"):
                try:
                    assert token not in pathlib.Path(f"/proc/{pid}/{part}").read_bytes(), f"{part} of {pid}"
                except OSError:
                    pass
    holders = [path.name for path in job.folder.rglob("*") if path.is_file() and token in path.read_bytes()]
    assert holders == ["coordinator.json"], holders


def expect_ranks(world: Cluster, *options: object) -> None:
    """`dtrain launch` with these options runs two ranks of a program, each on its own machine, and returns the result."""
    script = 'echo "rank $RANK of $WORLD_SIZE on $(hostname)"; exit $((RANK * CODE))'
    words = ["launch", *options, "--job-dir", world.folder / "launch", "--env", "CODE=0", "--", "sh", "-c", script]
    said = sorted(line.split(" ", 1)[1] for line in world.run(*words).stdout.splitlines())
    assert [line.rsplit(" ", 1)[0] for line in said] == ["rank 0 of 2 on", "rank 1 of 2 on"], said
    assert len({line.rsplit(" ", 1)[1] for line in said}) == 2, said
    words[words.index("CODE=0")] = "CODE=3"
    failed = world.run(*words, check=False)
    assert failed.returncode == 1 and "its program ended with exit code 3" in failed.stderr, failed.stderr
    expect_nothing_left(world)


def stop_by_signal(job: HostsJob, number: int = signal.SIGINT) -> int:
    """The exit code of the command that the user started."""
    send_signal(person_s_process(job), number)
    return job.wait()


def person_s_process(job: HostsJob) -> int:
    """The command itself, below the nsenter that brought it to its machine."""
    return eventually(lambda: child_of(job.process.pid), "the command runs")


def child_of(pid: int) -> int:
    words = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return int(words[0]) if words else 0


def environment_of(pid: int) -> dict[str, str]:
    pairs = pathlib.Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    return dict(os.fsdecode(pair).split("=", 1) for pair in pairs if b"=" in pair)


def expect_nothing_left(world: Cluster) -> None:
    eventually(lambda: not world.processes(), "no process of dtrain is left", PATIENCE)
