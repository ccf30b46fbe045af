"""What torchvision's judges of detectors share: pictures with objects, weights that go in and out, objects that are the same.

To import it finds torchvision, or ends the judge where there is none.
"""

import json
import os
import pathlib
import sys
import warnings

import numpy as np
import torch

from _imported import DTRAIN, MEAN, STD, exported, run, write_png

sys.path.append(str(pathlib.Path(DTRAIN).resolve().parents[1] / "torchvision"))
warnings.filterwarnings("ignore")
try:
    import torchvision  # noqa: F401  (the judges import its parts)
except ImportError:
    print("no torchvision: see the head of torchvision_networks.py")
    sys.exit(77)

CLASSES, SIDE = 5, 128
SIZES = ((128, 128), (128, 96), (80, 128), (112, 128))  # height and width of the pictures: their larger edge fills the input
BOX, SCORE, LOSS, GRADIENT = 1e-3 * SIDE, 1e-4, 1e-4, 1e-3


def nms(boxes, scores, threshold):
    """torchvision's own is compiled for another torch than the distribution's."""
    kept, order = [], scores.argsort(descending=True, stable=True)
    left, top, right, bottom = boxes.T
    areas = (right - left) * (bottom - top)
    while len(order):
        best, rest = order[0], order[1:]
        kept.append(best)
        width = (torch.minimum(right[best], right[rest]) - torch.maximum(left[best], left[rest])).clamp(min=0)
        height = (torch.minimum(bottom[best], bottom[rest]) - torch.maximum(top[best], top[rest])).clamp(min=0)
        both = width * height
        order = rest[~(both / (areas[best] + areas[rest] - both) > threshold)]  # of no area: not a number
    return torch.tensor(kept, dtype=torch.int64)


def as_dtrain_takes_them():
    """Arguments of torchvision's models: dtrain takes means and deviations on the scale 0 to 255, of pictures as they are."""
    return {"min_size": SIDE, "max_size": SIDE, "image_mean": [m / 255 for m in MEAN], "image_std": [s / 255 for s in STD]}


def ellipse_in(box, height, width):
    left, top, across, down = box
    y, x = np.mgrid[:height, :width]
    return (((x + 0.5 - left) / across * 2 - 1) ** 2 + ((y + 0.5 - top) / down * 2 - 1) ** 2 < 1).astype(np.uint8)


def runs_of(mask):
    """As COCO counts them: column after column, from a run of zeros on."""
    pixels = mask.T.reshape(-1)
    borders = np.flatnonzero(np.diff(pixels)) + 1
    runs = np.diff([0, *borders, pixels.size]).tolist()
    return {"size": list(mask.shape), "counts": [0] * int(pixels[0]) + runs}


def make_pictures(folder, first_label=0):
    """Writes them as COCO has them, packs them, and returns images and targets as torchvision takes them."""
    rng = np.random.default_rng(4)
    os.makedirs(os.path.join(folder, "pictures"))
    images, targets, annotations = [], [], []
    for index, (height, width) in enumerate(SIZES):
        pixels = rng.integers(0, 256, (height, width, 3), np.uint8)
        write_png(os.path.join(folder, "pictures", f"{index}.png"), pixels)
        images.append(torch.tensor(pixels.astype(np.float64) / 255).permute(2, 0, 1))
        boxes, labels, masks = [], [], []
        for _ in range(index):  # the first one shows nothing
            left, top = rng.integers(0, width - 40), rng.integers(0, height - 40)
            box = [int(left), int(top), int(rng.integers(20, width - left)), int(rng.integers(20, height - top))]
            label = int(rng.integers(0, CLASSES))
            mask = ellipse_in(box, height, width)
            masks.append(mask)
            annotations.append({"id": len(annotations) + 1, "image_id": index + 1, "category_id": label + 1, "bbox": box,
                                "area": int(mask.sum()), "iscrowd": 0, "segmentation": runs_of(mask)})
            boxes.append([box[0], box[1], box[0] + box[2], box[1] + box[3]])
            labels.append(label)
        targets.append({"boxes": torch.tensor(boxes, dtype=torch.float64).reshape(-1, 4),
                        "labels": torch.tensor(labels, dtype=torch.int64) + first_label,
                        "masks": torch.tensor(np.array(masks, np.uint8).reshape(-1, height, width))})
    sizes = [{"id": i + 1, "file_name": f"{i}.png", "height": h, "width": w} for i, (h, w) in enumerate(SIZES)]
    categories = [{"id": i + 1, "name": f"class{i}"} for i in range(CLASSES)]
    pathlib.Path(folder, "coco.json").write_text(json.dumps({"images": sizes, "annotations": annotations, "categories": categories}))
    run("data", "pack", os.path.join(folder, "pictures"), "--coco", os.path.join(folder, "coco.json"), "--encoding", "png",
        "--out", os.path.join(folder, "p"))
    # The last picture alone.
    last = [each for each in annotations if each["image_id"] == len(SIZES)]
    pathlib.Path(folder, "last.json").write_text(json.dumps({"images": sizes[-1:], "annotations": last, "categories": categories}))
    os.makedirs(os.path.join(folder, "alone"))
    os.link(os.path.join(folder, "pictures", sizes[-1]["file_name"]), os.path.join(folder, "alone", sizes[-1]["file_name"]))
    run("data", "pack", os.path.join(folder, "alone"), "--coco", os.path.join(folder, "last.json"), "--encoding", "png",
        "--out", os.path.join(folder, "last"))
    return images, targets


