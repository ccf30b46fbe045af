"""The peer of `dtrain bench train` trains dtrain's own networks: as many weights in each, as many logits, and it runs."""

import argparse
import json
import math
import os
import subprocess
import sys
import tempfile

import torch

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "gpu"))
import pytorch_peer  # noqa: E402  (found through the line above)

DUMP = os.path.join(os.path.dirname(os.environ["DTRAIN"]), "tests", "dtrain_dump_graph")
NETWORKS = [("resnet-v1", "8", "3,16,16", "10"), ("resnet", "8", "3,16,16", "10"), ("lenet", "0", "1,28,28", "10"),
            ("mobilenet", "0", "3,32,32", "5")]


def read(folder, name):
    with open(os.path.join(folder, name), encoding="utf-8") as file:
        return json.load(file)


def complaint(folder, classes):
    options = argparse.Namespace(graph=os.path.join(folder, "graph.json"), device="cpu", dtype="float32", batch_size=2,
                                 warmup=0, steps=1, no_compile=True, compile_mode="default")
    expected = sum(math.prod(shape) for shape in read(folder, "tensors.json")["parameters"].values())
    result = pytorch_peer.measure(options)
    network = pytorch_peer.Network(read(folder, "graph.json"))
    logits = tuple(network(torch.zeros(2, *network.image)).shape)
    if result["parameters"] != expected:
        return f"{result['parameters']} weights, dtrain has {expected}"
    if logits != (2, classes):
        return f"logits are {logits}"
    return "" if result["images_per_second"] > 0 else "nothing was measured"


def main():
    torch.set_num_threads(1)
    complaints = []
    for network in NETWORKS:
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([DUMP, *network, folder], check=True)
            complaints.append((network[0], complaint(folder, int(network[3]))))
    wrong = [f"{name}: {text}" for name, text in complaints if text]
    print("\n".join(wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
