"""torchvision judges RetinaNet: the same weights find the same objects, and one step of training moves them the same way.

All through the commands that a user takes: import, data pack, train, predict. torchvision is read from the folder
build/torchvision where Python does not have it, see torchvision_networks.py. `--slow` adds ResNet-50.

The step has weights of its own. A ReLU whose input is nearly 0 may open in float32 and stay shut in float64, which
changes gradients by up to 3e-2, torchvision's own too; which inputs these are depends on the chip. There each channel
of a ReLU is far on one side for nearly all of the picture.
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

SIDE_OF_RELU = 4.0  # its channels lie this many deviations beside 0

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


def take_sides(model, images, targets):
    """Moves the inputs of ReLUs to one side: every other channel of each is open."""
    for module in model.modules():
        if isinstance(module, torch.nn.BatchNorm2d):
            module.bias.data = sides(module.weight.data)
    hooks = [module.register_forward_hook(move_bias) for name, module in model.named_modules()
             if isinstance(module, torch.nn.Conv2d) and (".conv." in name or name.endswith(".p6"))]
    with torch.no_grad():
        model.double().train()(images, targets)
    for hook in hooks:
        hook.remove()
    return model.float()


def sides(deviations):
    signs = 1 - 2 * (torch.arange(len(deviations)) % 2)
    return signs * deviations * SIDE_OF_RELU


def move_bias(convolution, _, made):
    """The first and largest level that passes decides."""
    if not hasattr(convolution, "is_moved"):
        convolution.is_moved = True
        move = sides(made.std((0, 2, 3))) - made.mean((0, 2, 3))
        convolution.bias.data += move
        made = made + move[:, None, None]
    return made


def main():
    failures = []
    for backbone in ("resnet18", "resnet50") if sys.argv[1:] == ["--slow"] else ("resnet18",):
        print(backbone)
        network = ("--network", "retinanet", "--backbone", backbone.replace("resnet", "resnet-"))
        with tempfile.TemporaryDirectory() as folder:
            model = make_model(backbone)
            images, targets = make_pictures(folder)
            failures += judge_objects(folder, imported(folder, model, network), model, images)
            if backbone == "resnet18":
                model = take_sides(model, images, targets)
                failures += judge_step(folder, imported(folder, model, network), model, network, images, targets)
    for failure in failures:
        print("FAIL " + failure)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
