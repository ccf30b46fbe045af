"""A detector's input is the picture as Pillow resizes it, in the upper left corner, with its boxes where they belong."""
import json
import os
import subprocess
import tempfile
from pathlib import Path

import numpy as np
from PIL import Image

DTRAIN = os.environ["DTRAIN"]
GAP = 2
# Height and width of the picture, of the input, and of the picture in it: enlarged, and reduced by 3 and 2.5, where dtrain
# looks at all pixels as Pillow does. Between 1 and 2 it takes the two nearest ones, as OpenCV does.
CASES = [((40, 60), (100, 130), (87, 130)), ((90, 48), (150, 150), (150, 80)), ((240, 180), (80, 70), (80, 60)),
         ((150, 250), (64, 100), (60, 100))]


def dtrain(*arguments):
    done = subprocess.run([DTRAIN, *map(str, arguments)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def pack(folder, pixels, boxes):
    (folder / "photos").mkdir(exist_ok=True)
    Image.fromarray(pixels).save(folder / "photos/a.png")
    h, w = pixels.shape[:2]
    annotations = [{"id": i + 1, "image_id": 1, "category_id": 1, "bbox": box} for i, box in enumerate(boxes)]
    (folder / "coco.json").write_text(json.dumps({
        "images": [{"id": 1, "file_name": "a.png", "height": h, "width": w}], "annotations": annotations,
        "categories": [{"id": 1, "name": "thing"}]}))
    dtrain("data", "pack", folder / "photos", "--coco", folder / "coco.json", "--encoding", "png", "--force", "--out",
           folder / "p")


def show(folder, room, mirror=0):
    shown = json.loads(dtrain("data", "show", folder / "p.rec", "--image-shape", f"3,{room[0]},{room[1]}", "--random-mirror",
                              mirror, "--rgb-mean", "0,0,0", "--out", folder / "sheet.png", "--json"))
    sheet = np.asarray(Image.open(folder / "sheet.png")).astype(int)
    return sheet[GAP:GAP + room[0], GAP:GAP + room[1]], [each["box"] for each in shown["images"][0]["objects"]]


def judge_picture(folder, size, room, fills, rng):
    small = rng.integers(0, 256, (size[0] // 6 + 2, size[1] // 6 + 2, 3), np.uint8)
    pixels = np.asarray(Image.fromarray(small).resize(size[::-1], Image.Resampling.BICUBIC))
    pack(folder, pixels, [])
    shown, boxes = show(folder, room)
    assert boxes == []
    expected = np.asarray(Image.fromarray(pixels).resize(fills[::-1], Image.Resampling.BILINEAR)).astype(int)
    difference = np.abs(shown[:fills[0], :fills[1]] - expected)
    assert difference.max() <= 2 and difference.mean() < 0.6, (size, difference.max(), difference.mean())
    assert not shown[fills[0]:].any() and not shown[:, fills[1]:].any(), size
    box = [size[1] / 4, size[0] / 5, size[1] / 3, size[0] / 2]
    pack(folder, pixels, [box])
    down, across = fills[0] / size[0], fills[1] / size[1]
    left, top, right, bottom = box[0] * across, box[1] * down, (box[0] + box[2]) * across, (box[1] + box[3]) * down
    assert np.allclose(show(folder, room)[1], [[left, top, right, bottom]], atol=1e-3)


with tempfile.TemporaryDirectory() as name:
    generator = np.random.default_rng(8)
    for case in CASES:
        judge_picture(Path(name), *case, generator)
