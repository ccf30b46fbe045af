"""The coordinator is lost: the agents choose another one while the workers train, and nothing is lost."""

import json
import signal
import time

from cluster import Cluster, HostsJob
from lab import NFS, send_kill
from runner import Skip
from world import SLOWNESS, alive, eventually, send_signal

LIMIT = 10.0  # seconds that a takeover may take, on a machine that is not busy


def coordinator_file(job: HostsJob) -> dict:
    return json.loads((job.folder / "coordinator.json").read_text())


def wait_for_term(job: HostsJob, term: int, seconds: float = 60) -> dict:
    """Until that coordinator has made a step possible: {"host", "addresses", ...} of it."""
    eventually(lambda: any(event["event"] == "takeover" and event["term"] >= term for event in job.events()),
               f"coordinator {term} takes over", seconds)
    return coordinator_file(job)


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
    wait_for_term(job, term)
    took = takeover_seconds(job, lost)
    after = job.training()
    assert after and all(before[name] == pid for name, pid in after.items()), f"restarted: {before} {after}"
    print(f"    taken over within {took:.1f} s", flush=True)


def expect_calm_bits(job: HostsJob) -> None:
    """Stops the job, which a coordinator that is nobody's child runs, and compares with an undisturbed run."""
    job.world.run("stop", "--job-dir", job.folder)
    eventually(lambda: not job.world.processes(), "the job is gone", 30)
    at = json.loads(job.world.run("inspect", job.prefix, "--json").stdout)
    epochs = at["epoch"] + (1 if at["step"] else 0)
    job.world.run(*job.training_arguments, "--num-epochs", epochs, "--model-prefix", job.prefix, "--resume")
    assert job.state_hash() == job.world.alone(job, epochs), f"other bits after {epochs} epochs"
    job.expect_exactly_once(at["epoch"])


def test_killed_coordinator(world: Cluster):
    """kill -9 of the coordinator: an agent starts another; no worker is restarted, and the bits stay."""
    world.boot("h1", "h2", "h3")
    job = world.job(hosts=["h1", "h2", "h3"]).start().wait_running().wait_steps(5)
    go_on_after(job, job.kill_coordinator)
    expect_calm_bits(job)


def test_killed_twice(world: Cluster):
    """The second coordinator dies too, and the third takes a newcomer in."""
    world.boot("h1", "h2", "h3")
    job = world.job(hosts=["h1", "h2"]).start().wait_running().wait_steps(5)
    go_on_after(job, job.kill_coordinator)
    second = coordinator_file(job)
    host = next(host for host in world.lab.hosts if host.name == second["host"])
    go_on_after(job, lambda: send_kill(host.outside(second["pid"])), 3)
    job.hosts_command("add", "h3")
    job.wait_members("h1", "h2", "h3").wait_steps(3)
    expect_calm_bits(job)


def test_machine_of_the_coordinator_is_switched_off(world: Cluster):
    """The coordinator's machine goes without a word, with a worker on it: the other two go on."""
    world.boot("h1", "h2", "h3")
    job = world.job(hosts=["h1", "h2", "h3"]).start().wait_running().wait_steps(5)
    before = job.training()
    world.seat = world.lab["h2"]
    world.lab["h1"].power_off()
    without_first(job)
    wait_for_term(job, 2)
    job.wait_members("h2", "h3").wait_steps(5)
    assert job.training() == {name: before[name] for name in ("h2", "h3")}, "a worker was restarted"
    expect_calm_bits(job)


def test_one_left_of_two(world: Cluster):
    """Two machines, and the one with the coordinator is switched off: the other goes on alone."""
    world.boot("h1", "h2")
    job = world.job(hosts=["h1", "h2"]).start().wait_running().wait_steps(5)
    world.seat = world.lab["h2"]
    world.lab["h1"].power_off()
    without_first(job)
    wait_for_term(job, 2)
    job.wait_members("h2").wait_steps(5)
    expect_calm_bits(job)


def test_coordinator_in_the_minority(world: Cluster):
    """The coordinator's machine is cut off from the others: they go on, it steps down; healed, its host joins anew."""
    need_folder_of_all()
    world.boot("h1", "h2", "h3")
    job = world.job(hosts=["h1", "h2", "h3"]).start().wait_running().wait_steps(5)
    before = job.training()
    world.seat = world.lab["h2"]
    world.lab["h1"].partition()
    wait_for_term(job, 2)
    assert job.wait() == 1 and "was elected meanwhile and leads the job" in job.said(), job.said()[-500:]
    without_first(job)
    job.wait_members("h2", "h3").wait_steps(5)
    assert alive(before["h1"]), "what is cut off holds its state"
    world.lab["h1"].heal()
    job.wait_members("h1", "h2", "h3").wait_steps(3)
    after = job.training()
    assert after["h1"] != before["h1"] and after["h2"] == before["h2"] and after["h3"] == before["h3"], (before, after)
    expect_calm_bits(job)


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
        wait_for_term(job, 2)
        without_first(job)
    job.wait_members(winner).wait_steps(5)
    log = job.folder / "logs" / f"{loser}.0.log"
    said = log.read_text()
    job.wait_steps(20)
    assert log.read_text() == said, "the half that lost goes on writing"
    world.lab["h1"].heal()
    job.wait_members("h1", "h2").wait_steps(3)
    expect_calm_bits(job)


def test_host_of_the_second_coordinator_is_removed(world: Cluster):
    """The host whose agent started the new coordinator leaves the job: the coordinator goes on."""
    world.boot("h1", "h2", "h3")
    job = world.job(hosts=["h1", "h2", "h3"]).start().wait_running().wait_steps(5)
    go_on_after(job, job.kill_coordinator)
    place = coordinator_file(job)["host"]
    job.hosts_command("remove", place)
    others = {"h1", "h2", "h3"} - {place}
    job.wait_members(*others).wait_steps(5)
    assert coordinator_file(job)["term"] == 2
    expect_calm_bits(job)


def test_fixed_job_ends_with_its_coordinator(world: Cluster):
    """Without --elastic nothing takes over: nothing of the job is left anywhere 5 s after its coordinator was killed."""
    world.boot("h1", "h2")
    job = world.job(hosts=["h1", "h2"], elastic=False).start().wait_running()
    job.kill_coordinator()
    without_first(job)
    world.expect_no_process_left()


def test_stopped_coordinator_writes_nothing_later(world: Cluster):
    """A coordinator that stands still for long finds itself replaced, and ends without touching the records."""
    world.boot("h1", "h2", "h3")
    job = world.job(hosts=["h1", "h2", "h3"]).start().wait_running().wait_steps(5)
    coordinator = job.coordinator()
    send_signal(coordinator, signal.SIGSTOP)
    wait_for_term(job, 2)
    job.wait_members("h1", "h2", "h3").wait_steps(5)
    for process in (coordinator, job.process.pid):  # nsenter stands still with what it runs
        send_signal(process, signal.SIGCONT)
    eventually(lambda: not alive(coordinator), "the old coordinator ends", 15)
    without_first(job)
    terms = [line["term"] for line in map(json.loads, (job.folder / "journal.jsonl").read_text().splitlines())]
    assert terms == sorted(terms), terms
    sequence = [event["seq"] for event in job.events()]
    assert sequence == sorted(set(sequence)), "two processes wrote events"
    expect_calm_bits(job)
