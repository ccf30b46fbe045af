"""Optimizer rules in torch that torch itself has not, or has with other formulas: what pytorch_step.py holds dtrain's against.

RMSProp and AdaGrad after MXNet's optimizer_op-inl.h and optimizer.py, LAMB after You et al. 2020 (arXiv 1904.00962,
algorithm 2) as timm's lamb.py applies it: without decay and trust ratio of gamma, beta and bias; LARS after You et al. 2017 (arXiv 1708.03888) as MXNet's lars.py applies it: not to gamma, beta and bias; Nadam after
MXNet's optimizer.py (torch's own has one momentum too many in version 1.13); Signum and FTML after MXNet's
optimizer_op-inl.h, FTML with all of its states.
"""

import math

import torch


def is_weight(w):
    """Of a dense layer or a convolution."""
    return w.dim() in (2, 4)


class Rule:
    """`groups` as torch's optimizers take them: each with params, lr and weight_decay; `lr` has the group's factor."""

    def __init__(self, groups, rate, rule):
        self.groups, self.rate, self.rule, self.t, self.distance = groups, rate, rule, 0, {}
        self.state = {id(w): [torch.zeros_like(w), torch.zeros_like(w)] for group in groups for w in group["params"]}

    def step(self):
        self.t += 1
        with torch.no_grad():
            for group in self.groups:
                factor = group["lr"] / self.rate
                for weight in group["params"]:
                    # plain_groups() divides the decay by the factor
                    self.move(weight, weight.grad, *self.state[id(weight)], factor, group["weight_decay"] * factor)

    def rmsprop(self, w, g, square, _, factor, decay):
        g = g + decay * w
        square.mul_(self.rule["beta2"]).addcmul_(g, g, value=1 - self.rule["beta2"])
        w -= factor * self.rate * g / torch.sqrt(square + self.rule["epsilon"])

    def adagrad(self, w, g, square, _, factor, decay):
        square += g * g
        w -= self.rate * (factor * g / torch.sqrt(square + self.rule["epsilon"]) + decay * w)

    def lamb(self, w, g, mean, square, factor, decay):
        b1, b2 = self.rule["beta1"], self.rule["beta2"]
        mean.mul_(b1).add_(g, alpha=1 - b1)
        square.mul_(b2).addcmul_(g, g, value=1 - b2)
        root = torch.sqrt(square / (1 - b2 ** self.t)) + self.rule["epsilon"]
        along = mean / (1 - b1 ** self.t) / root + (decay * w if is_weight(w) else 0)
        ratio = w.norm() / along.norm() if is_weight(w) and w.norm() > 0 and along.norm() > 0 else 1
        w -= factor * self.rate * ratio * along

    def lars(self, w, g, momentum, _, factor, decay):
        ratio = 1
        if is_weight(w) and w.norm() > 0 and g.norm() > 0:
            ratio = 0.001 * w.norm() / (g.norm() + decay * w.norm() + self.rule["epsilon"])
        momentum.mul_(self.rule["momentum"]).sub_(self.rate * ratio * (factor * g + decay * w))
        w += momentum

    def nadam(self, w, g, mean, square, factor, decay):
        b1, b2 = self.rule["beta1"], self.rule["beta2"]
        momenta = [b1 * (1 - 0.5 * 0.96 ** (0.004 * t)) for t in range(1, self.t + 2)]
        g = g + decay * w
        mean.mul_(b1).add_(g, alpha=1 - b1)
        square.mul_(b2).addcmul_(g, g, value=1 - b2)
        ahead = ((1 - momenta[-2]) * g / (1 - math.prod(momenta[:-1])) + momenta[-1] * mean / (1 - math.prod(momenta)))
        w -= factor * self.rate * ahead / (torch.sqrt(square / (1 - b2 ** self.t)) + self.rule["epsilon"])

    def signum(self, w, g, momentum, _, factor, decay):
        share = self.rule["momentum"]
        momentum.mul_(share).add_(g + decay * w, alpha=1 - share)
        w -= factor * self.rate * torch.sign(momentum)

    def ftml(self, w, g, square, z, factor, decay):
        b1, b2 = self.rule["beta1"], self.rule["beta2"]
        before = 0 if self.t == 1 else self.distance[id(w)]
        g = g + decay * w
        square.mul_(b2).addcmul_(g, g, value=1 - b2)
        distance = (1 - b1 ** self.t) / (factor * self.rate) * (torch.sqrt(square / (1 - b2 ** self.t)) + self.rule["epsilon"])
        z.mul_(b1).add_((1 - b1) * g - (distance - b1 * before) * w)
        self.distance[id(w)] = distance
        w.copy_(-z / distance)

    def move(self, *arguments):
        getattr(self, self.rule["kind"])(*arguments)
