#!/usr/bin/env python3
"""Compares dist_async with dist_sync where one of the workers is four times slower than the others.

usage: servers.py DTRAIN [WORKERS ...]     (default 1 2 4)

Trains a small network on drawn shapes for the same number of epochs and prints a table in Markdown: the seconds from the
first step to the end, and the accuracy. The slow worker is stopped for three quarters of each 40 ms. EPOCHS and SEEDS
choose how much is trained. All workers share the processors of this machine, so compare the rows of one number of workers.
"""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "jobs"))
from world import slowed  # noqa: E402

EPOCHS, SEEDS = int(os.environ.get("EPOCHS", 6)), int(os.environ.get("SEEDS", 2))
SAMPLES, BATCH = 1920, 32
STORES = {"dist_sync": ["--kv-store", "dist_sync"],
          "dist_async": ["--kv-store", "dist_async"],
          "dist_async, at most 8 ahead": ["--kv-store", "dist_async", "--max-staleness", 8],
          "dist_async, at most 0 ahead": ["--kv-store", "dist_async", "--max-staleness", 0]}


def ask(dtrain: str, *words) -> dict:
    answer = subprocess.run([dtrain, *map(str, words), "--json"], capture_output=True, text=True, check=False)
    return json.loads(answer.stdout) if answer.returncode == 0 and answer.stdout else {}


def last_worker(dtrain: str, job: pathlib.Path, workers: int) -> int:
    """The process of the last rank, once all train."""
    while True:
        rows = [row for row in ask(dtrain, "hosts", "list", "--job-dir", job).get("hosts", []) if row["state"] == "member"]
        if len(rows) == workers:
            return next(row["pids"][0] for row in rows if row["ranks"] == [workers - 1])
        time.sleep(0.05)


def train(dtrain: str, folder: pathlib.Path, workers: int, store: list, seed: int) -> tuple[float, float]:
    """Seconds and accuracy."""
    job, prefix = folder / f"job-{time.monotonic_ns()}", folder / f"m-{time.monotonic_ns()}"
    hosts = folder / "hosts"
    hosts.write_text("".join(f"w{number}\n" for number in range(workers)))
    command = [dtrain, "train", "--network", "resnet", "--num-layers", 8, "--width", 8, "--lr", 0.02, "--threads", 1,
               "--data-nthreads", 1, "--data-train", folder / "d" / "shapes_train.rec", "--num-epochs", EPOCHS, "--seed", seed,
               "--batch-size", BATCH, "--model-prefix", prefix, "-H", hosts, "--launcher", "local", "--job-dir", job,
               "--elastic", "--max-workers", workers, "--heartbeat-timeout", 60, *store]
    process = subprocess.Popen(list(map(str, command)), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL)
    pid = last_worker(dtrain, job, workers)
    begin = time.monotonic()
    with slowed(pid) if workers > 1 else contextlib.nullcontext():
        code = process.wait()
        seconds = time.monotonic() - begin
    if code != 0:
        raise SystemExit(f"a training ended with {code}: {job}")
    result = ask(dtrain, "eval", prefix, "--load-epoch", EPOCHS, "--data-val", folder / "d" / "shapes_val.rec")
    return seconds, result["accuracy"]


def main() -> None:
    dtrain, counts = sys.argv[1], list(map(int, sys.argv[2:])) or [1, 2, 4]
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        subprocess.run([dtrain, "data", "prepare", "shapes", "--out", folder / "d", "--train-count", str(SAMPLES),
                        "--val-count", "500"], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        print(f"{EPOCHS} epochs of {SAMPLES} images, {BATCH} in a worker's batch, median and range of {SEEDS} seeds\n")
        print("| workers, one of them slow | store | seconds | accuracy |\n|---|---|---|---|")
        for workers in counts:
            for store, words in STORES.items():
                runs = [train(dtrain, folder, workers, words, seed) for seed in range(1, SEEDS + 1)]
                seconds, accuracies = zip(*runs)
                print(f"| {workers} | {store} | {statistics.median(seconds):.1f} | {statistics.median(accuracies):.3f} "
                      f"({min(accuracies):.3f} to {max(accuracies):.3f}) |", flush=True)


if __name__ == "__main__":
    main()
