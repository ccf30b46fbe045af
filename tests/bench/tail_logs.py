#!/usr/bin/env python3
"""How fast `dtrain tail-logs` is: tests/bench/tail_logs.py DTRAIN [FILES] [LINES_A_SECOND] [SECONDS]

First it follows so many logs that grow so fast, and rotate once, and every line must come whole and in order; then it
reads the same lines again as they lie there, as fast as it can. Prints one line of figures for each.
"""

import collections
import fcntl
import json
import os
import pathlib
import socket
import subprocess
import sys
import tempfile
import threading
import time

BLOCKS_A_SECOND = 50


def prepare(seconds: int, lines_a_second: int) -> list[bytes]:
    """What one log gets, in blocks."""
    per_block, blocks, number = lines_a_second // BLOCKS_A_SECOND, [], 0
    for block in range(seconds * BLOCKS_A_SECOND):
        time_text = f"2026-01-31T23:59:{block / BLOCKS_A_SECOND:09.6f}Z"
        blocks.append("".join(f"{time_text} line {number + i} of a worker that says what it does\n"
                              for i in range(per_block)).encode())
        number += per_block
    return blocks


def write(paths: list[pathlib.Path], blocks: list[bytes]) -> None:
    files = [open(path, "ab", buffering=0) for path in paths]
    start = time.monotonic()
    for number, block in enumerate(blocks):
        time.sleep(max(0.0, start + number / BLOCKS_A_SECOND - time.monotonic()))
        if number == len(blocks) // 2:
            for path in paths:
                path.rename(f"{path}.1")
            files = [open(path, "ab", buffering=0) for path in paths]
        for file in files:
            file.write(block)


def check(output: pathlib.Path, files: int, lines: int) -> None:
    following = collections.Counter()
    with open(output, "rb") as text:
        for line in text:
            name, _, rest = line.partition(b"] ")
            assert rest == b"line %d of a worker that says what it does\n" % following[name], line
            following[name] += 1
    assert len(following) == files and set(following.values()) == {lines}, following


def set_job(folder: pathlib.Path, ended: bool) -> None:
    about = {"pid": 1, "host": socket.gethostname(), "addresses": [], "port": 0} | ({"ended": "done"} if ended else {})
    (folder / "new").write_text(json.dumps(about))
    os.rename(folder / "new", folder / "coordinator.json")


def main(dtrain: str, files: int = 64, lines_a_second: int = 10_000, seconds: int = 4) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch)
        (folder / "logs").mkdir()
        paths = [folder / "logs" / f"w{number}.0.log" for number in range(files)]
        blocks, total = prepare(seconds, lines_a_second), files * lines_a_second * seconds
        set_job(folder, ended=False)
        lock = open(folder / "coordinator.lock", "w")
        fcntl.flock(lock, fcntl.LOCK_EX)  # as a coordinator that lives does
        for name in ("follow", "read"):
            with open(folder / name, "wb") as out:
                start = time.monotonic()
                tail = subprocess.Popen([dtrain, "tail-logs", "--job-dir", folder], stdout=out)
                if name == "follow":
                    writers = [threading.Thread(target=write, args=(paths[i::4], blocks)) for i in range(4)]
                    for writer in writers:
                        writer.start()
                    for writer in writers:
                        writer.join()
                    written = time.monotonic() - start
                    time.sleep(2)  # more than a follower waits after a rename
                    set_job(folder, ended=True)
                assert tail.wait() == 0
                taken = time.monotonic() - start
            check(folder / name, files, lines_a_second * seconds)
            rate = total / (written if name == "follow" else taken)
            print(f"{name}: {files} logs, {total} lines, {rate:,.0f} lines/s, none torn, lost or out of order")


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
