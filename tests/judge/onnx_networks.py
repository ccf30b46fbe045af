"""onnxruntime judges the networks of other programs: `predict` on an ONNX model gives its probabilities, and so does the
checkpoint that `import` makes of it. Networks are written here, and by torch.onnx where Python has torch."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper
from PIL import Image

SIZE, CLASSES, PICTURES, ALLOWED = 32, 7, 3, 1e-4  # allowed: of the logarithm of a probability
MEAN, STD = np.array((123.675, 116.28, 103.53)), np.array((58.395, 57.12, 57.375))
OPSET = 17


def run_dtrain(*arguments):
    result = subprocess.run([os.environ["DTRAIN"], *map(str, arguments)], capture_output=True, text=True, check=False)
    if result.returncode != 0:
        raise SystemExit(f"dtrain {' '.join(map(str, arguments))}: {result.stderr}")
    return result.stdout


class Network:
    """A model with random weights; each method adds a node and returns the name of its output."""

    def __init__(self, seed):
        self.random = np.random.default_rng(seed)
        self.nodes, self.tensors, self.number = [], [], 0

    def node(self, op, inputs, **attributes):
        self.number += 1
        output = f"v{self.number}"
        self.nodes.append(helper.make_node(op, inputs, [output], name=f"{op}_{self.number}", **attributes))
        return output

    def tensor(self, values):
        name = f"t{len(self.tensors)}"
        self.tensors.append(numpy_helper.from_array(np.asarray(values), name))
        return name

    def weight(self, *shape):
        fan_in = int(np.prod(shape[1:])) or 1
        return self.tensor((self.random.normal(size=shape) * np.sqrt(2 / fan_in)).astype(np.float32))

    def vector(self, size, low=-0.2, high=0.2):
        return self.tensor(self.random.uniform(low, high, size).astype(np.float32))

    def conv(self, x, ins, outs, kernel, bias=True, group=1, **attributes):
        inputs = [x, self.weight(outs, ins // group, kernel, kernel)] + ([self.vector(outs)] if bias else [])
        return self.node("Conv", inputs, kernel_shape=[kernel, kernel], group=group, **attributes)

    def norm(self, x, channels):
        return self.node("BatchNormalization", [x, self.vector(channels, 0.5, 1), self.vector(channels), self.vector(channels),
                                                self.vector(channels, 0.5, 2)], epsilon=1e-3)

    def save(self, path, output, dynamic=True):
        shape = ["n" if dynamic else 1, 3, SIZE, SIZE]
        graph = helper.make_graph(self.nodes, "g", [helper.make_tensor_value_info("image", TensorProto.FLOAT, shape)],
                                  [helper.make_tensor_value_info(output, TensorProto.FLOAT, [shape[0], CLASSES])], self.tensors)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)])
        model.ir_version = 8
        onnx.checker.check_model(model, full_check=True)
        onnx.save(model, path)


def residual(net):
    """What torch.onnx writes for a residual network whose norms are folded, with its Flatten and Gemm."""
    x = net.node("Relu", [net.conv("image", 3, 8, 3, pads=[1, 1, 1, 1])])
    x = net.node("MaxPool", [x], kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    y = net.node("Relu", [net.norm(net.conv(x, 8, 8, 3, False, pads=[1, 1, 1, 1]), 8)])
    x = net.node("Relu", [net.node("Add", [net.norm(net.conv(y, 8, 8, 3, False, pads=[1, 1, 1, 1]), 8), x])])
    x = net.node("Flatten", [net.node("GlobalAveragePool", [x])], axis=1)
    return net.node("Gemm", [x, net.weight(CLASSES, 8), net.vector(CLASSES)], transB=1)


def squeeze_and_excite(net):
    """Grouped convolutions, SiLU as two nodes, factors of channels, a mean over pixels, MatMul and Add, and a softmax."""
    x = net.conv("image", 3, 8, 3, pads=[1, 1, 1, 1], strides=[2, 2])
    x = net.node("Mul", [x, net.node("Sigmoid", [x])])
    x = net.conv(x, 8, 8, 3, group=8, pads=[1, 1, 1, 1])
    x = net.node("Mul", [net.node("HardSigmoid", [x], alpha=1 / 6, beta=0.5), x])
    s = net.node("Relu", [net.conv(net.node("GlobalAveragePool", [x]), 8, 4, 1)])
    s = net.node("Sigmoid", [net.conv(s, 4, 8, 1)])
    x = net.node("Mul", [s, x])
    x = net.node("ReduceMean", [x], axes=[-1, -2], keepdims=0)
    x = net.node("Add", [net.node("MatMul", [x, net.weight(8, CLASSES)]), net.vector(CLASSES)])
    return net.node("Softmax", [x], axis=1)


def branches(net):
    """Concat, padding that TensorFlow calls SAME, Clip, pooling that counts what overhangs, Reshape, Gemm of [in, out]."""
    x = net.conv("image", 3, 8, 3, auto_pad="SAME_UPPER")
    x = net.node("Clip", [x, net.tensor(np.float32(0)), net.tensor(np.float32(6))])
    a = net.conv(x, 8, 4, 1, False)
    a = net.node("Add", [a, net.tensor(net.random.normal(size=(1, 4, 1, 1)).astype(np.float32))])
    b = net.node("AveragePool", [x], kernel_shape=[3, 3], strides=[1, 1], pads=[1, 1, 1, 1], count_include_pad=0)
    x = net.node("Concat", [net.node("HardSwish", [a]), b], axis=1)
    x = net.node("MaxPool", [x], kernel_shape=[3, 3], strides=[2, 2], ceil_mode=1)
    x = net.node("AveragePool", [x], kernel_shape=[4, 4], strides=[4, 4])
    x = net.node("Reshape", [net.node("Mul", [x, net.tensor(np.float32(0.5))]), net.tensor(np.array([-1, 192]))])
    x = net.node("Dropout", [x])
    return net.node("Gemm", [x, net.weight(192, CLASSES), net.vector(CLASSES)])


def shared(net):
    """Tensors of equal values, which PyTorch names by Identity, and extents that the model computes."""
    x = net.conv("image", 3, 8, 3, strides=[2, 2])
    ones = net.vector(8, 0.5, 1)
    zeros = net.vector(8)
    other = net.node("Identity", [ones])
    x = net.node("Relu", [net.node("BatchNormalization", [x, ones, zeros, zeros, ones])])
    x = net.node("Relu", [net.node("BatchNormalization", [x, other, zeros, zeros, other])])
    x = net.node("GlobalMaxPool", [x])
    count = net.node("Gather", [net.node("Shape", [x]), net.tensor(np.array(0))])
    extents = net.node("Concat", [net.node("Unsqueeze", [count, net.tensor(np.array([0]))]), net.tensor(np.array([-1]))], axis=0)
    return net.node("Gemm", [net.node("Reshape", [x, extents]), net.weight(CLASSES, 8)], transB=1)


def uneven(net):
    """What TensorFlow's models have: padding behind the image alone, in convolutions and poolings; and a dilated window."""
    x = net.node("Relu", [net.conv("image", 3, 8, 3, auto_pad="SAME_UPPER", strides=[2, 2])])
    x = net.node("MaxPool", [x], kernel_shape=[3, 3], strides=[2, 2], auto_pad="SAME_UPPER")
    x = net.node("Relu", [net.conv(x, 8, 8, 3, group=8, pads=[2, 0, 1, 3], dilations=[2, 1])])
    x = net.node("AveragePool", [x], kernel_shape=[3, 3], strides=[2, 2], pads=[0, 0, 1, 1])
    x = net.conv(x, 8, 6, 1, auto_pad="SAME_LOWER")
    x = net.node("LRN", [x], size=3, alpha=0.2, beta=0.6, bias=1.5)
    x = net.node("Flatten", [net.node("GlobalAveragePool", [x])], axis=1)
    return net.node("Gemm", [x, net.weight(CLASSES, 6), net.vector(CLASSES)], transB=1)


