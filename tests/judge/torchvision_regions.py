"""torchvision judges Faster R-CNN and Mask R-CNN as it does RetinaNet: objects, masks, and one step of training.

What torchvision draws at random it draws here as dtrain does. It is found as torchvision_detectors.py says; `--slow` adds
ResNet-50.
"""

import copy
import json
import os
import pathlib
import sys
import tempfile

import numpy as np
import torch

from _detectors import CLASSES, GRADIENT, as_dtrain_takes_them, imported, judge_objects, judge_step, largest_difference, make_pictures, nms
from _imported import DTRAIN, run, stir_norms
from _philox import philox
from torchvision.models.detection import FasterRCNN, MaskRCNN, backbone_utils, roi_heads
from torchvision.ops import boxes as box_ops
from torchvision.ops import poolers

REGIONS = 25  # RandomUse::regions
PROPOSALS = 64
# Which regions are drawn turns on comparisons: of scores, of overlaps. Where two of them nearly tie, the rounding of float32
# alone draws others, and gradients move by thousandths; torchvision's own do so between float32 and float64. So
# the first seed counts with which torchvision's gradients stay as they are while its weights move by more than float32 rounds.
SEEDS, MOVED, MOVES = range(11, 31), 3e-7, 4
MASK_LIMIT, MASK = 0.5, 1e-3  # of how likely a pixel is


def between(at, size):
    """The two nearest pixels and how far a point is from the first of them."""
    inside = (at >= -1) & (at <= size)
    at = at.clamp(min=0)
    low = at.floor().long().clamp(max=size - 1)
    high = (low + 1).clamp(max=size - 1)
    return low, high, torch.where(low == high, torch.zeros_like(at), at - low), inside


def roi_align(values, rois, output_size, spatial_scale=1.0, sampling_ratio=-1, aligned=False):
    """He et al. 2017; torchvision's own is compiled for another torch."""
    assert not aligned
    if isinstance(rois, (list, tuple)):
        rois = torch.cat([torch.cat([torch.full((len(boxes), 1), float(k), dtype=boxes.dtype), boxes], 1) for k, boxes in enumerate(rois)])
    size = output_size if isinstance(output_size, int) else output_size[0]
    results = []
    for picture, *edges in rois.tolist():
        left, top, right, bottom = (edge * spatial_scale for edge in edges)
        points = []
        for begin, end, extent in ((top, bottom, values.shape[2]), (left, right, values.shape[3])):
            step = max(end - begin, 1.0) / size
            samples = sampling_ratio if sampling_ratio > 0 else int(np.ceil(step))
            at = begin + step * (torch.arange(size * samples, dtype=values.dtype) + 0.5) / samples
            points.append((between(at, extent), samples))
        ((y0, y1, dy, y_inside), down), ((x0, x1, dx, x_inside), across) = points
        plane = values[int(picture)]
        above, below = plane[:, y0], plane[:, y1]
        rows = above * (1 - dy)[None, :, None] + below * dy[None, :, None]
        all_points = (rows[:, :, x0] * (1 - dx) + rows[:, :, x1] * dx) * (y_inside[:, None] & x_inside)
        results.append(all_points.reshape(-1, size, down, size, across).mean(dim=(2, 4)))
    return torch.stack(results) if results else values.new_zeros((0, values.shape[1], size, size))


box_ops.nms = nms
poolers.roi_align = roi_heads.roi_align = roi_align


