"""MXNet's detection iterators read the boxes of records with objects, and dtrain reads records of boxes that MXNet writes."""
import json
import os
import subprocess
import tempfile
from pathlib import Path

from _mxnet import mxnet as mx
import numpy as np
from PIL import Image

DTRAIN = os.environ["DTRAIN"]
SIZES = [(60, 90), (48, 48), (70, 50), (64, 80)]  # height, width
BOXES = {1: [(7, [9, 6, 30, 24]), (3, [0, 0, 90, 60])], 2: [(3, [12, 12, 6, 24])], 4: [(7, [40, 32, 40, 32])]}


def dtrain(*arguments):
    done = subprocess.run([DTRAIN, *map(str, arguments)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def write_coco(folder):
    """Four pictures; the third shows nothing, the second also a group, which is no box for MXNet."""
    rng = np.random.default_rng(3)
    (folder / "photos").mkdir()
    images, annotations = [], []
    for number, (h, w) in enumerate(SIZES, 1):
        pixels = np.kron(rng.integers(0, 256, (h // 2, w // 2, 3)), np.ones((2, 2, 1))).astype(np.uint8)
        Image.fromarray(pixels).save(folder / f"photos/{number}.jpg", quality=95)
        images.append({"id": number, "file_name": f"{number}.jpg", "height": pixels.shape[0], "width": pixels.shape[1]})
        for category, (x, y, width, height) in BOXES.get(number, []):
            annotations.append({"id": len(annotations) + 1, "image_id": number, "category_id": category,
                                "bbox": [x, y, width, height], "area": width * height, "iscrowd": 0,
                                "segmentation": [[x, y, x + width, y, x + width, y + height, x, y + height]]})
    annotations.append({"id": 99, "image_id": 2, "category_id": 7, "bbox": [0, 0, 48, 48], "area": 2304, "iscrowd": 1,
                        "segmentation": {"size": [48, 48], "counts": [0, 2304]}})
    (folder / "coco.json").write_text(json.dumps({
        "images": images, "annotations": annotations,
        "categories": [{"id": 3, "name": "cat"}, {"id": 7, "name": "dog"}]}))


def expected(number):
    """Rows of class and sides, the sides as shares."""
    h, w = SIZES[number - 1]
    rows = [[float(category == 7), x / w, y / h, (x + width) / w, (y + height) / h]
            for category, (x, y, width, height) in BOXES.get(number, [])]
    return np.array(rows or [[-1, 0, 0, 1, 1]], np.float32)


def mxnet_reads_boxes(folder):
    write_coco(folder)
    dtrain("data", "pack", folder / "photos", "--coco", folder / "coco.json", "--out", folder / "d")
    dtrain("data", "verify", folder / "d.rec")
    batch = mx.io.ImageDetRecordIter(path_imgrec=str(folder / "d.rec"), data_shape=(3, 32, 32), batch_size=4, shuffle=False,
                                     label_pad_width=40, label_pad_value=-1).next()
    labels = batch.label[0].asnumpy()
    assert batch.data[0].shape == (4, 3, 32, 32)
    for number, row in enumerate(labels, 1):
        label = row[4:4 + int(row[3])]  # behind channels, rows, columns and the length
        header, width = int(label[0]), int(label[1])
        assert (header, width) == (3, 5), label
        assert np.allclose(label[header:].reshape(-1, width), expected(number)), (number, label)
    # MXNet's iterator in Python passes over pictures without a box.
    python = mx.image.ImageDetIter(batch_size=3, data_shape=(3, 32, 32), path_imgrec=str(folder / "d.rec"),
                                   path_imgidx=str(folder / "d.idx"), shuffle=False)
    for number, rows in zip((1, 2, 4), python.next().label[0].asnumpy()):
        rows = rows[:len(expected(number))]
        assert np.allclose(rows, expected(number), atol=1e-6), (number, rows)


def dtrain_reads_boxes(folder):
    """As im2rec packs a list with boxes: headers of other lengths, and more numbers behind each box."""
    rec = folder / "mxnet.rec"
    writer = mx.recordio.MXIndexedRecordIO(str(rec.with_suffix(".idx")), str(rec), "w")
    picture = (folder / "photos/1.jpg").read_bytes()
    for key, label in enumerate([[2, 5, 1, 0.1, 0.2, 0.5, 0.6], [4, 6, 90, 60, 0, 0, 0, 1, 1, 1, 1, 0.5, 0.5, 0.75, 1, 0]]):
        header = mx.recordio.IRHeader(0, np.array(label, np.float32), key, 0)
        writer.write_idx(key, mx.recordio.pack(header, picture))
    writer.close()
    dtrain("data", "verify", rec)
    objects = json.loads(dtrain("data", "ls", rec, "--json"))["objects"]
    assert objects["boxes"] == 3 and objects["classes"] == {"0": 1, "1": 2}, objects
    shown = json.loads(dtrain("data", "show", rec, "--out", folder / "sheet.png", "--random-mirror", 0, "--json"))
    boxes = [each["box"] for image in shown["images"] for each in image["objects"]]
    assert np.allclose(boxes, [[9, 12, 45, 36], [0, 0, 90, 60], [45, 30, 67.5, 60]], atol=1e-3), boxes


with tempfile.TemporaryDirectory() as name:
    mxnet_reads_boxes(Path(name))
    dtrain_reads_boxes(Path(name))