def padded_pooling(net):
    """What TensorFlow's and some of PyTorch's models have: a Pad of its own before a maximum, with zeros behind a ReLU and with
    minus infinity elsewhere."""
    def pad(x, sides, value):
        above, left, below, right = sides
        sides = net.tensor(np.array([0, 0, above, left, 0, 0, below, right]))
        return net.node("Pad", [x, sides, net.tensor(np.float32(value))])
    x = net.node("Relu", [net.conv(pad("image", (0, 1, 2, 1), 0), 3, 8, 3, strides=[2, 2])])
    x = net.node("MaxPool", [pad(x, (1, 1, 1, 1), 0)], kernel_shape=[3, 3], strides=[2, 2])
    x = net.conv(x, 8, 6, 3, pads=[1, 1, 1, 1])
    x = net.node("MaxPool", [pad(x, (1, 1, 1, 1), -np.inf)], kernel_shape=[3, 3], strides=[2, 2])
    x = net.node("Flatten", [net.node("GlobalAveragePool", [x])], axis=1)
    return net.node("Gemm", [x, net.weight(CLASSES, 6), net.vector(CLASSES)], transB=1)


def linear(net, x, ins, outs):
    return net.node("Add", [net.node("MatMul", [x, net.weight(ins, outs)]), net.vector(outs)])


