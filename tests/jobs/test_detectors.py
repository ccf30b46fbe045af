"""Detectors keep their bits too: what is drawn of a picture depends on the picture alone."""

import pathlib
import signal
import subprocess
import sys

from runner import slow
from world import Job, World, eventually, send_signal

SCENES = 24
LAYERS = ("--backbone", "resnet-18", "--image-shape", "3,64,64", "--optimizer", "adamw", "--lr", 0.001,
          "--lr-schedule", "step", "--warmup-epochs", 0)


def detector_job(world: World, name: str, *network, **options):
    if not (world.folder / "d").exists():
        world.run("data", "prepare", "shapes-detection", "--out", "d", "--train-count", SCENES, "--val-count", 4)
    scenes = world.folder / "d"
    return world.job(name, samples=SCENES, batch=8, network=(*network, *LAYERS),
                     data=["--data-train", scenes / "shapes-detection_train.rec"], **options)


@slow
def test_masks_by_one_two_and_three_workers(world: World):
    """Mask R-CNN ends in the state of one process, with 1, 2 and 3 workers."""
    jobs = [detector_job(world, f"n{count}", "mask-rcnn", "--proposals", 16, hosts=count, elastic=False, epochs=1)
            for count in (1, 2, 3)]
    expected = world.alone(jobs[0], 1)
    for job in jobs:
        job.start().finish()
        assert job.state_hash() == expected, f"{job.name}: other bits"


def survives_changes(job: Job):
    """w3 joins, w2 is killed and comes back, w1 leaves: the bits of a calm run."""
    job.start().wait_running()
    job.hosts_command("add", "w3")
    job.wait_members("w1", "w2", "w3").wait_steps(1)
    killed = job.training()["w2"]
    send_signal(killed, signal.SIGKILL)
    eventually(lambda: job.training().get("w2", killed) != killed, "w2 is started again", job=job)
    job.hosts_command("remove", "w1")
    job.wait_members("w2", "w3").wait_steps(1).expect_undisturbed_bits()
    assert "killed by signal 9" in job.said()


@slow
def test_a_join_a_kill_and_a_leave(world: World):
    """Mask R-CNN on pictures of one size. The quick tier has the test of groups below."""
    survives_changes(detector_job(world, "job", "mask-rcnn", "--proposals", 16))


def grouped_job(world: World, name: str, **options):
    """Pictures of two aspects, 15 and 9, in steps of 8: an epoch ends with a step of 7 and one of 1."""
    if not (world.folder / "photos.json").exists():
        scenes = pathlib.Path(__file__).parents[1] / "helpers" / "aspect_scenes.py"
        subprocess.run([sys.executable, scenes, "photos", "15", "9"], cwd=world.folder, check=True)
        world.run("data", "pack", "photos", "--coco", "photos.json", "--out", "p/train")
    layers = ("--backbone", "resnet-18", "--aspect-groups", "64x96,96x64", "--optimizer", "adamw", "--lr", 0.001,
              "--lr-schedule", "step", "--warmup-epochs", 0)
    return world.job(name, samples=SCENES, batch=8, network=("mask-rcnn", "--proposals", 16, *layers),
                     data=["--data-train", world.folder / "p" / "train.rec"], **options)


def test_groups_of_aspects_with_a_join_a_kill_and_a_leave(world: World):
    """Each step has pictures of one size; who computes them changes no bit, and no picture is lost or seen twice."""
    survives_changes(grouped_job(world, "groups"))