class Sampler:
    """RegionDraw of src/backend/detection/regions.hpp, of sample 0 in epoch 0."""

    def __init__(self, seed, node, everything, objects):
        self.seed, self.node, self.everything, self.objects = seed, node, everything, objects

    def __call__(self, labels_of_pictures):
        (labels,) = labels_of_pictures
        blocks = np.arange((len(labels) + 3) // 4, dtype=np.uint64)
        fixed = [np.full_like(blocks, value) for value in (self.node, 0, 0)]
        words = np.stack(philox([blocks, *fixed], (self.seed, REGIONS)), axis=1).reshape(-1)[:len(labels)]
        drawn, room = [], self.everything
        for group, most in ((labels >= 1, self.objects), (labels == 0, room)):
            items = np.flatnonzero(group.numpy())
            kept = items[np.argsort(words[items], kind="stable")][:min(most, room)]
            room -= len(kept)
            mask = torch.zeros(len(labels), dtype=torch.uint8)
            mask[torch.tensor(kept, dtype=torch.int64)] = 1
            drawn.append([mask])
        return tuple(drawn)


def make_model(kind, backbone):
    torch.manual_seed(3)
    body = backbone_utils.resnet_fpn_backbone(backbone_name=backbone, weights=None, norm_layer=torch.nn.BatchNorm2d, trainable_layers=5)
    model = kind(body, CLASSES + 1, rpn_pre_nms_top_n_train=2000, rpn_pre_nms_top_n_test=1000, rpn_post_nms_top_n_train=2000,
                 rpn_post_nms_top_n_test=PROPOSALS, box_batch_size_per_image=PROPOSALS, box_detections_per_img=min(PROPOSALS // 4, 100),
                 **as_dtrain_takes_them())
    stir_norms(model, 5)
    # Heads that say something: scores of all sizes, boxes that move, masks with borders.
    for part, scale in ((model.rpn.head, 1.0), (model.roi_heads, 1.0)):
        for module in part.modules():
            if isinstance(module, (torch.nn.Conv2d, torch.nn.Linear)):
                module.weight.data.normal_(0, scale * (2 / module.weight[0].numel()) ** 0.5)
    model.rpn.head.bbox_pred.weight.data *= 0.3
    return model


def pixels_of(found, shape):
    """The mask of an object that dtrain found: COCO's runs as text."""
    runs, at, text = [], 0, found["segmentation"]["counts"]
    while at < len(text):
        number, shift, more = 0, 0, True
        while more:
            group = ord(text[at]) - 48
            number |= (group & 0x1F) << shift
            more, shift, at = group & 0x20, shift + 5, at + 1
        if group & 0x10:
            number -= 1 << shift
        runs.append(number + (runs[-2] if len(runs) > 2 else 0))
    return np.repeat(np.arange(len(runs)) % 2 == 1, runs).reshape(shape[::-1]).T


def same_mask(found, likely):
    differ = pixels_of(found, likely.shape) != (likely > MASK_LIMIT)
    return (np.abs(likely[differ] - MASK_LIMIT) < MASK).all()


def gradients_of(model, images, targets, move):
    """Of a model whose weights lie the share `move` beside those of this one."""
    moved = copy.deepcopy(model).double().train()
    with torch.no_grad():
        for parameter in moved.parameters():
            parameter.mul_(1 + move * torch.randn_like(parameter))
    sum(moved(images, targets).values()).backward()
    return [parameter.grad for parameter in moved.parameters()]


def first_steady_seed(model, nodes, images, targets):
    """Leaves its samplers in the model. None: whatever is drawn, two numbers nearly tie."""
    for seed in SEEDS:
        model.rpn.fg_bg_sampler = Sampler(seed, len(nodes) - 1, 256, 128)
        model.roi_heads.fg_bg_sampler = Sampler(seed, nodes.index("rpn.proposals"), PROPOSALS, PROPOSALS // 4)
        expected = gradients_of(model, images, targets, 0)
        if all(largest_difference(gradients_of(model, images, targets, MOVED), expected) <= GRADIENT / 2 for _ in range(MOVES)):
            return seed
        print(f"  seed {seed}: torchvision's own gradients do not hold", flush=True)
    return None


def judge(folder, kind, name, backbone, is_trained):
    model = make_model(kind, backbone)
    images, targets = make_pictures(folder, 1)
    network = ("--network", name, "--backbone", backbone.replace("resnet", "resnet-"), "--proposals", str(PROPOSALS))
    prefix = imported(folder, model, network)
    failures = judge_objects(folder, prefix, model, images, 1, same_mask if kind is MaskRCNN else None)
    if is_trained:
        nodes = [node["name"] for node in json.loads(run("inspect", prefix, "--graph"))["nodes"]]
        seed = first_steady_seed(model, nodes, images[-1:], targets[-1:])
        if seed is None:
            return failures + [f"{name}: no seed of {SEEDS} draws regions without a near tie"]
        failures += judge_step(folder, prefix, model, network, images[-1:], targets[-1:], "last.rec", seed)
    return failures


def main():
    failures = []
    for kind, name in ((FasterRCNN, "faster-rcnn"), (MaskRCNN, "mask-rcnn")):
        for backbone in ("resnet18", "resnet50") if sys.argv[1:] == ["--slow"] else ("resnet18",):
            with tempfile.TemporaryDirectory() as folder:
                print(name, backbone)
                failures += judge(folder, kind, name, backbone, backbone == "resnet18")
    for failure in failures:
        print("FAIL " + failure)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
