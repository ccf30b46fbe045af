"""PyTorch judges dtrain's backends: the same graph, weights and batch give the same loss, gradients, statistics and updates.

dtrain_dump_step writes what a backend computed for every layer kind and for the networks. Here each graph is rebuilt with
torch functions in float64, so that a difference is dtrain's own. Arguments: backends or cases to look at only.
"""

import sys

import numpy as np
import torch
import torch.nn.functional as F

from _muon import Both, Muon, matrices, shapes
from _philox import dropout_mask
from _rules import Rule
from _step import LOSS, Comparison, rates, run

BACKENDS = ("reference", "cpu", "replay")


class Network:
    """The case's graph in torch. Parameters and running statistics are float64 tensors by name."""

    def __init__(self, case):
        self.case = case
        self.parameters = {name: torch.tensor(values.astype(np.float64), requires_grad=True)
                           for name, values in case.views("parameters", case.arrays["parameters"]).items()}
        self.statistics = {name: torch.tensor(values.astype(np.float64))
                           for name, values in case.views("statistics", case.arrays["statistics"]).items()}

    def forward(self, first, count, training):
        """Logits of samples [first, first + count), and the batch statistics by name."""
        values, seen = [], {}
        images = torch.tensor(self.case.arrays["images"][first:first + count].astype(np.float64))
        sample_ids = self.case.arrays["sample_ids"][first:first + count]
        for index, node in enumerate(self.case.graph["nodes"][:-1]):
            inputs = [values[i] for i in self.case.inputs(node)]
            names, running = self.case.tensors(index)
            learns = node.get("learns", True)
            weights = [self.parameters[name] if learns else self.parameters[name].detach() for name in names]
            kind = node["layer"]
            if kind == "input":
                value = images
            elif kind == "batch_norm":
                value = self.batch_norm(node, inputs[0], weights, running, training and learns, seen)
            elif kind == "dropout":
                value = self.dropout(node, index, inputs[0], sample_ids) if training else inputs[0]
            else:
                value = LAYERS[kind](node, *inputs, *weights)
            values.append(value)
        return values[-1], seen

    def batch_norm(self, node, x, weights, running, training, seen):
        gamma, beta = weights
        if node["fix_gamma"]:
            gamma = torch.ones_like(gamma)
        axes = [0, *range(2, x.dim())]
        if training:  # torch's own running variance is the unbiased one, MXNet's and dtrain's is the biased
            seen[running[0]] = x.mean(axes).detach()
            seen[running[1]] = x.var(axes, unbiased=False).detach()
        mean, variance = (None, None) if training else (self.statistics[name] for name in running)
        return F.batch_norm(x, mean, variance, gamma, beta, training, 0.0, node["epsilon"])

    def dropout(self, node, index, x, sample_ids):
        size = 1 if node["whole_samples"] else x[0].numel()
        mask = dropout_mask(self.case.seed, self.case.epoch, index, sample_ids, size, node["p"])
        shape = (len(x), *[1] * (x.dim() - 1)) if node["whole_samples"] else x.shape
        return x * torch.tensor(mask.reshape(shape)) / (1 - node["p"])

    def step(self):
        """One step over all shards: gradients of the summed loss, statistics weighted by count, loss and counts."""
        statistics = {name: torch.zeros_like(value) for name, value in self.statistics.items()}
        metrics = np.zeros(4)
        for parameter in self.parameters.values():
            parameter.grad = torch.zeros_like(parameter)
        for first, count in self.case.shards:
            if count == 0:
                continue
            labels = torch.tensor(self.case.arrays["labels"][first:first + count].astype(np.int64))
            logits, seen = self.forward(first, count, training=True)
            partners, shares = self.second_labels(labels, first, count)
            targets = sum(share[:, None] * F.one_hot(label, logits.shape[1])
                          for label, share in ((labels, shares), (partners, 1 - shares)))
            loss = loss_of(self.case.graph["nodes"][-1], logits, targets)
            loss.backward()
            for name, value in seen.items():
                statistics[name] += count * value
            hits = [top_k(logits, label, self.case.top_k, share) for label, share in ((labels, shares), (partners, 1 - shares))]
            metrics += [loss.item(), *np.sum(hits, axis=0), count]
        return statistics, metrics

    def second_labels(self, labels, first, count):
        """The partners' labels and the shares of the samples' own, which is all of it where nothing is mixed."""
        arrays = self.case.arrays
        if "shares" not in arrays:
            return labels, torch.ones(count, dtype=torch.float64)
        return (torch.tensor(arrays["partners"][first:first + count].astype(np.int64)),
                torch.tensor(arrays["shares"][first:first + count].astype(np.float64)))

    def update(self, optimizer, t, statistics):
        """What apply() does: mean gradients, the rule, then the running statistics. `t` counts from 1."""
        for parameter in self.parameters.values():
            parameter.grad /= self.case.samples
        rule = self.case.optimizer
        if rule["clip_norm"] > 0:
            torch.nn.utils.clip_grad_norm_(self.parameters.values(), rule["clip_norm"])
        if rule["clip_gradient"] > 0:
            torch.nn.utils.clip_grad_value_(self.parameters.values(), rule["clip_gradient"])
        if self.case.optimizer["kind"] == "adam":  # MXNet's Adam adds epsilon to the root before torch's correction
            for group in optimizer.param_groups:
                group["eps"] = self.case.optimizer["epsilon"] / (1 - self.case.optimizer["beta2"] ** t) ** 0.5
        optimizer.step()
        for index, node in enumerate(self.case.graph["nodes"]):
            for name in self.case.tensors(index)[1]:
                mean = statistics[name] / self.case.samples
                momentum = node["momentum"] if node.get("learns", True) else 1
                self.statistics[name] = momentum * self.statistics[name] + (1 - momentum) * mean


