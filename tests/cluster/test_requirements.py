"""The 25 requirements of clusters have tests with their numbers, test_rNN_..., whose names state the requirement."""

import pathlib
import re


def test_every_requirement_has_a_test():
    text = "".join(path.read_text() for path in pathlib.Path(__file__).parent.glob("test_*.py"))
    assert sorted({int(number) for number in re.findall(r"^def test_r(\d\d)_", text, re.MULTILINE)}) == list(range(1, 26))
