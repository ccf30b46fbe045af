"""A job begins, is looked at, is stopped, goes on, and ends."""

import fcntl
import json
import signal
import subprocess
import time

from world import SAMPLES, World, alive, eventually, send_signal


def test_resume_with_other_workers(world: World):
    """Stopped in the middle with 2 workers, resumed with 3: the bits of an undisturbed run, every sample once."""
    job = world.job().start().wait_running().wait_steps(7).stop()
    job.hosts = ["w1", "w2", "w3"]
    job.start("--resume", "--reset-hosts").wait_running().expect_undisturbed_bits()


def test_detached_job(world: World):
    """--detach returns once the job runs, names process and folder, and the job is stopped with a checkpoint."""
    job = world.job().start("--detach")
    assert job.process.wait(60) == 0
    said = (world.folder / "job.out").read_text()
    assert str(job.folder) in said and "dtrain stop" in said, said
    assert len(job.training()) == 2
    stopped = world.run("stop", "--job-dir", job.folder).stdout
    eventually(lambda: not world.processes(), "the job is gone", 60)
    assert list((world.folder / "m").glob("job-*.json")), "no checkpoint"
    assert f"--resume continues from {(job.folder / 'latest_checkpoint').read_text().strip()}" in stopped, stopped
    again = json.loads(world.run("stop", "--job-dir", job.folder, "--json").stdout)
    assert again["exit_code"] == 75 and again["checkpoint"], again
    assert "the job has already ended" in world.run("stop", "--job-dir", job.folder).stdout
    answer = job.hosts_command("list", check=False)
    assert answer.returncode != 0 and "already ended" in answer.stderr, answer.stderr


def test_stop_of_a_job_that_begins_again(world: World):
    """The record is still that of the job before: dtrain stop waits for the next one, and believes no old end."""
    job = world.job().start().wait_running().stop()
    with open(job.folder / "coordinator.lock", "r+b") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        stop = subprocess.Popen(world.command(["stop", "--job-dir", job.folder]), cwd=world.folder, env=world.environment,
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
        time.sleep(1)
        assert stop.poll() is None, "an old end is taken for the new one"
    assert "the job has already ended" in stop.communicate(timeout=60)[0] and stop.returncode == 0


def test_detached_job_that_cannot_run(world: World):
    """--detach says why a job does not run, with its exit code."""
    job = world.job(arguments=["--num-classes", 5]).start("--detach")
    assert job.process.wait(60) == 1
    assert "label" in job.said(), job.said()


def test_interrupt_saves(world: World):
    """SIGINT to the coordinator: a checkpoint and exit 75."""
    job = world.job().start().wait_running()
    send_signal(job.process.pid, signal.SIGINT)
    assert job.wait() == 75
    assert "--resume" in job.said() and list((world.folder / "m").glob("job-*.json"))


def test_second_interrupt_ends_at_once(world: World):
    """A second SIGINT ends the job without waiting."""
    job = world.job().start().wait_running()
    for pid in job.training().values():
        send_signal(pid, signal.SIGSTOP)
    send_signal(job.process.pid, signal.SIGINT)
    eventually(lambda: "Stopping" in job.said(), "the first one is heard", job=job)
    time.sleep(0.4)  # at once, it would be the same request
    send_signal(job.process.pid, signal.SIGINT)
    assert job.wait(60) in (130, -signal.SIGINT)


def test_stop_now(world: World):
    """dtrain stop --now ends all processes without a checkpoint."""
    job = world.job().start().wait_running()
    pids = list(job.training().values())
    assert "the job has " in world.run("stop", "--job-dir", job.folder, "--now").stdout
    assert job.wait(60) != 0
    assert not any(alive(pid) for pid in pids)


def test_list_of_hosts(world: World):
    """The list names state, rank, process, address, generation and speed of every host."""
    job = world.job().start().wait_running().wait_steps(20)
    document = job.list()
    assert document["schema"].startswith("dtrain.hosts-list/")
    for host in document["hosts"]:
        assert host["state"] == "member" and host["address"] == "127.0.0.1" and alive(host["pids"][0]), host
        assert host["generation"] == document["generation"] and host["samples_per_second"] > 0, host
    assert sorted(host["ranks"][0] for host in document["hosts"]) == [0, 1]
    table = job.hosts_command("list").stdout
    assert "w1" in table and "member" in table
    assert "HOST  STATE   RANKS" in table and "\nw1    member  " in table, table
    job.stop()


def test_log_lines_of_the_seeds(world: World):
    """A job of several workers prints the lines of the seeds once, and what each worker says where that is asked for."""
    job = world.job(epochs=2).start("--log-per-worker").finish()
    said = job.said()
    for line in ("Created worker host file", "Launching worker node at ip: ", "Epoch[0] Batch [5]\tSpeed: ",
                 "Epoch[1] Train-accuracy=", "Epoch[1] Time cost=", "Epoch[1] Validation-accuracy=", "Saved checkpoint to"):
        assert line in said, line
    assert said.count("Epoch[0] Train-accuracy=") == 1
    assert "[w1.0] generation 1: rank " in said and "[w2.0] generation 1: rank " in said
    assert "2 epochs trained" in (world.folder / "job.out").read_text()


def test_job_as_data(world: World):
    """--json streams steps and epochs once, --tensorboard and --prometheus write their files."""
    job = world.job(epochs=2).start("--json", "--tensorboard", "tb", "--prometheus").finish()
    lines = [json.loads(line) for line in (world.folder / "job.out").read_text().splitlines()]
    assert {line["schema"] for line in lines} == {"dtrain.train/1"} and lines[0]["event"] == "start"
    steps = [(line["epoch"], line["step"]) for line in lines if line["event"] == "step"]
    assert steps == [(epoch, step) for epoch in range(2) for step in range(20)], steps
    assert list((world.folder / "tb").glob("events.out.tfevents.*"))
    assert "dtrain_" in (job.folder / "metrics.prom").read_text()


def test_jobs_side_by_side(world: World):
    """Six jobs at once on one machine: none disturbs another."""
    jobs = [world.job(f"job{number}", epochs=1).start() for number in range(6)]
    hashes = {job.finish().state_hash() for job in jobs}
    assert len(hashes) == 1


def test_one_job_a_folder(world: World):
    """A second job in the same folder is refused while the first one runs."""
    job = world.job().start().wait_running()
    answer = world.run(*job.arguments, check=False)
    assert answer.returncode == 1 and "a job runs there already" in answer.stderr, answer.stderr
    job.stop()


def test_events(world: World):
    """Events are one object a line with a number and a time; a time line is made of them."""
    job = world.job(epochs=2).start().finish()
    events = job.events()
    assert [event["seq"] for event in events] == list(range(len(events)))
    assert events[-1]["event"] == "goodput" and events[-1]["samples_seen"] == 2 * SAMPLES, events[-1]
    table = world.run("events", "--job-dir", job.folder).stdout
    assert "generation" in table, table
    assert table.splitlines()[0] == events[0]["time"][:10] + " UTC", table
    assert json.loads(world.run("events", "--job-dir", job.folder, "--json").stdout.splitlines()[0])["event"]
