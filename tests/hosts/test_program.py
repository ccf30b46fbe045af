"""How machines get the program: the one at the same path, or a copy of the bundle."""

import pathlib
import shutil
import subprocess

from cluster import Cluster, PROGRAM
from lab import send_kill
from runner import Skip
from world import DTRAIN, eventually

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]


def unpack_bundle(world: Cluster) -> pathlib.Path:
    """The program of a bundle that lies on h1 alone."""
    tools = ("patchelf", "zstd", "strip", "c++", "tar")
    if missing := [tool for tool in tools if not shutil.which(tool)]:
        raise Skip(f"no program {missing[0]} here")
    archive = subprocess.run(["bash", REPOSITORY / "packaging" / "bundle.sh", pathlib.Path(DTRAIN).parent, world.folder],
                             check=True, capture_output=True, text=True).stdout.split()[-1]
    h1 = world.lab["h1"]
    h1.run("mkdir", "-p", "/opt")
    h1.run("tar", "-C", "/opt", "--zstd", "-xf", archive)
    return pathlib.Path("/opt") / pathlib.Path(archive).name.removesuffix(".tar.zst") / "dtrain"


def cached(world: Cluster, host: str) -> str:
    return world.lab[host].run("sh", "-c", "ls -d ~/.cache/dtrain/*/complete", check=False).stdout


def test_a_bundle_copies_itself(world: Cluster):
    """Machines without dtrain get the bundle of the coordinator, once; the next start uses the copy."""
    for name in ("h2", "h3"):
        world.lab[name].without("program")
    world.boot("h1", "h2", "h3")
    world.program = unpack_bundle(world)
    job = world.job(hosts=["h1", "h2"]).start().wait_running()
    assert "Copied dtrain to h2" in job.said() and "Copied dtrain to h1" not in job.said(), job.said()
    assert cached(world, "h2").count("complete") == 1
    job.hosts_command("add", "h3")
    job.wait_members("h1", "h2", "h3").stop()
    again = world.job("again", hosts=["h1", "h2"]).start().wait_running()
    assert "Copied dtrain" not in again.said(), again.said()
    again.expect_undisturbed_bits()


def test_a_copy_that_is_cut_short(world: Cluster):
    """kill -9 of the ssh connections of a newcomer that gets its copy: a reason, then the rest of it, and it joins."""
    world.lab["h2"].without("program")
    world.boot("h1", "h2")
    world.program = unpack_bundle(world)
    job = world.job(hosts=["h1"]).start().wait_running()
    h2 = world.lab["h2"]
    h2.rate("50mbit")
    job.edit("h1\nh2\n")
    eventually(lambda: h2.run("sh", "-c", "ls ~/.cache/dtrain/*/lib/*", check=False).stdout, "the copy begins", job=job)
    for pid in h2.processes("sshd: root"):
        send_kill(pid)
    assert not cached(world, "h2"), "the copy was too quick for this test"
    row = eventually(lambda: job.row("h2") if job.row("h2")["state"] == "quarantined" else None, "it failed", job=job)
    assert row["reason"] and row["next"], row
    eventually(lambda: "h2" in job.training(), "h2 joined", 120, job)
    job.wait_steps(3).stop()


def test_another_program_is_refused(world: Cluster):
    """A machine whose dtrain differs, or is missing, is refused with what to do; --sync-binary 0 does not look."""
    world.lab["h2"].without("program")
    world.boot("h1", "h2")
    job = world.job(hosts=["h1"]).start().wait_running()
    job.hosts_command("add", "h2")
    row = eventually(lambda: job.row("h2") if job.row("h2")["state"] == "quarantined" else None, "it failed", job=job)
    assert "is not there" in row["reason"] and "from its bundle" in row["reason"], row
    job.hosts_command("remove", "h2")
    h2 = world.lab["h2"]
    shutil.copy(DTRAIN, world.folder / "other")
    h2.run("sh", "-c", f"cp {world.folder}/other {PROGRAM} && echo >>{PROGRAM}")
    job.hosts_command("add", "h2")
    row = eventually(lambda: job.row("h2") if "another program" in job.row("h2").get("reason", "") else None, "it is refused",
                     job=job)
    job.stop()
    unchecked = world.job("unchecked", arguments=["--sync-binary", 0, "--mixed-hardware", "allow"]).start().wait_running()
    unchecked.stop()
