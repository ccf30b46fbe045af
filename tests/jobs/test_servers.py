"""Parameter servers: workers that do not wait for each other, and what is left when one of them dies."""

import json
import signal
import time

from runner import slow
from world import SAMPLES, World, eventually, send_signal

SERVERS = ["--kv-store", "dist_async"]
BATCH = 24
LEARNS = ("resnet", "--num-layers", 8, "--width", 8, "--lr", 0.3, "--mom", 0)


def synchronous_job(world: World, name: str = "job", **options):
    """The steps, and therefore the bits, of a job without servers."""
    job = world.job(name, **options)
    job.arguments += [*SERVERS, "--max-staleness", 0]
    return job


def asynchronous_job(world: World, name: str = "job", servers: int = 2, batch: int = BATCH, arguments=(), **options):
    job = world.job(name, **options).by_servers(servers, batch)
    job.arguments += arguments
    return job


def accuracy(world: World, job) -> float:
    """On the images that it was trained with: the best of the last epochs, between which delayed gradients make it jump."""
    def of_epoch(epoch: int) -> float:
        answer = world.run("eval", job.prefix, "--load-epoch", epoch, "--data-val", world.data / "shapes_train.rec", "--json")
        return json.loads(answer.stdout)["accuracy"]
    return max(of_epoch(job.epochs - back) for back in range(3))


def test_workers_share_the_epochs(world: World):
    """Three workers, two servers: every sample once per epoch, and a checkpoint that has learned something."""
    job = asynchronous_job(world, hosts=3, elastic=False, epochs=25, network=LEARNS).start().finish()
    job.expect_exactly_once(25)
    assert accuracy(world, job) > 0.2, "it has learned nothing: a tenth of the images is guessed"
    assert "two runs do not end in the same bits" in job.said()


def test_without_staleness_the_bits_are_those_of_dist_sync(world: World):
    """1 and 3 workers with --max-staleness 0 end in the state of one process without servers."""
    jobs = [synchronous_job(world, f"n{count}", hosts=count, epochs=2, arguments=["-s", 1]) for count in (1, 3)]
    expected = world.alone(jobs[0], 2)
    for job in jobs:
        job.start().finish()
        assert job.state_hash() == expected, f"{job.name}: other bits"
        job.expect_exactly_once(2)


def test_a_killed_server_takes_nothing_with_it(world: World):
    """kill -9 of rank 0, which has the first server and the book: others train its samples, and each counts once."""
    job = asynchronous_job(world, hosts=3, epochs=12).start().wait_running()
    host, pid = job.worker_of_rank(0)
    send_signal(pid, signal.SIGKILL)
    job.finish()
    job.expect_exactly_once(12)
    lost = [event for event in job.events() if event["event"] == "failed"]
    assert lost and lost[0]["host"] == host, lost
    assert "lost together with its replica" not in job.said()


def test_a_killed_worker_changes_no_bit_without_staleness(world: World):
    """kill -9 of a server amid a step of all workers: the bits are those of an undisturbed run."""
    job = synchronous_job(world, hosts=3, arguments=["-s", 2]).start().wait_running()
    _, pid = job.worker_of_rank(1)
    send_signal(pid, signal.SIGKILL)
    eventually(lambda: len(job.training()) >= 2 and pid not in job.training().values(), "the others train", job=job)
    job.wait_steps(10).expect_undisturbed_bits()


def test_joins_and_leaves(world: World):
    """Workers join and leave between two steps; every sample of the epochs that end is trained once."""
    job = asynchronous_job(world).start().wait_running()
    job.hosts_command("add", "w3")
    job.wait_members("w1", "w2", "w3").wait_steps(5)
    job.hosts_command("remove", "w1")
    job.wait_members("w2", "w3").wait_steps(SAMPLES // BATCH).stop()
    job.expect_exactly_once(1)


def test_stops_and_resumes(world: World):
    """A stopped job leaves with 75 and goes on within its epoch, with another number of workers."""
    job = asynchronous_job(world, hosts=3, epochs=100000).start().wait_running().stop()
    at = json.loads(world.run("inspect", job.prefix, "--json").stdout)
    job.hosts = ["w1", "w2"]
    job.start("--resume", "--reset-hosts").wait_running().wait_steps(SAMPLES // BATCH).stop()
    job.expect_exactly_once(at["epoch"] + 1)


def test_a_stopped_worker_holds_nobody(world: World):
    """SIGSTOP of one worker: the others take its batches meanwhile, unless a bound holds them."""
    for name, bound in (("free", []), ("bound", ["--max-staleness", 2])):
        job = asynchronous_job(world, name, hosts=3, servers=1, batch=4,
                               arguments=["--heartbeat-timeout", 60, *bound]).start().wait_running()
        _, pid = job.worker_of_rank(2)
        # All wait for each other at the end of an epoch.
        eventually(lambda: int(job.list().get("samples_seen", 0)) % SAMPLES < SAMPLES / 4, "an epoch begins", job=job)
        send_signal(pid, signal.SIGSTOP)
        try:
            if bound:
                time.sleep(1)  # for the steps that were begun
                before = job.steps_done()
                time.sleep(1)
                assert job.steps_done() == before, "the bound holds nobody"
            else:
                job.wait_steps(15)
        finally:
            send_signal(pid, signal.SIGCONT)
        job.wait_steps(3).stop()


@slow
def test_every_worker_dies_once(world: World):
    """Each rank is killed in turn while the job goes on."""
    job = asynchronous_job(world, hosts=3, servers=3).start().wait_running()
    for rank in (2, 1, 0):
        _, pid = job.worker_of_rank(rank)
        send_signal(pid, signal.SIGKILL)
        eventually(lambda: pid not in job.training().values() and len(job.training()) == 3, "it is back", job=job)
        job.wait_steps(10)
    job.stop()
    ended = json.loads(world.run("inspect", job.prefix, "--json").stdout)["epoch"]
    job.expect_exactly_once(ended)
