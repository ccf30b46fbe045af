"""A linear regression with MXNet's Trainer, as its distributed examples do: --kv-store dist_sync, each worker its part of the data."""

import argparse

import mxnet as mx
from mxnet import autograd, gluon

parser = argparse.ArgumentParser()
parser.add_argument("--kv-store", default="local")
parser.add_argument("--steps", type=int, default=20)
arguments = parser.parse_args()

kv = mx.kv.create(arguments.kv_store)
samples, features = 64, 4
inputs = mx.nd.array([[((i * 7 + j * 3) % 11) / 11 for j in range(features)] for i in range(samples)])
labels = mx.nd.dot(inputs, mx.nd.array([[1], [-2], [3], [0.5]]))
mine = slice(kv.rank * samples // kv.num_workers, (kv.rank + 1) * samples // kv.num_workers)

net = gluon.nn.Dense(1, in_units=features, use_bias=False)
net.initialize(mx.init.Zero())
trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.5}, kvstore=kv)
loss = gluon.loss.L2Loss()
for _ in range(arguments.steps):
    with autograd.record():
        error = loss(net(inputs[mine]), labels[mine])
    error.backward()
    trainer.step(samples)
weights = net.weight.data().asnumpy()[0]
print(f"worker {kv.rank} of {kv.num_workers}: weights {' '.join(f'{weight:.5f}' for weight in weights)}", flush=True)
