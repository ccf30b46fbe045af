"""dtrain tail-logs: every worker's log as one stream, until the job ends."""

import json
import subprocess
import threading

from world import DTRAIN, World, eventually


def follow(world: World, job, *arguments) -> tuple[subprocess.Popen, list[str]]:
    process = subprocess.Popen([DTRAIN, "tail-logs", "--job-dir", str(job.folder), *arguments], cwd=world.folder,
                               env=world.environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True)
    lines: list[str] = []
    threading.Thread(target=lambda: lines.extend(process.stdout), daemon=True).start()
    return process, lines


def test_follows_until_the_end(world: World):
    """It shows what was said, what is said and who joins, and returns when the job ends."""
    job = world.job().start().wait_running()
    process, lines = follow(world, job)
    eventually(lambda: any("[w2.0] generation 1: rank" in line for line in lines), "what was said is shown", job=job)
    job.hosts_command("add", "w3")
    job.wait_members("w1", "w2", "w3")
    eventually(lambda: any(line.startswith("[w3.0] ") for line in lines), "the newcomer is heard", job=job)
    assert process.poll() is None
    job.stop()
    assert process.wait(20) == 0
    assert any("left at epoch" in line for line in lines), lines[-5:]


def test_choices(world: World):
    """By rank, host, time and pattern, as JSON, without waiting."""
    job = world.job().start().wait_running()
    host, _ = job.worker_of_rank(0)
    answer = world.run("tail-logs", "--job-dir", job.folder, "--no-follow", "--rank", 0, "--grep", "generation 1", "--json")
    rows = [json.loads(line) for line in answer.stdout.splitlines()]
    assert [row["host"] for row in rows] == [host] and rows[0]["schema"] == "dtrain.log/1" and rows[0]["time"], rows
    answer = world.run("tail-logs", "--job-dir", job.folder, "--no-follow", "--host", "w2")
    assert answer.stdout and all(line.startswith("[w2.0] ") for line in answer.stdout.splitlines()), answer.stdout
    assert world.run("tail-logs", "--job-dir", job.folder, "--no-follow", "--since", "0s").stdout == ""
    assert world.run("tail-logs", "--job-dir", job.folder, "--since", "soon", check=False).returncode == 2
    answer = world.run("tail-logs", "--job-dir", job.folder, "--no-follow", "--rank", 9, check=False)
    assert answer.returncode == 2 and "no worker had rank 9" in answer.stderr and "ranks are 0 to 1" in answer.stderr, answer
    job.stop()
    assert "left at epoch" in world.run("tail-logs", "--job-dir", job.folder).stdout, "a job that is over is shown whole"


def test_no_job(world: World):
    """A folder without a job is a mistake, with the way out."""
    answer = world.run("tail-logs", "--job-dir", world.folder / "nothing", check=False)
    assert answer.returncode == 2 and "--job-dir" in answer.stderr
