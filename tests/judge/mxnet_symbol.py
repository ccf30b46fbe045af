"""The real MXNet judges our networks and symbol.json files.

Every network is written here once more with MXNet's own API. Ours must load, infer the same parameters, and compute the
same logits from the same numbers; and what MXNet saves must come back from our reader as the network that we build.
"""
import json
import os
import subprocess
import sys
import tempfile

import numpy as np
from _mxnet import mxnet as mx

DUMP = os.path.join(os.path.dirname(os.environ["DTRAIN"]), "tests", "dtrain_dump_graph")


def conv(x, name, out, kernel, stride=1, pad=0, bias=False, groups=1):
    return mx.sym.Convolution(x, name=name, num_filter=out, kernel=(kernel, kernel), stride=(stride, stride),
                              pad=(pad, pad), no_bias=not bias, num_group=groups)


def bn(x, name, fix_gamma=False, eps=2e-5):
    return mx.sym.BatchNorm(x, name=name, fix_gamma=fix_gamma, eps=eps, momentum=0.9)


def relu(x, name):
    return mx.sym.Activation(x, act_type="relu", name=name)


def tanh(x):
    return mx.sym.Activation(x, act_type="tanh")


def dense(x, out, name=None):
    return mx.sym.FullyConnected(x, num_hidden=out, name=name)


def max_pool(x, kernel, stride, pad=0, name=None):
    return mx.sym.Pooling(x, pool_type="max", kernel=(kernel, kernel), stride=(stride, stride), pad=(pad, pad), name=name)


def global_pool(x, name):
    return mx.sym.Pooling(x, pool_type="avg", global_pool=True, kernel=(7, 7), name=name)