def newer_vit(net):
    """What torch.onnx.export writes since its second generation: extents that are constants, LayerNormalization, Gelu's
    parts, scaled_dot_product_attention as products whose factors are on both sides, and Split."""
    width, heads, tokens = 12, 2, 17
    def norm(x):
        return net.node("LayerNormalization", [x, net.vector(width, 0.5, 1.5), net.vector(width)], axis=-1, epsilon=1e-6)
    def number(value):
        return net.tensor(np.float32(value))
    def extents(*values):
        return net.tensor(np.array(values))
    x = net.conv("image", 3, width, 8, strides=[8, 8])
    x = net.node("Transpose", [net.node("Reshape", [x, extents(0, width, -1)])], perm=[0, 2, 1])
    count = net.node("Shape", [x], start=0, end=1)
    token = net.tensor(net.random.normal(size=(1, 1, width)).astype(np.float32))
    token = net.node("Expand", [token, net.node("Concat", [count, extents(1, width)], axis=0)])
    x = net.node("Concat", [token, x], axis=1)
    x = net.node("Add", [x, net.tensor(net.random.normal(size=(1, tokens, width)).astype(np.float32))])
    qkv = net.node("Reshape", [linear(net, norm(x), width, 3 * width), extents(-1, tokens, 3, heads, width // heads)])
    parts = net.node("Transpose", [qkv], perm=[2, 0, 3, 1, 4])
    net.nodes.append(helper.make_node("Split", [parts, extents(1, 1, 1)], ["queries", "keys", "values"], name="split", axis=0))
    q, k, v = (net.node("Squeeze", [part, extents(0)]) for part in ("queries", "keys", "values"))
    root = number((width // heads) ** -0.25)
    scores = net.node("MatMul", [net.node("Mul", [q, root]), net.node("Mul", [net.node("Transpose", [k], perm=[0, 1, 3, 2]), root])])
    y = net.node("MatMul", [net.node("Softmax", [scores], axis=-1), v])
    y = net.node("Reshape", [net.node("Transpose", [y], perm=[0, 2, 1, 3]), extents(-1, tokens, width)])
    x = net.node("Add", [x, linear(net, y, width, width)])
    y = linear(net, norm(x), width, 2 * width)
    curve = net.node("Add", [net.node("Erf", [net.node("Div", [y, number(2 ** 0.5)])]), number(1)])
    y = net.node("Mul", [net.node("Mul", [y, number(0.5)]), curve])
    x = net.node("Add", [x, linear(net, y, 2 * width, width)])
    first = net.node("Gather", [norm(x), net.tensor(np.array(0))], axis=1)
    return net.node("Gemm", [first, net.weight(CLASSES, width), net.vector(CLASSES)], transB=1)


def torch_models(folder):
    """The files that the distribution's PyTorch exports; none where it is missing."""
    folder.mkdir()
    script = pathlib.Path(__file__).with_name("_torch_exports.py")
    result = subprocess.run(["/usr/bin/python3", "-W", "ignore", script, folder], capture_output=True, text=True, check=False)
    if "No module named 'torch'" in result.stderr:
        print("torch is missing: its exports are not judged")
    elif result.returncode != 0:
        raise SystemExit(result.stderr)
    return sorted(folder.glob("*.onnx"))


def pictures(folder):
    folder.mkdir()
    images = []
    for index in range(PICTURES):
        pixels = np.random.default_rng(index).integers(0, 256, (SIZE, SIZE, 3), np.uint8)
        Image.fromarray(pixels).save(folder / f"{index}.png")
        images.append(((pixels - MEAN) / STD).transpose(2, 0, 1))
    return np.array(images, np.float32)


def predicted(model, folder):
    """Rows of probabilities by label."""
    rows = []
    for line in run_dtrain("predict", model, folder, "--resize", 0, "--top", CLASSES, "--json").splitlines():
        by_label = {guess["label"]: guess["probability"] for guess in json.loads(line)["top"]}
        rows.append([by_label[label] for label in range(CLASSES)])
    return np.array(rows)


def log_softmax(logits):
    logits = logits.astype(np.float64)
    logits -= logits.max(axis=1, keepdims=True)
    return logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))


def run_onnxruntime(path, images):
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    fixed = session.get_inputs()[0].shape[0] == 1
    batches = np.split(images, len(images)) if fixed else [images]
    (found,) = zip(*(session.run(None, {"image": batch}) for batch in batches))
    return np.concatenate(found)


def judge(path, images, folder, ends_in_softmax=False):
    theirs = run_onnxruntime(path, images)
    theirs = np.log(theirs) if ends_in_softmax else log_softmax(theirs)
    mine = predicted(path, folder / "pictures")
    run_dtrain("import", path, "--network", path, "--out", folder / "m" / path.stem)
    imported = predicted(folder / "m" / path.stem, folder / "pictures")
    error = float(np.abs(np.log(mine) - theirs).max())
    good = error <= ALLOWED and float(np.abs(imported - mine).max()) <= 1e-6
    print(f"{'ok  ' if good else 'FAIL'} {path.stem}: {error:.1e}")
    return good


def main():
    failed = 0
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        images = pictures(folder / "pictures")
        for seed, build in enumerate((residual, squeeze_and_excite, branches, shared, uneven, padded_pooling, newer_vit)):
            net = Network(seed)
            path = folder / f"{build.__name__}.onnx"
            net.save(path, build(net))
            failed += not judge(path, images, folder, net.nodes[-1].op_type == "Softmax")
        for path in torch_models(folder / "torch"):
            failed += not judge(path, images, folder)
    return failed


sys.exit(main())
