"""The last worker is lost, or a stop is cut off: no step is lost that a checkpoint holds, and none in silence."""

import pathlib
import signal
import subprocess
import time

from test_folder import fill, small_disk, use_prefix
from world import SLOWNESS, Job, World, eventually, send_signal

FEW = ["--keep-checkpoints", 1, "--checkpoint-every", 5]


def checkpoints(job: Job) -> list[int]:
    """After how many steps of the run each complete one was saved."""
    steps = []
    for manifest in job.prefix.parent.glob(f"{job.prefix.name}-*.json"):
        epoch, _, step = manifest.stem[len(job.prefix.name) + 1:].partition("-step")
        steps.append(int(epoch) * (job.samples // job.batch) + int(step or 0))
    return sorted(steps)


def restart_the_last_worker(job: Job) -> None:
    """kill -9 of the only worker: the next one goes on from the newest checkpoint."""
    (pid,) = job.training().values()
    saved = checkpoints(job)[-1]
    send_signal(pid, signal.SIGKILL)
    eventually(lambda: set(job.training().values()) - {pid}, "another worker trains", 120, job)
    assert job.steps_done() >= saved, f"it began again at step {job.steps_done()} of {saved}"


def test_restart_of_a_resumed_job(world: World):
    """The checkpoint that the job was resumed from is removed for newer ones: workers restart and join all the same."""
    job = world.job(hosts=1, arguments=FEW).start().wait_running().wait_steps(12).stop()
    (begin,) = checkpoints(job)[-1:]
    job.start("--resume").wait_running()
    eventually(lambda: begin not in checkpoints(job), "the first checkpoint is removed", job=job)
    restart_the_last_worker(job)
    job.hosts_command("add", "w2")
    job.wait_members("w1", "w2").wait_steps(3).expect_undisturbed_bits()


def test_restart_of_a_job_that_began_with_an_epoch(world: World):
    """The same with --load-epoch."""
    job = world.job(hosts=1, arguments=FEW)
    world.run(*job.training_arguments, "--num-epochs", 1, "--model-prefix", job.prefix)
    (begin,) = checkpoints(job)
    job.start("--load-epoch", 1).wait_running()
    eventually(lambda: begin not in checkpoints(job), "the first checkpoint is removed", job=job)
    restart_the_last_worker(job)
    job.stop()


def test_restart_where_the_folder_was_full(world: World):
    """The name of the newest checkpoint has no room in the job folder: it is written once there is some."""
    job = world.job(hosts=1, arguments=FEW)
    with small_disk(job.folder, "12m"):
        job.start().wait_running().wait_steps(12)
        fill(job.folder / "ballast")
        before = checkpoints(job)[-1]
        eventually(lambda: checkpoints(job)[-1] > before + 40, "newer ones are saved", job=job)
        named = (job.folder / "latest_checkpoint").read_text()
        (pid,) = job.training().values()
        saved = checkpoints(job)[-1]
        send_signal(pid, signal.SIGKILL)
        time.sleep(0.5 * SLOWNESS)
        (job.folder / "ballast").unlink()
        eventually(lambda: (job.folder / "latest_checkpoint").read_text() != named, "the newest one is named", job=job)
        eventually(lambda: set(job.training().values()) - {pid}, "another worker trains", 120, job)
        assert job.steps_done() >= saved, f"it began again at step {job.steps_done()} of {saved}"
        job.wait_steps(3).stop().expect_bits_of_alone()


def ask_to_stop(world: World, job: Job) -> subprocess.Popen:
    """`dtrain stop` of a job whose checkpoints have no room: rank 0 tries to save."""
    stop = subprocess.Popen(world.command(["stop", "--job-dir", job.folder]), cwd=world.folder, env=world.environment,
                            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    eventually(lambda: any(event["event"] == "stop" for event in job.events()), "the job stops", job=job)
    time.sleep(1 * SLOWNESS)  # the step that is made, and the first try
    return stop


def test_rank_0_dies_while_a_stop_saves(world: World):
    """The others hold the state until rank 0 has saved: one of them saves in its place, and no step is lost."""
    job = world.job()
    with small_disk(world.folder / "disk", "8m"):
        use_prefix(job, world.folder / "disk" / "m")
        job.start().wait_running().wait_steps(3)
        _, rank_0 = job.worker_of_rank(0)
        fill(world.folder / "disk" / "ballast")
        stop = ask_to_stop(world, job)
        done = job.steps_done()
        send_signal(rank_0, signal.SIGKILL)
        (world.folder / "disk" / "ballast").unlink()
        assert job.wait() == 75
        stop.wait(60)
        assert checkpoints(job)[-1] >= done
        job.expect_bits_of_alone()


def test_stop_that_saves_nothing(world: World):
    """All workers die before the stop has saved: the job fails and says since when its steps are lost."""
    job = world.job()
    with small_disk(world.folder / "disk", "8m"):
        use_prefix(job, world.folder / "disk" / "m")
        job.start().wait_running().wait_steps(3)
        workers = job.training().values()
        fill(world.folder / "disk" / "ballast")
        stop = ask_to_stop(world, job)
        for pid in workers:
            send_signal(pid, signal.SIGKILL)
        assert job.wait() == 1
        stop.wait(60)
        assert "lost" in job.said() and job.record()["exit_code"] == 1, job.said()


def test_failure_before_the_first_checkpoint(world: World):
    """The hint does not send the user to a checkpoint that is not there, and no worker saves the weights that failed."""
    job = world.job(network=("resnet", "--num-layers", 8, "--width", 8, "--lr", 1e30))
    assert job.start().wait() == 93
    assert job.said().splitlines()[-1] == "hint: no checkpoint has been saved yet: begin again with a smaller --lr", job.said()
    assert not list(job.prefix.parent.glob("*.safetensors")), "the weights that failed were saved"


def test_the_last_checkpoint_is_not_there(world: World):
    """--resume does not go on from an older one, or from none, where the job saved a later one that it does not see."""
    job = world.job(arguments=["--checkpoint-every", 5]).start().wait_running().wait_steps(12).stop()
    last = pathlib.Path((job.folder / "latest_checkpoint").read_text())
    away = world.folder / "away"
    away.mkdir()
    for path in last.parent.glob(f"{last.stem}.*"):
        path.rename(away / path.name)
    assert job.start("--resume").wait() == 2
    assert last.stem in job.said() and "does not see it" in job.said(), job.said()
    assert str(job.folder / "latest_checkpoint") in job.said(), "the way to go on without it"
    for path in last.parent.glob(f"{job.prefix.name}-*"):
        path.unlink()
    assert job.start("--resume").wait() == 2
    assert "there is no checkpoint" in job.said(), job.said()
    for path in away.iterdir():
        path.rename(last.parent / path.name)
    job.start("--resume").wait_running().stop()
