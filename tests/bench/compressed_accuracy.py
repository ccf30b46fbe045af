#!/usr/bin/env python3
"""What compressed gradients cost in accuracy: compressed_accuracy.py DTRAIN [SEED ...]

Trains ResNet-20 on CIFAR-10 in one process with four logical shards, EPOCHS (3) epochs of STEPS (30) steps of 128 pictures,
with each kind of --gradient-compression, and prints the training accuracy of the last epoch in Markdown. One process has the
bits of any number of workers. DTRAIN_TEST_DATA is the folder with cifar-10-batches-bin/, KINDS the kinds, by commas.
"""

from __future__ import annotations

import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

EPOCHS, STEPS = int(os.environ.get("EPOCHS", 3)), int(os.environ.get("STEPS", 30))
KINDS = os.environ.get("KINDS", "none,2bit:0.5,2bit:4,topk:0.1,topk:0.01,powersgd:1,powersgd:2,powersgd:4").split(",")
TRAINING = ["--network", "resnet-v1", "--num-layers", 20, "--image-shape", "3,32,32", "--optimizer", "nag", "--lr", 0.05,
            "--wd", 5e-4, "--pad-size", 4, "--random-crop", 1, "--random-mirror", 1, "--max-random-h", 0,
            "--max-random-s", 0, "--max-random-l", 0, "--rgb-mean", "125.3,123.0,113.9", "--rgb-std", "63.0,62.1,66.7",
            "--global-batch", 128, "--logical-shards", 4, "--threads", 2]


def run(*words) -> str:
    return subprocess.run([str(word) for word in words], check=True, capture_output=True, text=True).stdout


def accuracy(dtrain: str, data: pathlib.Path, kind: str, seed: str) -> float:
    lines = run(dtrain, "train", *TRAINING, "--data-train", data / "cifar10_train.rec", "--num-examples", STEPS * 128,
                "--num-epochs", EPOCHS, "--seed", seed, "--gradient-compression", kind, "--json").splitlines()
    epochs = [event for event in map(json.loads, lines) if event["event"] == "epoch"]
    return 100 * epochs[-1]["accuracy"]


def main() -> None:
    if len(sys.argv) < 2:
        raise SystemExit(__doc__)
    dtrain, seeds = sys.argv[1], sys.argv[2:] or ["1"]
    source = pathlib.Path(os.environ["DTRAIN_TEST_DATA"]) / "cifar-10-batches-bin"
    with tempfile.TemporaryDirectory() as folder:
        data = pathlib.Path(folder)
        run(dtrain, "data", "prepare", "cifar10", "--out", data, "--from", source)
        print(f"| --gradient-compression | training accuracy %, seeds {' '.join(seeds)} | mean |")
        print("|---|---|---|", flush=True)
        for kind in KINDS:
            figures = [accuracy(dtrain, data, kind, seed) for seed in seeds]
            print(f"| {kind} | {' '.join(f'{figure:.1f}' for figure in figures)} | {statistics.mean(figures):.1f} |", flush=True)


if __name__ == "__main__":
    main()
