"""A linear regression with Horovod and PyTorch, as its documentation has it: each rank its part of the data, rank 0 saves,
every rank continues from the last checkpoint when it starts. --pause imitates a larger model."""

import argparse
import os
import pathlib
import time

import horovod.torch as hvd
import torch

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=40)
parser.add_argument("--pause", type=float, default=0.0)
parser.add_argument("--checkpoint", type=pathlib.Path)
arguments = parser.parse_args()

hvd.init()
rank, size = hvd.rank(), hvd.size()
print(f"rank {rank} of {size}, local {hvd.local_rank()} of {hvd.local_size()}, is process {os.getpid()}", flush=True)
assert sorted(map(int, hvd.allgather(torch.tensor([rank])))) == list(range(size))

samples, features = 64, 4
inputs = torch.tensor([[((i * 7 + j * 3) % 11) / 11 for j in range(features)] for i in range(samples)])
labels = inputs @ torch.tensor([[1.0], [-2.0], [3.0], [0.5]])
mine = slice(rank * samples // size, (rank + 1) * samples // size)

net = torch.nn.Linear(features, 1, bias=False)
torch.nn.init.constant_(net.weight, float(rank))  # ranks begin apart: the broadcast must bring rank 0's
optimizer = torch.optim.SGD(net.parameters(), lr=0.5)
optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=net.named_parameters())
step = 0
if arguments.checkpoint and arguments.checkpoint.exists():
    saved = torch.load(arguments.checkpoint)
    net.load_state_dict(saved["net"])
    step = saved["step"]
step = int(hvd.broadcast(torch.tensor([step]), 0))
hvd.broadcast_parameters(net.state_dict(), root_rank=0)

while step < arguments.steps:
    optimizer.zero_grad()
    torch.nn.functional.mse_loss(net(inputs[mine]), labels[mine]).backward()
    optimizer.step()
    step += 1
    if rank == 0:
        print(f"step {step}", flush=True)
        if arguments.checkpoint:
            part = arguments.checkpoint.with_suffix(".part")
            torch.save({"net": net.state_dict(), "step": step}, part)
            part.rename(arguments.checkpoint)
    time.sleep(arguments.pause)
weights = net.weight.detach()[0]
print(f"rank {rank} ends with weights {' '.join(f'{float(weight):.5f}' for weight in weights)}", flush=True)
hvd.shutdown()
