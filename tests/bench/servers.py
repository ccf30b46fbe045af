#!/usr/bin/env python3
"""Compares dist_async with dist_sync where one of the workers is four times slower than the others.

usage: servers.py DTRAIN [--mxnet PYTHON] [WORKERS ...]     (default 1 2 4)

Trains a small network on drawn shapes for the same number of epochs and prints a table in Markdown: the seconds from the
first step to the end, and the accuracy. The slow worker is stopped for three quarters of each 40 ms. EPOCHS and SEEDS
choose how much is trained. All workers share the processors of this machine, so compare the rows of one number of workers.
With --mxnet and a Python that has MXNet 1.9.1, MXNet trains the same beside it (mxnet_store_peer.py).
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "jobs"))
from world import slowed  # noqa: E402

EPOCHS, SEEDS = int(os.environ.get("EPOCHS", 6)), int(os.environ.get("SEEDS", 2))
SAMPLES, BATCH = 1920, 32
# MXNet's images are mirrored, and not changed otherwise.
PLAIN = ["--pad-size", 0, "--max-random-h", 0, "--max-random-s", 0, "--max-random-l", 0]
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
               "--elastic", "--max-workers", workers, "--heartbeat-timeout", 60, *PLAIN, *store]
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


def train_mxnet(dtrain: str, python: str, folder: pathlib.Path, workers: int, store: str, seed: int) -> tuple[float, float]:
    """The same of MXNet's servers, one for the job, as `dtrain launch` starts them."""
    told = folder / f"mxnet-{time.monotonic_ns()}"
    told.mkdir()
    data = [folder / "d" / f"shapes_{part}.rec" for part in ("train", "val")]
    command = [dtrain, "launch", "-n", workers, "-s", 1, "--job-dir", told / "job", python, HERE / "mxnet_store_peer.py", store,
               *data, SAMPLES, BATCH, EPOCHS, seed, told]
    environment = os.environ | {"PYTHONPATH": str(HERE.parent / "launch" / "programs" / "numpy1")}
    process = subprocess.Popen(list(map(str, command)), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL, env=environment, cwd=told)
    while len(list(told.glob("began-*"))) < workers:
        if process.poll() is not None:
            raise SystemExit(f"MXNet ended with {process.returncode}: {told}")
        time.sleep(0.05)
    begin = time.monotonic()
    pid = int((told / f"began-{workers - 1}").read_text())
    with slowed(pid) if workers > 1 else contextlib.nullcontext():
        while len(list(told.glob("ended-?"))) < workers and process.poll() is None:
            time.sleep(0.02)
        seconds = time.monotonic() - begin
    if process.wait() != 0:
        raise SystemExit(f"MXNet ended with {process.returncode}: {told}")
    last = max(told.glob("ended-?"), key=lambda path: path.stat().st_mtime)
    return seconds, float(last.read_text())


def main() -> None:
    dtrain, words = os.path.realpath(sys.argv[1]), sys.argv[2:]
    python = os.path.abspath(words[words.index("--mxnet") + 1]) if "--mxnet" in words else ""
    counts = [int(word) for word in words if word.isdigit()] or [1, 2, 4]
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        subprocess.run([dtrain, "data", "prepare", "shapes", "--out", folder / "d", "--train-count", str(SAMPLES),
                        "--val-count", "500"], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        print(f"{EPOCHS} epochs of {SAMPLES} images, {BATCH} in a worker's batch, median and range of {SEEDS} seeds\n")
        print("| workers, one of them slow | store | seconds | accuracy |\n|---|---|---|---|")
        for workers in counts:
            ways = {store: functools.partial(train, dtrain, folder, workers, words) for store, words in STORES.items()}
            if python:
                ways |= {f"MXNet's {store}": functools.partial(train_mxnet, dtrain, python, folder, workers, store)
                         for store in ("dist_sync", "dist_async")}
            for store, way in ways.items():
                seconds, accuracies = zip(*(way(seed) for seed in range(1, SEEDS + 1)))
                print(f"| {workers} | {store} | {statistics.median(seconds):.1f} | {statistics.median(accuracies):.3f} "
                      f"({min(accuracies):.3f} to {max(accuracies):.3f}) |", flush=True)


if __name__ == "__main__":
    main()
