#!/usr/bin/env python3
"""How fast PyTorch trains dtrain's speednet on CIFAR-10, and how well: the peer of the race in race.sh.

    speednet_peer.py GRAPH.json CONFIG.json CIFAR [--runs K] [--dtype float32|bfloat16] [--device cuda|cpu] ...

The network is built from dtrain's own description of it, the recipe is what `dtrain train --recipe speednet --show-config
--json` prints, CIFAR a folder with CIFAR-10's binary files. PyTorch is used as one would who wants speed: all images and
their augmentation on the device, channels_last, autocast, torch.compile where it works. A run is timed from its first step
to the end of its evaluation, with images, weights and whitening in place; a whole run before the first that counts takes
the compiling. Prints one JSON object. Exit: 0 measured, 77 this Python has no PyTorch, or PyTorch no such device.
"""

import argparse
import contextlib
import json
import pathlib
import sys
import time

from pytorch_peer import Network, main, wait  # leaves with 77 where there is no PyTorch

import torch
import torch.nn.functional as F

TRAINING = [f"data_batch_{number}.bin" for number in range(1, 6)]
VALIDATION = ["test_batch.bin"]
WHITENED, LEAST_VARIANCE = 5000, 5e-4  # images that the first layer is computed from; what is added to their variances
# Of each look at a test image: rows and columns from the corner of a border of one pixel, and its share.
VIEWS = ((1, 1, 0.5), (0, 0, 0.25), (2, 2, 0.25))


class Recipe:
    """What dtrain's option of that name says."""

    # What this program does and has no other way for.
    FIXED = {"optimizer": "muon", "lr-schedule": "one-cycle", "lr-rise": "0", "lr-final": "0", "warmup-epochs": "0",
             "test-views": "6", "reflect-pad": "1", "random-crop": "1", "random-mirror": "1", "alternate-mirror": "1",
             "max-random-h": "0", "max-random-s": "0", "max-random-l": "0", "logical-shards": "1"}

    def __init__(self, config):
        self.values = {entry["name"]: entry["value"] for entry in config["values"]}
        other = [name for name, value in self.FIXED.items() if self.values[name] != value]
        if other:
            raise SystemExit(f"speednet_peer.py knows no such recipe: {', '.join(other)}")
        self.batch, self.epochs, self.pad = (self.whole(name) for name in ("batch-size", "num-epochs", "pad-size"))

    def whole(self, name):
        return int(self.values[name])

    def number(self, name):
        return float(self.values[name])

    def numbers(self, name):
        return [float(part) for part in self.values[name].split(",")]


class Pictures:
    """Images and labels of published files: on the device, normalised, with a border that reflects them."""

    def __init__(self, folder, names, most, border, recipe, options):
        inner = folder / "cifar-10-batches-bin"
        data = b"".join(((inner if inner.is_dir() else folder) / name).read_bytes() for name in names)
        records = torch.frombuffer(bytearray(data), dtype=torch.uint8).view(-1, 1 + 3 * 32 * 32)
        records = records[:most or None].to(options.device)
        mean, std = (torch.tensor(recipe.numbers(name), device=options.device).view(3, 1, 1)
                     for name in ("rgb-mean", "rgb-std"))
        images = (records[:, 1:].reshape(-1, 3, 32, 32).float() - mean) / std
        self.first = images[:WHITENED].clone()
        self.labels = records[:, 0].long()
        self.padded = F.pad(images, (border,) * 4, mode="reflect").to(getattr(torch, options.dtype))
        self.size, self.border = images.shape[-1], border

    def __len__(self):
        return len(self.labels)

    def cut(self, rows, columns):
        """Of each image a square, where its place is."""
        squares = self.padded.unfold(2, self.size, 1).unfold(3, self.size, 1)  # a view of all there are
        return squares[torch.arange(len(self), device=rows.device), :, rows, columns]

    def epoch(self, mirrored):
        """Each image once, cut at random; `mirrored` says which are turned."""
        place = torch.randint(2 * self.border + 1, (2, len(self)), device=self.labels.device)
        images = self.cut(*place)
        images = torch.where(mirrored.view(-1, 1, 1, 1), images.flip(-1), images)
        return images.contiguous(memory_format=torch.channels_last)

    def views(self, part):
        """What an evaluation sees of a slice of the images, with the share of each."""
        for row, column, share in VIEWS:
            image = self.padded[part, :, row:row + self.size, column:column + self.size]
            for view in (image, image.flip(-1)):
                yield view.contiguous(memory_format=torch.channels_last), share / 2


