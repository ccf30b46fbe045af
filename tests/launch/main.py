"""Runs the suites of this folder with the runner of tests/jobs."""

import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "jobs"))

import runner  # noqa: E402
from launches import Launches  # noqa: E402

if __name__ == "__main__":
    sys.exit(runner.main(sys.argv[1:], HERE, Launches, with_data=False))
