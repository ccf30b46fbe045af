#!/usr/bin/env python3
"""Trains ResNet-20 on CIFAR-10 with timm's implementation of a recipe of recipes.sh.

Prints the accuracy on the test pictures in per cent after each epoch, one a line.

Schedule, rule and augmentation are those of recipes.sh: nag with a rate of 0.2 that rises for 2 epochs and falls by a cosine,
crops of pictures padded by 4, mirroring. timm brings mixup, cutmix, their loss and the average of the weights, torchvision
RandAugment on pictures of Pillow.
"""
import argparse
import math
import pathlib

import numpy as np
import timm.data
import timm.loss
import timm.utils
import torch
import torch.nn.functional as F
from PIL import Image
from torchvision.transforms import RandAugment

from pytorch_peer import resnet20_v1

MEAN, STD = (torch.tensor(values).view(1, 3, 1, 1) for values in ((125.3, 123.0, 113.9), (63.0, 62.1, 66.7)))
BATCH, RATE, DECAY, SMOOTHING, WARMUP, CLASSES = 128, 0.2, 5e-4, 0.1, 2, 10


def read(folder, names):
    rows = np.concatenate([np.fromfile(folder / name, np.uint8).reshape(-1, 3073) for name in names])
    return torch.from_numpy(rows[:, 1:].reshape(-1, 3, 32, 32).copy()), torch.from_numpy(rows[:, 0].astype(np.int64))


def rand_augmented(images):
    operations = RandAugment(2, 9, 31, fill=[127] * 3)
    pictures = (operations(Image.fromarray(image)) for image in images.permute(0, 2, 3, 1).numpy())
    return torch.stack([torch.from_numpy(np.asarray(picture).copy()).permute(2, 0, 1) for picture in pictures])


def batch_of(images, which, recipe):
    """Padded, cropped, mirrored and normalised."""
    padded = F.pad(images[which], (4, 4, 4, 4), value=127)
    tops, lefts = torch.randint(0, 9, (len(which),)).tolist(), torch.randint(0, 9, (len(which),)).tolist()
    cropped = torch.stack([padded[i, :, top:top + 32, left:left + 32] for i, (top, left) in enumerate(zip(tops, lefts))])
    mirror = torch.rand(len(which)) < 0.5
    cropped[mirror] = cropped[mirror].flip(3)
    if recipe == "rand-augment":
        cropped = rand_augmented(cropped)
    return ((cropped.float() - MEAN) / STD).contiguous(memory_format=torch.channels_last)


def rate_at(epoch, epochs):
    """As Schedule::rate(): linear from a 25th, then a cosine to 0."""
    if epoch < WARMUP:
        return RATE * (1 / 25 + (1 - 1 / 25) * epoch / WARMUP)
    return RATE * 0.5 * (1 + math.cos(math.pi * (epoch - WARMUP) / (epochs - WARMUP)))


def make_mixup(recipe):
    mixes = {"mixup": {"mixup_alpha": 0.2}, "cutmix": {"mixup_alpha": 0, "cutmix_alpha": 1},
             "mixup-cutmix": {"mixup_alpha": 0.2, "cutmix_alpha": 1}}
    return timm.data.Mixup(**mixes[recipe], label_smoothing=SMOOTHING, num_classes=CLASSES) if recipe in mixes else None


def make_average(recipe, model):
    return timm.utils.ModelEmaV3(model, decay=0.999, use_warmup=True) if recipe == "ema" else None


def accuracy(model, images, labels):
    model.eval()
    with torch.no_grad():
        hits = [(model((images[i:i + 500].float() - MEAN) / STD).argmax(1) == labels[i:i + 500]).sum()
                for i in range(0, len(labels), 500)]
    return 100 * sum(hits).item() / len(labels)


def train(arguments):
    torch.set_num_threads(arguments.threads)
    torch.manual_seed(arguments.seed)
    np.random.seed(arguments.seed)  # timm's Mixup draws from it
    images, labels = read(arguments.data, [f"data_batch_{n}.bin" for n in range(1, 1 + arguments.files)])
    model = resnet20_v1(16).to(memory_format=torch.channels_last)
    vectors = [p for name, p in model.named_parameters() if name.endswith("bias")]
    others = [p for name, p in model.named_parameters() if not name.endswith("bias")]
    rule = torch.optim.SGD([{"params": others, "weight_decay": DECAY}, {"params": vectors, "weight_decay": 0}],
                           RATE, 0.9, nesterov=True)
    mixup, average = make_mixup(arguments.recipe), make_average(arguments.recipe, model)
    loss_of = timm.loss.SoftTargetCrossEntropy() if mixup else torch.nn.CrossEntropyLoss(label_smoothing=SMOOTHING)
    steps, step = math.ceil(len(labels) / BATCH), 0
    for epoch in range(arguments.epochs):
        model.train()
        order = torch.randperm(len(labels))
        for first in range(0, len(order), BATCH):
            which = order[first:first + BATCH]
            x, target = batch_of(images, which, arguments.recipe), labels[which]
            if mixup:
                x, target = mixup(x, target)
            for group in rule.param_groups:
                group["lr"] = rate_at(epoch + first / len(order), arguments.epochs)
            rule.zero_grad()
            loss_of(model(x), target).backward()
            rule.step()
            step += 1
            if average:
                average.update(model, step)
            if step == arguments.steps:
                return
        print(f"{accuracy(average.module if average else model, *read(arguments.data, ['test_batch.bin'])):.2f}", flush=True)
    assert step == steps * arguments.epochs


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=pathlib.Path, help="folder cifar-10-batches-bin")
    parser.add_argument("recipe", choices=("plain", "ema", "mixup", "cutmix", "mixup-cutmix", "rand-augment"))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--epochs", type=int, default=28)
    parser.add_argument("--files", type=int, default=5, help="train with so many of the five files")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--steps", type=int, default=0, help="end after so many, to try the script")
    train(parser.parse_args())


if __name__ == "__main__":
    main()
