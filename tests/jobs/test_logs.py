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
    assert process.wait(60) == 0
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
    answer = world.run("tail-logs", "--job-dir", job.folder, "--no-follow", "--host", "nope", check=False)
    assert answer.returncode == 2 and "is of nope" in answer.stderr and "hosts are w1, w2" in answer.stderr, answer
    answer = world.run("tail-logs", "--job-dir", job.folder, "--host", "nope", check=False)
    assert answer.returncode == 2 and "hosts are w1, w2" in answer.stderr, "it is refused before the job ends"
    job.stop()
    whole = world.run("tail-logs", "--job-dir", job.folder).stdout
    assert "left at epoch" in whole, "a job that is over is shown whole"
    assert not [line for line in whole.splitlines() if "left at epoch" in line and line.endswith(": ")], "no reason is named"


def test_the_log_of_a_detached_job_has_times(world: World):
    """Lines of the training are found by --since, and all lines come in the order of their times."""
    job = world.job().start("--detach")
    assert job.process.wait(60) == 0
    assert "\nThe run trains on" in job.said() and "Z The run" not in job.said(), job.said()
    job.process = None
    tail = ["tail-logs", "--job-dir", job.folder, "--no-follow", "--json"]
    eventually(lambda: world.run(*tail, "--since", "1h", "--grep", "Epoch").stdout, "the training is heard")
    world.run("stop", "--job-dir", job.folder)
    rows = [json.loads(line) for line in world.run(*tail).stdout.splitlines()]
    times = [row["time"] for row in rows]
    assert all(times) and times == sorted(times), times
    ended = [row["line"] for row in rows if row["source"] == "coordinator"][-1]
    assert ended.startswith("The job ended: requested by `dtrain stop`"), ended


def test_the_log_of_a_detached_job_says_why_it_ended(world: World):
    """Also with --quiet, and with --json as the error's document."""
    for name, option in (("calm", "--quiet"), ("lines", "--json")):
        job = world.job(name).start("--detach", option)
        assert job.process.wait(60) == 0
        job.process = None
        world.run("stop", "--job-dir", job.folder)
        last = (job.folder / "logs/coordinator.log").read_text().splitlines()[-1].split(" ", 1)[1]
        if option == "--quiet":
            assert last.startswith("The job ended: requested by `dtrain stop`"), last
        else:
            assert json.loads(last)["error"]["message"].startswith("requested by `dtrain stop`"), last


def test_no_job(world: World):
    """A folder without a job is a mistake, with the way out."""
    answer = world.run("tail-logs", "--job-dir", world.folder / "nothing", check=False)
    assert answer.returncode == 2 and "--job-dir" in answer.stderr
