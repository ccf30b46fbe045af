"""What changes of the membership cost a job on several machines: figures for a person; only what must never be fails."""

import json
import signal
import statistics
import time

from cluster import Cluster, HostsJob
from lab import command_line, send_kill
from runner import slow
from world import eventually, send_signal

LONG = 300.0
# About 200 MB of weights and momentum, with steps that are short beside their way over a slow link.
BIG = ["--network", "resnet-v1", "--num-layers", 50, "--image-shape", "3,64,64", "--global-batch", 4,
       "--logical-shards", 4, "--benchmark", 1]
RATE = 1e9 / 8  # bytes a second


def synthetic_job(world: Cluster, hosts: list[str], *arguments) -> HostsJob:
    """A job that trains on made-up images, so that reading is no part of a step."""
    job = world.job(hosts=hosts)
    job.arguments = ["train", *arguments, "--threads", 1, "--num-epochs", 1000000, "--launcher", "ssh", "--elastic",
                     "--elastic-boundary", "step", "-H", world.folder / f"{job.name}.hosts", "--job-dir", job.folder,
                     "--json"]
    return job


def step_seconds(job: HostsJob) -> list[float]:
    events = (json.loads(line) for line in (job.world.folder / f"{job.name}.out").read_text().splitlines()
              if line.endswith("}"))
    return [event["seconds"] for event in events if event["event"] == "step"]


def wait_more_steps(job: HostsJob, steps: int) -> list[float]:
    before = len(step_seconds(job))
    eventually(lambda: len(step_seconds(job)) >= before + steps, f"{steps} more steps", LONG, job)
    return step_seconds(job)[before:]


def end(job: HostsJob) -> None:
    job.world.run("stop", "--job-dir", job.folder)
    job.wait()


@slow
def test_a_join_over_a_slow_link_pauses_for_the_state(world: Cluster):
    """With 1 Gbit/s to and from every machine a planned join pauses training for about the state's way over one link."""
    world.boot("h1", "h2", "h3")
    for name in ("h1", "h2", "h3"):
        world.lab[name].rate("1gbit")
    job = synthetic_job(world, ["h1", "h2"], *BIG).start().wait_running()
    job.hosts_command("add", "h3")
    eventually(lambda: set(job.training()) == {"h1", "h2", "h3"}, "h3 joined", LONG, job)
    change = eventually(lambda: next((event for event in job.events() if event["event"] == "generation"
                                      and event["workers"] == 3), None), "all three did a step", LONG, job)
    step = statistics.median(wait_more_steps(job, 5))  # of three: it moves more than one of two
    parameters = next(event["parameters"] for event in map(json.loads, (world.folder / f"{job.name}.out").open())
                      if "parameters" in event)
    way = 8 * parameters / RATE  # weights and momentum, 4 bytes each
    print(f"    {8 * parameters / 1e6:.0f} MB of state are {way:.2f} s on the link; a step takes {step:.2f} s; "
          f"the join paused for {change['pause_seconds'] - step:.2f} s besides one step: {change['seconds']}", flush=True)
    end(job)


@slow
def test_newcomers_in_trouble_leave_the_others_their_pace(world: Cluster):
    """The others' median step while a newcomer hangs in sshd, fails to prepare, or is killed again and again."""
    world.boot("h1", "h2", "h3")
    job = synthetic_job(world, ["h1", "h2"], "--network", "resnet", "--num-layers", 20, "--image-shape", "3,32,32",
                        "--global-batch", 32, "--logical-shards", 4, "--benchmark", 1, "--prepare", "test ! -e /tmp/bad")
    job.start().wait_running()
    h3 = world.lab["h3"]

    def calm() -> float:
        return statistics.median(wait_more_steps(job, 60))

    def beside(what: str, trouble) -> None:
        before = calm()
        undo = trouble()
        ratio = statistics.median(wait_more_steps(job, 60)) / before
        assert set(job.training()) == {"h1", "h2"}, job.list()
        undo()
        job.hosts_command("remove", "h3")
        after = calm()
        print(f"    {what}: step {before * 1e3:.1f} ms before, x {ratio:.3f} beside it, x {after / before:.3f} after",
              flush=True)

    def hanging():
        daemon = next(pid for pid in h3.processes("sshd") if "listener" in command_line(pid))
        send_signal(daemon, signal.SIGSTOP)
        job.hosts_command("add", "h3")
        return lambda: send_signal(daemon, signal.SIGCONT)

    def unprepared():
        h3.start("touch", "/tmp/bad").wait()
        job.hosts_command("add", "h3")
        eventually(lambda: job.row("h3")["state"] == "quarantined", "it failed", job=job)
        return lambda: h3.start("rm", "/tmp/bad").wait()

    beside("a newcomer whose sshd hangs", hanging)
    beside("a newcomer whose --prepare fails", unprepared)

    before = calm()
    job.hosts_command("add", "h3")
    until = time.monotonic() + 10
    deaths = 0
    while time.monotonic() < until:
        for pid in h3.processes("--worker"):
            send_kill(pid)
            deaths += 1
        time.sleep(0.2)
    beside_deaths = statistics.median(wait_more_steps(job, 20))
    print(f"    a newcomer that died {deaths} times: x {beside_deaths / before:.3f}", flush=True)
    end(job)
