"""MXNet's parameter servers: scheduler, servers and workers of dist_sync, with a script that knows nothing of dtrain."""

import re
import subprocess

from launches import PROGRAMS, REPOSITORY
from runner import Skip
from world import PATIENCE

MXNET = REPOSITORY / ".venv" / "bin" / "python"


def ready(world) -> None:
    if not MXNET.exists():
        raise Skip("no .venv with MXNet here; tests/run.sh makes it")
    world.environment |= {"PYTHONPATH": str(PROGRAMS / "numpy1"), "PYTHONWARNINGS": "ignore", "OMP_NUM_THREADS": "1"}
    probe = subprocess.run([MXNET, "-c", "import mxnet; mxnet.nd.ones(1).asnumpy()"], env=world.environment, check=False,
                           capture_output=True, text=True, timeout=2 * PATIENCE)
    if probe.returncode != 0:
        raise Skip(f"MXNet does not run here: {probe.stderr.strip().splitlines()[-1:]}")


def weights(output: str) -> list[tuple[float, ...]]:
    return [tuple(map(float, line.split())) for line in re.findall(r"worker \d of \d: weights (.*)", output)]


def test_dist_sync(world):
    """-n 2 -s 2: both workers end with the same weights, which are those of one process with all the data."""
    ready(world)
    script = world.program("gluon.py")
    alone = subprocess.run([MXNET, script], env=world.environment, check=True, capture_output=True, text=True,
                           timeout=2 * PATIENCE).stdout
    answer = world.launch(MXNET, script, "--kv-store", "dist_sync", options=["-n", 2, "-s", 2])
    (want,), together = weights(alone), weights(answer.stdout)
    assert len(together) == 2 and together[0] == together[1], answer.stdout
    assert max(abs(have - wanted) for have, wanted in zip(together[0], want)) < 1e-4, (together, want)
