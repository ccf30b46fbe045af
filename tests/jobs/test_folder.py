"""Job folders as they are: full, slow to show new names, written by machines whose clocks differ."""

import contextlib
import json
import os
import pathlib
import signal
import subprocess
import time

from runner import Skip
from world import SLOWNESS, World, eventually, send_signal


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
        eventually(lambda: "the job goes on" in job.said(), "the coordinator complains", job=job)
        complaints = [line for line in job.said().splitlines() if "No space left on device" in line]
        assert complaints and len(set(complaints)) == len(complaints), complaints
        assert all("free some space" in line for line in complaints if "ledger" not in line), complaints
        (job.folder / "ballast").unlink()
        job.hosts_command("drain", "w3")
        job.wait_members("w1", "w2")
        job.wait_steps(5).expect_undisturbed_bits()
        assert len(job.events()) > events and [event["seq"] for event in job.events()] == list(range(len(job.events())))
        assert ("REMOVED", "w3") in job.member_log()


def test_takeover_without_room(world: World):
    """The coordinator is killed while the job folder is full: the first one that takes over stays, and writes its records
    when there is room."""
    job = world.job(hosts=3)
    with small_disk(job.folder, "8m"):
        job.start().wait_running()
        workers = job.training()
        fill(job.folder / "ballast")
        with open(job.folder / "journal.jsonl", "ab") as journal:  # a torn line up to the end of a page: no byte more fits
            journal.write(b"x" * (-journal.tell() % os.sysconf("SC_PAGE_SIZE")))
        send_signal(job.process.pid, signal.SIGKILL)
        job.process.wait()
        job.process = None
        time.sleep(10 * SLOWNESS)  # enough for several elections, were the first one in vain
        (job.folder / "ballast").unlink()
        job.wait_for_term(2)
        eventually(lambda: job.record()["term"] == 2 and job.training() == workers, "the same workers train")
        assert [event["term"] for event in job.events() if event["event"] == "takeover"] == [2]
        job.wait_steps(5).expect_calm_bits()


def cover(folder: pathlib.Path) -> bool:
    """Mounts the folder over itself, read-only. False: a file was opened there to be written between the two steps."""
    if subprocess.run(["mount", "--bind", folder, folder], capture_output=True, check=False).returncode != 0:
        raise Skip("file systems cannot be mounted here")
    if subprocess.run(["mount", "-o", "remount,bind,ro", folder], capture_output=True, check=False).returncode == 0:
        return True
    subprocess.run(["umount", "-l", folder], check=True)
    return False


@contextlib.contextmanager
def read_only(*folders: pathlib.Path):
    """What is opened there from now on cannot be written; files that are open already can. All can once it is over."""
    covered = []
    try:
        for folder in folders:
            eventually(lambda at=folder: cover(at), f"{folder} can be made read-only")
            covered.append(folder)
        yield
    finally:
        for folder in covered:
            subprocess.run(["umount", "-l", folder], check=True)


def use_prefix(job, prefix: pathlib.Path) -> None:
    job.arguments[job.arguments.index("--model-prefix") + 1] = job.prefix = prefix


def test_no_room_at_the_start(world: World):
    """A job whose folder is full or read-only says so, with the folder and what to do; with room the same command works."""
    for name, word in (("full", "No space left on device"), ("locked", "Read-only file system")):
        job = world.job(name)
        with small_disk(job.folder, "4m"):
            if name == "full":
                fill(job.folder / "ballast")
                assert job.start().wait() == 1
            else:
                with read_only(job.folder):
                    assert job.start().wait() == 1
            error = job.said()
            assert str(job.folder) in error and word in error and "hint:" in error, error
            (job.folder / "ballast").unlink(missing_ok=True)
            job.start().wait_running().stop()


def test_checkpoints_without_room(world: World):
    """Their disk is full: training goes on, and the last good one is kept; with room again the next one is saved."""
    job = world.job(boundary="epoch")
    disk = world.folder / "disk"
    with small_disk(disk, "8m"):
        use_prefix(job, disk / "m")
        job.start().wait_running()
        eventually(lambda: "Saved checkpoint" in job.said(), "one is saved", job=job)
        fill(disk / "ballast")
        complaint = eventually(lambda: next((line for line in job.said().splitlines() if "checkpoint not saved" in line), ""),
                               "one is not", job=job)
        assert "No space left on device" in complaint and "the last good one is" in complaint, complaint
        kept = complaint.split("the last good one is ")[1].split(" (")[0]
        world.run("inspect", kept)
        (disk / "ballast").unlink()
        saved = job.said().count("Saved checkpoint")
        eventually(lambda: job.said().count("Saved checkpoint") > saved, "the next one is saved", job=job)
        job.stop()


def test_stop_without_room(world: World):
    """Stopped while there is no room for checkpoints, a job fails and names what is lost; `dtrain stop` fails too."""
    job = world.job(boundary="step")
    disk = world.folder / "disk"
    with small_disk(disk, "8m"):
        use_prefix(job, disk / "m")
        job.start().wait_running()
        fill(disk / "ballast")
        job.wait_steps(3)
        (job.folder / "logs/coordinator.log").write_text("of an earlier job\n")
        answer = world.run("stop", "--job-dir", job.folder, "--json", check=False)
        assert answer.returncode == 1 and "is lost" in answer.stderr, answer
        assert "the terminal of the job's command says why" in answer.stderr, answer
        assert json.loads(answer.stdout)["exit_code"] == 1, answer.stdout
        assert job.wait() == 1
        assert "are lost" in job.said() and "No space left on device" in job.said(), job.said()


def test_no_room_for_checkpoints_at_the_start(world: World):
    """A job whose checkpoints have no room is refused before anything is trained."""
    job = world.job()
    disk = world.folder / "disk"
    with small_disk(disk, "4m"):
        fill(disk / "ballast")
        use_prefix(job, disk / "m")
        assert job.start().wait() == 1
        assert "No space left on device" in job.said() and "hint:" in job.said(), job.said()


def test_ledger_of_a_worker_that_is_killed_without_room(world: World):
    """What a killed worker consumed while the job folder was full is in the ledger."""
    job = world.job(hosts=2)
    with small_disk(job.folder, "12m"):
        job.start().wait_running()
        fill(job.folder / "ballast")
        job.wait_steps(5)
        send_signal(job.training()["w2"], signal.SIGKILL)
        job.wait_steps(5)
        (job.folder / "ballast").unlink()
        job.wait_steps(5).stop()
        job.expect_exactly_once(json.loads(world.run("inspect", job.prefix, "--json").stdout)["epoch"])


def test_read_only_for_a_while(world: World):
    """The folders of job and checkpoints become read-only: training goes on, an edit is refused with the reason, and later
    nothing is missing."""
    job = world.job(hosts=3)
    job.start().wait_running()
    eventually(lambda: "Saved checkpoint" in job.said(), "one is saved", job=job)
    with read_only(job.folder, job.prefix.parent):
        eventually(lambda: "Read-only file system" in job.said(), "it is told", job=job)
        refused = job.hosts_command("add", "w4", check=False)
        assert refused.returncode != 0 and "Read-only file system" in refused.stderr, refused.stderr
        job.wait_steps(20)
    job.hosts_command("drain", "w3")
    job.wait_members("w1", "w2")
    job.wait_steps(5).stop()
    job.expect_exactly_once(json.loads(world.run("inspect", job.prefix, "--json").stdout)["epoch"])
    assert [event["seq"] for event in job.events()] == list(range(len(job.events())))
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
