"""--launcher sge on a real Grid Engine: inside a job, and outside of one."""

from cluster import Cluster
from lab import send_kill
from runner import slow
from schedulers import GRID_PROGRAMS, GRID_ROOT, grid, start_grid_engine
from starters import (EPOCHS, expect_nothing_left, expect_ranks, expect_same_bits, expect_token_in_no_sight, need, person_s_process,
                      start_inside, stop_by_signal, without_hosts)
from world import eventually


def grid_engine(world: Cluster) -> Cluster:
    need(*GRID_PROGRAMS)
    world.boot("h1", "h2", "h3")
    world.environment |= {"SGE_ROOT": GRID_ROOT, "SGE_CELL": "default"}
    start_grid_engine(world, ["h1", "h2", "h3"])
    return world


def expect_no_job(world: Cluster) -> None:
    eventually(lambda: not grid(world.seat, "qstat"), "Grid Engine has no job left")


def test_asks_for_its_own_job(world: Cluster):
    """Outside of a job the command gets one of -n slots, here on one host each, and is run there: same bits, true code.
    A missing or unknown parallel environment is refused with a list of the existing ones."""
    grid_engine(world)
    job = without_hosts(world.job(launcher="sge", epochs=EPOCHS, arguments=["-n", 2, "--sge-pe", "pernode"])).start()
    job.finish()
    expect_same_bits(world, job)
    assert not list(job.folder.glob("submitted_*")) and not list(job.folder.glob("join_*")), "a file with secrets"
    expect_no_job(world)

    for name, more in (("unnamed", []), ("unknown", ["--sge-pe", "nope"])):
        refused = without_hosts(world.job(name, launcher="sge", arguments=["-n", 2, *more])).start()
        assert refused.wait() == 2
        assert "there are: fill, pernode" in refused.said(), refused.said()


def test_ends_by_ctrl_c(world: Cluster):
    """Ctrl-C saves, ends with 75 and leaves neither a process nor a job. Slots of one host are workers there."""
    grid_engine(world)
    job = without_hosts(world.job(launcher="sge", arguments=["-n", 2, "--sge-pe", "fill", "--queue", "all.q"])).start()
    job.wait_running(1)
    assert [len(host["pids"]) for host in job.list()["hosts"]] == [2]
    expect_token_in_no_sight(world, job)
    assert stop_by_signal(job) == 75, job.said()
    expect_nothing_left(world)
    expect_no_job(world)


@slow
def test_in_a_job_a_killed_agent_comes_back(world: Cluster):
    """Inside of a job its hosts are taken; the agent of another host is killed, and the job goes on with the same bits."""
    grid_engine(world)
    job = without_hosts(world.job(launcher="sge"))
    start_inside(job, "qrsh", "-now", "n", "-cwd", "-noshell", "-pe", "pernode", "2").wait_running(2)
    for name in job.training():
        send_kill(job.agent(name))
        job.wait_members(*job.training()).wait_steps(2)
        break
    job.expect_undisturbed_bits()
    expect_nothing_left(world)
    expect_no_job(world)


def test_launches_any_program(world: Cluster):
    """dtrain launch: a rank of a program on each machine."""
    grid_engine(world)
    expect_ranks(world, "--launcher", "sge", "-n", 2, "--sge-pe", "pernode")


@slow
def test_a_killed_command(world: Cluster):
    """kill -9 of the command that asked for the job ends the job: no process continues on hosts that Grid Engine has back."""
    grid_engine(world)
    job = without_hosts(world.job(launcher="sge", arguments=["-n", 2, "--sge-pe", "pernode"])).start().wait_running(2)
    send_kill(person_s_process(job))
    expect_nothing_left(world)
    expect_no_job(world)
