#!/usr/bin/env python3
"""How long newcomers wait for the state, between network namespaces whose links tc shapes, beside the simulation.

usage: newcomers.py DTRAIN STATE_TRANSFER_BENCH [HOLDERS:NEWCOMERS:RATE:MEGABYTES ...]

As exchange.py, whose namespaces it makes. Prints a table in Markdown.
"""

from __future__ import annotations

import pathlib
import subprocess
import sys
import tempfile

from exchange import PATIENCE, address, make_hosts, simulated

CASES = ("1:1:50mbit:20", "1:4:50mbit:20", "1:10:50mbit:20", "2:10:50mbit:20", "4:10:50mbit:20")


def real_seconds(bench: str, holders: int, newcomers: int, rate: str, megabytes: str) -> float:
    """Of the slowest rank, in fresh namespaces, of a child process."""
    ranks = holders + newcomers
    make_hosts(ranks, rate)
    with tempfile.TemporaryDirectory() as folder:
        processes = [
            subprocess.Popen(["ip", "netns", "exec", f"h{rank}", bench, folder, str(rank), str(ranks), address(rank),
                              megabytes, str(holders)], stdout=subprocess.PIPE, text=True) for rank in range(ranks)
        ]
        try:
            seconds = [float(process.communicate(timeout=PATIENCE)[0]) for process in processes]
        finally:
            for process in processes:
                process.kill()
        if any(process.returncode for process in processes):
            raise SystemExit("a rank failed")
    return max(seconds)


def main() -> None:
    if len(sys.argv) == 7 and sys.argv[1] == "--inside":
        subprocess.run(["mount", "-t", "tmpfs", "tmpfs", "/run/netns"], check=True)
        _, _, bench, holders, newcomers, rate, megabytes = sys.argv
        print(real_seconds(bench, int(holders), int(newcomers), rate, megabytes))
        return
    if len(sys.argv) < 3:
        raise SystemExit(__doc__)
    dtrain, bench = sys.argv[1:3]
    pathlib.Path("/run/netns").mkdir(exist_ok=True)
    print("| holders | newcomers | link | MB | s | simulated s |")
    print("|---|---|---|---|---|---|")
    for case in sys.argv[3:] or CASES:
        holders, newcomers, rate, megabytes = case.split(":")
        command = ["unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", sys.executable, __file__, "--inside",
                   bench, holders, newcomers, rate, megabytes]
        real = float(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)
        print(f"| {holders} | {newcomers} | {rate} | {megabytes} | {real:.2f} | ", end="", flush=True)
        if int(holders) < 2:  # a simulated job has at least two ranks
            print("|", flush=True)
            continue
        model = simulated(dtrain, int(holders), rate, "1", "--changes", "--newcomers", newcomers, "--state-megabytes",
                          megabytes, answer="changes")
        print(f"{model['join']['state_seconds']:.2f} |", flush=True)


if __name__ == "__main__":
    main()