def loss_of(node, logits, targets):
    """Summed over the samples: torch's own losses; focal ones after kornia's focal_loss and torchvision's sigmoid_focal_loss."""
    weights = torch.tensor(node.get("class_weights", [1.0] * logits.shape[1]), dtype=logits.dtype)
    smoothing, gamma = node["label_smoothing"], node["focal_gamma"]
    if node["kind"] == "softmax" and gamma == 0:
        return F.cross_entropy(logits, targets, weights, reduction="sum", label_smoothing=smoothing)
    targets = targets * (1 - smoothing) + smoothing / logits.shape[1]
    if node["kind"] == "softmax":
        return -(weights * targets * (1 - logits.softmax(1)) ** gamma * logits.log_softmax(1)).sum()
    if node["target_threshold"] < 1:  # as timm's BinaryCrossEntropy
        targets = targets.gt(node["target_threshold"]).to(logits.dtype)
    each = F.binary_cross_entropy_with_logits(logits, targets, weights, reduction="none")
    shares = logits.sigmoid()
    missed = 1 - (shares * targets + (1 - shares) * (1 - targets))
    return (each * missed ** gamma if gamma else each).mean(1).sum()


def convolution(node, x, weight, bias=None):
    weight = weight.detach() if node["frozen"] else weight
    weight = weight[:, :, None, None] if weight.dim() == 2 else weight  # a linear layer at every place
    (above, left), (below, right) = node["pad"], node.get("extra_pad", [0, 0])
    x = F.pad(x, (left, left + right, above, above + below))
    return F.conv2d(x, weight, bias, node["stride"], 0, node.get("dilation", 1), node["groups"])


def local_response_norm(node, x):
    return F.local_response_norm(x, node["size"], node["alpha"], node["beta"], node["bias"])


def activation(node, x):
    return {"relu": torch.relu, "tanh": torch.tanh, "sigmoid": torch.sigmoid, "relu6": F.relu6,
            "gelu": F.gelu, "silu": F.silu, "hard_swish": F.hardswish, "hard_sigmoid": F.hardsigmoid}[node["kind"]](x)


def pooling(node, x):
    largest = node["kind"] == "max"
    if node["global"]:
        return x.amax((2, 3), keepdim=True) if largest else x.mean((2, 3), keepdim=True)
    window = {"kernel_size": node["kernel"], "stride": node["stride"], "padding": node["pad"], "ceil_mode": node["full"]}
    return F.max_pool2d(x, **window) if largest else F.avg_pool2d(x, **window, count_include_pad=node["count_include_pad"])


def dense(_, x, weight, bias=None):
    return F.linear(x.flatten(1), weight, bias)


def layer_norm(node, x, gamma, beta):
    if x.dim() == 2:
        return F.layer_norm(x, x.shape[1:], gamma, beta, node["epsilon"])
    return F.layer_norm(x.permute(0, 2, 3, 1), x.shape[1:2], gamma, beta, node["epsilon"]).permute(0, 3, 1, 2)


def class_token(_, x, token):
    """Tokens are pixels in one row."""
    first = token.reshape(1, -1, 1, 1).expand(len(x), -1, 1, 1)
    return torch.cat([first, x.flatten(2).unsqueeze(2)], 3)


