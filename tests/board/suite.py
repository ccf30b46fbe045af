"""Runs the suites of this folder with jobs as tests/jobs makes them, and a browser that looks at them."""

import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "jobs"))

import runner  # noqa: E402  (found through the line above)
from browser import BoardWorld  # noqa: E402

sys.exit(runner.main(sys.argv[1:], HERE, BoardWorld))
