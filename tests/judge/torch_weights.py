"""PyTorch judges what dtrain reads: random weights of torchvision's residual networks give the same logits after `import`.

The files are those that PyTorch and safetensors write: zip archives, the older pickles in a row, half precision, and a
state dict inside a checkpoint of DataParallel. Uses torchvision's own models where it is installed, else the same modules.
"""

import os
import sys
import tempfile

import numpy as np
import torch
from torch import nn

from _imported import MEAN, STD, logits_of_dtrain, random_pictures, stir_norms, worst, write_safetensors

CLASSES, PICTURES, LARGEST = 37, 4, 1e-4


class Block(nn.Module):
    """torchvision's BasicBlock or Bottleneck, by its names."""

    def __init__(self, inputs, planes, stride, bottleneck):
        super().__init__()
        outputs = planes * (4 if bottleneck else 1)
        plan = [(inputs, planes, 1, 1), (planes, planes, 3, stride), (planes, outputs, 1, 1)] if bottleneck else \
               [(inputs, planes, 3, stride), (planes, planes, 3, 1)]
        self.depth = len(plan)
        for number, (a, b, kernel, step) in enumerate(plan, 1):
            setattr(self, f"conv{number}", nn.Conv2d(a, b, kernel, step, kernel // 2, bias=False))
            setattr(self, f"bn{number}", nn.BatchNorm2d(b))
        self.downsample = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs)) \
            if stride != 1 or inputs != outputs else nn.Identity()

    def forward(self, x):
        value = x
        for number in range(1, self.depth + 1):
            value = getattr(self, f"bn{number}")(getattr(self, f"conv{number}")(value))
            value = torch.relu(value) if number < self.depth else value
        return torch.relu(value + self.downsample(x))


class Resnet(nn.Module):
    def __init__(self, blocks, bottleneck, classes):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64)
        inputs = 64
        for stage, count in enumerate(blocks):
            outputs = (64 << stage) * (4 if bottleneck else 1)
            layers = []
            for number in range(count):
                layers.append(Block(inputs, 64 << stage, 2 if number == 0 and stage else 1, bottleneck))
                inputs = outputs
            setattr(self, f"layer{stage + 1}", nn.Sequential(*layers))
        self.fc = nn.Linear(inputs, classes)

    def forward(self, x):
        x = nn.functional.max_pool2d(torch.relu(self.bn1(self.conv1(x))), 3, 2, 1)
        for stage in range(1, 5):
            x = getattr(self, f"layer{stage}")(x)
        return self.fc(x.mean((2, 3)))


PLANS = {18: ((2, 2, 2, 2), False), 34: ((3, 4, 6, 3), False), 50: ((3, 4, 6, 3), True), 101: ((3, 4, 23, 3), True),
         152: ((3, 8, 36, 3), True)}


def make_model(depth):
    try:
        import torchvision
        model = getattr(torchvision.models, f"resnet{depth}")(weights=None, num_classes=CLASSES)
    except ImportError:
        model = Resnet(*PLANS[depth], CLASSES)
    stir_norms(model, depth)
    return model.eval()


def compare(folder, depth, pictures, forms):
    model = make_model(depth)
    state = model.state_dict()
    images = (torch.tensor(pictures.astype(np.float64)) - torch.tensor(MEAN)) / torch.tensor(STD)
    failures = 0
    for form in forms:
        path = os.path.join(folder, f"resnet{depth}-{form}")
        used = {name: value.bfloat16() if form == "bfloat16" and value.is_floating_point() else value
                for name, value in state.items()}
        if form in ("safetensors", "bfloat16"):
            write_safetensors(used, path)
        elif form == "old":
            torch.save(state, path, _use_new_zipfile_serialization=False)
        elif form == "wrapped":
            torch.save({"epoch": 3, "best": 0.5, "state_dict": {"module." + name: value for name, value in state.items()}}, path)
        else:
            torch.save(state, path)
        judge = make_model(depth).double()
        judge.load_state_dict({name: value.double() if value.is_floating_point() else value for name, value in used.items()})
        with torch.no_grad():
            expected = judge(images.permute(0, 3, 1, 2)).numpy()
        difference = worst(logits_of_dtrain(folder, path, CLASSES, "resnet-v1.5", "--num-layers", str(depth)), expected)
        print(f"resnet{depth} {form}: {difference:.1e} of the largest logit")
        failures += not difference <= LARGEST
        os.remove(path)
    return failures


def main():
    chosen = [int(word) for word in sys.argv[1:]] or [18, 50]
    torch.manual_seed(1)
    with tempfile.TemporaryDirectory() as folder:
        pictures = random_pictures(folder, PICTURES, 224)
        failures = 0
        for depth in chosen:
            all_forms = ["safetensors", "zip", "old", "wrapped", "bfloat16"]
            failures += compare(folder, depth, pictures, all_forms if depth == 18 else ["zip"])
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
