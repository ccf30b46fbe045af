#!/usr/bin/env python3
"""What `cluster watch --heal` costs while nothing happens: tests/bench/healing.py [NODES...] [--minutes M].

For each number of workers (20 and 200; with many more moto takes too long to answer) it makes a cluster in an account that
moto plays (tests/cluster), watches it, and prints calls to AWS in a minute and the share of a core that dtrain computes,
without the first minute. Run it with .venv/bin/python; DTRAIN: the program. Nothing is compared, nothing can fail.
"""

import argparse
import collections
import os
import pathlib
import signal
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "cluster"))

from account import moto  # noqa: E402
from cloud import UP, Cloud  # noqa: E402
from proxy import Proxy  # noqa: E402

WARM_UP = 60.0  # seconds


def computed(process):
    """Seconds of processors that it and its ended children took."""
    fields = pathlib.Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")


def measure(cloud, nodes, minutes):
    cloud.cluster("up", "demo", "-w", nodes, "--ami", cloud.image(), *UP)
    watch = cloud.start("cluster", "watch", "demo", "--heal", "--no-head", streams=None)
    try:
        time.sleep(WARM_UP)
        calls, begin = len(cloud.proxy.calls), computed(watch)
        time.sleep(60 * minutes)
        share, done = (computed(watch) - begin) / (60 * minutes), cloud.proxy.calls[calls:]
    finally:
        watch.send_signal(signal.SIGINT)
        watch.wait(120)
    kinds = ", ".join(f"{count} {name}" for name, count in collections.Counter(call.action for call in done).most_common())
    print(f"| {nodes:,} | {len(done) / minutes:.1f} | {100 * share:.2f} % | {kinds} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("nodes", nargs="*", type=int, default=[20, 200], help="workers of the cluster (default 20 and 200)")
    parser.add_argument("--minutes", type=float, default=3, help="how long to measure (default 3)")
    options = parser.parse_args()
    program = os.environ.get("DTRAIN", ROOT / "build/release/dtrain")
    print("| workers | calls a minute | of a core | calls |\n|---|---|---|---|", flush=True)
    for nodes in options.nodes:
        with moto() as url, tempfile.TemporaryDirectory() as folder:
            proxy = Proxy(url)
            proxy.fresh()
            measure(Cloud(proxy, url, folder, str(program)), nodes, options.minutes)
            proxy.close()


main()
