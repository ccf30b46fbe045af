"""--launcher yarn against a stand-in of the ResourceManager that checks requests against Hadoop's documentation. It was
never run against a real YARN."""

import pathlib
import shutil

from cluster import Cluster
from lab import SHARED
from starters import (EPOCHS, expect_nothing_left, expect_same_bits, expect_token_in_no_sight, stop_by_signal,
                      without_hosts)
from world import eventually

HERE = pathlib.Path(__file__).resolve().parent
ADDRESS = "http://127.0.0.1:8088"


def yarn(world: Cluster) -> pathlib.Path:
    """The list of requests."""
    world.boot("h1")
    folder = SHARED / "yarn"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    shutil.copy(HERE / "resource_manager.py", folder)
    world.seat.start("/usr/bin/python3", folder / "resource_manager.py", 8088, folder)
    eventually(lambda: world.seat.run("bash", "-c", "exec 3<>/dev/tcp/127.0.0.1/8088", check=False).returncode == 0,
               "the ResourceManager answers")
    return folder / "requests"


def yarn_job(world: Cluster, name: str = "job", arguments=(), **options):
    return without_hosts(world.job(name, launcher="yarn", arguments=["-n", 2, "--yarn-rm", ADDRESS, *arguments], **options))


def test_applications_of_agents(world: Cluster):
    """Two agents are two applications; the bits are those of one process, and all requests are documented."""
    requests = yarn(world)
    job = yarn_job(world, epochs=EPOCHS, arguments=["--queue", "training", "--yarn-memory", 2048]).start().finish()
    expect_same_bits(world, job)
    lines = requests.read_text().splitlines()
    assert sum(line == "202 POST /ws/v1/cluster/apps" for line in lines) == 2, lines
    assert not [line for line in lines if line.startswith("400")], lines
    assert not list(job.folder.glob("join_*")) and not list(job.folder.glob("command_*")), "a file is left"


def test_ends_by_ctrl_c(world: Cluster):
    """Ctrl-C saves, ends with 75 and leaves no process."""
    yarn(world)
    job = yarn_job(world).start()
    eventually(lambda: [host["state"] for host in job.list()["hosts"]] == ["member"] * 2, "two workers train", job=job)
    job.wait_steps(1)
    expect_token_in_no_sight(world, job)
    assert stop_by_signal(job) == 75, job.said()
    expect_nothing_left(world)


def test_says_what_is_wrong(world: Cluster):
    """An unknown queue is reported with the ResourceManager's message, and a missing ResourceManager by its address."""
    yarn(world)
    job = yarn_job(world, elastic=False, arguments=["--queue", "nope"]).start()
    assert job.wait() not in (0, 75)
    assert "unknown queue: nope" in job.said(), job.said()
    job = yarn_job(world, "away", elastic=False)
    job.arguments[job.arguments.index(ADDRESS)] = "http://127.0.0.1:9"
    job.start()
    assert job.wait() not in (0, 75)
    assert "http://127.0.0.1:9" in job.said(), job.said()
