"""Jobs that are given to a queue: `dtrain train|launch --detach --job-queue`, `dtrain jobs`."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time

from queues import Queue, checkpoints, end, give_training
from runner import Skip, slow
from world import World, alive, eventually, send_signal, state_hash


def test_killed_job_and_killed_runner(world: World):
    """SIGKILL ends the job's process, then the runner: the same runner resumes the job, the next one finds it alive, and the
    bits are those of a calm run."""
    queue, job, epochs = Queue(world), world.job(), 8
    give_training(queue, job, epochs)
    first = queue.run()
    eventually(lambda: checkpoints(job.prefix), "the first epoch is saved", 60)
    send_signal(queue.process(1), signal.SIGKILL)
    queue.wait_for(1, lambda seen: seen["state"] == "running" and seen["attempts"] == 2, "the job runs again")
    # The record is written before the process is started.
    process = eventually(lambda: alive(queue.process(1)) and queue.process(1), "its process is there")
    first.kill()
    first.wait()
    second = queue.run()
    eventually(lambda: "runs the queue" in queue.said(2), "the second runner acts")
    assert alive(process), "the job ended with its runner"
    assert queue.jobs("wait", 1).stdout == "job 1: done\n"
    seen = queue.show(1)
    assert (seen["attempts"], seen["exit_code"]) == (2, 0), seen
    assert "Resuming from" in queue.jobs("logs", 1).stdout
    assert state_hash(world, job.prefix) == world.alone(job, epochs)
    end(second)


def test_order_cancel_and_bad_input(world: World):
    """The larger priority first, then the older job; and what is refused, is refused when it is said."""
    queue, order = Queue(world), world.folder / "order"
    for name, priority in (("low", -1), ("a", 0), ("b", 0), ("high", 5)):
        queue.give("launch", "--", "sh", "-c", f"echo {name} >>{order}", before=["--priority", priority])
    queue.give("launch", "--", "sleep", "600")
    assert queue.show(5)["exit_code"] is None
    assert queue.jobs("cancel", 5).stdout == "job 5 will be cancelled by the next runner of the queue\n"
    again = queue.jobs("cancel", 5, "--json")
    assert "already" in again.stderr and json.loads(again.stdout)["cancelled"], again
    spoiled = queue.folder / "0006"
    spoiled.mkdir()
    (spoiled / "spec.json").write_text('{"schema": "dtrain.managed-job/2", "command": ["train"]}')

    runner = queue.run()
    eventually(lambda: "runs the queue" in queue.said(1), "the first runner acts")
    other = queue.run()
    eventually(lambda: "another runner acts" in queue.said(2), "a second runner waits")
    end(other)
    assert queue.jobs("wait", check=False).returncode == 75, "job 5 is cancelled"
    again = queue.jobs("wait", check=False)
    assert again.returncode == 75 and again.stdout.count("done") == 4, f"jobs that are over count too: {again}"
    assert order.read_text().split() == ["high", "a", "b", "low"]
    rows = {row["job"]: row for row in json.loads(queue.jobs("list", "--json").stdout)["jobs"]}
    assert [rows[number]["state"] for number in sorted(rows)] == ["done"] * 4 + ["cancelled", "unreadable"], rows
    assert "newer dtrain" in rows[6]["why"]
    assert "\nexit code 0\n" in queue.jobs("show", 1).stdout
    assert "exit code" not in queue.jobs("show", 5).stdout, "it never ran"

    def refused(answer: subprocess.CompletedProcess, code: int, *words: str) -> None:
        assert answer.returncode == code and all(word in answer.stderr for word in words), answer

    refused(queue.jobs("cancel", 1, check=False), 2, "job 1 is over: done")
    refused(queue.jobs("show", 99, check=False), 2, "no job 99")
    refused(queue.jobs("show", "x", check=False), 2, "JOB")
    refused(queue.give("launch", "--", "true", before=["--priority", "much"], check=False), 2, "--priority")
    refused(queue.give("launch", "--", "no-such-program", check=False), 2, "no-such-program")
    refused(queue.give("launch", "--", "true", before=["--down-when-done"], check=False), 2, "--cluster")
    training = ["train", "--num-epochs", 1, "--model-prefix", "m/x"]
    refused(queue.give(*training, "--data-train", "nowhere.rec", check=False), 1, "nowhere.rec")
    data = [*training, "--data-train", world.data / "shapes_train.rec"]
    refused(queue.give(*data, "--load-epoch", 3, check=False), 2, "--load-epoch")
    refused(queue.give(*data, "--pretrained", "none.safetensors", check=False), 1, "none.safetensors")
    refused(world.run("launch", "--priority", 3, "--", "true", check=False), 2, "--detach")
    refused(world.run("jobs", "list", "--job-queue", world.folder / "typo", check=False), 2, "typo")
    refused(world.run("jobs", "list", check=False), 2, "--job-queue")
    assert len(json.loads(queue.jobs("list", "--json").stdout)["jobs"]) == 6
    end(runner)


def test_a_refused_job_adopts_no_other_run(world: World):
    """Its prefix is that of a run that began elsewhere after it was given to the queue: it fails at once, with the reason,
    and trains nothing. A job whose prefix an open job of the queue has is not taken at all. A program that exits with 2
    was not refused, and is started again."""
    queue, job = Queue(world), world.job()
    give_training(queue, job, 4)
    again = ["train", *job.training_arguments[1:], "--num-epochs", 4, "--model-prefix"]
    for prefix in (job.prefix, f"{job.prefix.parent}/./{job.prefix.name}"):
        refused = queue.give(*again, prefix, check=False)
        assert refused.returncode == 2 and "job 1 of the queue, which is waiting, saves" in refused.stderr, refused
    queue.give(*again, job.prefix, "--resume")
    world.run(*job.training_arguments, "--num-epochs", 2, "--model-prefix", job.prefix)
    before = checkpoints(job.prefix)
    queue.jobs("cancel", 2)
    queue.give("launch", "-n", 1, "--", "sh", "-c", "exit 2", before=["--retries", 1])
    runner = queue.run("--until-empty")
    assert runner.wait(120) == 0, queue.said(1)
    assert "the runner has ended: all jobs of the queue are over" in queue.said(1), queue.said(1)
    seen = queue.show(1)
    assert (seen["state"], seen["attempts"], seen["exit_code"]) == ("failed", 1, 2), seen
    assert "has checkpoints already" in seen["why"], seen
    assert checkpoints(job.prefix) == before, "it trained"
    assert (queue.show(3)["attempts"], queue.show(3)["exit_code"]) == (2, 2), queue.show(3)


@slow
def test_cancel_a_running_job(world: World):
    """A cancelled job saves a checkpoint and is not resumed; --now saves none. The next job begins."""
    queue, job = Queue(world), world.job()
    give_training(queue, job, 100000)
    queue.give("launch", "--", "sleep", "600")
    runner = queue.run()
    eventually(lambda: checkpoints(job.prefix), "the first epoch is saved", 60)
    follower = subprocess.Popen(world.command(["jobs", "logs", 1, "-f", "--job-queue", queue.folder]), cwd=world.folder,
                                env=world.environment, stdout=subprocess.PIPE, text=True)
    assert queue.jobs("cancel", 1).stdout == "job 1: cancelled with a checkpoint\n"
    assert "Epoch[0]" in follower.communicate(timeout=60)[0] and follower.returncode == 0
    assert queue.jobs("wait", 1, check=False).returncode == 75
    queue.wait_for(2, lambda seen: seen["state"] == "running", "the next job runs")
    assert queue.jobs("cancel", 2, "--now").stdout.startswith("job 2: cancelled")
    end(runner)


@slow
def test_everything_killed_at_once(world: World):
    """As when the machine loses its power: job, workers and runner. The next runner resumes from the last checkpoint."""
    queue, job, epochs = Queue(world), world.job(), 6
    give_training(queue, job, epochs)
    queue.run()
    for _ in range(2):
        before = checkpoints(job.prefix)
        eventually(lambda known=before: checkpoints(job.prefix) != known, "another epoch is saved", 60)
        for pid in world.processes():
            send_signal(pid, signal.SIGKILL)
        runner = queue.run()
    assert queue.jobs("wait", 1).returncode == 0
    assert queue.show(1)["attempts"] == 3
    assert state_hash(world, job.prefix) == world.alone(job, epochs)
    end(runner)


@slow
def test_an_elastic_job_that_outlives_its_process(world: World):
    """The agents elect another coordinator; the runner follows it and starts nothing beside it."""
    queue, job, epochs = Queue(world), world.job(), 40
    (world.folder / "hosts").write_text("w1\nw2\nw3\n")
    queue.give(*job.training_arguments, "--num-epochs", epochs, "--model-prefix", job.prefix, "-H", world.folder / "hosts",
               "--launcher", "local", "--elastic", "--elastic-boundary", "step", "--heartbeat-timeout", 3)
    runner = queue.run()
    eventually(lambda: checkpoints(job.prefix), "the first epoch is saved", 60)
    send_signal(queue.process(1), signal.SIGKILL)
    record = queue.folder / "0001" / "coordinator.json"
    eventually(lambda: json.loads(record.read_text())["term"] > 1, "another coordinator takes over")
    assert queue.jobs("wait", 1, timeout=300).returncode == 0
    assert queue.show(1)["attempts"] == 1
    assert state_hash(world, job.prefix) == world.alone(job, epochs)
    end(runner)


@slow
def test_a_job_that_fails_again_and_again(world: World):
    """It is given up with the cause, after growing pauses; a failure after progress counts anew; the next job begins."""
    queue = Queue(world)
    queue.give("launch", "--", "sh", "-c", "echo no such luck >&2; exit 3")
    queue.give("launch", "--", "true")
    runner = queue.run()
    begin = time.monotonic()
    answer = queue.jobs("wait", 1, check=False, timeout=300)
    assert answer.returncode != 0 and "5 attempts in a row" in answer.stdout, answer
    assert time.monotonic() - begin > 60, "the pauses do not grow"
    assert queue.jobs("wait", 2).returncode == 0
    assert queue.jobs("logs", 1).stdout.count("no such luck") >= 5
    end(runner)


def test_exit_codes_of_a_program_are_failures(world: World):
    """Codes that mean something else from dtrain itself, as 75 for a checkpoint: the job fails and the next one begins."""
    queue = Queue(world)
    for code in (75, 93, 4):
        queue.give("launch", "--", "sh", "-c", f"exit {code}", before=["--retries", 0])
    queue.give("launch", "--", "sh", "-c", "exit 75", before=["--retries", 1])
    queue.give("launch", "--", "true")
    runner = queue.run()
    assert queue.jobs("wait", 5).returncode == 0
    ends = [(seen["state"], seen["exit_code"], seen["attempts"]) for seen in map(queue.show, (1, 2, 3, 4))]
    assert ends == [("failed", 75, 1), ("failed", 93, 1), ("failed", 4, 1), ("failed", 75, 2)], ends
    end(runner)


def test_a_command_of_several_lines_is_one_row(world: World):
    """Of the list, and one line of what is shown of the job."""
    queue = Queue(world)
    queue.give("launch", "--", "sh", "-c", "true\nexit 3")
    rows = queue.jobs("list").stdout.splitlines()
    assert len(rows) == 2 and "true^Jexit 3" in rows[1], rows
    assert "true^Jexit 3" in queue.jobs("show", 1).stdout


@slow
def test_stop_is_final(world: World):
    """`dtrain stop` of a job of the queue stops it for good, but SIGTERM to its process does not."""
    queue, job = Queue(world), world.job()
    give_training(queue, job, 100000)
    runner = queue.run()
    eventually(lambda: checkpoints(job.prefix), "the first epoch is saved", 60)
    os.kill(queue.process(1), signal.SIGTERM)
    queue.wait_for(1, lambda seen: seen["attempts"] == 2, "SIGTERM, as of a machine that goes off, lets it be resumed")
    eventually(lambda: "Resuming from" in queue.jobs("logs", 1).stdout, "it trains again", 60)
    assert "has stopped" in world.run("stop", "--job-dir", queue.folder / "0001").stdout
    queue.wait_for(1, lambda seen: seen["state"] == "stopped", "it stays so")
    end(runner)


def test_stop_of_an_attempt_that_was_lost_says_so(world: World):
    """The coordinator is killed, and `dtrain stop` comes before the runner has seen it."""
    queue, job = Queue(world), world.job()
    give_training(queue, job, 400)
    runner = queue.run()
    eventually(lambda: checkpoints(job.prefix), "the first epoch is saved", 60)
    runner.send_signal(signal.SIGSTOP)
    send_signal(queue.process(1), signal.SIGKILL)
    stop = subprocess.Popen(world.command(["stop", "--job-dir", queue.folder / "0001"]), cwd=world.folder,
                            env=world.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    eventually(lambda: queue.show(1)["cancelled"], "the stop is written", 60)
    runner.send_signal(signal.SIGCONT)
    said = stop.communicate(timeout=60)[1]
    assert stop.returncode == 1 and "is lost" in said and "dtrain jobs logs 1" in said, said
    end(runner)


def test_stop_between_two_attempts_is_final(world: World):
    """`dtrain stop` cancels a job that its queue would start again, also in a job folder that the user chose."""
    queue, chosen = Queue(world), world.folder / "chosen"
    queue.give("launch", "--", "sh", "-c", "exit 3")
    queue.give("launch", "--", "sh", "-c", "exit 3", before=["--job-dir", chosen])
    for number, folder in ((1, queue.folder / "0001"), (2, chosen)):
        runner = queue.run()
        queue.wait_for(number, lambda seen: seen["state"] == "waiting" and seen["attempts"] > 0, "it is to run again")
        stopped = json.loads(world.run("stop", "--job-dir", folder, "--json").stdout)
        assert stopped["ended"].startswith("cancelled"), stopped
        assert queue.show(number)["state"] == "cancelled"
        assert "the job has already ended" in world.run("stop", "--job-dir", folder).stdout
        end(runner)
    queue.give("launch", "--", "sh", "-c", "exit 3")
    runner = queue.run()
    queue.wait_for(3, lambda seen: seen["state"] == "waiting" and seen["attempts"] > 0, "it is to run again")
    end(runner)
    answer = world.run("stop", "--job-dir", queue.folder / "0003")
    assert "will be cancelled by the next runner" in answer.stdout and queue.show(3)["cancelled"], answer


def test_forget_names_what_was_removed(world: World):
    """A job that runs stays, the other one is removed, and the answer says which is which."""
    queue = Queue(world)
    queue.give("launch", "--", "true")
    queue.give("launch", "--", "sleep", "600")
    runner = queue.run()
    queue.wait_for(2, lambda seen: seen["state"] == "running", "the second job runs")
    answer = queue.jobs("forget", 2, 1, "--yes", "--json", check=False)
    removed = json.loads(answer.stdout)
    assert answer.returncode == 3 and "job 2 is not over" in answer.stderr, answer
    assert removed["jobs"] == [1] and [one["job"] for one in removed["refused"]] == [2], removed
    answer = queue.jobs("forget", 2, "--yes", check=False)
    assert answer.returncode == 2 and "job 2 is not over" in answer.stderr, answer
    queue.jobs("cancel", 2, "--now")
    end(runner)


def test_the_runner_removes_old_jobs_once_it_is_told_to(world: World):
    """A job that ended three days ago goes, and one that ended now stays."""
    queue = Queue(world)
    for _ in range(2):
        queue.give("launch", "-n", 1, "--", "true")
    runner = queue.run()
    for number in (1, 2):
        queue.wait_for(number, lambda seen: seen["state"] == "done", "the job is done")
    end(runner)
    state = queue.folder / "0001/state.json"
    record = json.loads(state.read_text())
    state.write_text(json.dumps({**record, "ended": record["ended"] - 3 * 86400}))
    refused = queue.jobs("forget", "--automatic", 2, check=False)
    assert refused.returncode == 2 and "--yes" in refused.stderr, refused
    assert queue.jobs("forget", "--automatic", 2, "--yes").stdout == "each job is removed 2 days after its end\n"
    runner = queue.run()
    eventually(lambda: not (queue.folder / "0001").exists(), "the old job is removed")
    end(runner)
    told = json.loads(queue.jobs("list", "--json").stdout)
    assert [job["job"] for job in told["jobs"]] == [2] and told["forget_after_days"] == 2
    queue.jobs("forget", "--automatic", 0)
    assert json.loads(queue.jobs("list", "--json").stdout)["forget_after_days"] == 0


def test_a_job_that_another_user_may_have_written_does_not_run(world: World):
    """Who may write to a folder of the queue chooses no command of the runner's user, and not where its output goes. The jobs
    of the runner's user go on."""
    queue = Queue(world)
    queue.give("launch", "-n", 1, "--", "touch", world.folder / "foreign")
    spec = queue.folder / "0001/spec.json"
    spec.chmod(0o664)
    mine = world.folder / "mine"
    mine.write_text("before\n")
    queue.give("launch", "-n", 1, "--", "true")
    (queue.folder / "0002/output.log").symlink_to(mine)
    queue.give("launch", "-n", 1, "--", "true")
    runner = queue.run()
    queue.wait_for(2, lambda seen: "output.log: cannot write: it is a symbolic link" in seen["why"], "no link is followed")
    queue.jobs("cancel", 2)
    queue.wait_for(3, lambda seen: seen["state"] == "done", "the job of the user is done")
    assert queue.show(1)["state"] == "waiting" and not (world.folder / "foreign").exists()
    assert mine.read_text() == "before\n"
    said = queue.said(1)
    assert f"job 1 is left alone: {spec}: other users may write it, so it is not obeyed; only files of" in said, said
    spec.chmod(0o600)
    queue.wait_for(1, lambda seen: seen["state"] == "done", "it runs once it is the user's alone")
    assert (world.folder / "foreign").exists()
    end(runner)
    if os.geteuid() != 0:
        return
    queue.give("launch", "-n", 1, "--", "touch", world.folder / "stolen")
    os.chown(queue.folder / "0004/spec.json", 4711, 4711)
    runner = queue.run()
    eventually(lambda: "job 4 is left alone" in queue.said(2) and "it belongs to 4711" in queue.said(2), queue.said(2))
    end(runner)
    assert not (world.folder / "stolen").exists()


