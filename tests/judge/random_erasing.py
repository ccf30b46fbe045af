"""timm judges random erasing: with the same random numbers it erases the same boxes, and torchvision has the same pairs.

timm's RandomErasing draws from Python's `random`; here that is dtrain's stream for each sample. torchvision's table of
AutoAugment for ImageNet is compared with the pairs in src/data/augment/policy.cpp. Both are read from the folder that
torchvision_networks.py names.
"""

import os
import pathlib
import re
import subprocess
import sys
import tempfile

import numpy as np
import torch

from _imported import write_png
from _philox import philox

sys.path.append(str(pathlib.Path(os.environ["DTRAIN"]).resolve().parents[1] / "torchvision"))
try:
    import timm.data.random_erasing as judge
    from PIL import Image
    from torchvision.transforms.autoaugment import AutoAugment, AutoAugmentPolicy
except ImportError as missing:
    print(f"{missing}: see the head of torchvision_networks.py")
    sys.exit(77)

DTRAIN, SOURCE = os.environ["DTRAIN"], pathlib.Path(__file__).resolve().parents[2] / "src/data/augment/policy.cpp"
ERASING = 22  # RandomUse::erasing
H, W, COUNT, COLUMNS, GAP, SEED, EPOCH = 48, 36, 200, 20, 2, 5, 3


class Stream:
    """RandomStream of a sample, as Python's module `random`."""

    def __init__(self, sample):
        blocks = np.arange(64, dtype=np.uint64)
        fixed = [np.full_like(blocks, value) for value in (0, EPOCH, sample)]
        words = philox([blocks, *fixed], (SEED & 0xFFFFFFFF, (SEED >> 32) ^ ERASING))
        self.words = iter(np.stack(words, axis=1).reshape(-1).tolist())

    def random(self):
        return (next(self.words) >> 8) / 2**24

    def uniform(self, low, high):
        return low + (high - low) * self.random()

    def randint(self, low, high):
        limit = high - low + 1
        while True:
            product = next(self.words) * limit
            if product & 0xFFFFFFFF >= (1 << 32) % limit:
                return low + (product >> 32)


def erased_by_timm(sample, share):
    judge.random = Stream(sample)
    picture = torch.full((3, H, W), 255.0)
    # timm leaves a picture alone where its number is above the probability, dtrain where it is not below: never equal here.
    judge.RandomErasing(probability=share, mode="const", device="cpu")(picture)
    return picture.numpy().transpose(1, 2, 0).astype(np.uint8)


def erased_by_dtrain(folder, share):
    """White pictures, whose boxes become 0."""
    (folder / "white" / "a").mkdir(parents=True, exist_ok=True)
    for number in range(COUNT):
        write_png(folder / "white" / "a" / f"{number:04}.png", np.full((H, W, 3), 255, np.uint8))
    subprocess.run([DTRAIN, "data", "pack", folder / "white", "--out", folder / "w", "--train-ratio", "1", "--force"],
                   check=True, capture_output=True)
    subprocess.run([DTRAIN, "data", "show", folder / "w.rec", "--out", folder / "sheet.png", "--count", str(COUNT), "--columns",
                    str(COLUMNS), "--seed", str(SEED), "--epoch", str(EPOCH), "--random-crop", "0", "--random-mirror", "0",
                    "--rgb-mean", "0", "--random-erasing", str(share), "--random-erasing-mode", "const"],
                   check=True, capture_output=True)
    sheet = np.asarray(Image.open(folder / "sheet.png"))
    for number in range(COUNT):
        row, column = divmod(number, COLUMNS)
        top, left = GAP + row * (H + GAP), GAP + column * (W + GAP)
        yield sheet[top:top + H, left:left + W]


def judge_boxes(share):
    erased = 0
    with tempfile.TemporaryDirectory() as folder:
        for sample, ours in enumerate(erased_by_dtrain(pathlib.Path(folder), share)):
            theirs = erased_by_timm(sample, share)
            assert np.array_equal(ours, theirs), f"sample {sample}: another box"
            erased += (theirs == 0).any()
    return erased


def judge_pairs():
    text = SOURCE.read_text()
    table = text[text.index("imagenet_pairs"):text.index("return pairs")]
    halves = re.findall(r"\{(\w+), ([\d.]+)f(?:, (\d+))?\}", table)
    ours = [(name.replace("_", ""), float(share), int(level or 0)) for name, share, level in halves]
    theirs = [(name.lower(), share, level or 0) for pair in AutoAugment(AutoAugmentPolicy.IMAGENET).policies
              for name, share, level in pair]
    assert ours == theirs, (ours, theirs)
    return len(ours) // 2


def main():
    all_of_them, some = judge_boxes(1), judge_boxes(0.25)
    assert all_of_them > 190 and 25 < some < 80, (all_of_them, some)
    print(f"{COUNT} boxes are timm's, {some} where a quarter is erased; {judge_pairs()} pairs are torchvision's")


main()
