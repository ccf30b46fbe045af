"""The coordinator is lost: the agents choose another one while the workers train, and nothing is lost."""

import json
import signal
import time

from cluster import Cluster, HostsJob
from lab import NFS, send_kill
from runner import Skip
from world import SLOWNESS, alive, eventually, send_signal

LIMIT = 10.0  # seconds that a takeover may take, on a machine that is not busy


def takeover_seconds(job: HostsJob, since: float) -> float:
    """From the loss to the first step that the new coordinator hears of."""
    steps = job.steps_done()
    eventually(lambda: job.steps_done() > steps, "steps are done")
    return time.time() - since


def without_first(job: HostsJob) -> None:
    """The process that the test started has ended, but the job goes on."""
    if job.process:
        job.process.wait(30 * SLOWNESS)
        job.process = None


def need_folder_of_all() -> None:
    if NFS:
        raise Skip("a machine that is cut off has to see the job folder, which NFS takes from it too")


def go_on_after(job: HostsJob, lose, term: int = 2) -> None:
    """Loses the coordinator; all workers go on living, and the bits are those of a calm run."""
    before = job.training()
    lost = time.time()
    lose()
    without_first(job)
    job.wait_for_term(term)
    took = takeover_seconds(job, lost)
    after = job.training()
    assert after and all(before[name] == pid for name, pid in after.items()), f"restarted: {before} {after}"
    print(f"    taken over within {took:.1f} s", flush=True)


def test_killed_coordinator(world: Cluster):
    """kill -9 of the coordinator: an agent starts another; no worker is restarted, and the bits stay."""
    world.boot("h1", "h2", "h3")
    job = world.job(hosts=["h1", "h2", "h3"]).start().wait_running().wait_steps(5)
    go_on_after(job, job.kill_coordinator)
    job.expect_calm_bits()


def test_killed_twice(world: Cluster):
    """The second coordinator dies too, and the third takes a newcomer in."""
    world.boot("h1", "h2", "h3")
    job = world.job(hosts=["h1", "h2"]).start().wait_running().wait_steps(5)
    go_on_after(job, job.kill_coordinator)
    second = job.record()
    host = next(host for host in world.lab.hosts if host.name == second["host"])
    go_on_after(job, lambda: send_kill(host.outside(second["pid"])), 3)
    job.hosts_command("add", "h3")
    job.wait_members("h1", "h2", "h3").wait_steps(3)
    job.expect_calm_bits()


def test_machine_of_the_coordinator_is_switched_off(world: Cluster):
    """The coordinator's machine goes without a word, with a worker on it: the other two go on."""
    world.boot("h1", "h2", "h3")
    job = world.job(hosts=["h1", "h2", "h3"]).start().wait_running().wait_steps(5)
    before = job.training()
    world.seat = world.lab["h2"]
    world.lab["h1"].power_off()
    without_first(job)
    job.wait_for_term(2)
    job.wait_members("h2", "h3").wait_steps(5)
    assert job.training() == {name: before[name] for name in ("h2", "h3")}, "a worker was restarted"
    job.expect_calm_bits()


def test_one_left_of_two(world: Cluster):
    """Two machines, and the one with the coordinator is switched off: the other goes on alone."""
    world.boot("h1", "h2")
    job = world.job(hosts=["h1", "h2"]).start().wait_running().wait_steps(5)
    world.seat = world.lab["h2"]
    world.lab["h1"].power_off()
    without_first(job)
    job.wait_for_term(2)
    job.wait_members("h2").wait_steps(5)
    job.expect_calm_bits()


