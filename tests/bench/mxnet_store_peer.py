#!/usr/bin/env python3
"""A worker of MXNet's parameter servers, for servers.py: trains the ResNet-8 of width 8 that dtrain trains there.

usage: mxnet_store_peer.py STORE TRAIN.rec VAL.rec SAMPLES BATCH EPOCHS SEED FOLDER

`dtrain launch` starts it, with MXNet's servers beside it. Writes FOLDER/began-RANK with its process once it has trained its
first batch, and FOLDER/ended-RANK with its accuracy at the end.
"""
import os
import pathlib
import sys

from mxnet_peer import resnet_v1


def main():
    store_name, train, val, samples, batch, epochs, seed, folder = sys.argv[1:]
    samples, batch, epochs, folder = int(samples), int(batch), int(epochs), pathlib.Path(folder)
    os.environ["OMP_NUM_THREADS"] = "1"
    import mxnet as mx

    mx.random.seed(int(seed))
    store = mx.kv.create(store_name)
    common = {"data_shape": (3, 28, 28), "batch_size": batch, "preprocess_threads": 1,
              "mean_r": 123.68, "mean_g": 116.779, "mean_b": 103.939, "std_r": 58.393, "std_g": 57.12, "std_b": 57.375}
    images = mx.io.ImageRecordIter(path_imgrec=train, shuffle=True, seed=int(seed), rand_mirror=True,
                                   num_parts=store.num_workers, part_index=store.rank, **common)
    module = mx.mod.Module(resnet_v1(mx, 8, 1), context=mx.cpu())
    module.bind(data_shapes=images.provide_data, label_shapes=images.provide_label)
    module.init_params(mx.init.Xavier(rnd_type="gaussian", factor_type="in", magnitude=2))
    # dist_sync adds up what all workers push, dist_async applies each push alone.
    pushes = store.num_workers if store_name == "dist_sync" else 1
    module.init_optimizer(kvstore=store, optimizer="nag", optimizer_params={
        "learning_rate": 0.02, "momentum": 0.9, "wd": 1e-4, "rescale_grad": 1 / batch / pushes})
    batches = samples // batch // store.num_workers
    for epoch in range(epochs):
        images.reset()
        for number in range(batches):
            module.forward_backward(images.next())
            module.update()
            if epoch == 0 and number == 0:
                module.get_outputs()[0].wait_to_read()
                (folder / ("began-%d" % store.rank)).write_text(str(os.getpid()))
        mx.nd.waitall()
    answers = mx.io.ImageRecordIter(path_imgrec=val, **common)
    accuracy = dict(module.score(answers, mx.metric.Accuracy()))["accuracy"]
    (folder / ("ended-%d.part" % store.rank)).write_text(str(accuracy))
    (folder / ("ended-%d.part" % store.rank)).rename(folder / ("ended-%d" % store.rank))


main()
