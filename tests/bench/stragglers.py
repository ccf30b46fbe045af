"""What a slow worker costs: stragglers.py DTRAIN [--rounds N]. Needs root and control groups (version 1 or 2), because a
worker is slow by its quota of a processor.

Four workers of one thread on this machine: all with the same quota, and then one with half of it, with and without
`--move-shards`; then the same two with parameter servers (`--kv-store dist_async`). Prints the speeds and their share of
the sum of the workers' own speeds, which is 3.5 of 4 equal ones of the same kind.
"""

import contextlib
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "jobs"))
os.environ["DTRAIN"] = DTRAIN = os.path.realpath(sys.argv[1])
ROUNDS = int(sys.argv[sys.argv.index("--rounds") + 1]) if "--rounds" in sys.argv else 3
from world import World, eventually  # noqa: E402

PERIOD = 10_000  # microseconds
FULL = 0.4       # of a processor, so that two of them are enough for four workers
SHARDS, BATCH, SERVERS = 32, 256, 2
SECONDS = 20     # of each measurement
SAMPLES = 12_800  # of an epoch, at whose end workers of servers wait for each other


class Quotas:
    """Control groups with so much of a processor each."""

    def __init__(self):
        first = pathlib.Path("/sys/fs/cgroup/cpu")
        self.root = first if first.exists() else pathlib.Path("/sys/fs/cgroup")
        self.is_first = first.exists()
        self.made: list[pathlib.Path] = []

    def limit(self, pid: int, share: float) -> None:
        group = self.root / f"dtrain-bench-{pid}"
        group.mkdir()
        self.made.append(group)
        quota = int(share * PERIOD)
        if self.is_first:
            (group / "cpu.cfs_period_us").write_text(str(PERIOD))
            (group / "cpu.cfs_quota_us").write_text(str(quota))
        else:
            (group / "cpu.max").write_text(f"{quota} {PERIOD}")
        (group / "cgroup.procs").write_text(str(pid))

    def end(self) -> None:
        for group in self.made:
            with contextlib.suppress(OSError):
                group.rmdir()


def make_job(world: World, name: str, way: str, workers: int):
    job = world.job(name, hosts=workers, elastic=False, batch=BATCH, samples=SAMPLES,
                    data=["--data-train", world.folder / "long" / "shapes_train.rec"],
                    network=("resnet", "--num-layers", 20, "--width", 16, "--lr", 0.02))
    if way == "servers":
        return job.by_servers(SERVERS, BATCH // workers)
    job.arguments += ["--logical-shards", SHARDS, "--move-shards", way]
    return job


def speed(world: World, name: str, quotas: list[float], way: str) -> float:
    """Images a second of the last steps, in a job whose workers have these quotas."""
    job = make_job(world, name, way, len(quotas))
    limits = Quotas()
    try:
        job.start().wait_running()
        for host, quota in zip(job.hosts, quotas):
            limits.limit(job.training()[host], quota)
        time.sleep(25)  # until the shards have moved
        first, begin = job.steps_done(), time.monotonic()
        time.sleep(SECONDS)
        return (job.steps_done() - first) * job.batch / (time.monotonic() - begin)
    finally:
        moved = [event["shards"] for event in job.events() if event["event"] == "shards"]
        print(f"  {name}: {moved or 'no shards moved'}", file=sys.stderr)
        job.process.terminate()
        job.process.wait()
        limits.end()


def main() -> None:
    folder = pathlib.Path(tempfile.mkdtemp())
    world = World(folder, folder / "data")
    world.run("data", "prepare", "shapes", "--out", folder / "long", "--train-count", SAMPLES, "--val-count", 60)
    cases = {("off", "even"): [FULL] * 4, ("off", "uneven"): [FULL] * 3 + [FULL / 2]}
    cases |= {("on", "uneven"): cases["off", "uneven"], **{("servers", kind): cases["off", kind] for kind in ("even", "uneven")}}
    figures: dict[tuple[str, str], list[float]] = {case: [] for case in cases}
    try:
        for number in range(ROUNDS):
            for (way, kind), quotas in cases.items():
                figures[way, kind].append(speed(world, f"{way}-{kind}{number}", quotas, way))
    finally:
        world.end()
        shutil.rmtree(folder, ignore_errors=True)
    for way, equal, what in (("off", "off", "shards stay"), ("on", "off", "shards move"), ("servers", "servers", "servers")):
        whole, here = statistics.median(figures[equal, "even"]), statistics.median(figures[way, "uneven"])
        print(f"{what}: four equal workers {whole:.0f} images/s, one at half speed {here:.0f}, "
              f"{here / (whole * 3.5 / 4):.2f} of the sum of the speeds")
    print(json.dumps({" ".join(case): values for case, values in figures.items()}))


if __name__ == "__main__":
    main()
