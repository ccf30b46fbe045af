#!/usr/bin/env python3
"""The same PyTorch script (examples/launch/ddp.py, two ranks) under dtrain launch and under torchrun, in turn.

Usage: DTRAIN=build/release/dtrain tests/bench/launch.py [ROUNDS]

Seconds from exec to the first step, and from kill -9 of a rank to the first step after it. Beside them, what no launcher can
take away: the script's two processes started by hand; and what is left without it: a script that imports nothing. Lines are
taken as they come through a pipe. Prints a line of JSON a run, then medians; needs /usr/bin/python3 with torch.
"""

import json
import os
import pathlib
import re
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from functools import partial

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
SCRIPT = REPOSITORY / "examples" / "launch" / "ddp.py"
TORCHRUN = REPOSITORY / "tests" / "helpers" / "torchrun.py"
DTRAIN = os.environ.get("DTRAIN", REPOSITORY / "build" / "release" / "dtrain")
RANKS = 2
TRIFLE = """
import os, time
print(f"rank {os.environ['RANK']} of {os.environ['WORLD_SIZE']} is process {os.getpid()}", flush=True)
step = 0
while True:
    step += 1
    if os.environ["RANK"] == "0": print(f"step {step} done", flush=True)
    time.sleep(0.02)
"""


def command(who: str, script: list) -> list:
    if who == "dtrain":
        return [DTRAIN, "launch", "-n", "1", "--nproc-per-host", str(RANKS), "--elastic", "--job-dir", "job", "--",
                sys.executable, *script]
    # Its own default is to look every five seconds whether a rank has died.
    return [sys.executable, TORCHRUN, "--standalone", f"--nproc_per_node={RANKS}", "--max_restarts=3", "--monitor_interval=0.1",
            *script]


class Ended(Exception):
    """A run that did not get so far."""


class Run:
    def __init__(self, arguments, folder: str, more=()):
        environment = os.environ | {"OMP_NUM_THREADS": "1"} | dict(more)
        self.begun = time.monotonic()
        self.process = subprocess.Popen(list(map(str, arguments)), env=environment, cwd=folder, stdin=subprocess.DEVNULL,
                                        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, start_new_session=True)
        self.pids: dict[int, int] = {}

    def until(self, pattern: str) -> float:
        """Reads on to a line that matches: when it came."""
        for line in self.process.stdout:
            # torchrun's ranks write to one pipe, and may do so inside each other's lines.
            for rank, pid in re.findall(r"rank (\d+) of \d+ is process (\d+)", line):
                self.pids[int(rank)] = int(pid)
            if re.search(pattern, line):
                return time.monotonic()
        raise Ended(f"{self.process.args[:3]} ended before {pattern!r}")

    def end(self) -> None:
        self.process.terminate()
        self.process.stdout.close()
        self.process.wait()


def measure(who: str, what: str) -> dict:
    """One run of the script ("ddp") or of the trifle."""
    with tempfile.TemporaryDirectory() as folder:
        trifle = pathlib.Path(folder) / "trifle.py"
        trifle.write_text(TRIFLE)
        script = [SCRIPT, "--epochs", "1000", "--pause", "0.02", "--save-every", "5"] if what == "ddp" else [trifle]
        run = Run(command(who, script), folder)
        try:
            first = run.until(r"step 1 ") - run.begun
            run.until(r"step 20 ")
            killed = time.monotonic()
            os.kill(run.pids[1], signal.SIGKILL)
            run.until(r"rank 0 of")
            again = run.until(r"step \d+ ") - killed
        finally:
            run.end()
    return {"who": who, "what": what, "first step": first, "kill to step": again}


def measure_by_hand() -> dict:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    with tempfile.TemporaryDirectory() as folder:
        all_ranks = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "WORLD_SIZE": str(RANKS)}
        runs = [Run([sys.executable, SCRIPT], folder, all_ranks | {"RANK": str(rank)}) for rank in range(RANKS)]
        first = runs[0].until(r"step 1 ") - runs[0].begun
        for run in runs:
            run.end()
    return {"who": "by hand", "what": "ddp", "first step": first, "kill to step": first}


def measure_import() -> dict:
    begin = time.monotonic()
    processes = [subprocess.Popen([sys.executable, "-c", "import torch, torch.distributed"]) for _ in range(RANKS)]
    for process in processes:
        process.wait()
    return {"who": "import torch", "what": "ddp", "first step": time.monotonic() - begin}


def median(rows: list[dict], who: str, what: str, key: str) -> float:
    return statistics.median(row[key] for row in rows if (row["who"], row["what"]) == (who, what) and key in row)


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    rows = []
    for _ in range(rounds):
        for measured in (partial(measure, "dtrain", "ddp"), partial(measure, "torchrun", "ddp"), measure_by_hand, measure_import,
                         partial(measure, "dtrain", "trifle"), partial(measure, "torchrun", "trifle")):
            try:
                rows.append(measured())
                print(json.dumps(rows[-1]), flush=True)
            except Ended as error:
                print(f"a run failed: {error}", flush=True)
    print(f"\nmedians of {rounds} rounds, load {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors")
    for what in ("ddp", "trifle"):
        for key in ("first step", "kill to step"):
            ours, theirs = (median(rows, who, what, key) for who in ("dtrain", "torchrun"))
            print(f"{what}, {key}: dtrain {ours:.2f} s, torchrun {theirs:.2f} s, {ours / theirs:.2f}x")
    print(f"ddp by hand {median(rows, 'by hand', 'ddp', 'first step'):.2f} s; "
          f"{RANKS} processes import torch in {median(rows, 'import torch', 'ddp', 'first step'):.2f} s")


if __name__ == "__main__":
    main()
