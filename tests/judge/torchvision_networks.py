"""torchvision judges the networks that have its names: random weights of each of its models give the same logits after `import`.

seresnet50 is timm's. Both are read from the folder build/torchvision where Python does not have them, so that any torch
serves: pip install --no-deps --target build/torchvision torchvision==0.15.2 timm==0.6.13 pillow huggingface_hub==0.20.3 pyyaml
tqdm filelock packaging fsspec requests urllib3 certifi idna charset-normalizer typing_extensions.
Arguments: names of networks to look at only.
"""

import os
import pathlib
import sys
import tempfile
import warnings

import numpy as np
import torch

from _imported import MEAN, STD, logits_of_dtrain, random_pictures, run, stir_norms, worst

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


def make_model(name):
    if name in INCEPTIONS:
        return getattr(torchvision.models, name)(weights=None, num_classes=CLASSES, init_weights=False, transform_input=True)
    if name in torchvision.models.list_models():
        return torchvision.models.get_model(name, weights=None, num_classes=CLASSES)
    return timm.create_model(name, num_classes=CLASSES)


def is_known(name):
    return name in torchvision.models.list_models() or (timm is not None and name in timm.list_models())


def compare(name):
    torch.manual_seed(len(name))
    model = make_model(name).eval()
    stir_norms(model, 1)
    with tempfile.TemporaryDirectory() as folder:
        pictures = random_pictures(folder, PICTURES, 299 if name == "inception_v3" else 224)
        images = ((torch.tensor(pictures.astype(np.float64)) - torch.tensor(MEAN)) / torch.tensor(STD)).permute(0, 3, 1, 2)
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
        return worst(logits_of_dtrain(folder, path, CLASSES, name), expected)


def main():
    names = sys.argv[1:] or [name for name in run("help", "--complete", "networks", "--word", "").split() if is_known(name)]
    failures = 0
    for name in names:
        difference = compare(name)
        print(f"{name}: {difference:.1e} of the largest logit", flush=True)
        failures += not difference <= ALLOWED
    print(f"{len(names) - failures} of {len(names)} networks agree")
    return 1 if failures or not names else 0


if __name__ == "__main__":
    sys.exit(main())