def unit_v2(x, name, channels, stride, first, bottleneck):
    act = relu(bn(x, name + "_bn1"), name + "_relu1")
    if bottleneck:
        steps = [(channels // 4, 1, 1, 0), (channels // 4, 3, stride, 1), (channels, 1, 1, 0)]
    else:
        steps = [(channels, 3, stride, 1), (channels, 3, 1, 1)]
    y = act
    for k, step in enumerate(steps, 1):
        if k > 1:
            y = relu(bn(y, f"{name}_bn{k}"), f"{name}_relu{k}")
        y = conv(y, f"{name}_conv{k}", *step)
    return y + (conv(act, name + "_sc", channels, 1, stride) if first else x)


def unit_v1(x, name, channels, stride, first, bottleneck):
    if bottleneck:
        steps = [(channels // 4, 1, stride, 0), (channels // 4, 3, 1, 1), (channels, 1, 1, 0)]
    else:
        steps = [(channels, 3, stride, 1), (channels, 3, 1, 1)]
    y = x
    for k, step in enumerate(steps, 1):
        y = bn(conv(y, f"{name}_conv{k}", *step), f"{name}_bn{k}")
        if k < len(steps):
            y = relu(y, f"{name}_relu{k}")
    shortcut = bn(conv(x, name + "_conv1sc", channels, 1, stride), name + "_sc") if first else x
    return relu(y + shortcut, name + "_relu3")


def resnet(version, units, channels, bottleneck, small, classes):
    x = mx.sym.identity(mx.sym.Variable("data"), name="id")
    if version == 2:
        x = bn(x, "bn_data", fix_gamma=True)
    x = conv(x, "conv0", channels[0], 3, 1, 1) if small else conv(x, "conv0", channels[0], 7, 2, 3)
    if not small or version == 1:
        x = bn(x, "bn0")
    if not small:
        x = max_pool(relu(x, "relu0"), 3, 2, 1)
    unit = unit_v2 if version == 2 else unit_v1
    for stage, count in enumerate(units):
        for k in range(count):
            stride = 2 if stage > 0 and k == 0 else 1
            x = unit(x, f"stage{stage + 1}_unit{k + 1}", channels[stage + 1], stride, k == 0, bottleneck)
    if version == 2:
        x = relu(bn(x, "bn1"), "relu1")
    x = dense(mx.sym.Flatten(global_pool(x, "pool1")), classes, "fc1")
    return mx.sym.SoftmaxOutput(x, name="softmax")


def small_resnet(version, depth):
    if depth >= 164:
        return resnet(version, [(depth - 2) // 9] * 3, [16, 64, 128, 256], True, True, 10)
    return resnet(version, [(depth - 2) // 6] * 3, [16, 16, 32, 64], False, True, 10)


def large_resnet(version, units, bottleneck):
    channels = [64, 256, 512, 1024, 2048] if bottleneck else [64, 64, 128, 256, 512]
    return resnet(version, units, channels, bottleneck, False, 10)


def lenet():
    x = mx.sym.Variable("data")
    for out in (20, 50):
        x = max_pool(tanh(mx.sym.Convolution(x, kernel=(5, 5), num_filter=out)), 2, 2)
    x = tanh(dense(mx.sym.Flatten(x), 500))
    return mx.sym.SoftmaxOutput(dense(x, 10), name="softmax")


def mlp():
    x = mx.sym.Flatten(mx.sym.Variable("data"))
    x = relu(dense(x, 128, "fc1"), "relu1")
    x = relu(dense(x, 64, "fc2"), "relu2")
    return mx.sym.SoftmaxOutput(dense(x, 10, "fc3"), name="softmax")


def vgg(counts):
    x = mx.sym.Variable("data")
    for block, (count, out) in enumerate(zip(counts, [64, 128, 256, 512, 512]), 1):
        for k in range(1, count + 1):
            x = relu(conv(x, f"conv{block}_{k}", out, 3, 1, 1, bias=True), f"relu{block}_{k}")
        x = max_pool(x, 2, 2, name=f"pool{block}")
    x = mx.sym.Flatten(x, name="flatten")
    for k in (6, 7):
        x = mx.sym.Dropout(relu(dense(x, 4096, f"fc{k}"), f"relu{k}"), p=0.5, name=f"drop{k}")
    return mx.sym.SoftmaxOutput(dense(x, 10, "fc8"), name="softmax")


def mobilenet():
    def layer(x, name, *args, **kwargs):
        x = mx.sym.BatchNorm(conv(x, name + "_conv2d", *args, **kwargs), name=name + "_batchnorm")
        return relu(x, name + "_relu")

    x = layer(mx.sym.Variable("data"), "conv_1", 32, 3, 2, 1)
    channels = 32
    plan = [(1, 64), (2, 128), (1, 128), (2, 256), (1, 256), (2, 512)] + [(1, 512)] * 5 + [(2, 1024), (1, 1024)]
    for k, (stride, out) in enumerate(plan, 2):
        x = layer(x, f"conv_{k}_dw", channels, 3, stride, 1, groups=channels)
        x = layer(x, f"conv_{k}", out, 1)
        channels = out
    x = mx.sym.Flatten(mx.sym.Pooling(x, pool_type="avg", kernel=(2, 2), name="global_pool"), name="flatten")
    return mx.sym.SoftmaxOutput(dense(x, 10, "fc"), name="softmax")


# (name, depth, image, the same network by MXNet)
CASES = [
    ("resnet", 20, (3, 28, 28), lambda: small_resnet(2, 20)),
    ("resnet", 50, (3, 28, 28), lambda: small_resnet(2, 50)),
    ("resnet", 164, (3, 28, 28), lambda: small_resnet(2, 164)),
    ("resnet", 18, (3, 64, 64), lambda: large_resnet(2, [2, 2, 2, 2], False)),
    ("resnet", 50, (3, 64, 64), lambda: large_resnet(2, [3, 4, 6, 3], True)),
    ("resnet-v1", 20, (3, 28, 28), lambda: small_resnet(1, 20)),
    ("resnet-v1", 164, (3, 28, 28), lambda: small_resnet(1, 164)),
    ("resnet-v1", 34, (3, 64, 64), lambda: large_resnet(1, [3, 4, 6, 3], False)),
    ("resnet-v1", 101, (3, 64, 64), lambda: large_resnet(1, [3, 4, 23, 3], True)),
    ("lenet", 0, (1, 28, 28), lenet),
    ("mlp", 0, (1, 28, 28), mlp),
    ("vgg", 11, (3, 32, 32), lambda: vgg([1, 1, 2, 2, 2])),
    ("vgg", 19, (3, 32, 32), lambda: vgg([2, 2, 4, 4, 4])),
    ("mobilenet", 0, (3, 64, 64), mobilenet),
]


def dump(network, depth, image, folder):
    subprocess.run([DUMP, network, str(depth), ",".join(map(str, image)), "10", folder], check=True)
    files = {}
    for name in ("graph", "tensors"):
        with open(os.path.join(folder, name + ".json"), encoding="utf-8") as file:
            files[name] = json.load(file)
    return files


def shapes(symbol, image):
    """Names and shapes of parameters and of statistics, in MXNet's order."""
    arguments, _, auxiliary = symbol.infer_shape(data=(2,) + image)
    named = dict(zip(symbol.list_arguments(), map(list, arguments)))
    named = {name: shape for name, shape in named.items() if name not in ("data", "softmax_label")}
    return named, dict(zip(symbol.list_auxiliary_states(), map(list, auxiliary)))


def numbers_for(name, shape):
    """Numbers that only depend on the name, of a size that keeps activations in range."""
    random = np.random.default_rng(sum(name.encode()))
    if name.endswith("weight"):
        return random.normal(0, (2.0 / np.prod(shape[1:])) ** 0.5, shape)
    if name.endswith(("gamma", "var")):
        return random.uniform(0.5, 1.5, shape)
    return random.normal(0, 0.5 if name == "data" else 0.1, shape)


def logits_of(symbol, image):
    """The logits in evaluation and, where nothing is random, in training: those depend on every layer's epsilon."""
    if symbol.list_arguments()[-1] == "softmax_label":
        symbol = symbol.get_children()[0]
    executor = symbol.simple_bind(mx.cpu(), data=(2,) + image, grad_req="null")
    for group in (executor.arg_dict, executor.aux_dict):
        for name, array in group.items():
            array[:] = numbers_for(name, array.shape)
    modes = [False] if '"Dropout"' in symbol.tojson() else [False, True]
    return [executor.forward(is_train=training)[0].asnumpy() for training in modes]


def require_close(ours, theirs):
    for our, their in zip(ours, theirs):
        assert np.isfinite(their).all() and np.ptp(their) > 1e-3, "these numbers judge nothing"
        np.testing.assert_allclose(our, their, rtol=0, atol=1e-5 * np.abs(their).max())


def operators(symbol):
    """Name, operator and attributes of every operator, for a comparison that also sees what inference does not use."""
    nodes = json.loads(symbol.tojson())["nodes"]
    return {n["name"]: (n["op"], n.get("attrs", {})) for n in nodes if n["op"] != "null"}


def judge(network, depth, image, build):
    with mx.name.NameManager():
        theirs = build()
    with tempfile.TemporaryDirectory() as folder:
        files = dump(network, depth, image, folder)
        ours = mx.sym.load(os.path.join(folder, "symbol.json"))
        parameters, statistics = shapes(ours, image)
        assert list(parameters.items()) == list(files["tensors"]["parameters"].items()), "names, shapes or order differ"
        assert list(statistics.items()) == list(files["tensors"]["statistics"].items())
        assert shapes(theirs, image) == (parameters, statistics), "MXNet's own network has other parameters"
        for name, (op, attributes) in operators(theirs).items():
            if op == "Dropout":
                assert float(operators(ours)[name][1]["p"]) == float(attributes["p"]), name
            if op == "BatchNorm":
                assert float(operators(ours)[name][1]["momentum"]) == float(attributes.get("momentum", 0.9)), name
        require_close(logits_of(ours, image), logits_of(theirs, image))

        saved = os.path.join(folder, "theirs.json")
        theirs.save(saved)
        returned = dump(saved, 0, image, folder)
        assert returned["tensors"] == files["tensors"], "MXNet's symbol reads back with other tensors"
        kinds = [node["layer"] for node in returned["graph"]["nodes"]]
        assert kinds == [node["layer"] for node in files["graph"]["nodes"]], "MXNet's symbol reads back as other layers"


def judge_gluon(name, image):
    """A network of the Gluon model zoo: its own parameter names, logits without a loss."""
    network = mx.gluon.model_zoo.vision.get_model(name, classes=10)
    symbol = network(mx.sym.Variable("data"))
    with tempfile.TemporaryDirectory() as folder:
        saved = os.path.join(folder, "gluon.json")
        symbol.save(saved)
        files = dump(saved, 0, image, folder)
        parameters, statistics = shapes(symbol, image)
        assert files["tensors"]["parameters"] == parameters
        assert files["tensors"]["statistics"] == statistics
        again = mx.sym.load(os.path.join(folder, "symbol.json"))
        require_close(logits_of(again, image), logits_of(symbol, image))


def main():
    if not os.path.exists(DUMP):
        print(f"{DUMP} is not built")
        return 1
    for network, depth, image, build in CASES:
        judge(network, depth, image, build)
        print("agrees:", network, depth, image, flush=True)
    for name, image in (("resnet18_v1", (3, 64, 64)), ("resnet50_v2", (3, 64, 64)), ("vgg11_bn", (3, 32, 32)),
                        ("mobilenet1.0", (3, 64, 64)), ("mobilenetv2_0.5", (3, 64, 64)),
                        ("alexnet", (3, 224, 224)), ("squeezenet1.0", (3, 224, 224)), ("squeezenet1.1", (3, 224, 224)),
                        ("densenet121", (3, 224, 224)), ("inceptionv3", (3, 299, 299))):
        judge_gluon(name, image)
        print("agrees: gluon", name, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
