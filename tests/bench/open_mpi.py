"""Open MPI's algorithms for an all-reduce, and how mpirun is told to take one."""

from __future__ import annotations

import pathlib
import subprocess

ALGORITHMS = {"its choice": 0, "ring": 4, "segmented ring": 5, "Rabenseifner": 6}  # numbers of coll_tuned
SEGMENT_BYTES = 1 << 20


def compile_program(folder: pathlib.Path) -> pathlib.Path:
    """mpi_allreduce.c, compiled into the folder."""
    program = folder / "mpi_allreduce"
    subprocess.run(["mpicc", "-O2", pathlib.Path(__file__).with_name("mpi_allreduce.c"), "-o", program], check=True)
    return program


def command(ranks: int, transport: str, algorithm: str, *more) -> list[str]:
    """The beginning of an mpirun; the program follows."""
    number = ALGORITHMS[algorithm]
    choice = ["--mca", "coll_tuned_use_dynamic_rules", "1", "--mca", "coll_tuned_allreduce_algorithm", number,
              "--mca", "coll_tuned_allreduce_algorithm_segmentsize", SEGMENT_BYTES] if number else []
    return list(map(str, ["mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "-np", ranks,
                          "--mca", "btl", transport, *choice, *more]))
