"""Compressed gradients: what shards hold back becomes part of the state with the last step of a window, so workers that
come, go and die change no bit."""

import json
import signal

from world import World, eventually, send_signal

COMPRESSIONS = (["--gradient-compression", "2bit:0.02"], ["--gradient-compression", "topk:0.01"],
                ["--gradient-compression", "powersgd:1"])
WINDOW = 32  # steps


def compressed_job(world: World, compression: list, name: str = "job", **options):
    job = world.job(name, batch=24, **options)  # 40 steps an epoch: windows of 32 and 8
    job.training_arguments += compression
    job.arguments += compression
    return job


def expect_same_bits(world: World, compression: list):
    """Of 1, 2 and 3 workers and of one process that trains alone; other bits than without compression, and fewer bytes:
    of two workers whose shards stay where they are, for what a shard holds back would travel with it.
    """
    stay = ["--move-shards", "off"]
    jobs = [compressed_job(world, compression, f"n{count}", hosts=count, elastic=False, epochs=2) for count in (1, 2, 3)]
    jobs[1].arguments += stay
    expected = world.alone(jobs[0], 2)
    for job in jobs:
        job.start().finish()
        assert job.state_hash() == expected, f"{job.name}: other bits"
        job.expect_exactly_once(2)
    plain = compressed_job(world, [], "plain", elastic=False, epochs=2, arguments=stay).start().finish()
    assert plain.state_hash() != expected
    assert 0 < bytes_sent(jobs[1]) < bytes_sent(plain) / 3, (bytes_sent(jobs[1]), bytes_sent(plain))


def test_two_bits_for_any_number_of_workers(world: World):
    """1, 2 and 3 workers end in the state of one process that trains alone, with 2bit."""
    expect_same_bits(world, COMPRESSIONS[0])


def test_few_floats_for_any_number_of_workers(world: World):
    """1, 2 and 3 workers end in the state of one process that trains alone, with topk."""
    expect_same_bits(world, COMPRESSIONS[1])


def test_factors_for_any_number_of_workers(world: World):
    """1, 2 and 3 workers end in the state of one process that trains alone, with powersgd."""
    expect_same_bits(world, COMPRESSIONS[2])


def test_joins_and_leaves(world: World):
    """Workers join and leave where a window ends; the bits stay."""
    job = compressed_job(world, COMPRESSIONS[0]).start().wait_running()
    job.hosts_command("add", "w3")
    job.wait_members("w1", "w2", "w3").wait_steps(WINDOW)
    job.hosts_command("remove", "w1")
    job.wait_members("w2", "w3").wait_steps(WINDOW).expect_undisturbed_bits()


def test_a_killed_worker_loses_only_its_window(world: World):
    """kill -9 of rank 0 inside a window: the others compute it again, and the bits are those of an undisturbed run."""
    job = compressed_job(world, COMPRESSIONS[2], hosts=3).start().wait_running()
    _, pid = job.worker_of_rank(0)
    send_signal(pid, signal.SIGKILL)
    eventually(lambda: len(job.training()) >= 2 and pid not in job.training().values(), "the others train", job=job)
    job.wait_steps(WINDOW).expect_undisturbed_bits()


def test_resumes_with_other_workers(world: World):
    """A job of three that was stopped goes on with two."""
    job = compressed_job(world, COMPRESSIONS[0], hosts=3).start().wait_running().stop()
    checkpoint = json.loads(world.run("inspect", job.prefix, "--json").stdout)
    assert checkpoint["step"] % WINDOW == 0, checkpoint
    job.hosts = ["w1", "w2"]
    job.start("--resume", "--reset-hosts").wait_running().expect_undisturbed_bits()


def bytes_sent(job) -> int:
    """What the workers of a job sent each other, as its last event tells it; 0 for a worker alone."""
    return max(event.get("sent_bytes", 0) for event in job.events())
