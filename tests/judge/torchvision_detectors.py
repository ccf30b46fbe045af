"""torchvision judges RetinaNet: the same weights find the same objects, and one step of training moves them the same way.

All through the commands that a user takes: import, data pack, train, predict. torchvision is read from the folder
build/torchvision where Python does not have it, see torchvision_networks.py. `--slow` adds ResNet-50.
"""

import pathlib
import sys
import tempfile

import torch

from _detectors import CLASSES, as_dtrain_takes_them, imported, judge_objects, judge_step, make_pictures, nms
from _imported import DTRAIN, stir_norms
from torchvision.models.detection import backbone_utils, retinanet
from torchvision.ops import boxes as box_ops
from torchvision.ops.feature_pyramid_network import LastLevelP6P7

box_ops.nms = nms


def make_model(backbone):
    torch.manual_seed(3)
    body = backbone_utils.resnet_fpn_backbone(
        backbone_name=backbone, weights=None, norm_layer=torch.nn.BatchNorm2d, returned_layers=[2, 3, 4],
        extra_blocks=LastLevelP6P7(256, 256), trainable_layers=5)
    model = retinanet.RetinaNet(body, CLASSES, detections_per_img=100, **as_dtrain_takes_them())
    stir_norms(model, 5)
    # Heads that say something: scores of all sizes, and boxes that move.
    for module in model.head.modules():
        if isinstance(module, torch.nn.Conv2d):
            module.weight.data.normal_(0, (2 / module.weight[0].numel()) ** 0.5)
    model.head.classification_head.cls_logits.bias.data.fill_(-3.0)
    return model


def main():
    failures = []
    for backbone in ("resnet18", "resnet50") if sys.argv[1:] == ["--slow"] else ("resnet18",):
        with tempfile.TemporaryDirectory() as folder:
            print(backbone)
            model = make_model(backbone)
            images, targets = make_pictures(folder)
            network = ("--network", "retinanet", "--backbone", backbone.replace("resnet", "resnet-"))
            prefix = imported(folder, model, network)
            failures += judge_objects(folder, prefix, model, images)
            if backbone == "resnet18":
                failures += judge_step(folder, prefix, model, network, images, targets)
    for failure in failures:
        print("FAIL " + failure)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
