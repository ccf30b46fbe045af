"""onnxruntime finds with dtrain's detectors in ONNX what `dtrain predict` finds: boxes, scores, classes and masks."""
import json
import os
import pathlib
import subprocess
import tempfile

import numpy as np
import onnx
import onnxruntime
from PIL import Image
from pycocotools import mask as coco_masks

from _cases import end, must

DTRAIN = os.environ["DTRAIN"]
ROOM = (96, 128)  # height and width of the networks' input, which each picture fills in one direction
SIZES = [(96, 128), (96, 90), (70, 128), (96, 128), (96, 64), (50, 128), (96, 128), (96, 120)]
NAMES = ["disk", "square", "bar"]
COLOURS = [(220, 40, 40), (40, 200, 60), (60, 80, 230)]
MEAN, STD = (123.675, 116.28, 103.53), (58.395, 57.12, 57.375)
BOX, SCORE = 1e-3 * max(ROOM), 1e-4
MASK_LIMIT, MASK = 0.5, 1e-3
SIZE = ["--image-shape", f"3,{ROOM[0]},{ROOM[1]}"]
GROUPS = f"{ROOM[0]}x{ROOM[1]},{ROOM[1]}x{ROOM[0]}"  # a picture as wide as ROOM belongs to the first one, unscaled
TURNS = 3  # of the pictures in an epoch, so that fewer checkpoints of 0.4 GB are written
NETWORKS = [("retinanet", [], 2), ("faster-rcnn", ["--proposals", "64", "--anchor-size", "16"], 2),
            ("mask-rcnn", ["--proposals", "64"], 3),
            ("faster-rcnn", ["--proposals", "64", "--anchor-size", "16", "--aspect-groups", GROUPS], 2)]


def dtrain(*words):
    done = subprocess.run([DTRAIN, *map(str, words)], capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"dtrain {words[0]}: {done.stderr.strip()}")
    return done.stdout


def draw(rng, pixels):
    """Draws an object and returns its class and mask."""
    height, width = pixels.shape[:2]
    kind = int(rng.integers(len(NAMES)))
    size = rng.integers(20, 45, 2) if kind == 2 else np.repeat(rng.integers(20, 45), 2)
    top, left = (int(rng.integers(0, room - side)) for room, side in zip((height, width), size))
    y, x = np.mgrid[:height, :width] + 0.5
    down, across = (y - top) / size[0], (x - left) / size[1]
    if kind == 0:
        mask = (2 * down - 1) ** 2 + (2 * across - 1) ** 2 < 1
    else:
        mask = (down > 0) & (down < 1) & (across > 0) & (across < 1)
    pixels[mask] = np.clip(rng.normal(COLOURS[kind], 15, (int(mask.sum()), 3)), 0, 255)
    return kind, mask


def draw_scenes(folder):
    """Writes pictures and COCO's annotations, packs them, and returns the pictures."""
    rng = np.random.default_rng(5)
    (folder / "photos").mkdir()
    coco = {"images": [], "annotations": [], "categories": [{"id": k + 11, "name": name} for k, name in enumerate(NAMES)]}
    pictures = []
    for number, (height, width) in enumerate(SIZES):
        pixels = rng.integers(90, 150, (height, width, 3)).astype(np.uint8)
        coco["images"].append({"id": number + 1, "file_name": f"{number}.png", "height": height, "width": width})
        for _ in range(rng.integers(1, 4)):
            kind, mask = draw(rng, pixels)
            runs = coco_masks.encode(np.asfortranarray(mask.astype(np.uint8)))
            coco["annotations"].append({"id": len(coco["annotations"]) + 1, "image_id": number + 1, "category_id": kind + 11,
                                        "bbox": coco_masks.toBbox(runs).tolist(), "area": int(mask.sum()), "iscrowd": 0,
                                        "segmentation": {"size": [height, width], "counts": runs["counts"].decode()}})
        Image.fromarray(pixels).save(folder / "photos" / f"{number}.png")
        pictures.append(pixels)
    (folder / "coco.json").write_text(json.dumps(coco))
    dtrain("data", "pack", folder / "photos", "--coco", folder / "coco.json", "--encoding", "png", "--out", folder / "p")
    return pictures