def test_folders_of_a_queue_are_their_owners_to_write(world: World):
    """Also where the user's umask lets a group write; the job runs then as well."""
    queue = Queue(world)
    before = os.umask(0o002)
    try:
        queue.give("launch", "-n", 1, "--", "true")
        runner = queue.run()
    finally:
        os.umask(before)
    queue.wait_for(1, lambda seen: seen["state"] == "done", "the job is done")
    end(runner)
    for folder in (queue.folder, queue.folder / "0001"):
        assert folder.stat().st_mode & 0o777 == 0o755, folder


def test_a_file_server_that_keeps_neither_owners_nor_permissions(world: World):
    """All files are another user's there, and open to all, as with SMB or NFS with all_squash: jobs of the user run."""
    servers = [path for path in ("/usr/lib/openssh/sftp-server", "/usr/libexec/openssh/sftp-server") if os.path.exists(path)]
    if not servers or not shutil.which("sshfs") or not os.access("/dev/fuse", os.W_OK):
        raise Skip("it takes sshfs and FUSE to play such a server")
    real, seen, served = world.folder / "real", world.folder / "seen", world.folder / "served"
    real.mkdir()
    seen.mkdir()
    served.write_text(f"#!/bin/sh\nexec {servers[0]}\n")
    served.chmod(0o755)
    options = f"ssh_command={served},uid=65534,gid=65534,umask=0"
    if subprocess.run(["sshfs", "-o", options, f"server:{real}", seen], check=False).returncode != 0:
        raise Skip("FUSE may not mount here")
    try:
        queue = Queue(world)
        queue.folder = seen / "q"
        queue.give("launch", "-n", 1, "--", "true")
        assert (queue.folder / "0001/spec.json").stat().st_mode & 0o777 == 0o777
        runner = queue.run()
        queue.wait_for(1, lambda job: job["state"] == "done", "the job is done")
        end(runner)
    finally:
        subprocess.run(["fusermount", "-u", "-z", seen], check=True)
