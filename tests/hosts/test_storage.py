"""The job folder behind the network: a machine that is cut off loses it too, or it is away from all for a while.

The folder comes over SFTP, which answers with an error after three seconds; a hanging server, as of NFS, is played by the
programs that mount it standing still. What the machines' kernels do with a real NFS mount is in guest.sh.
"""

import signal
import time

from cluster import Cluster, HostsJob
from runner import slow
from test_takeover import without_first
from world import alive, eventually, send_signal

NAMES = ("h1", "h2", "h3")
AWAY = 12.0  # seconds: several times what agents and the mount need to notice


def running_job(world: Cluster) -> HostsJob:
    """Three machines train, with the training data on their own disks."""
    world.lab.share_by_network()
    world.boot(*NAMES)
    for name in NAMES:
        world.lab[name].run("cp", "-r", world.data, "/srv/data")
    data = ["--data-train", "/srv/data/shapes_train.rec", "--data-val", "/srv/data/shapes_val.rec"]
    return world.job(hosts=list(NAMES), data=data).start().wait_running().wait_steps(5)


def expect_one_writer(job: HostsJob) -> None:
    """No record was written twice, none is missing."""
    assert [event["seq"] for event in job.events()] == list(range(len(job.events())))
    job.member_log()


def ledgers(job: HostsJob) -> set[str]:
    return {path.name for path in (job.folder / "ledger").iterdir()}


def cut_off(job: HostsJob, name: str) -> tuple[int, set[str]]:
    """Cuts a machine from network and folder, until the others have gone on; how many writes and which ledgers there were."""
    host, others = job.host(name), set(NAMES) - {name}
    host.partition()
    eventually(lambda: set(job.training()) == others, "the others go on", 60)
    job.wait_steps(20)
    return len(host.written()), ledgers(job)


def expect_nothing_written(job: HostsJob, name: str, since: tuple[int, set[str]], old_worker: int) -> None:
    """Healed, the machine ends its old worker and joins anew; until then it writes to its own logs at most."""
    eventually(lambda: not alive(old_worker), "the old worker is ended", 60)
    count, known = since
    # What the newcomer does first, and what FUSE does with files that were removed while they were open.
    own = (f"/logs/{name}.", f"/logs/agent_{name}.", ".fuse_hidden", *(f"/ledger/{new}" for new in ledgers(job) - known))
    strange = [line for line in job.host(name).written()[count:] if not any(word in line for word in own)]
    assert not strange, strange
    job.wait_members(*NAMES).wait_steps(3)


@slow
def test_a_worker_loses_network_and_folder(world: Cluster):
    """A machine loses both: the others go on, it writes nothing when it is healed, and joins anew."""
    job = running_job(world)
    before = job.training()
    since = cut_off(job, "h3")
    assert alive(before["h3"]), "what is cut off holds its state"
    world.lab["h3"].heal()
    expect_nothing_written(job, "h3", since, before["h3"])
    assert job.training() == before | {"h3": job.training()["h3"]}, "a worker was restarted"
    expect_one_writer(job)
    job.expect_undisturbed_bits()


@slow
def test_the_coordinator_loses_network_and_folder(world: Cluster):
    """The coordinator's machine loses both: the others go on under another; healed, the old one watches without a write."""
    job = running_job(world)
    before = job.training()
    world.seat = world.lab["h2"]
    since = cut_off(job, "h1")
    job.wait_for_term(2)
    assert job.process.poll() is None, "it ended without knowing of another"
    world.lab["h1"].heal()
    eventually(lambda: "was elected meanwhile and leads the job" in job.said(), "it steps down", job=job)
    expect_nothing_written(job, "h1", since, before["h1"])
    assert job.training() == before | {"h1": job.training()["h1"]}, "a worker was restarted"
    expect_one_writer(job)
    job.expect_calm_bits()
    assert job.wait() == 75, "the command of the terminal did not return the job's exit code"


@slow
def test_the_folder_is_away_for_all(world: Cluster):
    """The folder's server is gone: training goes on, and the records are complete once it is back."""
    job = running_job(world)
    before = job.training()
    world.lab.stop_share()
    eventually(lambda: "the job goes on" in job.said(), "it is noticed", job=job)
    time.sleep(AWAY)
    world.lab.start_share()
    eventually(lambda: "its records are complete" in job.said(), "it is noticed", job=job)
    assert job.wait_steps(5).training() == before, "a worker was restarted"
    job.hosts_command("drain", "h3")
    job.wait_members("h1", "h2").wait_steps(3)
    expect_one_writer(job)
    job.expect_undisturbed_bits()


@slow
def test_the_folder_hangs_for_all(world: Cluster):
    """The folder answers nobody for a while: no worker is lost, and one coordinator goes on, the old one or another."""
    job = running_job(world)
    before = job.training()
    first, job.process = job.process, None  # it ends if another one takes over
    mounts = [pid for name in NAMES for pid in world.lab[name].processes("sshfs")]
    for pid in mounts:
        send_signal(pid, signal.SIGSTOP)
    time.sleep(AWAY)
    for pid in mounts:
        send_signal(pid, signal.SIGCONT)
    eventually(lambda: job.training() == before, "all of them train again", 60)
    world.run("hosts", "drain", "h3", "--job-dir", job.folder)
    job.wait_members("h1", "h2").wait_steps(5)
    expect_one_writer(job)
    job.expect_calm_bits()
    first.wait(30)
