"""Readers of what ranks print."""

import pathlib
import subprocess
import time

from sshd import Sshd
from world import PATIENCE, eventually

LINES = 30000  # of each rank: more than a pipe holds
SILENCE = 5  # seconds: the agents of an elastic job look for another coordinator where theirs says nothing for 3


def test_a_reader_that_stands_still(world):
    """Ranks behind ssh go on while nothing reads what they print, and every line is there afterwards."""
    sshd = Sshd(world.folder / "sshd", pathlib.Path(world.environment["HOME"]))
    (world.folder / "hosts").write_text("".join(f"{host}\n" for host in sshd.hosts(2)))
    program = (f"cd {world.folder}; seq -f \"$RANK says %.0f\" {LINES}; touch said.$RANK; "
               "until [ -e go ]; do sleep 0.1; done; echo $RANK ends")
    command = world.command(["launch", "-H", world.folder / "hosts", "--elastic", "--job-dir", world.folder / "job", "--",
                             "sh", "-c", program])
    try:
        process = subprocess.Popen(command, cwd=world.folder, env=world.environment, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        eventually(lambda: all((world.folder / f"said.{rank}").exists() for rank in range(2)), "the ranks have said it", PATIENCE)
        time.sleep(SILENCE)
        (world.folder / "go").touch()
        out, error = process.communicate(timeout=PATIENCE)
    finally:
        sshd.end()
    assert process.returncode == 0, error
    said = [line.partition("] ")[2] for line in out.splitlines()]
    for rank in range(2):
        expected = [f"{rank} says {number}" for number in range(1, LINES + 1)] + [f"{rank} ends"]
        assert [line for line in said if line.startswith(f"{rank} ")] == expected, error
    world.expect_no_process_left()
