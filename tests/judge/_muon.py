"""Muon in torch, written after https://github.com/KellerJordan/cifar10-airbench: what pytorch_step.py holds dtrain's against."""

import torch

from _step import weighted_nodes


def orthogonal(g, steps, coefficients):
    """Newton-Schulz on one matrix."""
    a, b, c = coefficients
    x = g / (g.norm() + 1e-7)
    if g.shape[0] > g.shape[1]:
        x = x.T
    for _ in range(steps):
        square = x @ x.T
        x = a * x + (b * square + c * square @ square) @ x
    return x.T if g.shape[0] > g.shape[1] else x


class Muon:
    """Momentum with Nesterov, the norm sqrt(rows) where only batch norms see the scale, then the orthogonal step."""

    def __init__(self, weights, rate, rule):
        """`weights`: (parameter, groups, scale_free)."""
        self.weights, self.rate, self.rule = weights, rate, rule
        self.momenta = [torch.zeros_like(weight) for weight, *_ in weights]

    def step(self):
        rule = self.rule
        with torch.no_grad():
            for (weight, groups, scale_free), momentum in zip(self.weights, self.momenta):
                momentum.mul_(rule["momentum"]).add_(weight.grad)
                along = weight.grad.add(momentum, alpha=rule["momentum"])
                for part, step in zip(weight.data.chunk(groups), along.chunk(groups)):
                    if scale_free:
                        part.mul_(len(part) ** 0.5 / part.norm())
                    part.mul_(1 - self.rate * rule["weight_decay"])
                    update = orthogonal(step.reshape(len(step), -1), rule["muon_steps"], rule["muon_coefficients"])
                    part.sub_(update.view(part.shape), alpha=self.rate)


class Both:
    """Two optimizers as one."""

    def __init__(self, *optimizers):
        self.optimizers = optimizers

    def step(self):
        for optimizer in self.optimizers:
            optimizer.step()


def loses_scale(case, index):
    """Whether a factor on what node `index` gives reaches batch norms only."""
    for reader, node in enumerate(case.graph["nodes"]):
        if index not in case.inputs(node) or node["layer"] == "batch_norm":
            continue
        linear = node["layer"] in ("pooling", "flatten", "dropout") or (node["layer"], node.get("kind")) == ("activation", "relu")
        if not linear or not loses_scale(case, reader):
            return False
    return True


def shapes(case):
    """Of each weight that muon takes as matrices: its name, in how many groups, and whether its scale is free."""
    for index in weighted_nodes(case)[:-1]:
        names, node = case.tensors(index)[0], case.graph["nodes"][index]
        if not node.get("frozen"):
            yield names[0], node.get("groups", 1), len(names) == 1 and loses_scale(case, index)


def matrices(case, parameters):
    return [(parameters[name], groups, scale_free) for name, groups, scale_free in shapes(case)]
