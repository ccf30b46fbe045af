#!/usr/bin/env python3
"""What this GPU does at best, by PyTorch: bytes copied and bfloat16 products a second. Prints one JSON object.

    ceilings.py [--device cuda|cpu] [--values N] [--size N]
"""

import argparse
import json
import time

import torch


def seconds_of(work, device, repeats=20):
    """The mean of some repeats after two that do not count."""
    for _ in range(2):
        work()
    if device == "cpu":
        begin = time.perf_counter()
        for _ in range(repeats):
            work()
        return (time.perf_counter() - begin) / repeats
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()
    for _ in range(repeats):
        work()
    end.record()
    torch.cuda.synchronize()
    return begin.elapsed_time(end) / 1e3 / repeats


def measure(options):
    source = torch.randn(options.values, device=options.device)
    target = torch.empty_like(source)
    copy = 2 * source.numel() * source.element_size() / seconds_of(lambda: target.copy_(source), options.device)
    del source, target
    matrix = torch.randn(options.size, options.size, device=options.device, dtype=torch.bfloat16)
    product = 2 * options.size ** 3 / seconds_of(lambda: matrix @ matrix, options.device)
    return {"schema": "dtrain.ceilings/1", "copy_terabytes_per_second": copy / 1e12, "bfloat16_teraflops": product / 1e12}


def parse():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--values", type=int, default=1 << 30, help="floats that are copied")
    parser.add_argument("--size", type=int, default=8192, help="rows and columns of the matrices")
    return parser.parse_args()


if __name__ == "__main__":
    print(json.dumps(measure(parse())))
