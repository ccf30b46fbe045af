#!/usr/bin/env python3
"""Trains a small network with PyTorch and saves its state when `dtrain launch --save-signal USR1` asks for it."""

import os
import pathlib
import signal
import sys
import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


def main() -> None:
    checkpoint, steps = pathlib.Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 1000
    asked = torch.zeros(1)
    signal.signal(signal.SIGUSR1, lambda *_: asked.fill_(1))
    dist.init_process_group("gloo")
    torch.manual_seed(1)
    model = DistributedDataParallel(torch.nn.Linear(8, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    first = 0
    if checkpoint.exists():
        saved = torch.load(checkpoint)
        model.module.load_state_dict(saved["model"])
        first = saved["step"]
    if dist.get_rank() == 0:
        print(f"starts at step {first} with {dist.get_world_size()} ranks", flush=True)

    for step in range(first + 1, steps + 1):
        inputs = torch.randn(32, 8)
        optimizer.zero_grad()
        (model(inputs) - inputs.sum(1, keepdim=True)).square().mean().backward()
        optimizer.step()
        time.sleep(0.02)

        # The ranks notice the signal at different steps: all of them save after the one that is agreed on here.
        dist.all_reduce(wish := asked.clone(), op=dist.ReduceOp.MAX)
        if wish.item():
            asked.zero_()
            if dist.get_rank() == 0:
                torch.save({"model": model.module.state_dict(), "step": step}, checkpoint)
                print(f"saved step {step}", flush=True)
            pathlib.Path(os.environ["DTRAIN_SAVED_FILE"]).touch()
            while True:
                signal.pause()  # until the change ends this process: steps after the checkpoint would be lost
    if dist.get_rank() == 0:
        print(f"done after {steps} steps", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