def trained(folder, network, options, epochs):
    prefix = folder / "m" / (f"{network}-groups" if GROUPS in options else network)
    size = [] if GROUPS in options else SIZE
    dtrain("train", "--network", network, "--backbone", "resnet-18", *options, *size, "--data-train", ",".join(TURNS * [str(folder / "p.rec")]),
           "--batch-size", 4, "--num-epochs", epochs, "--optimizer", "adamw", "--lr", "0.001",
           "--lr-schedule", "step", "--warmup-epochs", 0, "--rgb-mean", ",".join(map(str, MEAN)), "--rgb-std", ",".join(map(str, STD)),
           "--model-prefix", prefix, "--job-dir", folder / f"job-{prefix.name}", "--lr-step-epochs", "")
    return prefix


def opened(folder, prefix, *options):
    """A session of the exported model, which onnx has checked."""
    file = folder / "model.onnx"
    dtrain("export", prefix, "--to", "onnx", *options, "--out", file)
    model = onnx.load(file)
    onnx.checker.check_model(model, full_check=True)
    must([entry.version for entry in model.opset_import] == [13], "another opset")
    metadata = {entry.key: json.loads(entry.value) for entry in model.metadata_props}
    must(metadata["classes"] == NAMES, f"classes {metadata['classes']}")
    must(np.allclose(metadata["preprocessing"]["rgb_mean"], MEAN), "other preprocessing")
    must(json.loads(dtrain("inspect", file, "--json"))["weights_sha256"] ==
         json.loads(dtrain("inspect", prefix, "--json"))["weights_sha256"], "dtrain reads other weights from the model")
    session_options = onnxruntime.SessionOptions()
    session_options.intra_op_num_threads = 2
    session_options.log_severity_level = 3
    return onnxruntime.InferenceSession(str(file), session_options, providers=["CPUExecutionProvider"])


def in_corner(pictures, outside):
    room = np.full((len(pictures), *ROOM, 3), outside, np.uint8)
    for into, pixels in zip(room, pictures):
        into[:pixels.shape[0], :pixels.shape[1]] = pixels
    return room


def normalised(pictures):
    room = np.zeros((len(pictures), *ROOM, 3), np.float32)
    for into, pixels in zip(room, pictures):
        into[:pixels.shape[0], :pixels.shape[1]] = (pixels - np.float32(MEAN)) / np.float32(STD)
    return np.ascontiguousarray(room.transpose(0, 3, 1, 2))


def pasted(likely, box, height, width):
    """torchvision's paste_masks_in_image(): how likely each pixel is the object's."""
    side = len(likely)
    points = np.pad(likely, 1)
    half, middle = (box[2:] - box[:2]) / 2 * (side + 2) / side, (box[2:] + box[:2]) / 2
    begin = np.trunc(middle - half).astype(int)
    length = np.maximum(np.trunc(middle + half).astype(int) + 1 - begin, 1)

    def places(at, extent):
        place = np.maximum((np.arange(extent) - at[0] + 0.5) * (side + 2) / at[1] - 0.5, 0)
        first = np.minimum(place.astype(int), side + 1)
        inside = (np.arange(extent) >= at[0]) & (np.arange(extent) < at[0] + at[1])
        return first, np.minimum(first + 1, side + 1), place - first, inside

    x0, x1, dx, in_x = places((begin[0], length[0]), width)
    y0, y1, dy, in_y = places((begin[1], length[1]), height)
    rows = points[y0] * (1 - dy)[:, None] + points[y1] * dy[:, None]
    return (rows[:, x0] * (1 - dx) + rows[:, x1] * dx) * (in_y[:, None] & in_x)


