"""Two faults that strike two machines of a job nearly together, the second one in a chosen phase of the recovery from the
first: the job ends with the bits of a calm run, and each pause is measured."""

import dataclasses
import json
import os
import pathlib
import random
import signal
import statistics
import threading
import time

from cluster import Cluster, HostsJob
from lab import send_kill
from runner import slow
from world import PATIENCE, SAMPLES, eventually, send_signal

EPOCHS = 30
QUICK, MANY = 3, 40
# When the second fault strikes: at once, within the time in which the first one is not noticed yet, or as soon as the
# coordinator writes such an event about the first one.
PHASES = ("together", "soon", "freeze", "prepare", "commit", "entered", "save")
FAULTS = ("kill worker", "stop worker", "kill host", "stop host", "cut off")
HEARTBEAT = 3.0


@dataclasses.dataclass
class Plan:
    """A schedule, which depends on its seed alone."""

    seed: int
    hosts: int = 0
    phase: str = ""
    faults: tuple[str, str] = ("", "")
    victims: tuple[str, str] = ("", "")

    def __post_init__(self):
        dice = random.Random(self.seed)
        self.hosts = dice.choice((4, 4, 5, 6, 7))
        self.phase = PHASES[self.seed % len(PHASES)]
        self.faults = (dice.choice(FAULTS), dice.choice(FAULTS))
        names = [f"h{number + 1}" for number in range(self.hosts)]
        self.victims = tuple(dice.sample(names, 2))
        self.jitter = dice.random() * (HEARTBEAT if self.phase == "soon" else 0.05)
        self.begin = dice.randint(15, 40)  # steps before the first fault

    def loses_coordinator(self) -> bool:
        return any(victim == "h1" and "worker" not in fault for victim, fault in zip(self.victims, self.faults))

    def __str__(self) -> str:
        both = ", ".join(f"{fault} {victim}" for fault, victim in zip(self.faults, self.victims))
        return f"seed {self.seed}: {self.hosts} hosts, {both}, {self.phase}"


class Progress:
    """When a later step was begun, as the ledgers of the workers show it."""

    def __init__(self, job: HostsJob):
        self.folder = job.folder / "ledger"
        self.times: list[float] = [time.monotonic()]
        self.furthest = (-1, -1)
        self.sizes: dict[pathlib.Path, int] = {}
        self.over = threading.Event()
        self.thread = threading.Thread(target=self.watch, daemon=True)
        self.thread.start()

    def watch(self) -> None:
        while not self.over.wait(0.02):
            try:
                self.look()
            except (OSError, ValueError, KeyError):  # a line is being written
                continue

    def look(self) -> None:
        for path in self.folder.glob("*.jsonl"):
            size = path.stat().st_size
            if self.sizes.get(path) == size:
                continue
            self.sizes[path] = size
            with open(path, "rb") as file:
                file.seek(max(0, size - 4096))
                line = json.loads(file.read().rpartition(b"\n")[2])
            at = (line["epoch"], line["step"]) if "ids" in line else (-1, -1)
            if at > self.furthest:
                self.furthest = at
                self.times.append(time.monotonic())

    def end(self) -> None:
        self.over.set()
        self.thread.join()

    def pause(self, since: float) -> float:
        """The longest time without a later step, counted from `since` at the earliest."""
        times = self.times
        return max((after - max(before, since) for before, after in zip(times, times[1:]) if after > since), default=0.0)


def strike(job: HostsJob, fault: str, victim: str, worker: int) -> None:
    host = job.host(victim)
    number = signal.SIGKILL if fault.startswith("kill") else signal.SIGSTOP
    if fault == "cut off":
        return host.partition()
    for pid in [worker] if fault.endswith("worker") else host.processes("dtrain"):
        send_signal(pid, number)


def undo(job: HostsJob, fault: str, victim: str) -> None:
    host = job.host(victim)
    if fault == "cut off":
        host.heal()
    for pid in [*host.processes("dtrain"), job.process.pid]:  # nsenter stands still with what it runs
        send_signal(pid, signal.SIGCONT)


def wait_for_phase(job: HostsJob, phase: str, first: int, patience: float) -> None:
    """Until the recovery from the first fault has come so far; no longer than it could take."""
    if phase in ("together", "soon"):
        return
    kinds = {"save": ("checkpoint", "saved")}.get(phase, (phase,))
    end = time.monotonic() + patience
    while time.monotonic() < end:
        if any(event["event"] in kinds for event in job.events()[first:]):
            return
        time.sleep(0.002)


def is_over(job: HostsJob) -> bool:
    path = job.folder / "coordinator.json"
    return bool(json.loads(path.read_text()).get("ended"))


