#!/usr/bin/env python3
"""Trains the CIFAR ResNet-20 v1 of `dtrain bench train` with MXNet 1.9.1 and prints one JSON line: images a second.

Symbol and Module, as the image-classification scripts use them. Batches come augmented from memory, so MXNet pays nothing
for its loader.
"""
import argparse
import json
import os
import resource
import statistics
import time


def conv_bn(mx, data, name, filters, kernel, stride, pad, relu):
    body = mx.sym.Convolution(data, num_filter=filters, kernel=(kernel, kernel), stride=(stride, stride), pad=(pad, pad),
                              no_bias=True, name=name + "_conv")
    body = mx.sym.BatchNorm(body, fix_gamma=False, eps=2e-5, momentum=0.9, name=name + "_bn")
    return mx.sym.Activation(body, act_type="relu", name=name + "_relu") if relu else body


def resnet_v1(mx, width, units, classes=10):
    body = conv_bn(mx, mx.sym.var("data"), "first", width, 3, 1, 1, False)
    for stage in range(3):
        for unit in range(units):
            name, outputs = "stage%d_unit%d" % (stage + 1, unit + 1), width << stage
            stride = 2 if stage > 0 and unit == 0 else 1
            left = conv_bn(mx, body, name + "_a", outputs, 3, stride, 1, True)
            left = conv_bn(mx, left, name + "_b", outputs, 3, 1, 1, False)
            if unit == 0:
                body = conv_bn(mx, body, name + "_project", outputs, 1, stride, 0, False)
            body = mx.sym.Activation(left + body, act_type="relu", name=name + "_out")
    body = mx.sym.Pooling(body, global_pool=True, kernel=(7, 7), pool_type="avg")
    return mx.sym.SoftmaxOutput(mx.sym.FullyConnected(mx.sym.Flatten(body), num_hidden=classes, name="fc1"), name="softmax")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--width", type=int, default=16)
    parser.add_argument("--batch-size", type=int, default=128)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--warmup", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=8)
    options = parser.parse_args()

    os.environ["OMP_NUM_THREADS"] = str(options.threads)
    import mxnet as mx
    import numpy

    shape = (options.batch_size, 3, 32, 32)
    module = mx.mod.Module(resnet_v1(mx, options.width, units=3), context=mx.cpu())
    module.bind(data_shapes=[("data", shape)], label_shapes=[("softmax_label", (options.batch_size,))])
    module.init_params(mx.init.Xavier(rnd_type="gaussian", factor_type="in", magnitude=2))
    module.init_optimizer(optimizer="sgd", optimizer_params={"learning_rate": 0.05, "momentum": 0.9, "wd": 1e-4})
    random = numpy.random.RandomState(1)
    batches = [mx.io.DataBatch([mx.nd.array(random.randn(*shape))],
                               [mx.nd.array(random.randint(0, 10, options.batch_size))]) for _ in range(8)]

    def step(i):
        module.forward_backward(batches[i % len(batches)])
        module.update()
        module.get_outputs()[0].wait_to_read()
        mx.nd.waitall()

    for i in range(options.warmup):
        step(i)
    times = []
    end = time.monotonic() + options.seconds
    while time.monotonic() < end:
        begin = time.monotonic()
        step(len(times))
        times.append(time.monotonic() - begin)
    print(json.dumps({
        "peer": "mxnet " + mx.__version__,
        "images_per_second": options.batch_size / statistics.median(times),
        "peak_memory_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
    }))


if __name__ == "__main__":
    main()
