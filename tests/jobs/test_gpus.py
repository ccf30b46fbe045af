"""Several GPUs of one host, each with a worker: GPUs that this CPU plays (tests/helpers/two_gpus.cpp), and the stand-in for
NCCL between processes (tests/helpers/nccl_standin.cpp)."""

import pathlib
import signal

from runner import Skip, slow
from world import DTRAIN, Job, World, eventually, send_signal

TWO_GPUS = pathlib.Path(DTRAIN).parent / "tests" / "dtrain_two_gpus"


def on_gpus(world: World, *arguments) -> Job:
    """A job on both GPUs of one host; what it is compared with runs on one of them."""
    if not TWO_GPUS.exists():
        raise Skip(f"{TWO_GPUS} is not built")
    world.command = lambda words: [str(TWO_GPUS), *map(str, words)]
    job = world.job(hosts=1, arguments=["--gpus", "0,1", *arguments])
    for words in (job.training_arguments, job.arguments):
        begin = words.index("--network")
        # Convolutions take long where a CPU plays the GPU.
        words[begin:begin + 8] = ["--network", "mlp", "--lr", 0.005, "--rgb-std", 58]
    job.training_arguments += ["--gpus", "0"]
    return job


def workers(job: Job, host: str = "w1") -> list[int]:
    row = job.row(host)
    return row["pids"] if row["state"] == "member" else []


def generations(job: Job) -> list[int]:
    """How many workers each had."""
    return [event["workers"] for event in job.events() if event["event"] == "generation"]


def wait_for_workers(job: Job, number: int, what: str) -> None:
    """Until a generation has so many workers, and they have made steps."""
    eventually(lambda: generations(job)[-1:] == [number], what, job=job)
    job.wait_steps(5)


def expect_gradients_on_gpus(job: Job, starts: int) -> None:
    """So many workers were started, each adds up on its GPU, and none copied a gradient to the host or from it."""
    said = [path.read_text(errors="replace") for path in (job.folder / "logs").glob("*.log")]
    assert sum(text.count("reduces on GPU") for text in said) == starts, [text.count("reduces on GPU") for text in said]
    assert not any("gradients pass through the host" in text for text in said)


def lose_a_worker(job: Job) -> None:
    job.start()
    eventually(lambda: generations(job) == [2], "both GPUs train", job=job)
    job.wait_steps(10)
    victim = workers(job)[1]
    send_signal(victim, signal.SIGKILL)
    eventually(lambda: 1 in generations(job), "the other goes on", job=job)
    eventually(lambda: generations(job)[-1] == 2, "a new worker has its GPU", job=job)
    assert victim not in workers(job), workers(job)
    job.wait_steps(10).expect_undisturbed_bits()


@slow
def test_kill_a_worker_of_two_gpus(world: World):
    """kill -9 of the worker on one GPU: the other goes on, a new one gets the GPU, and the bits stay."""
    lose_a_worker(on_gpus(world))


def test_kill_a_worker_under_nccl(world: World):
    """The same where NCCL carries the gradients: the ranks meet in it again."""
    lose_a_worker(on_gpus(world, "--transport", "nccl"))


def test_gain_and_lose_workers_under_nccl(world: World):
    """A host with two GPUs joins, kill -9 takes a worker of each host, the first host leaves, and a killed rank 0 comes
    back: the gradients never leave the GPUs, and the bits stay."""
    job = on_gpus(world, "--transport", "nccl").start()
    wait_for_workers(job, 2, "both GPUs train")
    job.hosts_command("add", "w2")
    wait_for_workers(job, 4, "the GPUs of a second host train")
    for host in ("w1", "w2"):
        before = len(generations(job))
        victim = workers(job, host)[1]
        send_signal(victim, signal.SIGKILL)
        eventually(lambda before=before: 3 in generations(job)[before:], "the others go on", job=job)
        wait_for_workers(job, 4, "a new worker has the GPU")
        assert victim not in workers(job, host), workers(job, host)
    job.hosts_command("remove", "w1")
    wait_for_workers(job, 2, "the first host left")
    before = len(generations(job))
    send_signal(workers(job, "w2")[0], signal.SIGKILL)
    eventually(lambda: 1 in generations(job)[before:], "the other goes on", job=job)
    wait_for_workers(job, 2, "both GPUs train again")
    expect_gradients_on_gpus(job, starts=2 + 2 + 2 + 1)
    job.expect_undisturbed_bits()