def run(world: Cluster, plan: Plan, expected: str) -> tuple[float, float]:
    """(pause from the first fault, pause from the second)"""
    names = [f"h{number + 1}" for number in range(plan.hosts)]
    world.seat = world.lab["h1"]
    job = world.job(f"s{plan.seed}", hosts=names, epochs=EPOCHS, arguments=["--checkpoint-every", 7]).start()
    job.wait_running().wait_steps(plan.begin)
    workers = job.training()
    progress = Progress(job)
    first = len(job.events())
    time.sleep(0.2)
    begun = time.monotonic()
    strike(job, plan.faults[0], plan.victims[0], workers[plan.victims[0]])
    wait_for_phase(job, plan.phase, first, HEARTBEAT + 2)
    time.sleep(plan.jitter)
    second = time.monotonic()
    strike(job, plan.faults[1], plan.victims[1], workers[plan.victims[1]])
    count = len(progress.times)
    eventually(lambda: len(progress.times) > count + 10, f"{plan}: steps go on", 60, None)
    time.sleep(1.0)  # a step or two of those who had not heard yet
    eventually(lambda: len(progress.times) > count + 25, f"{plan}: steps go on", 60, None)
    for fault, victim in zip(plan.faults, plan.victims):
        undo(job, fault, victim)
    eventually(lambda: is_over(job), f"{plan}: the job is over", 4 * PATIENCE)
    progress.end()
    job.process.wait(PATIENCE)
    job.process = None
    eventually(lambda: not world.processes(), f"{plan}: nothing is left", 60)
    assert job.state_hash() == expected, f"{plan}: other bits"
    job.expect_exactly_once(EPOCHS)
    return progress.pause(begun), progress.pause(second)


def clear(world: Cluster) -> None:
    """Nothing of a job that failed is left on the machines."""
    for host in world.lab.hosts:
        host.heal()
    for pid in world.processes():
        send_kill(pid)
    job = world.jobs[-1]
    print("".join(f"        {line}\n" for line in job.said().splitlines()[-15:]), flush=True)
    if job.process:
        job.process.wait()
        job.process = None


def seeds(count: int) -> list[int]:
    text = os.environ.get("DTRAIN_FAULT_SEEDS", str(count))
    first, _, last = text.rpartition("-")
    return list(range(int(first or 1), int(last) + 1))


def describe(name: str, pauses: list[float]) -> None:
    if not pauses:
        return
    ordered = sorted(pauses)
    print(f"    {name}: {len(pauses)} schedules, pause median {statistics.median(pauses):.1f} s, 95 % "
          f"{ordered[int(0.95 * (len(ordered) - 1))]:.1f} s, longest {ordered[-1]:.1f} s", flush=True)


def run_schedules(world: Cluster, count: int) -> None:
    world.boot()
    expected = world.alone(world.job("calm"), EPOCHS)
    with_coordinator, others, failed = [], [], []
    for seed in seeds(count):
        plan = Plan(seed)
        try:
            whole, last = run(world, plan, expected)
        except Exception as error:  # the next schedules are worth knowing too
            print(f"    {plan}: FAILED: {error}", flush=True)
            failed.append(seed)
            clear(world)
            continue
        print(f"    {plan}: pause {whole:.1f} s, {last:.1f} s from the second fault", flush=True)
        (with_coordinator if plan.loses_coordinator() else others).append(last)
    describe("the coordinator stayed", others)
    describe("the coordinator was lost too", with_coordinator)
    assert not failed, f"seeds that failed: {failed}"


def test_few_pairs(world: Cluster):
    """A handful of schedules."""
    run_schedules(world, QUICK)


@slow
def test_many_pairs(world: Cluster):
    """More schedules."""
    run_schedules(world, MANY)


def test_newcomer_cut_off_at_its_commit(world: Cluster):
    """A newcomer whose cable is pulled just when the others let it in: they go on without it, and nothing is lost."""
    names = ["h1", "h2", "h3"]
    world.boot(*names, "h4")
    job = world.job(hosts=names).start().wait_running().wait_steps(20)
    progress = Progress(job)
    job.hosts_command("add", "h4")
    eventually(lambda: any(event["event"] == "commit" and "h4" in event["members"] for event in job.events()),
               "h4 is let in", job=job)
    begun = time.monotonic()
    job.host("h4").partition()
    count = len(progress.times)
    eventually(lambda: len(progress.times) > count + 20 and set(job.training()) == set(names), "they go on", job=job)
    progress.end()
    print(f"    pause {progress.pause(begun):.1f} s", flush=True)
    job.host("h4").heal()
    job.hosts_command("remove", "h4")
    job.expect_undisturbed_bits()
