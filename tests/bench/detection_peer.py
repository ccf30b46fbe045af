#!/usr/bin/env python3
"""Trains torchvision's Mask R-CNN, Faster R-CNN or RetinaNet and prints one JSON line: images a second.

One batch that is made before and stays in memory: random pixels with a few objects each, whose boxes and masks have the
sizes of `dtrain data prepare shapes-detection`. --proposals is, as for dtrain, both how many regions the first stage gives
and how many are drawn to train the second one. Batch norms learn, as dtrain's do.
"""
import argparse
import json
import resource
import statistics
import time

import torch
import torchvision
from torchvision.models.detection import FasterRCNN, MaskRCNN, RetinaNet
from torchvision.models.detection.backbone_utils import resnet_fpn_backbone

OBJECTS = 4  # of a picture


def network(options):
    size = {"min_size": options.size, "max_size": options.size}
    if options.network == "retinanet":
        from torchvision.ops.feature_pyramid_network import LastLevelP6P7
        backbone = resnet_fpn_backbone(backbone_name=options.backbone, weights=None, norm_layer=torch.nn.BatchNorm2d, trainable_layers=5,
                                       returned_layers=[2, 3, 4], extra_blocks=LastLevelP6P7(256, 256))
        return RetinaNet(backbone, options.num_classes, **size)
    backbone = resnet_fpn_backbone(backbone_name=options.backbone, weights=None, norm_layer=torch.nn.BatchNorm2d, trainable_layers=5)
    kind = {"faster-rcnn": FasterRCNN, "mask-rcnn": MaskRCNN}[options.network]
    return kind(backbone, options.num_classes + 1, rpn_post_nms_top_n_train=options.proposals,
                box_batch_size_per_image=options.proposals, **size)


def scene(size, classes, with_masks, generator):
    edges = torch.rand(OBJECTS, 2, generator=generator) * size * 0.3 + size * 0.1
    corner = torch.rand(OBJECTS, 2, generator=generator) * (size - edges)
    target = {"boxes": torch.cat([corner, corner + edges], 1),
              "labels": torch.randint(1, classes + 1, (OBJECTS,), generator=generator)}
    if with_masks:
        masks = torch.zeros(OBJECTS, size, size, dtype=torch.uint8)
        for mask, (x1, y1, x2, y2) in zip(masks, target["boxes"].int().tolist()):
            mask[y1:y2, x1:x2] = 1
        target["masks"] = masks
    return torch.rand(3, size, size, generator=generator), target


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--network", choices=["mask-rcnn", "faster-rcnn", "retinanet"], default="mask-rcnn")
    parser.add_argument("--backbone", default="resnet50")
    parser.add_argument("--size", type=int, default=512, help="edge of the pictures in pixels")
    parser.add_argument("--num-classes", type=int, default=80)
    parser.add_argument("--proposals", type=int, default=512)
    parser.add_argument("--batch-size", type=int, default=2)
    parser.add_argument("--dtype", choices=["float32", "bfloat16"], default="float32")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--warmup", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=20)
    options = parser.parse_args()

    torch.set_num_threads(options.threads)
    torch.manual_seed(1)
    generator = torch.Generator().manual_seed(1)
    model = network(options).to(memory_format=torch.channels_last).train()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4, momentum=0.9, weight_decay=1e-4)
    images, targets = zip(*[scene(options.size, options.num_classes, options.network == "mask-rcnn", generator)
                            for _ in range(options.batch_size)])

    def step():
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=options.dtype == "bfloat16"):
            losses = model(list(images), [dict(target) for target in targets])
            loss = sum(value.float() for value in losses.values())
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        return loss.item()

    for _ in range(options.warmup):
        step()
    times = []
    end = time.monotonic() + options.seconds
    while time.monotonic() < end or not times:
        begin = time.monotonic()
        step()
        times.append(time.monotonic() - begin)
    print(json.dumps({
        "peer": f"torchvision {torchvision.__version__} eager",
        "images_per_second": options.batch_size / statistics.median(times),
        "peak_memory_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
    }))


main()
