#!/usr/bin/env python3
"""How fast PyTorch trains a network of dtrain's: the peer of `dtrain bench train`.

    pytorch_peer.py GRAPH.json --batch-size N [--dtype float32|bfloat16|float16] [--device cuda|cpu] ...

The network is built from dtrain's own description of it. PyTorch is used as its documentation recommends: channels_last,
autocast, torch.compile, a fused optimizer, input that lies on the device already. Prints one JSON object. Exit: 0
measured, 77 this Python has no PyTorch, or PyTorch no such device; it says why.
"""

import argparse
import contextlib
import json
import statistics
import sys
import time

SKIPPED = 77
STEPS_PER_TIMING = 10  # between two waits for the device, so that the waiting itself does not count

try:
    import torch
    import torch.nn.functional as F
except ImportError as error:
    print(f"no PyTorch: {error}", file=sys.stderr)
    sys.exit(SKIPPED)


class Network(torch.nn.Module):
    """The graph up to its logits."""

    def __init__(self, graph):
        super().__init__()
        nodes = graph["nodes"]
        shapes = {node["name"]: node["shape"] for node in nodes}
        self.smoothing = nodes[-1]["label_smoothing"]
        self.image, self.classes = nodes[0]["shape"], nodes[-1]["shape"][0]
        self.order = [(node["name"].replace(".", "_"), node["name"], node.get("inputs", [])) for node in nodes[1:-1]]
        self.first = nodes[0]["name"]
        for (module, _, inputs), node in zip(self.order, nodes[1:-1]):
            self.add_module(module, layer(node, [shapes[name] for name in inputs]))

    def forward(self, images):
        values = {self.first: images}
        for module, name, inputs in self.order:
            values[name] = getattr(self, module)(*[values[i] for i in inputs])
        return values[self.order[-1][1]]


class Add(torch.nn.Module):
    def forward(self, a, b):
        return a + b


class Concat(torch.nn.Module):
    def forward(self, *inputs):
        return torch.cat(inputs, 1)


class Multiply(torch.nn.Module):
    def forward(self, x, factors):
        return x * factors


class Scale(torch.nn.Module):
    def __init__(self, factor):
        super().__init__()
        self.factor = factor

    def forward(self, x):
        return self.factor * x


class LayerNorm(torch.nn.LayerNorm):
    """Of the channels of each pixel."""

    def forward(self, x):
        return super().forward(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)


class LayerScale(torch.nn.Module):
    def __init__(self, channels, initial):
        super().__init__()
        self.gain = torch.nn.Parameter(torch.full((channels, 1, 1), initial))

    def forward(self, x):
        return x * self.gain


class DropSamples(torch.nn.Module):
    def __init__(self, p):
        super().__init__()
        self.p = p

    def forward(self, x):
        kept = torch.empty(len(x), 1, 1, 1, device=x.device, dtype=x.dtype).bernoulli_(1 - self.p)
        return x * (kept / (1 - self.p)) if self.training else x


class ClassToken(torch.nn.Module):
    """Tokens are pixels in one row."""

    def __init__(self, channels):
        super().__init__()
        self.token = torch.nn.Parameter(torch.zeros(1, channels, 1, 1))

    def forward(self, x):
        return torch.cat([self.token.expand(len(x), -1, 1, 1), x.flatten(2).unsqueeze(2)], 3)


class Position(torch.nn.Module):
    def __init__(self, shape):
        super().__init__()
        self.position = torch.nn.Parameter(0.02 * torch.randn(1, *shape))

    def forward(self, x):
        return x + self.position


class FirstToken(torch.nn.Module):
    def forward(self, x):
        return x[:, :, :1, :1]


