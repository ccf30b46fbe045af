"""Job folders as they are: full, slow to show new names, written by machines whose clocks differ."""

import contextlib
import os
import pathlib
import subprocess

from runner import Skip
from world import World, eventually


@contextlib.contextmanager
def small_disk(folder: pathlib.Path, size: str):
    """A file system of its own in this folder."""
    folder.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", folder], capture_output=True, check=False)
    if mounted.returncode != 0:
        raise Skip("file systems cannot be mounted here")
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", folder], check=True)


def fill(path: pathlib.Path) -> None:
    with open(path, "wb", buffering=0) as file:
        for size in (1 << 16, 1):
            with contextlib.suppress(OSError):
                while True:
                    file.write(b"\0" * size)


def test_full_disk(world: World):
    """The job folder's disk fills up: training goes on, says so once, and writes what is missing when there is room."""
    job = world.job(hosts=3)
    with small_disk(job.folder, "8m"):
        job.start().wait_running()
        events = len(job.events())
        fill(job.folder / "ballast")
        job.wait_steps(20)
        complaints = [line for line in job.said().splitlines() if "No space left on device" in line]
        assert complaints and len(set(complaints)) == len(complaints), complaints
        assert "the job goes on" in job.said()
        (job.folder / "ballast").unlink()
        job.hosts_command("drain", "w3")
        job.wait_members("w1", "w2")
        job.wait_steps(5).expect_undisturbed_bits()
        assert len(job.events()) > events and [event["seq"] for event in job.events()] == list(range(len(job.events())))
        assert ("REMOVED", "w3") in job.member_log()


def faketime(offset: str) -> dict[str, str]:
    library = next(iter(pathlib.Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1")), None)
    if library is None:
        raise Skip("libfaketime is not installed")
    return {"LD_PRELOAD": str(library), "FAKETIME": offset, "DONT_FAKE_MONOTONIC": "1"}


def test_clock_of_another_hour(world: World):
    """A job whose clock is an hour ahead, resumed with one an hour behind, watched by commands of the right time."""
    ours = world.environment
    job = world.job()
    world.environment = ours | faketime("+3600s")
    job.start()
    world.environment = ours
    job.wait_running()
    job.hosts_command("add", "w3")
    job.wait_members("w1", "w2", "w3")
    assert world.run("tail-logs", "--job-dir", job.folder, "--no-follow").stdout.count("generation") >= 3
    job.stop()
    world.environment = ours | faketime("-3600s")
    job.start("--resume")
    world.environment = ours
    job.wait_running(3).expect_undisturbed_bits()
    assert [event["seq"] for event in job.events()] == list(range(len(job.events())))


def test_success_file_made_later(world: World):
    """A success file that a person makes while the host waits for its next try counts then."""
    job = world.job(arguments=["--prepare", "exit 3"]).start().wait_running()
    job.hosts_command("add", "w3")
    eventually(lambda: job.row("w3")["state"] == "quarantined", "w3 failed", job=job)
    (job.folder / "prepare_data_success_w3").touch()
    job.wait_members("w1", "w2", "w3")
    job.stop()
    assert os.path.getsize(job.folder / "prepare_data_success_w3") == 0, "a file made by hand stays as it is"