def whitening(images, kernel):
    """Filters that turn windows of images into uncorrelated values of variance 1, and their negatives; the strongest first,
    since the next layer begins by handing on the first ones."""
    # In float64: the sums of millions of windows, in float32, would make the smallest variances negative.
    windows = F.unfold(images, kernel).transpose(1, 2).reshape(-1, images.shape[1] * kernel[0] * kernel[1]).double()
    variances, vectors = (part.flip(-1) for part in torch.linalg.eigh(windows.T @ windows / len(windows)))
    filters = (vectors / (variances + LEAST_VARIANCE).sqrt()).T
    return torch.cat([filters, -filters]).view(-1, images.shape[1], *kernel)


def orthogonal(matrix, steps, a, b, c):
    """Newton-Schulz: the matrix with its singular values drawn towards 1."""
    x = matrix / (matrix.norm() + 1e-7)
    tall = x.shape[0] > x.shape[1]
    x = x.T if tall else x
    for _ in range(steps):
        square = x @ x.T
        x = a * x + (b * square + c * square @ square) @ x
    return x.T if tall else x


class Muon:
    """Steps of filters, each of which a batch norm follows, so that their scale is free."""

    def __init__(self, filters, recipe, dtype, compiled):
        self.filters, self.dtype = filters, dtype
        self.momenta = [torch.zeros_like(weight) for weight in filters]
        self.momentum, self.decay = recipe.number("mom"), recipe.number("wd")
        self.shape = recipe.whole("muon-steps"), *recipe.numbers("muon-coefficients")
        self.orthogonal = compiled(orthogonal)

    @torch.no_grad()
    def step(self, rate):
        gradients = [weight.grad for weight in self.filters]
        torch._foreach_mul_(self.momenta, self.momentum)
        torch._foreach_add_(self.momenta, gradients)
        along = torch._foreach_add(gradients, self.momenta, alpha=self.momentum)
        for weight, direction in zip(self.filters, along):
            update = self.orthogonal(direction.flatten(1).to(self.dtype), *self.shape)
            weight.mul_(len(weight) ** 0.5 / weight.norm() * (1 - rate * self.decay))
            weight.sub_(update.view_as(weight), alpha=rate)


