"""The suite of compression.sh: the same training with each compression over shaped links. Its table is for a person."""

import json
import os
import pathlib
import statistics
import subprocess

from cluster import Cluster, HostsJob
from world import DTRAIN, eventually

RATE = os.environ.get("RATE", "100mbit")
EPOCHS, EXAMPLES = int(os.environ.get("EPOCHS", 4)), int(os.environ.get("EXAMPLES", 10000))
THRESHOLD = os.environ.get("THRESHOLD", "0.5")
PATIENCE = 3600.0
CASES = ([], ["--gradient-dtype", "bfloat16"], ["--gradient-compression", f"2bit:{THRESHOLD}"],
         ["--gradient-compression", "topk:0.1"], ["--gradient-compression", "topk:0.01"],
         ["--gradient-compression", "powersgd:2"], ["--gradient-compression", "powersgd:4"])
TRAINING = ["--network", "resnet-v1", "--num-layers", 20, "--image-shape", "3,32,32", "--optimizer", "nag", "--lr", 0.05,
            "--wd", 5e-4, "--pad-size", 4, "--random-crop", 1,
            "--random-mirror", 1, "--max-random-h", 0, "--max-random-s", 0, "--max-random-l", 0,
            "--rgb-mean", "125.3,123.0,113.9", "--rgb-std", "63.0,62.1,66.7"]


def events(job: HostsJob, kind: str) -> list[dict]:
    lines = (job.world.folder / f"{job.name}.out").read_text().splitlines()
    return [event for event in map(json.loads, lines) if event["event"] == kind]


def test_compression(world: Cluster):
    """Bytes that a machine sends in a step, the time of a step, and the accuracy at the end."""
    names = [host.name for host in world.lab.hosts]
    world.boot(*names)
    for name in names:
        world.lab[name].rate(RATE)
    data = world.folder / "d"
    # Not on a machine of the lab, which does not see the folder.
    subprocess.run([DTRAIN, "data", "prepare", "cifar10", "--out", data, "--from",
                    pathlib.Path(os.environ["DTRAIN_TEST_DATA"]) / "cifar-10-batches-bin"], check=True, capture_output=True)
    print(f"{len(names)} workers, {RATE}, load {os.getloadavg()[0]:.1f} at the start")
    print("| gradients | MB sent by a worker in a step | s a step | s in all | test accuracy % |")
    print("|---|---|---|---|---|", flush=True)
    for number, case in enumerate(CASES):
        job = world.job(f"c{number}", hosts=names)
        job.arguments = ["train", *TRAINING, "--global-batch", 128, "--logical-shards", len(names), "--threads", 1, "--seed", 1,
                         "--data-train", data / "cifar10_train.rec", "--data-val", data / "cifar10_val.rec",
                         "--num-examples", EXAMPLES, "--num-epochs", EPOCHS, "-H", world.folder / f"{job.name}.hosts",
                         "--launcher", "ssh", "--job-dir", job.folder, "--json", *case]
        job.start()
        eventually(lambda job=job: job.process.poll() is not None, "the training ends", PATIENCE, job)
        steps = events(job, "step")
        sent = max(event.get("sent_bytes", 0) for event in job.events()) / len(names) / len(steps)
        seconds = [step["seconds"] for step in steps]
        print(f"| {' '.join(case) or 'float32'} | {sent / 1e6:.3f} | {statistics.median(seconds):.3f} | {sum(seconds):.0f} | "
              f"{100 * events(job, 'evaluation')[-1]['accuracy']:.2f} |", flush=True)
