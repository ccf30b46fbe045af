#!/usr/bin/env python3
"""Trains a network of `dtrain bench train` with PyTorch and prints one JSON line: images a second.

The network, batch and optimizer are the same; PyTorch gets its fast ways. ResNet-20 v1 for CIFAR: channels_last, the whole
data set in memory as one tensor, and crop, mirror and normalisation as batched tensor operations instead of a DataLoader.
torchvision's networks: one batch that is made before and stays in memory.
"""
import argparse
import json
import resource
import statistics
import time

import torch
import torch.nn.functional as F


class Unit(torch.nn.Module):
    def __init__(self, inputs, outputs, stride, project):
        super().__init__()
        self.conv1 = torch.nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.bn1 = torch.nn.BatchNorm2d(outputs, eps=2e-5, momentum=0.1)
        self.conv2 = torch.nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.bn2 = torch.nn.BatchNorm2d(outputs, eps=2e-5, momentum=0.1)
        self.project = None
        if project:
            self.project = torch.nn.Sequential(torch.nn.Conv2d(inputs, outputs, 1, stride, bias=False),
                                               torch.nn.BatchNorm2d(outputs, eps=2e-5, momentum=0.1))

    def forward(self, x):
        y = F.relu(self.bn1(self.conv1(x)), inplace=True)
        y = self.bn2(self.conv2(y))
        return F.relu(y + (x if self.project is None else self.project(x)), inplace=True)


def resnet20_v1(width, classes=10):
    """MXNet's: no ReLU after the first batch norm, a projection in the first unit of every stage."""
    layers = [torch.nn.Conv2d(3, width, 3, 1, 1, bias=False), torch.nn.BatchNorm2d(width, eps=2e-5, momentum=0.1)]
    inputs = width
    for stage in range(3):
        for unit in range(3):
            outputs = width << stage
            layers.append(Unit(inputs, outputs, 2 if stage > 0 and unit == 0 else 1, unit == 0))
            inputs = outputs
    layers += [torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(), torch.nn.Linear(inputs, classes)]
    return torch.nn.Sequential(*layers)


class Batches:
    """Shuffled, padded by 4, cropped, mirrored and normalised batches of uint8 images held in memory."""

    def __init__(self, count, batch):
        generator = torch.Generator().manual_seed(1)
        self.images = torch.randint(0, 256, (count, 3, 32, 32), dtype=torch.uint8, generator=generator)
        self.labels = torch.randint(0, 10, (count,), generator=generator)
        self.batch = batch
        self.mean = torch.tensor([123.68, 116.779, 103.939]).view(1, 3, 1, 1)
        self.std = torch.tensor([58.4, 57.1, 57.4]).view(1, 3, 1, 1)
        self.order = torch.randperm(count)
        self.position = 0

    def next(self):
        if self.position + self.batch > len(self.order):
            self.order, self.position = torch.randperm(len(self.order)), 0
        chosen = self.order[self.position:self.position + self.batch]
        self.position += self.batch
        padded = F.pad(self.images[chosen], (4, 4, 4, 4), value=127)
        y = torch.randint(0, 9, (self.batch, 1, 1)) + torch.arange(32).view(1, 32, 1)
        x = torch.randint(0, 9, (self.batch, 1, 1)) + torch.arange(32).view(1, 1, 32)
        mirror = torch.rand(self.batch, 1, 1) < 0.5
        x = torch.where(mirror, x.flip(2), x)
        rows = torch.arange(self.batch).view(-1, 1, 1)
        cropped = padded.permute(0, 2, 3, 1)[rows, y, x].permute(0, 3, 1, 2)
        return (cropped.float() - self.mean) / self.std, self.labels[chosen]


class OneBatch:
    def __init__(self, size, batch):
        generator = torch.Generator().manual_seed(1)
        self.images = torch.randn(batch, 3, size, size, generator=generator)
        self.labels = torch.randint(0, 1000, (batch,), generator=generator)

    def next(self):
        return self.images, self.labels


def torchvision_network(name):
    import torchvision
    if name == "vit_small_patch16_224":  # torchvision has the class, and no name for this size of it
        return torchvision.models.VisionTransformer(224, 16, num_layers=12, num_heads=6, hidden_dim=384, mlp_dim=1536)
    kinds = {"aux_logits": False} if name in ("googlenet", "inception_v3") else {}
    return getattr(torchvision.models, name)(num_classes=1000, **kinds)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--network", default="resnet-v1", help="resnet-v1 (ResNet-20 for CIFAR) or a name of torchvision's")
    parser.add_argument("--size", type=int, default=224, help="edge of the pictures of torchvision's networks in pixels")
    parser.add_argument("--width", type=int, default=16)
    parser.add_argument("--batch-size", type=int, default=128)
    parser.add_argument("--dtype", choices=["float32", "bfloat16"], default="float32")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--warmup", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=8)
    options = parser.parse_args()

    torch.set_num_threads(options.threads)
    torch.manual_seed(1)
    cifar = options.network == "resnet-v1"
    model = resnet20_v1(options.width) if cifar else torchvision_network(options.network)
    model = model.to(memory_format=torch.channels_last).train()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, weight_decay=1e-4)
    forward = torch.compile(model) if options.compile else model
    batches = Batches(12800, options.batch_size) if cifar else OneBatch(options.size, options.batch_size)

    def step():
        images, labels = batches.next()
        images = images.contiguous(memory_format=torch.channels_last)
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=options.dtype == "bfloat16"):
            loss = F.cross_entropy(forward(images).float(), labels)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        return loss.item()

    for _ in range(options.warmup):
        step()
    times = []
    end = time.monotonic() + options.seconds
    while time.monotonic() < end:
        begin = time.monotonic()
        step()
        times.append(time.monotonic() - begin)
    print(json.dumps({
        "peer": "pytorch " + torch.__version__ + (" compiled" if options.compile else " eager"),
        "images_per_second": options.batch_size / statistics.median(times),
        "peak_memory_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
    }))


if __name__ == "__main__":
    main()
