"""MXNet 1.9.1 judges dtrain's layers: the same graph, weights and batch give the same loss, gradients, statistics and updates.

What PyTorch cannot judge is what this is for: pooling conventions, batch norm's fix_gamma and moving variance, and the
optimizers are MXNet's own here. Arguments: cases of dtrain_dump_step to look at only.
"""

import sys

import numpy as np

from _mxnet import mxnet as mx
from mxnet import autograd, nd
from _philox import dropout_mask
from _step import Comparison, rates, run


class Network:
    """The case's graph in MXNet. Parameters and moving statistics are float32 NDArrays by name."""

    def __init__(self, case):
        self.case = case
        self.parameters = arrays(case.views("parameters", case.arrays["parameters"]))
        self.statistics = arrays(case.views("statistics", case.arrays["statistics"]))
        for parameter in self.parameters.values():
            parameter.attach_grad()

    def logits(self):
        values = []
        for index, node in enumerate(self.case.graph["nodes"][:-1]):
            inputs = [values[i] for i in self.case.inputs(node)]
            names, running = self.case.tensors(index)
            learns = node.get("learns", True)
            weights = [self.parameters[name] if learns else nd.BlockGrad(self.parameters[name]) for name in names]
            if node["layer"] == "input":
                values.append(nd.array(self.case.arrays["images"]))
            elif node["layer"] == "dropout":
                values.append(self.dropout(node, index, inputs[0]))
            else:
                moving = [self.statistics[name] for name in running]
                values.append(LAYERS[node["layer"]](node, *inputs, *weights, *moving))
        return values[-1]

    def dropout(self, node, index, x):
        if not autograd.is_training():
            return x
        case = self.case
        mask = dropout_mask(case.seed, case.epoch, index, case.arrays["sample_ids"], x[0].size, node["p"])
        return x * nd.array(mask.reshape(x.shape)) / (1 - node["p"])

    def step(self):
        """Gradients of the summed loss; the moving statistics take the batch's. Returns the loss sum."""
        smoothing = self.case.graph["nodes"][-1]["label_smoothing"]
        with autograd.record():
            log_shares = nd.log_softmax(self.logits())
            of_label = nd.pick(log_shares, nd.array(self.case.arrays["labels"]), axis=1)
            loss = -((1 - smoothing) * of_label.sum() + smoothing * log_shares.mean(axis=1).sum())
        loss.backward()
        return loss.asscalar()


def convolution(node, x, weight, bias=None):
    weight = nd.BlockGrad(weight) if node["frozen"] else weight
    pad, (below, right) = node["pad"], node.get("extra_pad", [0, 0])
    if below or right:
        x = nd.pad(x, "constant", (0, 0, 0, 0, pad[0], pad[0] + below, pad[1], pad[1] + right), 0)
        pad = [0, 0]
    return nd.Convolution(x, weight, bias, kernel=node["kernel"], stride=node["stride"], pad=pad,
                          dilate=node.get("dilation", [1, 1]), num_filter=weight.shape[0], num_group=node["groups"],
                          no_bias=bias is None)


def local_response_norm(node, x):
    return nd.LRN(x, nsize=node["size"], alpha=node["alpha"], beta=node["beta"], knorm=node["bias"])


def batch_norm(node, x, gamma, beta, mean, variance):
    return nd.BatchNorm(x, gamma, beta, mean, variance, eps=node["epsilon"], momentum=node["momentum"],
                        fix_gamma=node["fix_gamma"], use_global_stats=not node.get("learns", True))


def activation(node, x):
    if node["kind"] == "gelu":
        return nd.LeakyReLU(x, act_type="gelu")
    if node["kind"] == "silu":
        return x * nd.sigmoid(x)
    if node["kind"].startswith("hard"):
        gate = nd.hard_sigmoid(x, alpha=1 / 6, beta=0.5)
        return gate if node["kind"] == "hard_sigmoid" else x * gate
    return nd.clip(x, 0, 6) if node["kind"] == "relu6" else nd.Activation(x, act_type=node["kind"])


