"""Runs the functions test_* of a folder's suites test_*.py; those marked @slow with --slow, the others without it.

A test's docstring is what it claims; it fails by an exception. Each gets a scratch folder; its processes must be gone 15 s
after it ended, which is a test of its own.
"""

import importlib
import inspect
import os
import pathlib
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback

from world import World

HERE = pathlib.Path(__file__).resolve().parent


class Skip(Exception):
    """What a test needs is not here."""


def slow(test):
    test.slow = True
    return test


def chosen_tests(folder: pathlib.Path, words: list[str], slow_ones: bool):
    """(name, function) of the tests of these suites, or SUITE.TEST; none named: all."""
    for suite, module in suites(folder, list(dict.fromkeys(word.split(".")[0] for word in words))):
        tests = {word.split(".")[1] for word in words if word.startswith(f"{suite}.")}
        for name, test in inspect.getmembers(module, inspect.isfunction):
            short = name.removeprefix("test_")
            if name.startswith("test_") and (short in tests or not tests and getattr(test, "slow", False) == slow_ones):
                yield f"{suite} {short}", test


def suites(folder: pathlib.Path, names: list[str]):
    known = sorted(path.stem.removeprefix("test_") for path in folder.glob("test_*.py"))
    unknown = set(names) - set(known)
    if unknown:
        sys.exit(f"unknown suite {', '.join(sorted(unknown))}; known: {', '.join(known)}")
    for name in names or known:
        yield name, importlib.import_module(f"test_{name}")


def seconds_of_children() -> float:
    """What the processes computed that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def run_test(name: str, test, data: pathlib.Path, world_type) -> str:
    scratch = pathlib.Path(tempfile.mkdtemp(prefix="dtrain-jobs-"))
    world = world_type(scratch, data)
    start, computed = time.monotonic(), seconds_of_children()
    try:
        test(world)
        world.expect_no_process_left()
        print(f"ok {name} ({time.monotonic() - start:.1f} s, {seconds_of_children() - computed:.1f} s of CPU)", flush=True)
        return "passed"
    except Skip as why:
        print(f"SKIP {name}: {why}", flush=True)
        return "skipped"
    except Exception as error:  # a test fails by any exception
        print(f"FAIL {name}: {inspect.getdoc(test)}\n{traceback.format_exc(limit=-3)}{world.last_words()}", flush=True)
        keep = os.environ.get("DTRAIN_KEEP_FAILED")
        if keep:
            print(f"    kept in {shutil.copytree(scratch, pathlib.Path(keep) / name.replace(' ', '-'), dirs_exist_ok=True)}")
        del error
        return "failed"
    finally:
        world.end()
        shutil.rmtree(scratch, ignore_errors=True)


def main(arguments: list[str], folder: pathlib.Path = HERE, world_type=World, with_data: bool = True) -> int:
    """The exit status. `folder` holds the suites; each test gets a world_type of its own, and `with_data` pictures."""
    # A shell ignores it for what it starts in the background, and programs inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    slow_ones = "--slow" in arguments
    sys.path.insert(0, str(folder))
    counts = {"passed": 0, "failed": 0, "skipped": 0}
    shared = pathlib.Path(tempfile.mkdtemp(prefix="dtrain-jobs-shared-"))  # what tests have in common
    data = shared / "data"
    try:
        if with_data:
            World(shared, data).prepare_data()
        for name, test in chosen_tests(folder, [word for word in arguments if word != "--slow"], slow_ones):
            counts[run_test(name, test, data, world_type)] += 1
    finally:
        shutil.rmtree(shared, ignore_errors=True)
    print(f"{counts['passed']} passed, {counts['failed']} failed, {counts['skipped']} skipped")
    return 1 if counts["failed"] else 0


if __name__ == "__main__":
    sys.modules["runner"] = sys.modules["__main__"]
    sys.exit(main(sys.argv[1:]))
