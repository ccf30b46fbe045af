"""Files that a job takes along to machines that do not have the folder it is started in."""

import os

from cluster import Cluster

COPY = "/srv/copy"
TEXT = "taken along\n"


def test_workers_run_in_a_copy_of_the_current_folder(world: Cluster):
    """--sync-dst-dir: every machine has the current folder's files before its agent starts, a newcomer too, and workers run there."""
    world.boot("h1", "h2", "h3")
    (world.folder / "notes.txt").write_text(TEXT)
    job = world.job(hosts=["h1", "h2"], arguments=["--sync-dst-dir", COPY]).start().wait_running()
    job.edit("h1\nh2\nh3\n")
    job.wait_members("h1", "h2", "h3")
    for name, worker in job.training().items():
        assert world.lab[name].run("cat", f"{COPY}/notes.txt").stdout == TEXT
        folder = os.readlink(f"/proc/{worker}/cwd")
        assert folder.endswith(COPY), f"the worker of {name} runs in {folder}"
        assert job.folder.name not in world.lab[name].run("ls", COPY).stdout.split(), "the job folder travelled"
    job.stop()