def pooling(node, x):
    kind = {"max": "max", "average": "avg"}[node["kind"]]
    if node["global"]:
        return nd.Pooling(x, pool_type=kind, global_pool=True)
    return nd.Pooling(x, pool_type=kind, kernel=node["kernel"], stride=node["stride"], pad=node["pad"],
                      pooling_convention="full" if node["full"] else "valid",
                      count_include_pad=node["count_include_pad"])


def dense(_, x, weight, bias=None):
    return nd.FullyConnected(x, weight, bias, num_hidden=weight.shape[0], no_bias=bias is None)


LAYERS = {"convolution": convolution, "local_response_norm": local_response_norm, "batch_norm": batch_norm,
          "activation": activation, "pooling": pooling, "dense": dense, "flatten": lambda _, x: nd.flatten(x),
          "add": lambda _, a, b: a + b, "concat": lambda _, *inputs: nd.concat(*inputs, dim=1), "multiply": lambda _, a, b: nd.broadcast_mul(a, b),
          "scale": lambda node, x: x * node["factor"]}


def is_known(case):
    """Whether MXNet has the layers: PyTorch alone judges others."""
    known = {*LAYERS, "input", "dropout", "softmax_loss"}
    loss = case.graph["nodes"][-1]
    if loss["kind"] != "softmax" or loss["focal_gamma"] or loss.get("class_weights") or "shares" in case.arrays:
        return False
    return all(node["layer"] in known and not node.get("whole_samples") for node in case.graph["nodes"])


def arrays(views):
    return {name: nd.array(values) for name, values in views.items()}


def numbers(tensors, leave_out=()):
    return {name: tensor.asnumpy() for name, tensor in tensors.items() if name not in leave_out}


def make_optimizer(case):
    """MXNet's own optimizer; tensors are numbered in the order of the case. None where 1.9.1 cannot judge: it has no adamw,
    and its nag kernel puts the decay of the weight that it has just overwritten into the momentum."""
    rule = case.optimizer
    if rule["kind"] not in ("sgd", "adam"):
        return None
    extra = ({"beta1": rule["beta1"], "beta2": rule["beta2"], "epsilon": rule["epsilon"]} if rule["kind"] == "adam"
             else {"momentum": rule["momentum"]})
    optimizer = mx.optimizer.create(rule["kind"], learning_rate=case.learning_rate, wd=1, rescale_grad=1 / case.samples,
                                    **extra)
    of = rates(case)
    optimizer.set_lr_mult({number: of[view["name"]][0] for number, view in enumerate(case.parameters)})
    optimizer.set_wd_mult({number: of[view["name"]][1] for number, view in enumerate(case.parameters)})
    return optimizer


def judge(case):
    if not is_known(case):
        return Comparison(case)
    network, found, optimizer = Network(case), Comparison(case), make_optimizer(case)
    found.tensors("evaluated", case.arrays, {"logits": network.logits().asnumpy()})
    states = {}
    for t in range(case.updates if optimizer else 1):
        loss = network.step()
        if t == 0:
            gradients = {name: parameter.grad.asnumpy() for name, parameter in network.parameters.items()}
            found.gradients(case, gradients)
            found.scalar("loss", case.arrays["contribution"][-4], loss, 1e-5)
        for number, (name, parameter) in enumerate(network.parameters.items() if optimizer else ()):
            if t == 0:
                states[name] = optimizer.create_state(number, parameter)
            if name not in case.held():
                optimizer.update(number, parameter, parameter.grad, states[name])
    if optimizer:
        found.updated(case, numbers(network.parameters, case.held()), numbers(network.statistics))
    return found


if __name__ == "__main__":
    sys.exit(run(judge, ("reference",), sys.argv[1:] or ["layers", "host"]))
