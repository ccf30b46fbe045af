"""Masks are those of pycocotools: polygons as pixels, their runs as text, areas, boxes and overlaps."""
import json
import os
import subprocess
from pathlib import Path

import numpy as np
from pycocotools import mask as masks

PROGRAM = Path(os.environ["DTRAIN"]).parent / "tests/dtrain_coco_masks"
rng = np.random.default_rng(4)


def polygon(h, w):
    """Corners inside and outside of the picture, some of them twice, some on whole and half pixels."""
    corners = rng.uniform(-0.3, 1.3, (int(rng.integers(3, 12)), 2)) * [w, h]
    if rng.random() < 0.4:
        corners = np.round(corners * 2) / 2
    if rng.random() < 0.3:
        corners = np.repeat(corners, 2, axis=0)
    if rng.random() < 0.2:
        corners = corners / 20 + rng.uniform(0, 1, 2) * [w, h]  # tiny
    return [round(float(value), 2) for value in corners.reshape(-1)]


def segmentation(h, w):
    kind = rng.random()
    if kind < 0.7:
        return [polygon(h, w) for _ in range(rng.integers(1, 4))]
    pixels = np.asfortranarray(rng.random((h, w)) < rng.choice([0.02, 0.5, 0.98]), dtype=np.uint8)
    rle = masks.encode(pixels)
    if kind < 0.85:
        return {"size": [h, w], "counts": rle["counts"].decode()}
    columns = pixels.reshape(-1, order="F")
    edges = np.flatnonzero(np.diff(columns)) + 1
    runs = np.diff(np.concatenate([[0], edges, [columns.size]]))
    return {"size": [h, w], "counts": ([0] if columns[0] else []) + [int(run) for run in runs]}


def by_pycocotools(segmentation, h, w):
    if isinstance(segmentation, list):
        return masks.merge(masks.frPyObjects(segmentation, h, w))
    if isinstance(segmentation["counts"], list):
        return masks.frPyObjects(segmentation, h, w)
    return {"size": [h, w], "counts": segmentation["counts"].encode()}


cases = []
for _ in range(3000):
    h, w = int(rng.integers(1, 80)), int(rng.integers(1, 80))
    cases.append({"size": [h, w], "first": segmentation(h, w), "second": segmentation(h, w)})
done = subprocess.run([PROGRAM], input="\n".join(map(json.dumps, cases)) + "\n", capture_output=True, text=True)
assert done.returncode == 0, done.stderr
answers = [json.loads(line) for line in done.stdout.splitlines()]
assert len(answers) == len(cases)
for case, answer in zip(cases, answers):
    h, w = case["size"]
    first, second = (by_pycocotools(case[name], h, w) for name in ("first", "second"))
    assert answer["counts"].encode() == first["counts"], (case, first["counts"])
    assert answer["area"] == masks.area(first), case
    assert answer["box"] == list(masks.toBbox(first)), case
    boxes = [masks.toBbox(each) for each in (first, second)]
    for name, a, b in (("", first, second), ("box_", boxes[0], boxes[1])):
        one = [a] if name == "" else np.array([a])
        two = [b] if name == "" else np.array([b])
        for crowd in (0, 1):
            expected = float(masks.iou(one, two, [crowd])[0][0])
            key = ("crowd_" if crowd else "") + name + "overlap"
            assert abs(answer[key] - expected) < 1e-12, (case, key, answer[key], expected)
print(f"{len(cases)} pairs of masks agree")
