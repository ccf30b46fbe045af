#!/usr/bin/env python3
"""Images a second of another loader on the record file that `dtrain data bench` reads: one JSON line.

JPEG decode, random resized crop to 224, mirror, normalise. torchvision: decode_jpeg (libjpeg-turbo) and its own
transforms, one process a thread, the payloads in memory. mxnet: ImageRecordIter on the file.
"""
import argparse
import json
import multiprocessing
import struct
import time

MEAN, STD = (123.68, 116.779, 103.939), (58.393, 57.12, 57.375)


def payloads(rec):
    """Of every record: whole parts only, which JPEGs nearly always are."""
    content, at = open(rec, "rb").read(), 0
    while at < len(content):
        length = struct.unpack_from("<I", content, at + 4)[0] & 0x1FFFFFFF
        labels = struct.unpack_from("<I", content, at + 8)[0]
        yield content[at + 8 + 24 + 4 * labels:at + 8 + length]
        at += 8 + (length + 3) // 4 * 4


def torchvision_process(options, count):
    import torch
    from torchvision.io import ImageReadMode, decode_jpeg
    from torchvision.transforms import v2

    torch.set_num_threads(1)
    change = v2.Compose([
        v2.RandomResizedCrop(options.size, antialias=True), v2.RandomHorizontalFlip(), v2.ToDtype(torch.float32),
        v2.Normalize(MEAN, STD)])
    images = [torch.frombuffer(bytearray(each), dtype=torch.uint8) for each in payloads(options.rec)]
    batch = torch.empty(options.batch_size, 3, options.size, options.size)
    done, begin = 0, time.perf_counter()
    while time.perf_counter() - begin < options.seconds:
        for _ in range(16):
            batch[done % options.batch_size] = change(decode_jpeg(images[done % len(images)], ImageReadMode.RGB))
            done += 1
    count.put(done / (time.perf_counter() - begin))


def torchvision_rate(options):
    count = multiprocessing.Queue()
    workers = [multiprocessing.Process(target=torchvision_process, args=(options, count)) for _ in range(options.threads)]
    for worker in workers:
        worker.start()
    return sum(count.get() for _ in workers)


def mxnet_rate(options):
    import numpy
    numpy.bool = numpy.bool_
    import mxnet as mx

    loader = mx.io.ImageRecordIter(
        path_imgrec=options.rec, path_imgidx=options.rec[:-3] + "idx", data_shape=(3, options.size, options.size),
        batch_size=options.batch_size, shuffle=True, preprocess_threads=options.threads, random_resized_crop=True,
        min_random_area=0.08, max_random_area=1.0, min_aspect_ratio=3 / 4, max_aspect_ratio=4 / 3, rand_mirror=True,
        mean_r=MEAN[0], mean_g=MEAN[1], mean_b=MEAN[2], std_r=STD[0], std_g=STD[1], std_b=STD[2], round_batch=True)
    done, begin = 0, None
    while begin is None or time.perf_counter() - begin < options.seconds:
        loader.reset()
        for batch in loader:
            batch.data[0].wait_to_read()
            if begin is None:  # the first batch pays for starting the threads
                begin, done = time.perf_counter(), 0
                continue
            done += options.batch_size
    return done / (time.perf_counter() - begin)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("peer", choices=["torchvision", "mxnet"])
    parser.add_argument("rec")
    parser.add_argument("--size", type=int, default=224)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--seconds", type=float, default=8)
    options = parser.parse_args()
    rate = torchvision_rate(options) if options.peer == "torchvision" else mxnet_rate(options)
    print(json.dumps({"peer": options.peer, "threads": options.threads, "samples_per_second": rate}))


if __name__ == "__main__":
    main()
