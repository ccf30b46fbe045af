"""What a slow worker costs: stragglers.py DTRAIN [--rounds N]. Needs root and control groups (version 1 or 2), because a
worker is slow by its quota of a processor.

Four workers of one thread on this machine: all with the same quota, and then one with half of it, with and without
`--move-shards`. Prints the speeds and their share of the sum of the workers' own speeds, which is 3.5 of 4.
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
SHARDS = 32
SECONDS = 20     # of each measurement


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


def speed(world: World, name: str, quotas: list[float], moves: bool) -> float:
    """Images a second of the last steps, in a job whose workers have these quotas."""
    job = world.job(name, hosts=len(quotas), elastic=False, batch=256,
                    network=("resnet", "--num-layers", 20, "--width", 16, "--lr", 0.02),
                    arguments=["--logical-shards", SHARDS, "--move-shards", "on" if moves else "off"])
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
        print(f"  {name}: shards {moved or 'did not move'}", file=sys.stderr)
        job.process.terminate()
        job.process.wait()
        limits.end()


def main() -> None:
    folder = pathlib.Path(tempfile.mkdtemp())
    world = World(folder, folder / "data")
    world.prepare_data()
    figures: dict[str, list[float]] = {"even": [], "off": [], "on": []}
    try:
        for number in range(ROUNDS):
            uneven = [FULL] * 3 + [FULL / 2]
            figures["even"].append(speed(world, f"even{number}", [FULL] * 4, False))
            figures["off"].append(speed(world, f"off{number}", uneven, False))
            figures["on"].append(speed(world, f"on{number}", uneven, True))
    finally:
        world.end()
        shutil.rmtree(folder, ignore_errors=True)
    whole = statistics.median(figures["even"])
    print(f"four equal workers: {whole:.0f} images/s")
    for name, what in (("off", "shards stay"), ("on", "shards move")):
        here = statistics.median(figures[name])
        print(f"one at half speed, {what}: {here:.0f} images/s, {here / (whole * 3.5 / 4):.2f} of the sum of the speeds")
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
