"""Whatever happens to host_worker, nobody is removed whom nobody asked to remove."""

import os
import shutil
import time

from world import World, eventually


def test_torture(world: World):
    """Halves 700 ms apart, truncated, deleted, copied, moved, binary, CRLF, duplicates: no REMOVED line."""
    job = world.job(hosts=3).start().wait_running()
    path, whole = job.folder / "host_worker", "w1\nw2\nw3\n"
    calm = 3.0  # more than the 2 s for which an edit must stand

    for text in ("w1\n", "w1\nw2"):  # two halves
        path.write_text(text)
        time.sleep(0.7)
    path.write_text(whole)
    path.write_text("")
    time.sleep(calm)
    path.unlink()
    time.sleep(calm)
    path.write_bytes(os.urandom(2000))
    time.sleep(calm)
    path.write_text("w1\nw2\nw")  # half written, no newline at its end
    time.sleep(calm)
    shutil.copy(world.folder / "job.hosts", path)
    job.edit("# a comment\r\n w3 \r\n\r\nw1\r\nw2\r\nw1\r\n")
    time.sleep(calm)
    assert all(change == "ADDED" for change, _ in job.member_log()), job.member_log()
    job.edit("w2\nw3\n")
    job.wait_members("w2", "w3")
    eventually(lambda: [host for change, host in job.member_log() if change == "REMOVED"] == ["w1"], "the log tells it", 30)
    job.stop()


def test_command_beside_an_edit_by_hand(world: World):
    """A command that takes back an edit by hand, because the job has not accepted that, says so where it was typed."""
    job = world.job(hosts=3).start().wait_running()
    job.edit("w1\n")  # refused: more than half of the hosts
    eventually(lambda: "looks like an accident" in job.said(), "the list is refused", job=job)
    answer = job.hosts_command("add", "w4")
    assert "it lacked w2, w3" in answer.stderr, answer.stderr
    assert "it lacked" not in job.hosts_command("remove", "w4").stderr
    job.stop()


def test_a_command_keeps_the_link_and_the_mode(world: World):
    """`hosts add` writes through the user's link, and the file stays as writable for others as it was."""
    job = world.job(hosts=2).start().wait_running()
    path, target = job.folder / "host_worker", world.folder / "my-hosts"
    path.rename(target)
    path.symlink_to(target)
    target.chmod(0o664)
    job.hosts_command("add", "w3")
    assert path.is_symlink() and target.read_text() == "w1\nw2\nw3\n", target.read_text()
    assert target.stat().st_mode & 0o7777 == 0o664, oct(target.stat().st_mode)
    job.wait_members("w1", "w2", "w3").stop()


def test_log_continues(world: World):
    """host_worker_log keeps its grammar and its numbers when the job is started again."""
    job = world.job(hosts=2).start().wait_running()
    job.hosts_command("add", "w3")
    job.wait_members("w1", "w2", "w3")
    job.stop()
    lines = len(job.member_log())
    job.start("--resume").wait_running(3)
    job.stop()
    assert len(job.member_log()) >= lines
