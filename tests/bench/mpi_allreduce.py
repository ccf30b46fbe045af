#!/usr/bin/env python3
"""dtrain's all-reduce beside Open MPI's on this machine: DTRAIN=build/release/dtrain tests/bench/mpi_allreduce.py [MEGABYTES
[ROUNDS]]. In each round every algorithm runs once, in turn, so that whatever else the machine does hits all of them. Prints the
median milliseconds, and how many times faster dtrain is than Open MPI's best of each transport. Needs mpicc and mpirun.
"""

import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from open_mpi import ALGORITHMS, command, compile_program  # noqa: E402

MEGABYTES, ROUNDS = (int(word) for word in (sys.argv[1:] + ["100", "7"][len(sys.argv) - 1:])[:2])
TRANSPORTS = {"shared memory": "self,vader", "TCP": "self,tcp"}
CALLS = 3  # of one algorithm in a round; their median counts


def of_dtrain(ranks: int) -> float:
    answer = subprocess.run([os.environ["DTRAIN"], "bench", "allreduce", "--ranks", str(ranks), "--rounds", str(CALLS),
                             "--megabytes", str(MEGABYTES), "--mesh-ranks", "0", "--json"], check=True, capture_output=True)
    rows = json.loads(answer.stdout)["contests"][0]["algorithms"]
    return 1e3 * next(row["seconds"] for row in rows if row["algorithm"] == "tree")


def of_mpi(program: pathlib.Path, ranks: int, transport: str, algorithm: str) -> float:
    answer = subprocess.run([*command(ranks, transport, algorithm), program, str(MEGABYTES), str(CALLS)],
                            check=True, capture_output=True)
    return float(answer.stdout)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        program = compile_program(pathlib.Path(folder))
        for ranks in (2, 3, 4):
            times: dict[tuple[str, str], list[float]] = {}
            for _ in range(ROUNDS):
                times.setdefault(("dtrain", "tree"), []).append(of_dtrain(ranks))
                for transport, name in TRANSPORTS.items():
                    for algorithm in ALGORITHMS:
                        times.setdefault((transport, algorithm), []).append(of_mpi(program, ranks, name, algorithm))
            medians = {who: statistics.median(values) for who, values in times.items()}
            for (transport, algorithm), value in medians.items():
                print(f"{ranks} ranks  {transport:14} {algorithm:15} {value:8.1f} ms")
            for transport in TRANSPORTS:
                best = min(value for who, value in medians.items() if who[0] == transport)
                print(f"{ranks} ranks  best of {transport} / dtrain: {best / medians['dtrain', 'tree']:.2f}", flush=True)


main()
