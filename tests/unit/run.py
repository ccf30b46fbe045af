#!/usr/bin/env python3
"""Runs the unit tests that ctest knows of a build: tests/unit/run.py BUILD_DIR [PROCESSES].

ctest starts a process for each test, which takes longer than most of the tests; here a GoogleTest program runs a share
of its tests in one process. Tests that a process did not reach, because one before them ended it, run in the next one.
A process that says nothing for ten minutes is killed, and the test that it ran has failed. Prints the output of what
failed, `SKIP NAME` for what was skipped, and last `N passed, N failed, N skipped`.
"""

import collections
import concurrent.futures
import contextlib
import dataclasses
import json
import os
import re
import selectors
import signal
import subprocess
import sys

SHARE = 60  # tests of one process
SILENCE = 600  # seconds
FILTER = "--gtest_filter="
BEGIN = re.compile(r"^\[ RUN +\] (\S+)")
END = re.compile(r"^\[ +(OK|FAILED|SKIPPED) +\] (\S+?)(?:, where .*)? \(\d+ ms\)")
OUTCOME = {"OK": "passed", "FAILED": "failed", "SKIPPED": "skipped"}


@dataclasses.dataclass
class Result:
    name: str
    outcome: str
    output: str


@dataclasses.dataclass
class Ended:
    results: list[Result]
    why: str  # empty if it ended well


def main(build: str, processes: int) -> int:
    shares, others = work_of(build)
    running: set[subprocess.Popen] = set()
    with concurrent.futures.ThreadPoolExecutor(processes) as pool:
        jobs = [pool.submit(run_program, running, *other) for other in others]
        jobs += [pool.submit(run_share, running, *share) for share in shares]
        try:
            results = [result for job in concurrent.futures.as_completed(jobs) for result in job.result()]
        except KeyboardInterrupt:
            for process in list(running):
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
            os._exit(128 + signal.SIGINT)  # without waiting for the shares that are left
    count = collections.Counter(result.outcome for result in results)
    for result in sorted(results, key=lambda each: each.name):
        if result.outcome == "failed":
            print(f"{result.output.rstrip()}\nFAIL {result.name}")
        elif result.outcome == "skipped":
            print(f"SKIP {result.name}")
    print(f"{count['passed']} passed, {count['failed']} failed, {count['skipped']} skipped")
    return 1 if count["failed"] or not results else 0


def work_of(build: str):
    """Shares of the GoogleTest programs, and the other tests: [(command, names)] and [(name, command)]."""
    listed = subprocess.run(["ctest", "--test-dir", build, "--show-only=json-v1"], capture_output=True, text=True)
    if listed.returncode:
        sys.exit(f"ctest cannot list the tests: {listed.stderr or listed.stdout}")
    names, others = collections.defaultdict(list), []
    for test in json.loads(listed.stdout)["tests"]:
        if "command" not in test:
            others.append((test["name"], ["false"]))  # not built
            continue
        program, *words = test["command"]
        chosen = [word for word in words if word.startswith(FILTER)]
        if chosen:
            names[program].append(chosen[0].removeprefix(FILTER))
        else:
            others.append((test["name"], test["command"]))
    shares = []
    for program, all_names in names.items():
        count = -(-len(all_names) // SHARE)
        shares += [(program, all_names[first::count]) for first in range(count)]
    return shares, others


@contextlib.contextmanager
def started(running: set[subprocess.Popen], command: list[str]):
    """A process whose group is its own, in `running` until it has ended."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                               start_new_session=True)
    running.add(process)
    try:
        yield process
    finally:
        running.discard(process)


def run_program(running: set[subprocess.Popen], name: str, command: list[str]) -> list[Result]:
    with started(running, command) as process:
        try:
            output, why = process.communicate(timeout=SILENCE)[0], ""
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            output, why = process.communicate()[0], f"{name} did not end in {SILENCE} s\n"
    return [Result(name, "failed" if process.returncode else "passed", output.decode(errors="replace") + why)]


def run_share(running: set[subprocess.Popen], program: str, names: list[str]) -> list[Result]:
    results, left = [], list(names)
    while left:
        ended = run_process(running, program, left)
        reached = {result.name for result in ended.results}
        results += ended.results
        if not reached:
            return results + [Result(name, "failed", f"{program} {ended.why or 'did not run it'}\n") for name in left]
        left = [name for name in left if name not in reached]
    return results


def run_process(running: set[subprocess.Popen], program: str, names: list[str]) -> Ended:
    """Runs these tests in one process. The test during which it ended counts as failed."""
    results, test, said = [], None, []
    silent = False
    with started(running, [program, FILTER + ":".join(names), "--gtest_color=no"]) as process:
        for line in lines_of(process):
            if line is None:
                silent = True
                os.killpg(process.pid, signal.SIGKILL)
                break
            begin, end = BEGIN.match(line), END.match(line)
            if begin:
                test, said = begin[1], []
            said.append(line)
            if end and test == end[2]:
                results.append(Result(test, OUTCOME[end[1]], "".join(said)))
                test = None
        status = process.wait()
    why = f"said nothing for {SILENCE} s" if silent else f"ended with status {status}" if status not in (0, 1) else ""
    if test:
        results.append(Result(test, "failed", "".join(said) + f"{program} {why or 'ended'} in {test}\n"))
    elif status and not any(result.outcome == "failed" for result in results) and results:
        results[-1] = Result(results[-1].name, "failed", "".join(said) + f"{program} {why or 'failed'} after its tests\n")
    return Ended(results, why)


def lines_of(process):
    """The lines that a process prints; None, and no more, after a silence that is too long."""
    with selectors.DefaultSelector() as ready:
        ready.register(process.stdout, selectors.EVENT_READ)
        rest = b""
        while True:
            if not ready.select(SILENCE):
                yield None
                return
            block = os.read(process.stdout.fileno(), 1 << 16)
            if not block:
                break
            *whole, rest = (rest + block).split(b"\n")
            for line in whole:
                yield line.decode(errors="replace") + "\n"
    if rest:
        yield rest.decode(errors="replace")


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__.splitlines()[0])
    sys.exit(main(sys.argv[1], int(sys.argv[2]) if len(sys.argv) == 3 else os.cpu_count() or 2))
