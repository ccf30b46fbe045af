"""`dtrain eval --results` gives pycocotools' twelve numbers, for boxes and masks, with crowds, ties and odd areas."""
import contextlib
import io
import json
import os
import subprocess
import tempfile
from pathlib import Path

import numpy as np
from pycocotools import mask as masks
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval

DTRAIN = os.environ["DTRAIN"]
NAMES = ["ap", "ap50", "ap75", "ap_small", "ap_medium", "ap_large", "ar1", "ar10", "ar100", "ar_small", "ar_medium",
         "ar_large"]
PICTURES = 400  # with made-up results, in sets of different kinds
rng = np.random.default_rng(22)


def box_in(h, w):
    size = np.exp(rng.uniform(np.log(4), np.log([w, h])))
    corner = rng.uniform(0, 1, 2) * (np.array([w, h]) - size)
    return [round(float(value), 2) for value in (*corner, *size)]


def ellipse(box, h, w):
    """The mask of an ellipse in the box, as corners."""
    left, top, width, height = box
    turns = np.linspace(0, 2 * np.pi, 14, endpoint=False)
    corners = np.stack([left + width / 2 * (1 + np.cos(turns)), top + height / 2 * (1 + np.sin(turns))], 1)
    return [[round(float(value), 2) for value in corners.reshape(-1)]]


def runs(polygons, h, w):
    rle = masks.merge(masks.frPyObjects(polygons, h, w))
    return {"size": [h, w], "counts": rle["counts"].decode()}


def moved(box, h, w):
    left, top, width, height = np.array(box) + rng.normal(0, 0.12, 4) * [box[2], box[3], box[2], box[3]]
    width, height = max(width, 1), max(height, 1)
    return [float(np.clip(left, 0, w - 1)), float(np.clip(top, 0, h - 1)), float(width), float(height)]


def make_up(pictures, categories, most_found, ties, with_boxes):
    ids = rng.permutation(10 * pictures)[:pictures] + 1
    truth = {"images": [], "annotations": [], "categories": [{"id": 3 * k + 2, "name": f"c{k}"} for k in range(categories)]}
    results = []
    for number in map(int, ids):
        h, w = int(rng.integers(40, 400)), int(rng.integers(40, 400))
        truth["images"].append({"id": number, "height": h, "width": w, "file_name": f"{number}.jpg"})
        for _ in range(rng.integers(0, 9)):
            box = box_in(h, w)
            crowd = int(rng.random() < 0.15)
            polygons = ellipse(box, h, w)
            area = float(masks.area(masks.merge(masks.frPyObjects(polygons, h, w))))
            category = 3 * int(rng.integers(categories)) + 2
            segmentation = polygons
            if crowd:
                segmentation = {"size": [h, w], "counts": [h * w // 3, h * w // 4, h * w - h * w // 3 - h * w // 4]}
            truth["annotations"].append({"id": len(truth["annotations"]) + 1, "image_id": number, "category_id": category,
                                         "bbox": box, "area": area, "iscrowd": crowd, "segmentation": segmentation})
            for _ in range(rng.integers(0, most_found)):
                found = moved(box, h, w)
                score = float(rng.integers(0, 8) / 8 if ties else rng.random())
                known = category if rng.random() < 0.85 else 3 * int(rng.integers(categories + 1)) + 2
                result = {"image_id": number, "category_id": known, "score": score,
                          "segmentation": runs(ellipse(found, h, w), h, w)}
                if with_boxes:
                    result["bbox"] = found
                results.append(result)
    order = rng.permutation(len(results))
    return truth, [results[i] for i in order]


def by_pycocotools(truth, results, kind):
    with contextlib.redirect_stdout(io.StringIO()):
        annotations = COCO()
        annotations.dataset = json.loads(json.dumps(truth))
        annotations.createIndex()
        evaluation = COCOeval(annotations, annotations.loadRes(json.loads(json.dumps(results))), kind)
        evaluation.evaluate()
        evaluation.accumulate()
        evaluation.summarize()
    return evaluation.stats


def by_dtrain(truth, results, folder):
    (folder / "truth.json").write_text(json.dumps(truth))
    (folder / "results.json").write_text(json.dumps(results))
    done = subprocess.run([DTRAIN, "eval", "--results", folder / "results.json", "--annotations", folder / "truth.json",
                           "--json"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


kinds = [(pictures, categories, most, ties, boxes)
         for pictures, categories, most in ((1, 1, 3), (6, 3, 4), (43, 5, 3), (60, 2, 60))
         for ties in (False, True) for boxes in (False, True)]
pictures = found = largest = 0
with tempfile.TemporaryDirectory() as name:
    while pictures < PICTURES:
        for kind in kinds:
            truth, results = make_up(*kind)
            if not results:
                continue
            answer = by_dtrain(truth, results, Path(name))
            for key, kind_of_theirs in (("boxes", "bbox"), ("masks", "segm")):
                theirs = by_pycocotools(truth, results, kind_of_theirs)
                for number, value in zip(NAMES, theirs):
                    difference = abs(answer[key][number] - value)
                    assert difference < 1e-6, (kind, key, number, answer[key][number], value)
                    largest = max(largest, difference)
            pictures += kind[0]
            found += len(results)
print(f"{found} results in {pictures} pictures agree, the largest difference is {largest:.1e}")