class Race:
    """Runs of the recipe, one after the other, with one set of compiled functions."""

    def __init__(self, graph, recipe, training, validation, options):
        self.recipe, self.training, self.validation, self.options = recipe, training, validation, options
        self.nodes = graph["nodes"]
        self.network = Network(graph).to(options.device, memory_format=torch.channels_last)
        self.module("whiten").weight.requires_grad_(False)
        self.smoothing = recipe.number("label-smoothing")
        self.loss = self.compiled(self.eager_loss, options.compile_mode)
        self.predict = self.compiled(self.network, options.compile_mode)
        self.make_optimizers()

    def compiled(self, function, mode="default"):
        return torch.compile(function, mode=mode, dynamic=False) if self.options.compile else function

    def module(self, name):
        return getattr(self.network, name.replace(".", "_"))

    def make_optimizers(self):
        recipe, head = self.recipe, self.module("fc")[1].weight
        weights = [p for p in self.network.parameters() if p.requires_grad]
        filters = [p for p in weights if p.dim() == 4]
        biases = [p for p in weights if p.dim() == 1]
        self.muon = Muon(filters, recipe, getattr(torch, self.options.dtype), self.compiled)
        factor, decay = recipe.number("head-lr-factor"), recipe.number("wd")
        groups = [{"params": biases, "factor": recipe.number("bias-lr-factor"), "weight_decay": 0.0},
                  {"params": [head], "factor": factor, "weight_decay": decay / factor}]
        self.sgd = torch.optim.SGD(groups, lr=1.0, momentum=recipe.number("muon-rest-mom"), nesterov=True)

    @torch.no_grad()
    def begin(self, seed):
        """Everything as before the first step of a run."""
        torch.manual_seed(seed)
        for node in self.nodes:
            if node["layer"] in ("convolution", "dense", "batch_norm"):
                self.initialise(node, self.module(node["name"]))
        torch._foreach_zero_(self.muon.momenta)
        self.sgd.state.clear()
        self.network.zero_grad(set_to_none=True)
        self.coins = torch.rand(len(self.training), device=self.options.device) < 0.5

    def initialise(self, node, module):
        if node["layer"] == "batch_norm":
            module.reset_parameters()
        elif node["layer"] == "dense":
            torch.nn.init.kaiming_normal_(module[1].weight)
        elif node["initial"] == "whitening":
            module.weight.copy_(whitening(self.training.first, node["kernel"]))
            module.bias.zero_()
        else:
            module.reset_parameters()
            torch.nn.init.dirac_(module.weight[:module.weight.shape[1]])

    def arithmetic(self):
        if self.options.dtype == "float32":
            return contextlib.nullcontext()
        return torch.autocast(self.options.device, dtype=getattr(torch, self.options.dtype))

    def eager_loss(self, images, labels):
        return F.cross_entropy(self.network(images), labels, label_smoothing=self.smoothing)

    def train(self):
        self.network.train()
        seen, total = 0, self.recipe.epochs * len(self.training)
        for epoch in range(self.recipe.epochs):
            images = self.training.epoch(self.coins if epoch % 2 == 0 else ~self.coins)
            order = torch.randperm(len(self.training), device=self.options.device)
            for chosen in order.split(self.recipe.batch):
                batch = images[chosen].contiguous(memory_format=torch.channels_last)
                self.step(batch, self.training.labels[chosen], self.recipe.number("lr") * (1 - seen / total))
                seen += len(chosen)

    def step(self, images, labels, rate):
        with self.arithmetic():
            loss = self.loss(images, labels)
        loss.backward()
        for group in self.sgd.param_groups:
            group["lr"] = rate * group["factor"]
        self.sgd.step()
        self.muon.step(rate)
        self.network.zero_grad(set_to_none=True)

    @torch.no_grad()
    def evaluate(self):
        self.network.eval()
        correct = 0
        for first in range(0, len(self.validation), self.recipe.batch):
            part = slice(first, first + self.recipe.batch)
            with self.arithmetic():
                logits = sum(share * self.predict(view).float() for view, share in self.validation.views(part))
            correct += (logits.argmax(1) == self.validation.labels[part]).sum()
        return correct.item() / len(self.validation)

    def run(self, seed):
        self.begin(seed)
        wait(self.options.device)
        start = time.perf_counter()
        self.train()
        accuracy = self.evaluate()
        wait(self.options.device)
        return {"seed": seed, "accuracy": accuracy, "seconds": time.perf_counter() - start}


def warm(make, options):
    """A race whose first run, which compiles and chooses, is over; without compiling where that fails."""
    try:
        race = make()
        if options.device == "cuda":
            race.run(0)
        return race
    except Exception as error:  # pylint: disable=broad-except  # compilers fail in many ways
        if not options.compile:
            raise
        print(f"torch.compile fails, so without it: {type(error).__name__}: {error}", file=sys.stderr)
        options.compile = False
        return warm(make, options)


def measure(options):
    graph, config = (json.loads(path.read_text(encoding="utf-8")) for path in (options.graph, options.config))
    recipe = Recipe(config)
    torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.benchmark = True
    training = Pictures(options.cifar, TRAINING, recipe.whole("num-examples"), recipe.pad, recipe, options)
    validation = Pictures(options.cifar, VALIDATION, options.test_images, 1, recipe, options)
    options.compile = hasattr(torch, "compile") and options.device == "cuda" and not options.no_compile
    race = warm(lambda: Race(graph, recipe, training, validation, options), options)
    runs = [race.run(seed) for seed in range(1, options.runs + 1)]
    on_gpu = options.device == "cuda"
    return {"schema": "dtrain.speednet-peer/1", "torch": torch.__version__, "dtype": options.dtype,
            "device_name": torch.cuda.get_device_name() if on_gpu else "cpu", "compiled": options.compile,
            "parameters": sum(p.numel() for p in race.network.parameters()), "images": len(training),
            "test_images": len(validation), "runs": runs}


def parse():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("graph", type=pathlib.Path, help="the network, as dtrain writes it")
    parser.add_argument("config", type=pathlib.Path, help="the recipe, as dtrain writes it")
    parser.add_argument("cifar", type=pathlib.Path, help="folder with data_batch_1.bin and so on")
    parser.add_argument("--runs", type=int, default=50)
    parser.add_argument("--dtype", choices=("float32", "bfloat16"), default="bfloat16")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--test-images", type=int, default=0, help="evaluate on the first so many; 0: on all")
    parser.add_argument("--no-compile", action="store_true")
    parser.add_argument("--compile-mode", default="default", help="of torch.compile; max-autotune compiles for minutes")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main(parse(), measure))
