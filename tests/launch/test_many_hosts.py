"""Many hosts at once, whose sshd lets few log in at a time."""

import pathlib
import time

from runner import slow
from sshd import Sshd
from world import PATIENCE

HOSTS = 128


def launch_on(world, count: int, *lines: str) -> float:
    """Seconds for one rank on each of so many hosts, all of which must have been reached."""
    sshd = Sshd(world.folder / "sshd", pathlib.Path(world.environment["HOME"]), *lines)
    try:
        (world.folder / "hosts").write_text("".join(f"{host}\n" for host in sshd.hosts(count)))
        begin = time.monotonic()
        answer = world.run("launch", "-H", world.folder / "hosts", "--job-dir", world.folder / "job", "--", "sh", "-c",
                           "echo rank $RANK of $WORLD_SIZE", timeout=10 * PATIENCE)
        seconds = time.monotonic() - begin
    finally:
        sshd.end()
    said = sorted(line.partition(" ")[2] for line in answer.stdout.splitlines())
    assert said == sorted(f"rank {rank} of {count}" for rank in range(count)), (len(said), said[:3], answer.stderr[-2000:])
    print(f"    {count} hosts, {', '.join(lines)}: {seconds:.1f} s, {sshd.refused()} logins dropped by sshd", flush=True)
    return seconds


def test_eight(world):
    """Eight hosts, of which three may log in at a time."""
    launch_on(world, 8, "MaxStartups 3:50:5")


@slow
def test_a_hundred_and_more(world):
    """128 hosts with MaxStartups 3:50:5: every one is reached."""
    launch_on(world, HOSTS, "MaxStartups 3:50:5")
