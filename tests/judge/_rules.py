"""Optimizer rules in torch that torch itself has not, or has with other formulas: what pytorch_step.py holds dtrain's against.

RMSProp and AdaGrad after MXNet's optimizer_op-inl.h and optimizer.py, LAMB after You et al. 2020 (arXiv 1904.00962,
algorithm 2), LARS after You et al. 2017 (arXiv 1708.03888) as MXNet's lars.py applies it: not to what does not decay.
"""

import torch


class Rule:
    """`groups` as torch's optimizers take them: each with params, lr and weight_decay; `lr` has the group's factor."""

    def __init__(self, groups, rate, rule):
        self.groups, self.rate, self.rule, self.t = groups, rate, rule, 0
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
        along = mean / (1 - b1 ** self.t) / root + decay * w
        ratio = w.norm() / along.norm() if w.norm() > 0 and along.norm() > 0 else 1
        w -= factor * self.rate * ratio * along

    def lars(self, w, g, momentum, _, factor, decay):
        ratio = 1
        if decay > 0 and w.norm() > 0 and g.norm() > 0:
            ratio = 0.001 * w.norm() / (g.norm() + decay * w.norm() + self.rule["epsilon"])
        momentum.mul_(self.rule["momentum"]).sub_(self.rate * ratio * (factor * g + decay * w))
        w += momentum

    def move(self, *arguments):
        getattr(self, self.rule["kind"])(*arguments)
