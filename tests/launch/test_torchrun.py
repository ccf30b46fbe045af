"""The names of torchrun's options: done where dtrain has the thing, else refused by name with the reason."""

import os

from launches import PYTHON

MODULE = """
import os, sys
print(os.environ["RANK"], os.environ["TORCHELASTIC_RUN_ID"], os.environ["ROLE_NAME"], *sys.argv[1:])
"""


def test_a_command_line_of_torchrun(world):
    """--standalone --nproc_per_node 2 --rdzv-id ... -m package.module: two ranks of the module with its arguments."""
    (world.folder / "package").mkdir()
    (world.folder / "package" / "module.py").write_text(MODULE)
    world.environment["PYTHON_EXEC"] = PYTHON
    answer = world.run("launch", "--standalone", "--nproc_per_node", 2, "--rdzv-backend=c10d", "--rdzv-endpoint=localhost:0",
                       "--rdzv-id", "mine", "--role", "trainer", "--tee", "3", "--log-dir", world.folder / "logs",
                       "--max-restarts", 0, "-m", "package.module", "--", "--epochs", 3)
    said = sorted(line.partition(" ")[2] for line in answer.stdout.splitlines())
    assert said == ["0 mine trainer --epochs 3", "1 mine trainer --epochs 3"], said
    assert list((world.folder / "logs" / "logs").glob("worker1.*.log")), "--log-dir names the job folder"


def test_redirects(world):
    """--redirects 3 shows no output; logs/ holds it."""
    answer = world.launch("echo", "hidden", options=["--redirects", "3"])
    assert "hidden" not in answer.stdout
    assert "hidden" in next((world.folder / "job" / "logs").glob("worker1.*log")).read_text()


def test_each_stream_is_hidden_and_shown(world):
    """--redirects hides the streams of its number, --tee shows what is hidden."""
    both = ("sh", "-c", "echo to-output; echo to-error >&2")
    for options, output, error in (("--redirects 1", False, True), ("--redirects 2", True, False),
                                   ("--redirects 3 --tee 2", False, True), ("--no-output --tee 1", True, False)):
        answer = world.launch(*both, options=options.split(), name=options.replace(" ", ""))
        assert ("to-output\n" in answer.stdout, "to-error\n" in answer.stderr) == (output, error), f"{options}: {answer}"
        assert "to-error" not in answer.stdout and "to-output" not in answer.stderr, f"{options}: {answer}"


def test_numbers_of_ranks(world):
    """--nproc-per-node auto and cpu: a rank for each processor of a machine without GPUs."""
    for number in ("auto", "cpu"):
        answer = world.launch("sh", "-c", "echo world $WORLD_SIZE", options=["--nproc-per-node", number], name=number)
        assert answer.stdout.count(f"world {len(os.sched_getaffinity(0))}\n") == len(os.sched_getaffinity(0)), answer.stdout


def test_what_is_refused(world):
    """By its own name, with the reason and what to do."""
    for options, reason in (("--node-rank 1", "hosts are not started one by one"), ("--master_port 29500", "chooses a free port"),
                            ("--rdzv-backend etcd-v2", "dtrain itself agrees on the ranks"),
                            ("--rdzv-endpoint node1:29400", "no endpoint that hosts join"),
                            ("--redirects 0:1,1:3", "one number from 0 to 3"), ("--nnodes 1:4", "--min-workers"),
                            ("--start-method spawn", "not functions of one Python process"), ("-H hosts --standalone", "--standalone")):
        (world.folder / "hosts").write_text("node1\n")
        answer = world.launch("true", options=options.split(), check=False)
        assert answer.returncode == 2 and reason in answer.stderr and "hint:" in answer.stderr, f"{options}: {answer.stderr}"
    answer = world.run("launch", check=False)
    assert answer.returncode == 2 and "COMMAND: missing" in answer.stderr, answer.stderr
