"""--launcher mpi with real Open MPI and MPICH, over ssh between machines."""

from cluster import Cluster
from lab import command_line, send_kill
from runner import slow
from starters import (EPOCHS, environment_of, expect_nothing_left, expect_ranks, expect_same_bits,
                      expect_token_in_no_sight, need, stop_by_signal)
from world import alive, eventually


def mpi(world: Cluster, program: str, *hosts: str) -> Cluster:
    """`mpirun` is this program, and its ssh may log in to the hosts."""
    need(program)
    world.boot(*hosts)
    for host in hosts:
        world.lab[host].run("sh", "-c", "printf 'Host *\\nStrictHostKeyChecking no\\nLogLevel ERROR\\n' >~/.ssh/config")
    folder = world.folder / "programs"
    folder.mkdir()
    (folder / "mpirun").write_text(f'#!/bin/sh\nexec {program} "$@"\n')
    (folder / "mpirun").chmod(0o755)
    world.environment["PATH"] = f"{folder}:{world.environment['PATH']}"
    return world


def test_open_mpi(world: Cluster):
    """Two machines train to the end with the bits of one process; `slots=` gives a machine several workers."""
    mpi(world, "mpirun.openmpi", "h1", "h2")
    job = world.job(hosts=["h1", "h2 slots=2"], launcher="mpi", epochs=EPOCHS).start().finish()
    expect_same_bits(world, job)
    expect_nothing_left(world)


def test_mpich(world: Cluster):
    """The same by MPICH's mpirun."""
    mpi(world, "mpirun.mpich", "h1", "h2")
    job = world.job(launcher="mpi", epochs=EPOCHS).start().finish()
    expect_same_bits(world, job)
    expect_nothing_left(world)


def test_ends_by_ctrl_c(world: Cluster):
    """Ctrl-C saves, ends with 75 and leaves no process; neither token nor MPI's variables are to be seen in workers."""
    mpi(world, "mpirun.openmpi", "h1", "h2")
    job = world.job(launcher="mpi").start().wait_running()
    expect_token_in_no_sight(world, job)
    for worker in job.training().values():
        strangers = [name for name in environment_of(worker) if name.startswith(("OMPI_", "PMIX_"))]
        assert not strangers, strangers
    assert stop_by_signal(job) == 75, job.said()
    expect_nothing_left(world)


@slow
def test_a_killed_starter(world: Cluster):
    """kill -9 of one mpirun, which ends what it started: its host leaves, and may join again; no process is left."""
    mpi(world, "mpirun.openmpi", "h1", "h2")
    job = world.job(launcher="mpi").start().wait_running()
    worker = job.training()["h2"]
    send_kill(next(pid for pid in world.seat.processes("mpirun") if " h2 " in command_line(pid)))
    eventually(lambda: not alive(worker), "its worker is gone", job=job)
    job.wait_members("h1").wait_steps(2)
    job.hosts_command("remove", "h2")
    job.hosts_command("add", "h2")
    job.wait_members("h1", "h2").wait_steps(2)
    job.expect_undisturbed_bits()
    expect_nothing_left(world)


@slow
def test_a_killed_coordinator(world: Cluster):
    """kill -9 of the coordinator: an agent takes over on another machine, and starts the next host by its own mpirun. In
    a job that is not elastic all of them end."""
    mpi(world, "mpirun.openmpi", "h1", "h2", "h3")
    rigid = world.job("rigid", hosts=["h2", "h3"], launcher="mpi", elastic=False).start().wait_running()
    rigid.kill_coordinator()
    rigid.process.wait()
    expect_nothing_left(world)

    job = world.job(hosts=["h2", "h3"], launcher="mpi").start().wait_running()
    job.kill_coordinator()
    job.seen_from("h3")
    job.wait_members("h2", "h3").wait_steps(2)
    job.hosts_command("add", "h1")
    job.wait_members("h1", "h2", "h3").wait_steps(2)
    job.expect_undisturbed_bits()


def test_says_what_is_wrong(world: Cluster):
    """An unknown host, and a host with a port."""
    mpi(world, "mpirun.openmpi", "h1")
    job = world.job(hosts=["h9"], launcher="mpi", elastic=False).start()
    assert job.wait() not in (0, 75)
    assert "mpirun ended with" in job.said(), job.said()
    job = world.job("port", hosts=["h1:22"], launcher="mpi", elastic=False).start()
    assert job.wait() not in (0, 75)
    assert "a user or a port means nothing" in job.said(), job.said()


def test_launches_any_program(world: Cluster):
    """dtrain launch: a rank of a program on each machine."""
    mpi(world, "mpirun.openmpi", "h1", "h2")
    (world.folder / "hosts").write_text("h1\nh2\n")
    expect_ranks(world, "--launcher", "mpi", "-H", world.folder / "hosts")
