"""What the network is shown of a photograph is what Pillow and MXNet would cut out of it, to the pixel."""
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from _mxnet import mxnet as mx
import numpy as np
from PIL import Image

DTRAIN = os.environ["DTRAIN"]
SIDE, EDGE, GAP = 224, 256, 2


def shown(rec, position, sheet):
    """One sample as `data show` draws it, behind the frame of the sheet."""
    subprocess.run([DTRAIN, "data", "show", rec, "--out", sheet, "--first", str(position), "--count", "1", "--random-crop", "0",
                    "--random-mirror", "0", "--resize", str(EDGE), "--image-shape", f"3,{SIDE},{SIDE}"],
                   check=True, capture_output=True)
    return np.asarray(Image.open(sheet)).astype(int)[GAP:GAP + SIDE, GAP:GAP + SIDE]


def by_pillow(photo, shift=0):
    picture = Image.open(photo).convert("RGB")
    width, height = (EDGE * side // min(picture.size) for side in picture.size)
    left, top = (width - SIDE) // 2 + shift, (height - SIDE) // 2
    resized = picture.resize((width, height), Image.Resampling.BILINEAR)
    return np.asarray(resized.crop((left, top, left + SIDE, top + SIDE))).astype(int)


def by_mxnet(photo, shift=0):
    resized = mx.image.resize_short(mx.image.imread(str(photo)), EDGE, interp=1)
    height, width = resized.shape[:2]
    left, top = (width - SIDE) // 2 + shift, (height - SIDE) // 2
    return mx.image.fixed_crop(resized, left, top, SIDE, SIDE).asnumpy().astype(int)


def difference(a, b):
    return np.abs(a - b).mean()


def main():
    data = os.environ.get("DTRAIN_TEST_DATA")
    if not data:
        print("set DTRAIN_TEST_DATA to the folder that holds coco_ccby/")
        sys.exit(77)
    photos = sorted((Path(data) / "coco_ccby/val").glob("*.jpg"))
    with tempfile.TemporaryDirectory() as folder:
        rec = Path(folder) / "p.rec"
        subprocess.run([DTRAIN, "data", "pack", Path(data) / "coco_ccby/val", "--out", Path(folder) / "p"], check=True,
                       capture_output=True)
        for position, photo in enumerate(photos):
            ours = shown(rec, position, Path(folder) / "sheet.png")
            # MXNet looks at the nearest pixels, as dtrain does down to a half; Pillow takes the mean of all.
            for judge, share in ((by_pillow, 0.6), (by_mxnet, 0.1 if min(Image.open(photo).size) <= 2 * EDGE else 0.6)):
                exact, beside = difference(ours, judge(photo)), min(difference(ours, judge(photo, shift)) for shift in (-1, 1))
                assert exact < share * beside, (photo.name, judge.__name__, exact, beside)


main()
