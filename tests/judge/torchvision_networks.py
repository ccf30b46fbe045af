"""torchvision judges the networks that have its names: random weights of each of its models give the same logits after `import`.

The networks with squeeze-and-excitation and vit_*_patch16_224 are timm's. Both are read from the folder build/torchvision where
Python does not have them, so that any torch serves: pip install --no-deps --target build/torchvision -r tests/torchvision.txt.
Arguments: names of networks to look at only, `all`, or `--slow` for all but deeper and larger ones of the same kind; else a few
small ones of different kinds are looked at.
"""

import os
import pathlib
import sys
import tempfile
import warnings

import numpy as np
import torch

from _imported import MEAN, STD, exported, logits_of_dtrain, random_pictures, run, stir_norms, worst

sys.path.append(str(pathlib.Path(os.environ["DTRAIN"]).resolve().parents[1] / "torchvision"))
warnings.filterwarnings("ignore")
try:
    import torchvision
except ImportError:
    print("no torchvision: see the head of torchvision_networks.py")
    sys.exit(77)
try:
    import timm
except ImportError:
    timm = None

CLASSES, PICTURES, LARGEST_LOGIT, ALLOWED = 37, 2, 5, 1e-4
# Weights for ImageNet of these were trained on pixels from -1 to 1, as transform_input says; they have heads for training
# that dtrain does not build.
INCEPTIONS = ("googlenet", "inception_v3")
LEFT_OUT = ("resnet34", "resnet101", "resnet152", "resnext101_32x8d", "resnext101_64x4d", "wide_resnet101_2", "densenet161",
            "densenet169", "densenet201", "vgg11", "vgg13", "vgg13_bn", "vgg16", "vgg16_bn", "vgg19", "vgg19_bn",
            "efficientnet_b2", "efficientnet_b3", "efficientnet_b4", "regnet_x_1_6gf", "regnet_x_3_2gf", "regnet_y_1_6gf",
            "regnet_y_3_2gf", "convnext_small", "convnext_base", "vit_small_patch16_224",
            "vit_base_patch16_224")
FEW = ("resnet18", "mobilenet_v3_small", "efficientnet_b0", "regnet_y_400mf", "convnext_tiny", "vit_tiny_patch16_224",
       "seresnet50", "googlenet", "densenet121")
# What timm calls networks of torchvision to whose layers it gives other names.
TIMM = {"convnext_tiny": "convnext_tiny", "vit_b_16": "vit_base_patch16_224",
        "efficientnet_b0": "efficientnet_b0", "mobilenet_v2": "mobilenetv2_100", "regnet_y_400mf": "regnety_004"}


def size_of(name):
    """The size of images that the published weights want."""
    sizes = {"inception_v3": 299, "efficientnet_b1": 240, "efficientnet_b2": 288, "efficientnet_b3": 300, "efficientnet_b4": 380}
    return sizes.get(name, 224)


def make_model(name):
    if name in INCEPTIONS:
        return getattr(torchvision.models, name)(weights=None, num_classes=CLASSES, init_weights=False, transform_input=True)
    if name in torchvision.models.list_models():
        return torchvision.models.get_model(name, weights=None, num_classes=CLASSES)
    return timm.create_model(name, num_classes=CLASSES)


def is_known(name):
    return name in torchvision.models.list_models() or (timm is not None and name in timm.list_models())


def compare(name, model):
    torch.manual_seed(len(name))
    model.eval()
    stir_norms(model, 1)
    with tempfile.TemporaryDirectory() as folder:
        pictures = random_pictures(folder, PICTURES, size_of(name))
        mean, std = ((127.5,) * 3, (127.5,) * 3) if name.endswith("_patch16_224") else (MEAN, STD)
        images = ((torch.tensor(pictures.astype(np.float64)) - torch.tensor(mean)) / torch.tensor(std)).permute(0, 3, 1, 2)
        path = os.path.join(folder, name + ".pth")
        with torch.no_grad():
            model.double()
            expected = model(images)
            # A head of such a size that no probability is lost in rounding.
            head = [module for module in model.modules() if isinstance(module, (torch.nn.Linear, torch.nn.Conv2d))][-1]
            for tensor in (head.weight, head.bias):
                tensor.mul_(LARGEST_LOGIT / expected.abs().max())
            model.float()
            torch.save(model.state_dict(), path)
            expected = model.double()(images).numpy()
        difference = worst(logits_of_dtrain(folder, path, CLASSES, name), expected)
        if type(model).__module__.startswith("torchvision"):
            judge_export(model.float(), exported(folder, os.path.join(folder, "m", name + ".pth")))
        return difference


def judge_export(model, weights):
    """torchvision takes back what it gave, under its names and in its shapes. The heads for training are not there."""
    expected = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    model.load_state_dict(weights, strict=not hasattr(model, "aux_logits"))
    for name, tensor in weights.items():
        if not torch.equal(tensor, expected[name]):
            raise SystemExit(f"export: {name} has other values")


def main():
    names = sys.argv[1:]
    if not names or names[0] in ("all", "--slow"):
        known = [name for name in run("help", "--complete", "networks", "--word", "").split() if is_known(name)]
        names = [name for name in known if names == ["all"] or name in (FEW if not names else set(known) - set(LEFT_OUT))]
    failures = 0
    for name in names:
        found = {"": compare(name, make_model(name))}
        if timm is not None and name in TIMM:
            found[" of timm"] = compare(name, timm.create_model(TIMM[name], num_classes=CLASSES))
        for whose, difference in found.items():
            print(f"{name}{whose}: {difference:.1e} of the largest logit", flush=True)
        failures += not max(found.values()) <= ALLOWED
    print(f"{len(names) - failures} of {len(names)} networks agree")
    return 1 if failures or not names else 0


if __name__ == "__main__":
    sys.exit(main())
