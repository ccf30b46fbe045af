#!/usr/bin/env python3
"""Names what photographs show with ResNet-50 of timm, or the same network in onnxruntime: one JSON line with images a second.

write FOLDER: the weights as resnet50.pth and resnet50.onnx. timm PHOTOS: as timm's inference.py does it, with its loader, its
transforms and worker processes, pictures channels last. onnxruntime PHOTOS: Pillow decodes on threads while the batch before
is computed. The shorter edge becomes 256 pixels, bilinear, and the middle 224 x 224 are taken. The time is that of all pictures
from their files on; imports, weights, a first batch and what a compiler takes are left out.
"""
import argparse
import json
import os
import pathlib
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np

SIZE, EDGE = 224, 256
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


def clocks():
    """The time, and what the processors spent on this process and its children that have ended."""
    return np.array((time.perf_counter(), sum(os.times()[:4])))


def make_model():
    import timm
    import torch
    torch.manual_seed(1)
    model = timm.create_model("resnet50").eval()
    for module in model.modules():  # as after training: no two channels alike
        if isinstance(module, torch.nn.BatchNorm2d):
            module.weight.data.uniform_(0.5, 1)
            module.running_mean.uniform_(-0.2, 0.2)
            module.running_var.uniform_(0.5, 2)
    return model


def write(arguments):
    import torch
    model = make_model()
    torch.save(model.state_dict(), arguments.path / "resnet50.pth")
    torch.onnx.export(model, torch.zeros(1, 3, SIZE, SIZE), arguments.path / "resnet50.onnx", dynamo=False, opset_version=17,
                      input_names=["image"], output_names=["logits"], dynamic_axes={"image": {0: "n"}, "logits": {0: "n"}})


def by_timm(arguments):
    import timm.data
    import torch
    torch.set_num_threads(arguments.threads)
    model = make_model().to(memory_format=torch.channels_last)
    if arguments.compile:
        model = torch.compile(model)
    dataset = timm.data.create_dataset("", root=arguments.path)
    loader = timm.data.create_loader(dataset, (3, SIZE, SIZE), arguments.batch_size, is_training=False, use_prefetcher=False,
                                     interpolation="bilinear", mean=MEAN, std=STD, crop_pct=SIZE / EDGE, crop_mode="center",
                                     num_workers=arguments.workers, persistent_workers=False)
    labels = []
    with torch.inference_mode():
        sizes = {arguments.batch_size, len(dataset) % arguments.batch_size or arguments.batch_size}
        for size in sizes:  # torch.compile compiles for each size
            model(torch.zeros(size, 3, SIZE, SIZE).contiguous(memory_format=torch.channels_last))
        start = clocks()
        for images, _ in loader:
            logits = model(images.contiguous(memory_format=torch.channels_last))
            labels += logits.softmax(-1).topk(1).indices[:, 0].tolist()
        seconds = clocks() - start
    return dict(zip(dataset.filenames(basename=True), labels, strict=True)), seconds


def decoded(path):
    from PIL import Image
    with Image.open(path) as picture:
        picture = picture.convert("RGB")
        scale = EDGE / min(picture.size)
        picture = picture.resize([round(extent * scale) for extent in picture.size], Image.Resampling.BILINEAR)
        left, top = ((extent - SIZE) // 2 for extent in picture.size)
        pixels = np.asarray(picture.crop((left, top, left + SIZE, top + SIZE)), np.float32)
    return ((pixels / 255 - np.float32(MEAN)) / np.float32(STD)).transpose(2, 0, 1)


def by_onnxruntime(arguments):
    import onnxruntime
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = arguments.threads
    session = onnxruntime.InferenceSession(arguments.model, options, providers=["CPUExecutionProvider"])
    paths = sorted(arguments.path.glob("*.jpg"))
    batches = [paths[at:at + arguments.batch_size] for at in range(0, len(paths), arguments.batch_size)]
    labels = []
    with ThreadPoolExecutor(arguments.workers) as pool:
        session.run(None, {"image": np.zeros((arguments.batch_size, 3, SIZE, SIZE), np.float32)})
        start = clocks()
        following = [pool.submit(decoded, path) for path in batches[0]]
        for batch in batches[1:] + [[]]:
            images = np.stack([each.result() for each in following])
            following = [pool.submit(decoded, path) for path in batch]
            logits = session.run(None, {"image": images})[0]
            labels += logits.argmax(axis=1).tolist()
        seconds = clocks() - start
    return {path.name: label for path, label in zip(paths, labels, strict=True)}, seconds


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("write", "timm", "onnxruntime"))
    parser.add_argument("path", type=pathlib.Path, help="folder")
    parser.add_argument("--model", help="resnet50.onnx, for onnxruntime")
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--labels", type=pathlib.Path, help="file for the names of the pictures and their classes")
    arguments = parser.parse_args()
    if arguments.what == "write":
        write(arguments)
        return
    labels, seconds = (by_timm if arguments.what == "timm" else by_onnxruntime)(arguments)
    if arguments.labels:
        arguments.labels.write_text("".join(f"{name} {label}\n" for name, label in sorted(labels.items())))
    wall, spent = seconds / len(labels)
    print(json.dumps({"images_per_second": 1 / wall, "cpu_seconds_per_image": spent}))


if __name__ == "__main__":
    main()
