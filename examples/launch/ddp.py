#!/usr/bin/env python3
"""Trains a small classifier with PyTorch's DistributedDataParallel, as many scripts do: the variables of torchrun give
the rank of this process, rank 0 saves checkpoints, and every rank continues from the last checkpoint when it starts."""

import argparse
import os
import pathlib
import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch-size", type=int, default=32, help="samples of one step on each rank")
    parser.add_argument("--lr", type=float, default=0.1)
    parser.add_argument("--checkpoint", type=pathlib.Path, default=pathlib.Path("ddp.pt"))
    parser.add_argument("--save-every", type=int, default=10, help="steps between two checkpoints")
    parser.add_argument("--pause", type=float, default=0.0, help="seconds to wait after each step, to imitate a larger model")
    return parser.parse_args()


def make_data() -> TensorDataset:
    """Points of a plane; the label is the spiral, one of four, on which the point lies."""
    generator = torch.Generator().manual_seed(1)
    labels = torch.randint(4, (2048,), generator=generator)
    radius = torch.rand(2048, generator=generator)
    angle = 6 * radius + labels * (torch.pi / 2) + 0.1 * torch.randn(2048, generator=generator)
    return TensorDataset(torch.stack([radius * angle.cos(), radius * angle.sin()], 1), labels)


def save(path: pathlib.Path, model, optimizer, step: int) -> None:
    part = path.with_suffix(".part")
    torch.save({"model": model.module.state_dict(), "optimizer": optimizer.state_dict(), "step": step}, part)
    part.rename(path)


def load(path: pathlib.Path, model, optimizer) -> int:
    """Loads the checkpoint, if there is one, and returns the number of steps that it has completed."""
    if not path.exists():
        return 0
    saved = torch.load(path, map_location="cpu")
    model.module.load_state_dict(saved["model"])
    optimizer.load_state_dict(saved["optimizer"])
    return saved["step"]


def main() -> None:
    arguments = parse_arguments()
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    print(f"rank {rank} of {world} is process {os.getpid()}", flush=True)

    torch.manual_seed(1)
    net = torch.nn.Sequential(torch.nn.Linear(2, 64), torch.nn.ReLU(), torch.nn.Linear(64, 64), torch.nn.ReLU(),
                              torch.nn.Linear(64, 4))
    model = DistributedDataParallel(net)
    optimizer = torch.optim.SGD(model.parameters(), lr=arguments.lr, momentum=0.9)
    data = make_data()
    sampler = DistributedSampler(data, num_replicas=world, rank=rank, shuffle=True, seed=1, drop_last=True)
    loader = DataLoader(data, batch_size=arguments.batch_size, sampler=sampler, drop_last=True)

    done = load(arguments.checkpoint, model, optimizer)
    if rank == 0 and done:
        print(f"goes on after step {done}", flush=True)
    for epoch in range(done // len(loader), arguments.epochs):
        sampler.set_epoch(epoch)
        for step, (points, labels) in enumerate(loader, 1 + epoch * len(loader)):
            if step <= done:
                continue
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(model(points), labels)
            loss.backward()
            optimizer.step()
            time.sleep(arguments.pause)
            if rank == 0:
                print(f"step {step} loss {loss.item():.9f}", flush=True)
                if step % arguments.save_every == 0 or step == arguments.epochs * len(loader):
                    save(arguments.checkpoint, model, optimizer, step)

    # The loss over the whole data set is the same on every rank.
    with torch.no_grad():
        loss = torch.nn.functional.cross_entropy(model.module(data.tensors[0]), data.tensors[1])
    if rank == 0:
        print(f"done after {arguments.epochs * len(loader)} steps, loss {loss.item():.9f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