class Attention(torch.nn.Module):
    def __init__(self, heads):
        super().__init__()
        self.heads = heads

    def forward(self, x):
        n, channels, h, w = x.shape
        parts = x.reshape(n, 3, self.heads, channels // 3 // self.heads, h * w).transpose(3, 4).unbind(1)
        return F.scaled_dot_product_attention(*parts).transpose(2, 3).reshape(n, channels // 3, h, w)


def layer(node, inputs):
    kind, channels = node["layer"], inputs[0][0]
    if kind == "convolution":
        return torch.nn.Conv2d(channels, node["out"], node["kernel"], node["stride"], node["pad"],
                               groups=node["groups"], bias=node["bias"])
    if kind == "batch_norm":
        norm = torch.nn.BatchNorm2d(channels, node["epsilon"], 1 - node["momentum"])
        norm.weight.requires_grad_(not node["fix_gamma"])
        return norm
    if kind == "activation":
        return {"relu": torch.nn.ReLU, "tanh": torch.nn.Tanh, "sigmoid": torch.nn.Sigmoid,
                "relu6": torch.nn.ReLU6, "gelu": torch.nn.GELU, "silu": torch.nn.SiLU,
                "hard_swish": torch.nn.Hardswish, "hard_sigmoid": torch.nn.Hardsigmoid}[node["kind"]]()
    if kind == "pooling":
        return pooling(node)
    if kind == "dense":
        features = inputs[0][0] * inputs[0][1] * inputs[0][2]
        return torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(features, node["out"], bias=node["bias"]))
    if kind == "dropout":
        return DropSamples(node["p"]) if node.get("whole_samples") else torch.nn.Dropout(node["p"])
    if kind == "layer_norm":
        return LayerNorm(channels, node["epsilon"])
    if kind == "layer_scale":
        return LayerScale(channels, node["initial"])
    if kind == "position":
        return Position(inputs[0])
    if kind == "attention":
        return Attention(node["heads"])
    if kind == "class_token":
        return ClassToken(channels)
    if kind == "first_token":
        return FirstToken()
    if kind == "scale":
        return Scale(node["factor"])
    return {"flatten": torch.nn.Flatten, "add": Add, "concat": Concat, "multiply": Multiply}[kind]()


def pooling(node):
    if node["global"]:
        largest = node["kind"] == "max"
        return torch.nn.AdaptiveMaxPool2d(1) if largest else torch.nn.AdaptiveAvgPool2d(1)
    window = {"kernel_size": node["kernel"], "stride": node["stride"], "padding": node["pad"], "ceil_mode": node["full"]}
    if node["kind"] == "max":
        return torch.nn.MaxPool2d(**window)
    return torch.nn.AvgPool2d(**window, count_include_pad=node["count_include_pad"])


class Step:
    """One step of training on input that stays the same."""

    def __init__(self, network, options):
        self.options = options
        device = torch.device(options.device)
        self.network = network.to(device, memory_format=torch.channels_last)
        self.compiled = hasattr(torch, "compile") and not options.no_compile
        self.run = torch.compile(self.network, mode=options.compile_mode) if self.compiled else self.network
        rule = {"lr": 1e-4, "momentum": 0.9, "weight_decay": 1e-4}
        if device.type == "cuda":
            rule["fused"] = True
        self.optimizer = torch.optim.SGD([p for p in network.parameters() if p.requires_grad], **rule)
        self.scaler = torch.cuda.amp.GradScaler(enabled=options.dtype == "float16")
        n = options.batch_size
        self.images = torch.randn(n, *network.image, device=device).to(memory_format=torch.channels_last)
        self.labels = torch.randint(network.classes, (n,), device=device)

    def arithmetic(self):
        if self.options.dtype == "float32":
            return contextlib.nullcontext()
        return torch.autocast(self.options.device, dtype=getattr(torch, self.options.dtype))

    def __call__(self):
        with self.arithmetic():
            logits = self.run(self.images)
            loss = F.cross_entropy(logits, self.labels, label_smoothing=self.network.smoothing)
        self.optimizer.zero_grad(set_to_none=True)
        self.scaler.scale(loss).backward()
        self.scaler.step(self.optimizer)
        self.scaler.update()


def wait(device):
    if device == "cuda":
        torch.cuda.synchronize()


def time_steps(step, options):
    """Seconds of a step, one number for each group of them."""
    for _ in range(options.warmup):
        step()
    wait(options.device)
    seconds = []
    for _ in range(max(1, options.steps // STEPS_PER_TIMING)):
        start = time.perf_counter()
        for _ in range(STEPS_PER_TIMING):
            step()
        wait(options.device)
        seconds.append((time.perf_counter() - start) / STEPS_PER_TIMING)
    return seconds


def measure(options):
    with open(options.graph, encoding="utf-8") as file:
        network = Network(json.load(file))
    # float32 is float32, as in dtrain: not the ten bits that tensor cores would make of it.
    torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.benchmark = True
    torch.manual_seed(0)
    step = Step(network, options)
    median = statistics.median(time_steps(step, options))
    on_gpu = options.device == "cuda"
    return {"schema": "dtrain.pytorch-peer/1", "torch": torch.__version__, "device": options.device,
            "device_name": torch.cuda.get_device_name() if on_gpu else "cpu", "dtype": options.dtype,
            "compiled": step.compiled, "parameters": sum(p.numel() for p in network.parameters()),
            "batch_size": options.batch_size, "steps": options.steps, "step_seconds": median,
            "images_per_second": options.batch_size / median,
            "peak_memory_bytes": torch.cuda.max_memory_reserved() if on_gpu else 0}


def parse():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("graph", help="the network, as dtrain writes it")
    parser.add_argument("--batch-size", type=int, required=True)
    parser.add_argument("--dtype", choices=("float32", "bfloat16", "float16"), default="float32")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--warmup", type=int, default=20)
    parser.add_argument("--no-compile", action="store_true")
    parser.add_argument("--compile-mode", default="default", help="of torch.compile")
    return parser.parse_args()


def main(options, measure):
    """Prints what `measure` finds, where there is such a device."""
    if options.device == "cuda" and not torch.cuda.is_available():
        print(f"PyTorch {torch.__version__} sees no GPU", file=sys.stderr)
        return SKIPPED
    print(json.dumps(measure(options)))
    return 0


if __name__ == "__main__":
    sys.exit(main(parse(), measure))
