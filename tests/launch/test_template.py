"""Scripts in the manner of TensorFlow 1, which take hosts and roles as arguments."""

from launches import PYTHON

WORDS = ["--job_name={role}", "--task_index={task_index}", "--ps_hosts={ps_hosts}", "--worker_hosts={worker_hosts}"]


def test_servers_and_workers(world):
    """Everybody listens where it was told to and finds the others; servers end with the workers; their words are in logs/."""
    world.environment["CUDA_VISIBLE_DEVICES"] = "0"
    answer = world.launch(PYTHON, world.program("tf1.py"), *WORDS, options=["-n", 3, "-s", 2, "--template"])
    for rank in range(3):
        assert f"worker {rank} has [111, 111], GPUs '0'" in answer.stdout, answer.stdout
    said = "".join(path.read_text() for path in (world.folder / "job" / "logs").glob("*.ps*.log"))
    words = [line.split(" ", 1)[1] for line in said.splitlines()]  # behind the time
    assert sorted(words) == [f"ps {index} listens, GPUs ''" for index in range(2)], said


def test_a_server_that_dies(world):
    """A parameter server's end is a failure as a worker's is: it is named."""
    script = '[ "$DTRAIN_ROLE" = ps ] && exit 6; sleep 1000'
    answer = world.launch("sh", "-c", script, options=["-n", 1, "-s", 1, "--template"], check=False)
    assert answer.returncode == 6 and "its ps 0 ended with exit code 6" in answer.stderr, answer.stderr
