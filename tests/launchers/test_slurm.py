"""--launcher slurm on a real Slurm: inside a job, and outside of one."""

import signal

from cluster import Cluster
from lab import command_line, send_kill
from runner import slow
from schedulers import SLURM_PROGRAMS, start_slurm
from starters import (EPOCHS, environment_of, expect_nothing_left, expect_ranks, expect_same_bits,
                      expect_token_in_no_sight, need, person_s_process, start_inside, stop_by_signal, without_hosts)
from world import eventually


def slurm(world: Cluster) -> Cluster:
    need(*SLURM_PROGRAMS)
    world.boot("h1", "h2", "h3")
    start_slurm(world, ["h1", "h2", "h3"])
    return world


def test_asks_for_its_own_job(world: Cluster):
    """Outside of a job the command gets one of -n hosts; the bits are those of one process, and the job is gone then."""
    slurm(world)
    job = without_hosts(world.job(launcher="slurm", epochs=EPOCHS, arguments=["-n", 2])).start()
    job.finish()
    expect_same_bits(world, job)
    assert sorted(host for _, host in job.member_log()[:2]) == ["h1", "h2"]
    eventually(lambda: not world.seat.run("squeue", "-h").stdout, "Slurm has no job left")


def test_ends_by_ctrl_c(world: Cluster):
    """Ctrl-C saves, ends with 75 and leaves neither a process nor a job; the token was nowhere to be seen. Hosts of -H are
    those that the job asks for."""
    slurm(world)
    job = world.job(hosts=["h2", "h3"], launcher="slurm", arguments=["--queue", "main"]).start().wait_running()
    assert set(job.training()) == {"h2", "h3"}
    expect_token_in_no_sight(world, job)
    for worker in job.training().values():
        assert "SLURM_PROCID" not in environment_of(worker), "a worker would take itself for a task of Slurm's"
    assert stop_by_signal(job) == 75, job.said()
    expect_nothing_left(world)
    eventually(lambda: not world.seat.run("squeue", "-h").stdout, "Slurm has no job left")


def test_in_a_job_hosts_come_and_go(world: Cluster):
    """In a job of three hosts a job of two trains on, as one joins and one is killed; bits stay the same."""
    slurm(world)
    job = without_hosts(world.job(launcher="slurm", arguments=["-n", 2]))
    start_inside(job, "salloc", "--quiet", "-N3").wait_running(2)
    job.hosts_command("add", "h3")
    job.wait_members("h1", "h2", "h3").wait_steps(2)
    send_kill(job.agent("h2"))
    job.wait_members("h1", "h2", "h3").wait_steps(2)
    job.expect_undisturbed_bits()
    expect_nothing_left(world)


@slow
def test_a_killed_coordinator(world: Cluster):
    """kill -9 of the process that coordinates ends its job: no process continues on hosts that Slurm has back, and the
    command reports a failure although salloc reports success."""
    slurm(world)
    job = without_hosts(world.job(launcher="slurm", arguments=["-n", 2])).start().wait_running(2)
    own = person_s_process(job)
    send_kill(next(pid for pid in world.seat.processes(" train ") if pid != own and "salloc" not in command_line(pid)))
    assert job.wait() == 1, job.said()
    assert "ended before the training did" in job.said(), job.said()
    expect_nothing_left(world)


def test_waits_for_hosts_until_told_not_to(world: Cluster):
    """While Slurm has no hosts the command waits; Ctrl-C cancels the request."""
    slurm(world)
    blocker = world.seat.start("salloc", "--quiet", "-N3", "--exclusive", "sleep", "1000")
    eventually(lambda: " R " in world.seat.run("squeue", "-h").stdout, "Slurm's hosts are taken")
    job = without_hosts(world.job(launcher="slurm", arguments=["-n", 2])).start()
    eventually(lambda: " PD " in world.seat.run("squeue", "-h").stdout, "the job waits", job=job)
    assert stop_by_signal(job) in (130, -signal.SIGINT), job.said()
    assert " PD " not in world.seat.run("squeue", "-h").stdout
    world.seat.run("pkill", "-f", "^sleep 1000")
    blocker.wait()  # reaped: a machine is not off before each of its processes is


def test_says_what_is_wrong(world: Cluster):
    """An unknown partition, and a host outside of the job."""
    slurm(world)
    job = without_hosts(world.job(launcher="slurm", arguments=["-n", 2, "--queue", "nope"])).start()
    assert job.wait() == 1
    assert "dtrain: Slurm does not run the job: invalid partition specified: nope" in job.said(), job.said()
    assert "salloc: error" not in job.said() and "hint: `sinfo -s`" in job.said(), job.said()


def test_launches_any_program(world: Cluster):
    """dtrain launch: a rank of a program on each machine."""
    slurm(world)
    expect_ranks(world, "--launcher", "slurm", "-n", 2)
