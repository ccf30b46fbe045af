"""Files that a job takes along to machines that do not have the folder it is started in."""

import os

from cluster import Cluster, PROGRAM
from world import eventually

COPY = "/srv/copy"
TEXT = "taken along\n"


def test_workers_run_in_a_copy_of_the_current_folder(world: Cluster):
    """--sync-dst-dir: every machine has the current folder's files before its agent starts, a newcomer too, and workers run there."""
    world.boot("h1", "h2", "h3")
    (world.folder / "notes.txt").write_text(TEXT)
    (world.folder / "train.py").write_text("of this one")
    (world.folder / "old.txt").write_text("removed before the newcomer joins")
    (world.folder / "linked").symlink_to("/etc")
    job = world.job(hosts=["h1", "h2"], arguments=["--sync-dst-dir", COPY]).start().wait_running()
    same_name = world.folder / "deep" / job.folder.name / "kept.txt"
    same_name.parent.mkdir(parents=True)
    same_name.write_text(TEXT)
    (world.folder / "old.txt").unlink()
    (world.folder / "train.py").write_text("of the next experiment")
    job.edit("h1\nh2\nh3\n")
    job.wait_members("h1", "h2", "h3")
    told = [line for line in job.said().splitlines() if line.startswith("h3 gets files that changed since the first hosts got theirs")]
    assert len(told) == 1 and "train.py" in told[0] and "notes.txt" not in told[0], told
    assert world.lab["h3"].run("cat", f"{COPY}/deep/{job.folder.name}/kept.txt").stdout == TEXT
    assert "old.txt" not in world.lab["h3"].run("ls", COPY).stdout.split()
    for name, worker in job.training().items():
        assert world.lab[name].run("cat", f"{COPY}/notes.txt").stdout == TEXT
        folder = os.readlink(f"/proc/{worker}/cwd")
        assert folder.endswith(COPY), f"the worker of {name} runs in {folder}"
        assert job.folder.name not in world.lab[name].run("ls", COPY).stdout.split(), "the job folder travelled"
    job.stop()


def test_newcomers_that_others_start_get_the_files(world: Cluster):
    """The coordinator has no key any more: whoever adds a host brings it the files too, where they are to be had."""
    world.lab["h1"].without("key")
    world.boot("h1", "h2", "h3", "h4")
    world.lend_key("h1")
    (world.folder / "notes.txt").write_text(TEXT)
    job = world.job(hosts=["h1", "h2"], arguments=["--sync-dst-dir", COPY]).start().wait_running()
    world.take_key_back("h1")
    world.run_on("h2", "hosts", "add", "h4", "--job-dir", job.folder)
    job.wait_members("h1", "h2", "h4")
    assert world.lab["h4"].run("cat", f"{COPY}/notes.txt").stdout == TEXT
    assert os.readlink(f"/proc/{job.training()['h4']}/cwd").endswith(COPY)
    job.stop()


def test_files_of_the_coordinators_machine_alone(world: Cluster):
    """Another machine than the coordinator's, without these files, leaves a newcomer to it and says where it can be started."""
    h1 = world.lab["h1"].without("key")
    world.boot("h1", "h2", "h3", "h4")
    world.lend_key("h1")
    h1.run("sh", "-c", f"mkdir /srv/mine && echo here >/srv/mine/notes.txt && cat >{PROGRAM}-here && chmod +x {PROGRAM}-here",
           text=f'#!/bin/sh\ncd /srv/mine && exec {PROGRAM} "$@"\n')
    world.program = f"{PROGRAM}-here"
    job = world.job(hosts=["h1", "h2"], arguments=["--sync-dst-dir", COPY]).start().wait_running()
    world.take_key_back("h1")
    world.program = PROGRAM
    said = world.run_on("h2", "hosts", "add", "h3", "--job-dir", job.folder).stderr
    assert "only h1 has /srv/mine" in said and "run this on h1" in said, said
    row = eventually(lambda: job.row("h3") if job.row("h3")["state"] == "quarantined" else None, "nobody has a key", job=job)
    assert "no key opens it" in row["reason"], row
    world.lend_key("h1")
    job.hosts_command("add", "h4")
    job.wait_members("h1", "h2", "h4")
    assert world.lab["h4"].run("cat", f"{COPY}/notes.txt").stdout == "here\n"
    job.stop()
