"""Workers, agents and the coordinator die or hang."""

import json
import signal

from world import SAMPLES, World, alive, children, eventually, send_signal


def survivors_go_on(world: World, victim: int, number: int) -> None:
    job = world.job(hosts=3).start().wait_running().wait_steps(10)
    before = job.training()
    name, pid = job.worker_of_rank(victim)
    steps = job.steps_done()
    send_signal(pid, number)
    eventually(lambda: job.steps_done() > steps + 20 and pid not in job.training().values(), "survivors go on", job=job)
    after = job.training()
    for host, survivor in before.items():
        assert host == name or after.get(host) == survivor, f"{host} was restarted: {before} {after}"
    job.expect_undisturbed_bits()


def test_kill_a_worker(world: World):
    """kill -9 of a worker: the others keep their processes and go on; the bits stay."""
    survivors_go_on(world, 1, signal.SIGKILL)


def test_kill_rank_0(world: World):
    """kill -9 of rank 0, which speaks for the job: the same."""
    survivors_go_on(world, 0, signal.SIGKILL)


def test_stopped_worker_is_evicted(world: World):
    """SIGSTOP: the worker that says nothing any more is evicted; the bits stay."""
    survivors_go_on(world, 2, signal.SIGSTOP)


def test_a_loss_that_is_not_finite_ends_the_job(world: World):
    """Any try would end in the same step with the same bits: the job ends with that error, and starts nothing again."""
    for hosts in (1, 2):
        job = world.job(f"diverges{hosts}", hosts=hosts, network=("resnet", "--num-layers", 8, "--width", 8, "--lr", 1e30))
        assert job.start().wait() == 93
        assert "the loss is not finite at epoch 0" in job.said(), job.said()
        assert sum(event["event"] == "worker_starting" for event in job.events()) == hosts


def test_kill_an_agent(world: World):
    """An agent dies: its worker is gone with it and the others go on."""
    job = world.job(hosts=3).start().wait_running()
    pid = job.training()["w3"]
    agent = next(child for child in children(job.process.pid) if pid in children(child))
    send_signal(agent, signal.SIGKILL)
    eventually(lambda: not alive(pid), "its worker is gone", 20)
    eventually(lambda: {"w1", "w2"} <= set(job.training()), "the others go on", job=job)
    job.wait_steps(10).expect_undisturbed_bits()


def test_kill_the_coordinator(world: World):
    """Without --elastic, nothing of the job is left soon after its coordinator died, and --resume goes on to the same bits."""
    job = world.job(elastic=False, arguments=["--checkpoint-every", 5]).start().wait_running().wait_steps(12)
    send_signal(job.process.pid, signal.SIGKILL)
    job.process.wait()
    world.expect_no_process_left()
    answer = job.hosts_command("list", check=False)
    assert answer.returncode == 4 and "--resume" in answer.stderr, answer.stderr
    job.start("--resume").wait_running().expect_undisturbed_bits()


def test_kill_the_coordinator_of_a_job_without_elastic(world: World):
    """No other coordinator can follow: the workers save what they have computed, and end."""
    job = world.job(hosts=3, elastic=False).start().wait_running().wait_steps(30)
    steps = job.steps_done()
    send_signal(job.process.pid, signal.SIGKILL)
    job.wait()
    eventually(lambda: not world.processes(), "everything is gone", 30)
    at = json.loads(world.run("inspect", job.prefix, "--json").stdout)
    assert at["epoch"] * (SAMPLES // job.batch) + at["step"] >= steps, at
    job.expect_exactly_once(job.expect_bits_of_alone())


def test_a_job_begins_again_once_the_last_one_has_saved(world: World):
    """The same command with --resume waits for workers that still save, and goes on from there."""
    job = world.job(elastic=False).start().wait_running().wait_steps(10)
    pid = next(iter(job.training().values()))
    send_signal(pid, signal.SIGSTOP)  # the others wait for it before they save
    send_signal(job.process.pid, signal.SIGKILL)
    job.wait()
    job.start("--resume")
    eventually(lambda: "waits until the workers" in job.said(), "it waits", 30)
    send_signal(pid, signal.SIGCONT)
    job.wait_running().expect_undisturbed_bits()


def test_kill_everybody(world: World):
    """All workers die at once: the job starts them again and goes on from its last checkpoint."""
    job = world.job(arguments=["--checkpoint-every", 5]).start().wait_running().wait_steps(12)
    for pid in job.training().values():
        send_signal(pid, signal.SIGKILL)
    eventually(lambda: any(event["event"] == "failed" for event in job.events()), "the failure is seen", job=job)
    job.wait_running().wait_steps(5).expect_undisturbed_bits()


def test_newcomer_that_dies(world: World):
    """A newcomer is killed while it prepares: the others do not notice, and it is quarantined with reason and advice."""
    job = world.job().start().wait_running()
    before = job.training()
    job.hosts_command("add", "w3")

    def kill_newcomer():
        row = job.row("w3")
        if row["state"] in ("starting", "preparing", "ready", "member"):
            for pid in row["pids"]:
                send_signal(pid, signal.SIGKILL)
        return row if row["state"] in ("quarantined", "failed") else None

    row = eventually(kill_newcomer, "w3 failed", job=job)
    assert row["reason"] and row["next"], row
    job.wait_steps(5)
    assert {host: job.training().get(host) for host in before} == before
    job.expect_undisturbed_bits()


def test_first_failure_is_told(world: World):
    """Without --elastic a dead worker ends the job, which names worker, signal and what to do next."""
    job = world.job(elastic=False, arguments=["--checkpoint-every", 2]).start().wait_running().wait_steps(6)
    send_signal(job.training()["w2"], signal.SIGKILL)
    assert job.wait() == 1
    for words in ("w2", "signal 9", "--resume"):
        assert words in job.said(), words
