"""Times `dtrain eval --results` against pycocotools on made-up results: tests/bench/coco_ap.py [IMAGES] [--masks]

The results are as dense as a detector's on COCO val2017: 7 objects and 100 results an image. It needs pycocotools
(tests/requirements.txt) and the program in $DTRAIN. Both sides read the same two JSON files from the page cache.
"""
import contextlib
import io
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from pycocotools import mask as masks
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval

OBJECTS, FOUND, CATEGORIES = 7, 100, 80
SIDES = np.array([640, 480])


def boxes_of(rng, count):
    sizes = np.exp(rng.uniform(np.log(8), np.log(SIDES), (count, 2)))
    return np.concatenate([rng.uniform(0, 1, (count, 2)) * (SIDES - sizes), sizes], 1).round(2)


def outline(box):
    turns = np.linspace(0, 2 * np.pi, 20, endpoint=False)
    corners = np.stack([box[0] + box[2] / 2 * (1 + np.cos(turns)), box[1] + box[3] / 2 * (1 + np.sin(turns))], 1)
    return [corners.round(2).reshape(-1).tolist()]


def make_up(images, with_masks):
    rng = np.random.default_rng(1)
    truth = {"images": [{"id": i, "width": 640, "height": 480, "file_name": f"{i}.jpg"} for i in range(1, images + 1)],
             "annotations": [], "categories": [{"id": k, "name": str(k)} for k in range(1, CATEGORIES + 1)]}
    results = []
    for image in range(1, images + 1):
        true = boxes_of(rng, OBJECTS)
        kinds = rng.integers(1, CATEGORIES + 1, OBJECTS)
        for box, kind in zip(true, kinds):
            truth["annotations"].append({"id": len(truth["annotations"]) + 1, "image_id": image, "category_id": int(kind),
                                         "bbox": box.tolist(), "area": float(box[2] * box[3] * 0.7), "iscrowd": 0,
                                         "segmentation": outline(box)})
        chosen = rng.integers(0, OBJECTS, FOUND)
        found = np.clip(true[chosen] + rng.normal(0, 6, (FOUND, 4)), 1, 640).round(2)
        found_kinds = np.where(rng.random(FOUND) < 0.6, kinds[chosen], rng.integers(1, CATEGORIES + 1, FOUND))
        for box, kind, score in zip(found, found_kinds, rng.random(FOUND)):
            result = {"image_id": image, "category_id": int(kind), "bbox": box.tolist(), "score": round(float(score), 5)}
            if with_masks:
                rle = masks.merge(masks.frPyObjects(outline(box), 480, 640))
                result["segmentation"] = {"size": [480, 640], "counts": rle["counts"].decode()}
            results.append(result)
    return truth, results


def by_pycocotools(truth, results, kinds):
    start = time.monotonic()
    numbers = {}
    with contextlib.redirect_stdout(io.StringIO()):
        annotations = COCO(str(truth))
        for kind in kinds:
            evaluation = COCOeval(annotations, annotations.loadRes(str(results)), kind)
            evaluation.evaluate()
            evaluation.accumulate()
            evaluation.summarize()
            numbers[kind] = float(evaluation.stats[0])
    return time.monotonic() - start, numbers


def by_dtrain(truth, results):
    start = time.monotonic()
    done = subprocess.run([os.environ["DTRAIN"], "eval", "--results", results, "--annotations", truth, "--json"],
                          capture_output=True, text=True, check=True)
    taken = time.monotonic() - start
    report = json.loads(done.stdout)
    return taken, {theirs: report[ours]["ap"] for ours, theirs in (("boxes", "bbox"), ("masks", "segm")) if report[ours]}


def main():
    images = int(next((word for word in sys.argv[1:] if word.isdigit()), 5000))
    with_masks = "--masks" in sys.argv
    with tempfile.TemporaryDirectory() as folder:
        truth, results = Path(folder) / "truth.json", Path(folder) / "results.json"
        for path, content in zip((truth, results), make_up(images, with_masks)):
            path.write_text(json.dumps(content))
        ours, our_numbers = by_dtrain(truth, results)
        theirs, their_numbers = by_pycocotools(truth, results, ["bbox", "segm"] if with_masks else ["bbox"])
    print(f"{images} images, {images * FOUND} results{' with masks' if with_masks else ''}: dtrain {ours:.2f} s, "
          f"pycocotools {theirs:.2f} s, {theirs / ours:.1f} times as fast")
    print(f"dtrain {our_numbers}, pycocotools {their_numbers}")


main()
