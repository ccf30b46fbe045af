"""What the judges of dtrain's files share: the cases that dtrain_dump_checkpoint writes, and the count of those that held."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import numpy
from safetensors.numpy import load_file

TOOL = pathlib.Path(os.environ["DTRAIN"]).parent / "tests" / "dtrain_dump_checkpoint"


def dump(*arguments):
    result = subprocess.run([TOOL, *map(str, arguments)], capture_output=True, text=True, check=False)
    if result.returncode != 0:
        raise RuntimeError(result.stderr.strip())
    return result.stdout


class Case:
    """The files of one model in a folder."""

    def __init__(self, folder, name):
        self.name = name
        self.prefix = pathlib.Path(folder) / name
        dump(folder, name)
        description = json.loads(self.path(".case.json").read_text())
        self.images = numpy.fromfile(self.path(".images.f32"), "<f4").reshape(description["images"])
        self.logits = numpy.fromfile(self.path(".logits.f32"), "<f4").reshape(description["logits"])
        self.has_symbol = description["mxnet"]
        self.fixed_gammas = description["fixed_gammas"]
        self.manifest = json.loads(self.path("-0001.json").read_text())

    def path(self, ending):
        return pathlib.Path(f"{self.prefix}{ending}")

    def tensors(self):
        """Of the network, by the checkpoint's names."""
        stored = load_file(self.path("-0001.safetensors"))
        return {name: tensor for name, tensor in stored.items() if not name.startswith("optimizer/")}


def must(condition, why):
    if not condition:
        raise AssertionError(why)


def must_equal(found, expected, what):
    """Bit for bit: NaN equals itself, 0 is not -0."""
    must(found.dtype == expected.dtype and found.shape == expected.shape, f"{what}: {found.dtype}{found.shape}")
    must(found.tobytes() == expected.tobytes(), f"{what}: other bits")


def must_be_near(found, expected, what, tolerance=1e-4):
    must(found.shape == expected.shape, f"{what}: shape {found.shape}, not {expected.shape}")
    difference = numpy.abs(found - expected).max() / numpy.abs(expected).max()
    must(difference <= tolerance, f"{what}: off by {difference:.2e} of the largest")  # false for NaN too
    return f"{what} within {difference:.1e}"


def judge_all(judge, more_names=()):
    """Calls judge(case), which returns a remark or raises, for each case; ends the program."""
    passed = failed = 0
    for name in [*dump("--list").split(), *more_names]:
        with tempfile.TemporaryDirectory() as folder:
            try:
                remark = judge(Case(folder, name))
                passed += 1
                print(f"ok   {name} {remark}", flush=True)
            except Exception as error:  # whatever the real library throws is a verdict
                failed += 1
                print(f"FAIL {name}: {type(error).__name__}: {error}", flush=True)
    end(passed, failed)


def end(passed, failed):
    print(f"{passed} passed, {failed} failed")
    sys.exit(1 if failed or not passed else 0)