def judge_mask(found, likely, box):
    height, width = found["segmentation"]["size"]
    pixels = coco_masks.decode({"size": [height, width], "counts": found["segmentation"]["counts"].encode()}) > 0
    share = pasted(likely, box, height, width)
    differ = pixels != (share > MASK_LIMIT)
    must((np.abs(share[differ] - MASK_LIMIT) < MASK).all(), f"{int(differ.sum())} pixels of a mask differ")
    return int(pixels.sum())


def judge_picture(expected, boxes, scores, labels, masks):
    """Each object of dtrain is found, and no other; neighbours of nearly one score may come in another order."""
    count = int((scores > 0).sum())
    must((scores[:-1] >= scores[1:]).all() and not boxes[count:].any(), "objects are not in their order")
    must(count == len(expected), f"{count} objects are not {len(expected)}")
    worst = np.zeros(3)
    left = list(expected)
    for k in range(count):
        def apart(one):
            edges = np.array(one["bbox"]) + [0, 0, *one["bbox"][:2]]
            return (np.abs(edges - boxes[k]).max(), abs(one["score"] - scores[k]), one["category_id"] != labels[k] + 11)
        one = min(left, key=lambda each: apart(each)[0] + max(ROOM) * apart(each)[1] + 1e6 * apart(each)[2])
        left.remove(one)
        box, score, is_other = apart(one)
        must(not is_other and box <= BOX and score <= SCORE, f"no object of class {labels[k]}, score {scores[k]} at {boxes[k]}")
        worst = np.maximum(worst, [box, score, judge_mask(one, masks[k], boxes[k]) if masks is not None else 0])
    return count, worst


def judge(folder, pictures, network, options, epochs):
    prefix = trained(folder, network, options, epochs)
    dtrain("predict", prefix, folder / "photos", "--coco-results", folder / "found.json", "--annotations", folder / "coco.json")
    found = json.loads((folder / "found.json").read_text())
    numbers = [k + 1 for k, picture in enumerate(pictures) if GROUPS not in options or picture.shape[1] == ROOM[1]]
    pictures = [pictures[number - 1] for number in numbers]
    of_group = SIZE if GROUPS in options else []
    sizes = np.array([picture.shape[:2] for picture in pictures], np.int64)
    names = ["boxes", "scores", "labels"] + ["masks"] * (network == "mask-rcnn")
    objects, worst = 0, np.zeros(3)
    for export, images in (((), normalised(pictures)), (("--with-preprocessing",), in_corner(pictures, 255))):
        session = opened(folder, prefix, *export, *of_group)
        must([each.name for each in session.get_outputs()] == names, "other outputs")
        entry = session.get_inputs()[0].name
        results = session.run(names, {entry: images, "sizes": sizes})
        must(results[2].dtype == np.int64, "labels are no integers")
        for k, number in enumerate(numbers):
            expected = [each for each in found if each["image_id"] == number]
            count, apart = judge_picture(expected, *[each[k] for each in results], *[None] * (4 - len(results)))
            objects, worst = objects + count, np.maximum(worst, apart)
        # A picture that fills its image needs no sizes, and a batch may have any size.
        alone = session.run(names, {entry: images[:1]})
        must(all(np.allclose(one[0], of_all[0], atol=1e-3) for one, of_all in zip(alone, results)), "a batch of one differs")
    must(objects > 5 * len(pictures), f"{objects} objects are too few to judge by")
    print(f"ok   {prefix.name}: {objects} objects, boxes within {worst[0]:.1e} pixels, scores within {worst[1]:.1e}", flush=True)


passed = failed = 0
with tempfile.TemporaryDirectory() as name:
    scenes = draw_scenes(pathlib.Path(name))
    for case in NETWORKS:
        try:
            judge(pathlib.Path(name), scenes, *case)
            passed += 1
        except Exception as error:  # whatever the real library throws is a verdict
            failed += 1
            print(f"FAIL {case[0]}: {type(error).__name__}: {error}", flush=True)
end(passed, failed)
