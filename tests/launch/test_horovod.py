"""Horovod's real library (tests/launch/horovod.sh): its ranks find each other and go on after a failure."""

import re

from launches import REPOSITORY, kill_now
from runner import Skip, slow

HOROVOD = REPOSITORY / "build" / "horovod"


def words(world, *arguments) -> list:
    if not (HOROVOD / ".ready").exists():
        raise Skip("no Horovod here: tests/launch/horovod.sh builds it")
    world.environment["OMP_NUM_THREADS"] = "1"
    return [HOROVOD / "bin" / "python", world.program("horovod_train.py"), *arguments]


def weights(output: str) -> list[tuple[float, ...]]:
    return [tuple(map(float, line.split())) for line in re.findall(r"rank \d ends with weights (.*)", output)]


def near(have, want, most: float = 2e-5) -> bool:
    return max(abs(a - b) for a, b in zip(have, want)) < most


@slow
def test_ranks_train_together(world):
    """Two and four ranks end with the weights of one, each with its own rank."""
    (want,) = weights(world.launch(*words(world), options=["-n", 1], name="one").stdout)
    for ranks in (2, 4):
        answer = world.launch(*words(world), options=["-n", ranks], name=f"with{ranks}")
        named = re.findall(rf"rank (\d) of {ranks}, local (\d) of {ranks}, ", answer.stdout)
        assert sorted(named) == [(str(rank), str(rank)) for rank in range(ranks)], answer.stdout
        together = weights(answer.stdout)
        assert len(together) == ranks and len(set(together)) == 1 and near(together[0], want), (together, want)


@slow
def test_a_killed_rank(world):
    """kill -9 of a rank: all start again from the script's checkpoint and end with the weights of an undisturbed run."""
    undisturbed = weights(world.launch(*words(world), options=["-n", 2], name="undisturbed").stdout)
    script = words(world, "--pause", 0.05, "--checkpoint", world.folder / "net.pt")
    job = world.job(words=script, options=["-n", 2, "--elastic"]).start()
    job.wait_line(r"step 1\d")
    kill_now(int(job.wait_line(r"rank 1 of 2, .*is process (\d+)")[0]))
    job.wait_line(r"rank 1 of 2, .*is process (\d+)", count=2)
    job.finish()
    assert near(weights(job.output())[0], undisturbed[0]), job.output()[-2000:]
    steps = list(map(int, re.findall(r"step (\d+)", job.output())))
    assert set(steps) == set(range(1, 41)) and len(steps) < 60, "it began anew, and not from its checkpoint"


@slow
def test_a_host_joins(world):
    """A host that joins makes a third rank, which gets the others' weights."""
    (want,) = weights(world.launch(*words(world), options=["-n", 1], name="one").stdout)
    script = words(world, "--pause", 0.05, "--checkpoint", world.folder / "net.pt")
    job = world.job(words=script, options=["-n", 2, "--elastic"]).start()
    job.wait_line(r"step 1\d")
    job.hosts_command("add", "w9")
    job.wait_line(r"rank 2 of 3, .*is process")
    job.finish()
    together = weights(job.output())
    # 64 samples in three parts: the mean of the ranks' means is not quite that of all samples.
    assert len(together) == 3 and all(near(each, want, 1e-3) for each in together), (together, want)
