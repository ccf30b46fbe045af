#!/usr/bin/env python3
"""Compares simulated exchanges of gradients with real ones between network namespaces whose links tc shapes.

usage: exchange.py DTRAIN EXCHANGE_BENCH [RANKS:RATE:MEGABYTES ...]

Each rank is a process in its own namespace with a veth pair to one bridge; a token bucket (tbf) limits both
directions. Prints a table in Markdown: the real time, the simulated one, and the error of the simulation.
Needs root, or the right to make namespaces. Everything lives in namespaces of this run and ends with it.
"""

from __future__ import annotations

import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

# Slow enough that links are the limit and not two cores.
CASES = ("2:500mbit:50", "2:100mbit:10", "3:100mbit:10", "4:100mbit:10", "4:50mbit:20", "8:25mbit:2.5", "8:50mbit:5",
         "8:50mbit:20", "12:25mbit:2.5", "16:25mbit:2.5", "16:20mbit:6")
ROUNDS = 5
LATENCY = os.environ.get("EXCHANGE_LATENCY", "50us")  # of the simulated links; veth pairs have about this
CONTROL = os.environ.get("EXCHANGE_CONTROL", "cubic")  # of TCP's congestion: the default of most machines
# Packets of 64 KiB fit in, and so does what a link carries while the kernel does not look.
LEAST_BURST, BURST_SECONDS = 128 << 10, 0.004
UNITS = {"mbit": 1e6, "gbit": 1e9}
PATIENCE = 300


def ip(*arguments) -> None:
    subprocess.run(["ip", *map(str, arguments)], check=True)


def in_host(number: int, *command) -> None:
    subprocess.run(["ip", "netns", "exec", f"h{number}", *map(str, command)], check=True)


def address(number: int) -> str:
    return f"10.78.0.{number + 1}"


def burst(rate: str) -> int:
    """Bytes."""
    return max(LEAST_BURST, int(float(rate[:-4]) * UNITS[rate[-4:]] / 8 * BURST_SECONDS))


def make_hosts(count: int, rate: str) -> None:
    ip("link", "add", "switch", "type", "bridge")
    ip("link", "set", "switch", "up")
    for number in range(count):
        ip("netns", "add", f"h{number}")
        ip("link", "add", f"port{number}", "type", "veth", "peer", "name", "eth0", "netns", f"h{number}")
        ip("link", "set", f"port{number}", "master", "switch", "up")
        in_host(number, "ip", "address", "add", f"{address(number)}/24", "dev", "eth0")
        in_host(number, "ip", "link", "set", "eth0", "up")
        in_host(number, "ip", "link", "set", "lo", "up")
        in_host(number, "ip", "route", "replace", "10.78.0.0/24", "dev", "eth0", "congctl", CONTROL)
        shape = ["root", "tbf", "rate", rate, "burst", str(burst(rate)), "latency", "100ms"]
        in_host(number, "tc", "qdisc", "add", "dev", "eth0", *shape)
        subprocess.run(["tc", "qdisc", "add", "dev", f"port{number}", *shape], check=True)


def real_seconds(bench: str, ranks: int, rate: str, megabytes: str) -> float:
    """In fresh namespaces, of a child process."""
    make_hosts(ranks, rate)
    with tempfile.TemporaryDirectory() as folder:
        processes = [
            subprocess.Popen(["ip", "netns", "exec", f"h{rank}", bench, folder, str(rank), str(ranks), address(rank),
                              megabytes, str(ROUNDS)], stdout=subprocess.PIPE, text=True) for rank in range(ranks)
        ]
        try:
            outputs = [process.communicate(timeout=PATIENCE)[0] for process in processes]
        finally:
            for process in processes:
                process.kill()
        if any(process.returncode for process in processes):
            raise SystemExit("a rank failed")
    return statistics.median(float(line) for line in outputs[0].split())


def simulated(dtrain: str, ranks: int, rate: str, megabytes: str, *more, answer: str = "simulations") -> dict:
    command = [dtrain, "bench", "allreduce", "--link", f"{rate},{LATENCY}", "--simulate", str(ranks), "--megabytes",
               megabytes, "--json", *more]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)[answer][0]


def main() -> None:
    if len(sys.argv) == 6 and sys.argv[1] == "--inside":
        # A private folder of names for `ip netns`.
        subprocess.run(["mount", "-t", "tmpfs", "tmpfs", "/run/netns"], check=True)
        _, _, bench, ranks, rate, megabytes = sys.argv
        print(real_seconds(bench, int(ranks), rate, megabytes))
        return
    if len(sys.argv) < 3:
        raise SystemExit(__doc__)
    dtrain, bench = sys.argv[1:3]
    pathlib.Path("/run/netns").mkdir(exist_ok=True)
    print("| ranks | link | MB | ring's bound ms | real ms | simulated ms | error | with equal turns |")
    print("|---|---|---|---|---|---|---|---|")
    for case in sys.argv[3:] or CASES:
        ranks, rate, megabytes = case.split(":")
        command = ["unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", sys.executable, __file__, "--inside",
                   bench, ranks, rate, megabytes]
        real = float(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)
        model = simulated(dtrain, int(ranks), rate, megabytes)
        even = simulated(dtrain, int(ranks), rate, megabytes, "--unevenness", "0")
        print(f"| {ranks} | {rate} | {megabytes} | {1e3 * model['ring_seconds']:.0f} | {1e3 * real:.0f} | "
              f"{1e3 * model['seconds']:.0f} | {100 * (model['seconds'] / real - 1):+.0f} % | "
              f"{1e3 * even['seconds']:.0f} |", flush=True)


if __name__ == "__main__":
    main()