def test_coordinator_in_the_minority(world: Cluster):
    """The coordinator's machine is cut off from the others: they go on, it steps down and watches; healed, its host joins anew."""
    need_folder_of_all()
    world.boot("h1", "h2", "h3")
    job = world.job(hosts=["h1", "h2", "h3"]).start().wait_running().wait_steps(5)
    before = job.training()
    world.seat = world.lab["h2"]
    world.lab["h1"].partition()
    job.wait_for_term(2)
    eventually(lambda: "was elected meanwhile and leads the job" in job.said(), "it steps down", job=job)
    job.wait_members("h2", "h3").wait_steps(5)
    assert alive(before["h1"]), "what is cut off holds its state"
    world.lab["h1"].heal()
    job.wait_members("h1", "h2", "h3").wait_steps(3)
    after = job.training()
    assert after["h1"] != before["h1"] and after["h2"] == before["h2"] and after["h3"] == before["h3"], (before, after)
    job.expect_calm_bits()
    assert job.wait() == 75, "the command of the terminal did not return the job's exit code"


def test_two_halves(world: Cluster):
    """The link between two machines is cut: one of them goes on by its claim, the other one joins anew once it is healed."""
    need_folder_of_all()
    world.boot("h1", "h2")
    job = world.job(hosts=["h1", "h2"]).start().wait_running().wait_steps(5)
    world.lab["h1"].partition()
    claim = eventually(lambda: next(iter((job.folder / "gen").glob("*")), None), "a half claims the next generation")
    first_goes_on = claim.read_text().startswith("coordinator")
    winner, loser = ("h1", "h2") if first_goes_on else ("h2", "h1")
    world.seat = world.lab[winner]
    if not first_goes_on:
        job.wait_for_term(2)
        without_first(job)
    job.wait_members(winner).wait_steps(5)
    log = job.folder / "logs" / f"{loser}.0.log"
    said = log.read_text()
    job.wait_steps(20)
    assert log.read_text() == said, "the half that lost goes on writing"
    world.lab["h1"].heal()
    job.wait_members("h1", "h2").wait_steps(3)
    job.expect_calm_bits()


def test_host_of_the_second_coordinator_is_removed(world: Cluster):
    """The host whose agent started the new coordinator leaves the job: the coordinator goes on."""
    world.boot("h1", "h2", "h3")
    job = world.job(hosts=["h1", "h2", "h3"]).start().wait_running().wait_steps(5)
    go_on_after(job, job.kill_coordinator)
    place = job.record()["host"]
    job.hosts_command("remove", place)
    others = {"h1", "h2", "h3"} - {place}
    job.wait_members(*others).wait_steps(5)
    assert job.record()["term"] == 2
    job.expect_calm_bits()


def test_fixed_job_ends_with_its_coordinator(world: Cluster):
    """Without --elastic nothing takes over: nothing of the job is left anywhere soon after its coordinator was killed."""
    world.boot("h1", "h2")
    job = world.job(hosts=["h1", "h2"], elastic=False).start().wait_running()
    job.kill_coordinator()
    without_first(job)
    world.expect_no_process_left()


def test_stopped_coordinator_writes_nothing_later(world: Cluster):
    """A coordinator that stands still for long finds itself replaced, and watches without touching the records."""
    world.boot("h1", "h2", "h3")
    job = world.job(hosts=["h1", "h2", "h3"]).start().wait_running().wait_steps(5)
    coordinator = job.coordinator()
    send_signal(coordinator, signal.SIGSTOP)
    job.wait_for_term(2)
    job.wait_members("h1", "h2", "h3").wait_steps(5)
    for process in (coordinator, job.process.pid):  # nsenter stands still with what it runs
        send_signal(process, signal.SIGCONT)
    eventually(lambda: "was elected meanwhile and leads the job" in job.said(), "it steps down", job=job)
    terms = [line["term"] for line in map(json.loads, (job.folder / "journal.jsonl").read_text().splitlines())]
    assert terms == sorted(terms), terms
    sequence = [event["seq"] for event in job.events()]
    assert sequence == sorted(set(sequence)), "two processes wrote events"
    job.expect_calm_bits()
    assert job.wait() == 75, "the command of the terminal did not return the job's exit code"
