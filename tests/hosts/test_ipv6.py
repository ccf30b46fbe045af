"""Machines that have IPv6 addresses and no others."""

from cluster import Cluster
from test_launch import copied, launch, over_ssh
from test_takeover import go_on_after
from world import eventually

from launches import PYTHON


def test_a_job_that_changes_and_loses_its_coordinator(world: Cluster):
    """A machine joins, the coordinator dies, another takes over: the bits of an undisturbed run."""
    world.lab.by_ipv6_alone()
    world.boot("h1", "h2", "h3")
    job = world.job(hosts=["h1", "h2"]).start().wait_running()
    assert job.row("h2")["address"] == world.lab["h2"].address, job.row("h2")
    job.hosts_command("add", "h3")
    eventually(lambda: len(job.training()) == 3, "three machines train", job=job)
    go_on_after(job.wait_steps(3), job.kill_coordinator)
    job.wait_steps(3).expect_calm_bits()


def test_a_program_finds_its_peers(world: Cluster):
    """PyTorch's store and gloo meet by IPv6, on hosts that are listed by their addresses."""
    world.lab.by_ipv6_alone()
    world.boot("h1", "h2")
    hosts = [world.lab["h1"].address, f"[{world.lab['h2'].address}]:22"]
    said = launch(world, over_ssh(world, hosts), PYTHON, copied(world, "examples/launch/ddp.py"), "--checkpoint",
                  world.folder / "ddp.pt").stdout
    assert "done after" in said, said
