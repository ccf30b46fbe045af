"""Ports are leased for each start: any number of launches can run beside each other."""

from launches import PYTHON
from world import eventually

LAUNCHES, RANKS = 20, 2


def test_many_launches_at_once(world):
    """20 launches of two ranks each: everybody can bind what it was given, and no port was given twice."""
    told = world.folder / "told"
    told.mkdir()
    jobs = [world.job(f"job{number}", words=[PYTHON, world.program("bind.py"), told], options=["-n", RANKS])
            for number in range(LAUNCHES)]
    for job in jobs:
        job.start()

    def all_hold() -> bool:
        for job in jobs:
            assert job.process.poll() is None, f"ended with {job.process.poll()}: {job.said()}{job.output()}"
        return len(list(told.iterdir())) == LAUNCHES * RANKS
    eventually(all_hold, "all ranks hold their ports", 180)
    ports = [line for path in told.iterdir() for line in path.read_text().splitlines()]
    assert len(ports) == LAUNCHES * (RANKS + 2) == len(set(ports)), ports
    (told / "end").touch()
    for job in jobs:
        job.finish()
