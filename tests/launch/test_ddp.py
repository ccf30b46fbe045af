"""An ordinary PyTorch script (examples/launch/ddp.py) under dtrain launch and under torchrun."""

import re
import subprocess

from launches import DDP, PYTHON, REPOSITORY, kill_now
from runner import Skip, slow
from world import PATIENCE

STEPS = re.compile(r"step (\d+) loss ([\d.]+)")


def ready(world) -> None:
    if subprocess.run([PYTHON, "-c", "import torch"], check=False, capture_output=True).returncode != 0:
        raise Skip("no torch here: install python3-torch")
    world.environment["OMP_NUM_THREADS"] = "1"  # the sums of more threads are others


def under_torchrun(world, ranks: int, *arguments) -> str:
    command = [PYTHON, REPOSITORY / "tests" / "helpers" / "torchrun.py", "--standalone", "--nproc_per_node", str(ranks), DDP,
               "--checkpoint", world.folder / "torchrun.pt", *map(str, arguments)]
    answer = subprocess.run(command, cwd=world.folder, env=world.environment, check=False, capture_output=True,
                            text=True, timeout=3 * PATIENCE)
    assert answer.returncode == 0, answer.stderr[-3000:]
    return answer.stdout


def final_line(output: str) -> str:
    lines = re.findall(r"done after .*", output)
    assert len(lines) == 1, output[-3000:]
    return lines[0]


def ddp(world, *arguments) -> list:
    return [PYTHON, DDP, "--checkpoint", world.folder / "ddp.pt", *arguments]


def expect_torchruns_loss(world, ranks: int) -> None:
    ready(world)
    answer = world.launch(*ddp(world), options=["-n", ranks])
    assert sorted(re.findall(rf"rank (\d) of {ranks}", answer.stdout)) == [str(rank) for rank in range(ranks)], answer.stdout
    assert final_line(answer.stdout) == final_line(under_torchrun(world, ranks)), "torchrun ended with another loss"


def test_two_ranks(world):
    """Two ranks end with exit 0 and with the loss of torchrun, to the last digit."""
    expect_torchruns_loss(world, 2)


def test_four_ranks(world):
    """Four ranks end with exit 0 and with the loss of torchrun, to the last digit."""
    expect_torchruns_loss(world, 4)


def test_a_killed_rank(world):
    """kill -9 of a rank: all start again from the script's checkpoint, do every step, and end with the undisturbed loss."""
    ready(world)
    undisturbed = world.launch(PYTHON, DDP, "--checkpoint", world.folder / "undisturbed.pt", options=["-n", 2], name="undisturbed")
    job = world.job(words=ddp(world, "--pause", 0.02), options=["-n", 2, "--elastic"]).start()
    job.wait_line(r"step 2\d ")
    kill_now(int(job.wait_line(r"rank 1 of 2 is process (\d+)")[0]))
    job.wait_line(r"goes on after step \d+")
    job.finish()
    assert {int(step) for step, _ in STEPS.findall(job.output())} == set(range(1, 97)), "steps were left out"
    assert len(re.findall(r"rank \d of 2 is process", job.output())) == 4, "not both ranks started again, once"
    assert final_line(job.output()) == final_line(undisturbed.stdout), "another loss than without the failure"
    failures = [event for event in job.events() if event.get("event") == "rank_failed"]
    assert [(event["rank"], event["failures"]) for event in failures] == [(1, 1)], failures


@slow
def test_more_ranks_on_the_way(world):
    """A host that is added while the script trains: it goes on from its checkpoint with three ranks, and then with two."""
    ready(world)
    job = world.job(words=ddp(world, "--pause", 0.05, "--epochs", 8), options=["-n", 2, "--elastic"]).start()
    job.wait_line(r"step 1\d ")
    job.hosts_command("add", "w9")
    job.wait_line(r"rank 2 of 3 is process")
    job.wait_line(r"goes on after step \d+")
    job.hosts_command("remove", "w9")
    job.wait_line(r"rank \d of 2 is process", 4)
    job.wait_line(r"goes on after step \d+", 2)
    job.finish()
    assert final_line(job.output())


def test_saves_before_a_change(world):
    """examples/launch/save.py: a host that joins costs no step, because the ranks save first and all at the same step."""
    ready(world)
    script = REPOSITORY / "examples" / "launch" / "save.py"
    job = world.job(words=[PYTHON, script, world.folder / "save.pt", 600],
                    options=["-n", 2, "--elastic", "--save-signal", "USR1", "--save-timeout", 60]).start()
    job.wait_line("starts at step 0 with 2 ranks")
    job.hosts_command("add", "w9")
    saved = int(job.wait_line(r"saved step (\d+)")[0])
    job.wait_line(rf"starts at step {saved} with 3 ranks")
    job.finish()
    assert "done after 600 steps" in job.output()