def position(_, x, table):
    return x + table.transpose(1, 2).reshape(1, *x.shape[1:])


def attention(node, x):
    """torch's own multi-head attention, whose projections on both sides are left out."""
    sequence = x.flatten(2).permute(2, 0, 1)
    queries, keys, values = sequence.chunk(3, 2)
    width = queries.shape[2]
    plain = torch.eye(width, dtype=x.dtype)
    found, _ = F.multi_head_attention_forward(
        queries, keys, values, width, node["heads"], plain.repeat(3, 1), None, None, None, False, 0.0, plain, None,
        training=False, need_weights=False)
    return found.permute(1, 2, 0).reshape(len(x), width, *x.shape[2:])


LAYERS = {"layer_norm": layer_norm, "layer_scale": lambda _, x, gain: x * gain, "class_token": class_token,
          "position": position, "first_token": lambda _, x: x[:, :, :1, :1], "attention": attention,
          "local_response_norm": local_response_norm, "convolution": convolution, "activation": activation,
          "pooling": pooling, "dense": dense,
          "flatten": lambda _, x: x.flatten(1), "add": lambda _, a, b: a + b,
          "concat": lambda _, *inputs: torch.cat(inputs, 1), "multiply": lambda _, x, factors: x * factors,
          "scale": lambda node, x: x * node["factor"]}


def top_k(logits, labels, k, weights=1):
    """How many labels come first, and how many among the first k; each counts by its weight."""
    order = torch.argsort(logits, dim=1, descending=True, stable=True)
    hits = order == labels[:, None]
    return (hits[:, 0] * weights).sum().item(), (hits[:, :k].any(1) * weights).sum().item()


def make_optimizer(case, network):
    """torch's own optimizer for the case's rule, with a group for each rate and decay; Muon after Jordan's."""
    rule, kind = case.optimizer, case.optimizer["kind"]
    groups = plain_groups(case, network)
    rate, betas = case.learning_rate, (rule["beta1"], rule["beta2"])
    if kind == "muon":
        rest = torch.optim.SGD(groups, rate, rule["muon_rest_momentum"], nesterov=True)
        return Both(rest, Muon(matrices(case, network.parameters), rate, rule))
    if hasattr(Rule, kind):
        return Rule(groups, rate, rule)
    if kind in ("sgd", "nag"):
        return torch.optim.SGD(groups, rate, rule["momentum"], nesterov=kind == "nag")
    if kind == "adamax":
        return torch.optim.Adamax(groups, rate, betas, rule["epsilon"])
    if kind == "adadelta":
        return torch.optim.Adadelta(groups, rate, rule["beta2"], rule["epsilon"])
    return (torch.optim.AdamW if kind == "adamw" else torch.optim.Adam)(groups, rate, betas, rule["epsilon"])


def plain_groups(case, network):
    apart = case.held() | ({name for name, *_ in shapes(case)} if case.optimizer["kind"] == "muon" else set())
    return [{"params": [network.parameters[name]], "lr": case.learning_rate * factor, "weight_decay": decay}
            for name, (factor, decay) in rates(case).items() if name not in apart]


def detached(tensors):
    return {name: tensor.detach().numpy() for name, tensor in tensors.items()}


def judge(case):
    network, found = Network(case), Comparison(case)
    compare_evaluation(case, found, network)
    optimizer = make_optimizer(case, network)
    for t in range(1, case.updates + 1):
        statistics, metrics = network.step()
        if t == 1:
            found.gradients(case, detached({name: p.grad for name, p in network.parameters.items()}))
            found.sums(case, detached(statistics), metrics)
        network.update(optimizer, t, statistics)
    found.updated(case, detached(network.parameters), detached(network.statistics))
    return found


def compare_evaluation(case, found, network):
    labels = torch.tensor(case.arrays["labels"].astype(np.int64))
    with torch.no_grad():
        logits, _ = network.forward(0, case.samples, training=False)
    loss = F.cross_entropy(logits, labels, reduction="sum").item()
    found.tensors("evaluated", case.arrays, {"logits": logits.numpy()})
    found.scalar("evaluated loss", case.evaluated["loss_sum"], loss, LOSS)
    for what, value in zip(("correct", "top_k_correct"), top_k(logits, labels, case.top_k)):
        found.scalar("evaluated " + what, case.evaluated[what], value, 0)


if __name__ == "__main__":
    torch.set_num_threads(1)
    chosen = [name for name in sys.argv[1:] if name in BACKENDS]
    sys.exit(run(judge, chosen or BACKENDS, [name for name in sys.argv[1:] if name not in BACKENDS]))
