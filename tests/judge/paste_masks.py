"""A mask of few points fills its box as torchvision's paste_masks_in_image() lets it.

torchvision is read from the folder build/torchvision where Python does not have it, see torchvision_networks.py.
"""

import json
import os
import pathlib
import subprocess
import sys
import warnings

import numpy as np
import torch

DTRAIN = pathlib.Path(os.environ["DTRAIN"]).resolve()
PROGRAM = DTRAIN.parent / "tests/dtrain_paste_masks"
sys.path.append(str(DTRAIN.parents[1] / "torchvision"))
warnings.filterwarnings("ignore")
try:
    from torchvision.models.detection.roi_heads import paste_masks_in_image
except ImportError:
    print("no torchvision: see the head of torchvision_networks.py")
    sys.exit(77)

LIMIT = 0.5
rng = np.random.default_rng(9)


def make_case():
    h, w = int(rng.integers(1, 120)), int(rng.integers(1, 120))
    side = int(rng.choice([1, 4, 14, 28]))
    corner, size = rng.uniform(-0.3, 0.9, 2) * [w, h], np.exp(rng.uniform(np.log(0.5), np.log([1.5 * w, 1.5 * h])))
    box = np.float32([*corner, *(corner + size)])
    if rng.random() < 0.3:
        box = np.round(box * 2) / 2
    coarse = torch.tensor(rng.normal(0, 3, (1, 1, 5, 5)), dtype=torch.float32)
    likely = torch.sigmoid(torch.nn.functional.interpolate(coarse, size=(side, side), mode="bicubic"))[0, 0]
    if rng.random() < 0.1:
        likely = torch.ones(side, side)
    return {"size": [h, w], "side": side, "box": [float(edge) for edge in box],
            "likely": [float(value) for value in likely.reshape(-1)]}


def by_torchvision(case):
    """How likely each pixel is; torchvision fails for a box that lies outside, which shows nothing."""
    h, w = case["size"]
    likely = torch.tensor(case["likely"], dtype=torch.float32).reshape(1, 1, case["side"], case["side"])
    try:
        return paste_masks_in_image(likely, torch.tensor([case["box"]], dtype=torch.float32), (h, w))[0, 0].numpy()
    except RuntimeError:
        return None


cases = [make_case() for _ in range(4000)]
done = subprocess.run([PROGRAM], input="\n".join(map(json.dumps, cases)) + "\n", capture_output=True, text=True)
assert done.returncode == 0, done.stderr
answers = [json.loads(line) for line in done.stdout.splitlines()]
assert len(answers) == len(cases)
pixels = inside = outside = close = 0
for case, runs in zip(cases, answers):
    h, w = case["size"]
    ours = np.repeat(np.arange(len(runs)) % 2 == 1, runs).reshape(w, h).T
    theirs = by_torchvision(case)
    if theirs is None:
        outside += 1
        assert not ours.any(), case
        continue
    pixels, inside = pixels + ours.size, inside + int(ours.sum())
    differ = ours != (theirs > LIMIT)
    close += int(differ.sum())
    # A sum whose last bit is another falls on the other side of the limit at most by that bit.
    assert (np.abs(theirs[differ] - LIMIT) < 1e-6).all(), (case, theirs[differ])
assert inside > pixels / 50 and outside < len(cases) / 5 and close < inside / 1000, (pixels, inside, outside, close)
print(f"{len(cases)} masks agree in {pixels} pixels, {inside} of them inside; {close} lie on the limit itself")
