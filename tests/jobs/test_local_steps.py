"""Rounds of local steps: replicas are fixed in number, so workers that come, go and die change no bit."""

import json
import signal

from world import World, eventually, send_signal

ROUND = ["--local-steps", 5, "--outer-optimizer", "nesterov"]


def local_job(world: World, name: str = "job", **options):
    job = world.job(name, **options)
    job.training_arguments += ROUND
    job.arguments += ROUND
    return job


def test_same_bits_for_any_number_of_workers(world: World):
    """1, 2 and 3 workers end in the state of one process that trains all 8 replicas, each sample once."""
    jobs = [local_job(world, f"n{count}", hosts=count, elastic=False, epochs=2) for count in (1, 2, 3)]
    expected = world.alone(jobs[0], 2)
    for job in jobs:
        job.start().finish()
        assert job.state_hash() == expected, f"{job.name}: other bits"
        job.expect_exactly_once(2)


def test_joins_and_leaves(world: World):
    """Workers join and leave between two rounds; the bits stay."""
    job = local_job(world).start().wait_running()
    job.hosts_command("add", "w3")
    job.wait_members("w1", "w2", "w3").wait_steps(5)
    job.hosts_command("remove", "w1")
    job.wait_members("w2", "w3").wait_steps(5).expect_undisturbed_bits()


def test_a_killed_worker_loses_only_its_round(world: World):
    """kill -9 of rank 0 amid a round: the others compute it again, and the bits are those of an undisturbed run."""
    job = local_job(world, hosts=3).start().wait_running()
    _, pid = job.worker_of_rank(0)
    send_signal(pid, signal.SIGKILL)
    eventually(lambda: len(job.training()) >= 2 and pid not in job.training().values(), "the others train", job=job)
    job.wait_steps(10).expect_undisturbed_bits()


def test_resumes_with_other_workers(world: World):
    """A job of three that was stopped goes on with two, by the replicas of its checkpoint."""
    job = local_job(world, hosts=3).start().wait_running().stop()
    checkpoint = json.loads(world.run("inspect", job.prefix, "--json").stdout)
    assert checkpoint["local_steps"]["steps"] == 5 and checkpoint["global_batch"] == job.batch, checkpoint
    job.hosts = ["w1", "w2"]
    job.start("--resume", "--reset-hosts").wait_running().expect_undisturbed_bits()
