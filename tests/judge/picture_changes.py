"""Pillow judges the operations of AutoAugment, RandAugment and TrivialAugment: every byte is the same.

Each operation is applied as torchvision's transforms apply it to a picture of Pillow, with all strengths from none to
the greatest, to noise, to greys, to small pictures and to photographs.
"""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
from PIL import Image, ImageEnhance, ImageOps

TOOL = Path(__file__).resolve().parents[2] / "build/release/tests/dtrain_change_picture"
FILL = 127
STRENGTHS = np.linspace(0, 1, 11)
BOTH_WAYS = [sign * strength for sign in (1, -1) for strength in STRENGTHS]


def moved(picture, matrix):
    fill = (FILL,) * len(picture.getbands())
    return picture.transform(picture.size, Image.Transform.AFFINE, matrix, Image.Resampling.NEAREST,
                             fillcolor=fill if len(fill) > 1 else FILL)


def enhanced(kind):
    return lambda picture, amount: kind(picture).enhance(1 + amount)


def rotated(picture, degrees):
    fill = (FILL,) * len(picture.getbands())
    return picture.rotate(degrees, Image.Resampling.NEAREST, fillcolor=fill if len(fill) > 1 else FILL)


# In the order of data::Operation: what Pillow does, and the amounts to try.
OPERATIONS = (
    (lambda picture, _: picture, [0]),
    (lambda picture, by: moved(picture, (1, by, 0, 0, 1, 0)), [0.99 * s for s in BOTH_WAYS]),
    (lambda picture, by: moved(picture, (1, 0, 0, by, 1, 0)), [0.99 * s for s in BOTH_WAYS]),
    (lambda picture, by: moved(picture, (1, 0, -by, 0, 1, 0)), [int(32 * s) for s in BOTH_WAYS]),
    (lambda picture, by: moved(picture, (1, 0, 0, 0, 1, -by)), [int(32 * s) for s in BOTH_WAYS]),
    (rotated, [135 * s for s in BOTH_WAYS]),
    (enhanced(ImageEnhance.Brightness), [0.99 * s for s in BOTH_WAYS]),
    (enhanced(ImageEnhance.Color), [0.99 * s for s in BOTH_WAYS]),
    (enhanced(ImageEnhance.Contrast), [0.99 * s for s in BOTH_WAYS]),
    (enhanced(ImageEnhance.Sharpness), [0.99 * s for s in BOTH_WAYS]),
    (lambda picture, bits: ImageOps.posterize(picture, bits), range(1, 9)),
    (lambda picture, threshold: ImageOps.solarize(picture, threshold), [255 * s for s in STRENGTHS]),
    (lambda picture, _: ImageOps.autocontrast(picture), [0]),
    (lambda picture, _: ImageOps.equalize(picture), [0]),
    (lambda picture, _: ImageOps.invert(picture), [0]),
)


def changed_by_dtrain(pixels):
    """One array for each operation and amount."""
    planes = pixels.transpose(2, 0, 1)
    arguments = [str(n) for n in (*planes.shape, FILL)]
    for number, (_, amounts) in enumerate(OPERATIONS):
        for amount in amounts:
            arguments += [str(number), repr(float(amount))]
    done = subprocess.run([TOOL, *arguments], input=planes.tobytes(), capture_output=True, check=True, timeout=300)
    return np.frombuffer(done.stdout, np.uint8).reshape(-1, *planes.shape).transpose(0, 2, 3, 1)


def as_pillow(pixels):
    return Image.fromarray(pixels if pixels.shape[2] == 3 else pixels[:, :, 0])


def compare(name, pixels):
    picture, ours = as_pillow(pixels), iter(changed_by_dtrain(pixels))
    compared = 0
    for number, (operation, amounts) in enumerate(OPERATIONS):
        for amount in amounts:
            theirs = np.asarray(operation(picture, amount)).reshape(pixels.shape)
            different = np.count_nonzero(next(ours) != theirs)
            assert different == 0, f"{name}: operation {number} by {amount}: {different} of {pixels.size} bytes differ"
            compared += 1
    assert next(ours, None) is None
    return compared


def pictures():
    random = np.random.default_rng(1)
    yield "noise", random.integers(0, 256, (40, 53, 3), np.uint8)
    yield "dark noise", random.integers(20, 90, (33, 32, 3), np.uint8)
    yield "greys", random.integers(0, 256, (28, 28, 1), np.uint8)
    yield "one colour", np.full((17, 9, 3), 200, np.uint8)
    yield "two colours", np.where(random.random((32, 32, 3)) < 0.1, 3, 250).astype(np.uint8)
    yield "one pixel", random.integers(0, 256, (1, 1, 3), np.uint8)
    yield "one row", random.integers(0, 256, (1, 70, 3), np.uint8)
    data = os.environ.get("DTRAIN_TEST_DATA")
    for photo in sorted((Path(data) / "coco_ccby/val").glob("*.jpg"))[:3] if data else []:
        yield photo.name, np.asarray(Image.open(photo).convert("RGB").resize((224, 160)))


def main():
    compared = sum(compare(name, pixels) for name, pixels in pictures())
    assert compared >= 7 * 190, compared
    print(f"{compared} changed pictures, all bytes the same")


if __name__ == "__main__":
    if not TOOL.exists():
        print(f"{TOOL} is not built")
        sys.exit(77)
    main()
