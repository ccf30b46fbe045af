"""Runs the suites of a folder, this one or DTRAIN_HOSTS_SUITES, with the runner of tests/jobs: each test has machines of
its own."""

import os
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "jobs"))

import runner  # noqa: E402
from cluster import Cluster  # noqa: E402

if __name__ == "__main__":
    sys.exit(runner.main(sys.argv[1:], pathlib.Path(os.environ.get("DTRAIN_HOSTS_SUITES", HERE)), Cluster))
