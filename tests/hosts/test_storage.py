"""The job folder behind the network: a machine that is cut off loses it too, or it is away from all for a while.

The folder comes over SFTP, which answers with an error after three seconds; a hanging server, as of NFS, is played by the
programs that mount it standing still. What the machines' kernels do with a real NFS mount is in guest.sh.
"""

import signal
import time

from cluster import Cluster, HostsJob
from runner import Skip, slow
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
    # What the newcomer does first, such as a trial beside the checkpoints, and what FUSE does with files that were removed
    # while they were open.
    own = (f"/logs/{name}.", f"/logs/agent_{name}.", ".trial.tmp.", ".fuse_hidden", *(f"/ledger/{new}" for new in ledgers(job) - known))
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


OWN_DISK = "/srv/own"  # a folder of this name is another one on each machine


def use_prefix(job: HostsJob, prefix) -> HostsJob:
    job.arguments[job.arguments.index("--model-prefix") + 1] = job.prefix = prefix
    return job


def quarantined(job: HostsJob, name: str) -> str:
    """Why it may not join."""
    return eventually(lambda: job.row(name) if job.row(name)["state"] == "quarantined" else None, f"{name} is refused",
                      job=job)["reason"]


def test_a_prefix_on_each_machines_own_disk(world: Cluster):
    """A host that would save on its own disk does not join, also where it was to be rank 0; the others keep what they train."""
    world.boot("h1", "h2", "h3")
    job = use_prefix(world.job(hosts=["h2", "h1"]), f"{OWN_DISK}/r").start()
    reason = quarantined(job, "h2")
    assert f"would be saved in {OWN_DISK} of h2" in reason and "give --model-prefix" in reason, reason
    job.wait_members("h1").wait_steps(3)
    job.hosts_command("add", "h3")
    assert f"would be saved in {OWN_DISK} of h3" in quarantined(job, "h3"), "a newcomer"
    job.stop()
    saved = world.lab["h1"].run("ls", OWN_DISK).stdout
    assert "r-" in saved and "trial" not in saved, saved
    assert not world.lab["h2"].run("find", "/srv", "-name", "r-*").stdout, "a checkpoint on the disk of a host that did not join"


def test_a_current_folder_of_one_machine(world: Cluster):
    """Of a relative prefix, the folder is that of the command: a host without it does not save in the job folder instead."""
    h1 = world.lab["h1"]
    world.boot("h1", "h2")
    h1.run("mkdir", "/srv/mine")
    job = use_prefix(world.job(hosts=["h2", "h1"]), "mm/r")
    start = world.command
    world.command = lambda arguments: h1.command([world.program, *map(str, arguments)], "/srv/mine")
    job.start()
    world.command = start
    assert "would be saved in" in quarantined(job, "h2")
    job.wait_members("h1").wait_steps(3).stop()
    assert not list(job.folder.glob("mm/r-*")) and "r-" in h1.run("ls", "/srv/mine/mm").stdout


def test_a_prefix_that_a_machine_may_not_write(world: Cluster):
    """A host whose mount of the folder is read-only would lose the work as rank 0: it does not join."""
    world.boot("h1", "h2")
    job = world.job(hosts=["h2", "h1"])
    folder = job.prefix.parent
    folder.mkdir(exist_ok=True)
    locked = world.lab["h2"].run("sh", "-c", f"mount --bind {folder} {folder} && mount -o remount,bind,ro {folder}", check=False)
    if locked.returncode != 0:
        raise Skip("a machine of the lab cannot mount")
    job.start()
    reason = quarantined(job, "h2")
    assert "cannot save checkpoints" in reason and "Read-only file system" in reason, reason
    job.wait_members("h1").wait_steps(3).stop()


def test_a_job_folder_of_the_same_name(world: Cluster):
    """A machine whose job folder is another one of the same path does not join."""
    world.lab["h2"].without("share")
    world.boot("h1", "h2")
    job = world.job(hosts=["h1", "h2"])
    world.lab["h2"].run("mkdir", "-p", job.folder)
    job.start()
    reason = quarantined(job, "h2")
    assert f"{job.folder} is another folder there" in reason, reason
    job.wait_members("h1").wait_steps(3).stop()


def test_one_run_a_prefix(world: Cluster):
    """While a job saves there, no other job and no single process does, also once another machine coordinates it; killed
    ones block nothing."""
    world.boot("h1", "h2", "h3")
    job = world.job("first", hosts=["h1", "h2", "h3"], arguments=["--checkpoint-every", 5]).start().wait_running().wait_steps(10)
    other = use_prefix(world.job("second"), job.prefix)

    def expect_refused() -> None:
        assert other.start("--resume").wait() == 1
        assert "another run is writing its checkpoints there" in other.said() and str(job.folder) in other.said(), other.said()
        alone = world.run(*job.training_arguments, "--num-epochs", 100000, "--model-prefix", job.prefix, "--resume", check=False)
        assert alone.returncode == 1 and "another run is writing" in alone.stderr, alone.stderr

    expect_refused()
    job.kill_coordinator()
    job.wait_for_term(2)
    other.log_path.unlink()
    expect_refused()
    for pid in world.processes():
        send_signal(pid, signal.SIGSTOP)
    for pid in world.processes():
        send_signal(pid, signal.SIGKILL)
    job.process.wait()
    world.expect_no_process_left()
    other.start("--resume").wait_running().stop()
