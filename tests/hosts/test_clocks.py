"""Machines whose clocks are an hour apart.

A kernel has one wall clock, so each machine's sshd gives what it starts libfaketime, which moves that of the agent and of all
that it starts. Clocks that measure time are right, as on real machines.
"""

import datetime
import json
import pathlib

from cluster import Cluster, HostsJob
from lab import Host
from runner import Skip, slow
from test_takeover import without_first
from world import eventually

HOUR = 3600
OFFSETS = {"h2": HOUR, "h3": -HOUR}


def set_clock(host: Host, offset: int) -> None:
    """Before boot()."""
    library = next(iter(pathlib.Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1")), None)
    if library is None:
        raise Skip("libfaketime is not installed")
    (host.disk / "sshd_options").write_text(f"SetEnv LD_PRELOAD={library} FAKETIME={offset:+}s DONT_FAKE_MONOTONIC=1\n")


def boot_with_other_clocks(world: Cluster) -> None:
    for name, offset in OFFSETS.items():
        set_clock(world.lab[name], offset)
    world.boot("h1", "h2", "h3")


def hours_ahead(time: str) -> int:
    """By this machine's clock, of something that was written a moment ago."""
    written = datetime.datetime.fromisoformat(time.replace("Z", "+00:00"))
    return round((written - datetime.datetime.now(datetime.timezone.utc)).total_seconds() / HOUR)


def hours_in_log(job: HostsJob, name: str) -> int:
    return hours_ahead((job.folder / "logs" / f"{name}.0.log").read_text().splitlines()[-1].split(" ")[0])


def test_a_job_on_machines_with_other_clocks(world: Cluster):
    """One an hour ahead, one behind: nobody is given up for that, a machine joins and leaves, and records and bits are right."""
    boot_with_other_clocks(world)
    job = world.job(hosts=["h1", "h2"]).start().wait_running()
    before = job.training()
    job.hosts_command("add", "h3")
    job.wait_members("h1", "h2", "h3").wait_steps(20)
    assert [hours_in_log(job, name) for name in ("h1", "h2", "h3")] == [0, 1, -1], "the clocks are not what they should be"
    assert job.training() == before | {"h3": job.training()["h3"]}, "a worker was restarted"
    job.hosts_command("drain", "h2")
    job.wait_members("h1", "h3").wait_steps(3)
    changes = ["ADDED", "ADDED", "ADDED", "REMOVED"]
    eventually(lambda: [change for change, _ in job.member_log()] == changes, "the member log tells them", job=job)
    job.expect_undisturbed_bits()


@slow
def test_coordinators_with_other_clocks(world: Cluster):
    """A coordinator is followed by one with another clock: it takes over as soon as any, and the records go on."""
    boot_with_other_clocks(world)
    job = world.job(hosts=["h2", "h3"]).start().wait_running().wait_steps(5)
    before = job.training()
    job.kill_coordinator()
    without_first(job)
    job.wait_for_term(2)
    assert abs(hours_ahead(job.events()[-1]["time"])) == 1, "its clock is not another one"
    eventually(lambda: job.training() == before, "all workers are members again")
    job.wait_steps(5)
    assert [event["seq"] for event in job.events()] == list(range(len(job.events())))
    job.expect_calm_bits()


def test_doctor_measures_clocks(world: Cluster):
    """`dtrain doctor` names each machine whose clock is off, by how much, and what that matters for."""
    boot_with_other_clocks(world)
    (world.folder / "hosts").write_text("h1\nh2\nh3\n")
    report = json.loads(world.run("doctor", "-H", world.folder / "hosts", "--accept-new-hosts", "--json", "--connect-timeout", 30,
                                  check=False).stdout)
    found = [finding for finding in report["together"] if finding["level"] != "fine"]
    assert [finding["what"].split(" at least ")[0] for finding in found] == ["h2 is", "h3 is"], found
    assert "ahead of" in found[0]["what"] and "behind" in found[1]["what"], found
    assert all("AWS refuses" in finding["why"] for finding in found), found