def imported(folder, model, network):
    """The model's weights as a checkpoint of dtrain."""
    path = os.path.join(folder, "weights.pth")
    torch.save(model.state_dict(), path)
    prefix = os.path.join(folder, "m", "imported")
    run("import", path, *network, "--image-shape", f"3,{SIDE},{SIDE}", "--num-classes", str(CLASSES), "--out", prefix,
        "--force")
    return prefix


def judge_objects(folder, prefix, model, images, first_label=0, judge_mask=None):
    """Each object that torchvision finds is found, in its place, with its score; and no other."""
    lines = run("predict", prefix, os.path.join(folder, "pictures"), "--min-score", "0.05", "--json").splitlines()
    model.double().eval()
    with torch.no_grad():
        expected = model(images)
    count, worst_box, worst_score = 0, 0.0, 0.0
    for line, theirs in zip(lines, expected, strict=True):
        mine = json.loads(line)["objects"]
        if len(mine) != len(theirs["scores"]):
            return [f"{len(mine)} objects are not {len(theirs['scores'])}"]
        count += len(mine)
        labels = (theirs["labels"] - first_label).tolist()
        for k, (box, score, label) in enumerate(zip(theirs["boxes"].numpy(), theirs["scores"].tolist(), labels)):
            one = min(mine, key=lambda each: distance(each, box, score, label))
            mine.remove(one)
            worst_box = max(worst_box, np.abs(edges(one) - box).max())
            worst_score = max(worst_score, abs(one["score"] - score))
            if one["label"] != label:
                return [f"no object of class {label} and score {score} at {box}"]
            if judge_mask and not judge_mask(one, theirs["masks"][k, 0].numpy()):
                return [f"the mask of the object of class {label} and score {score} at {box} differs"]
    print(f"  {count} objects: boxes within {worst_box:.1e} pixels, scores within {worst_score:.1e}")
    return [] if count > 20 and worst_box <= BOX and worst_score <= SCORE else ["objects differ, or there are too few"]


def edges(found):
    left, top, width, height = found["box"]
    return np.array([left, top, left + width, top + height])


def distance(found, box, score, label):
    """Scores that lie close together may come in another order."""
    return (found["label"] != label) * 1e6 + np.abs(edges(found) - box).max() + abs(found["score"] - score) * SIDE


def largest_difference(gradients, expected):
    """Of tensors, as a share of what is expected."""
    return max(float(torch.linalg.vector_norm(mine - theirs) / torch.linalg.vector_norm(theirs).clamp(min=1e-3))
               for mine, theirs in zip(gradients, expected, strict=True))


def judge_step(folder, prefix, model, network, images, targets, records="p.rec", seed=0):
    """One step of plain gradient descent at the rate 1: what the weights lose is the gradient of the mean loss."""
    out = os.path.join(folder, "m", "stepped")
    run("train", *network, "--image-shape", f"3,{SIDE},{SIDE}", "--num-classes", str(CLASSES), "--pretrained",
        prefix + "-0000.safetensors", "--data-train", os.path.join(folder, records), "--batch-size", str(len(images)),
        "--logical-shards", "1", "--lr", "1", "--lr-schedule", "step", "--lr-step-epochs", "", "--warmup-epochs", "0",
        "--mom", "0", "--wd", "0", "--optimizer", "sgd", "--random-mirror", "0", "--num-epochs", "1", "--seed", str(seed),
        "--job-dir", os.path.join(folder, "job"), "--model-prefix", out,
        "--rgb-mean", ",".join(map(str, MEAN)), "--rgb-std", ",".join(map(str, STD)))
    model.double().train()
    losses = model(images, targets)
    sum(losses.values()).backward()
    step = [json.loads(line) for line in pathlib.Path(folder, "job", "steps.jsonl").read_text().splitlines()][-1]
    failures = []
    for name, loss in losses.items():
        name = name.removeprefix("loss_")
        difference = abs(step[name] - float(loss)) / float(loss)
        print(f"  {name}: {difference:.1e}")
        if not difference <= LOSS:
            failures.append(f"{name} {step[name]} is not {float(loss)}")
    before, after = (exported(folder, path) for path in (prefix, out))
    worst = 0.0
    for name, parameter in model.named_parameters():
        expected = parameter.grad
        difference = largest_difference([before[name].double() - after[name].double()], [expected])
        worst = max(worst, difference)
        if not difference <= GRADIENT:
            failures.append(f"gradient of {name} differs by {difference:.1e}")
    print(f"  gradients within {worst:.1e}")
    return failures
