"""What the judges of imported weights share: files of weights and pictures, and the logits that dtrain makes of them."""

import json
import os
import struct
import subprocess
import zlib

import numpy as np
import torch

DTRAIN = os.environ["DTRAIN"]
MEAN, STD = (123.675, 116.28, 103.53), (58.395, 57.12, 57.375)


def write_safetensors(state, path):
    names = {torch.float32: "F32", torch.float16: "F16", torch.bfloat16: "BF16", torch.int64: "I64"}
    header, data = {}, b""
    for name, tensor in state.items():
        raw = tensor.contiguous().flatten().view(torch.uint8).numpy().tobytes() if tensor.numel() > 1 else \
            tensor.numpy().tobytes()
        header[name] = {"dtype": names[tensor.dtype], "shape": list(tensor.shape),
                        "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + data)


def exported(folder, checkpoint):
    """What `export --to safetensors` writes of a checkpoint, as a state dict."""
    path = os.path.join(folder, "exported.safetensors")
    run("export", checkpoint, "--to", "safetensors", "--out", path)
    with open(path, "rb") as file:
        header = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
        data = file.read()
    header.pop("__metadata__", None)
    return {name: torch.tensor(np.frombuffer(data[slice(*each["data_offsets"])], np.float32).reshape(each["shape"]))
            for name, each in header.items()}


def write_png(path, pixels):
    rows = b"".join(b"\0" + row.tobytes() for row in pixels)
    with open(path, "wb") as file:
        file.write(b"\x89PNG\r\n\x1a\n")
        for kind, data in ((b"IHDR", struct.pack(">IIBBBBB", pixels.shape[1], pixels.shape[0], 8, 2, 0, 0, 0)),
                           (b"IDAT", zlib.compress(rows, 1)), (b"IEND", b"")):
            file.write(struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)))


def run(*words):
    result = subprocess.run([DTRAIN, *words], capture_output=True, text=True, check=False)
    if result.returncode != 0:
        raise SystemExit(f"dtrain {' '.join(words)}: {result.stderr}")
    return result.stdout


def centred(values):
    return values - values.mean(axis=-1, keepdims=True)


def logits_of_dtrain(folder, file, classes, *network):
    """Logits less their mean of the folder's pictures as they are: what `predict` prints are probabilities."""
    prefix = os.path.join(folder, "m", os.path.basename(file))
    run("import", file, "--network", *network, "--out", prefix)
    lines = run("predict", prefix, os.path.join(folder, "pictures"), "--resize", "0", "--top", str(classes), "--json").splitlines()
    rows = []
    for line in lines:
        by_label = {guess["label"]: guess["probability"] for guess in json.loads(line)["top"]}
        rows.append([np.log(by_label[label]) for label in range(classes)])
    return centred(np.array(rows))


def worst(mine, theirs):
    return float(np.abs(mine - centred(theirs)).max() / np.abs(theirs).max())


def random_pictures(folder, number, size):
    """Writes them below folder, and returns them as [n, h, w, c]."""
    os.makedirs(os.path.join(folder, "pictures"))
    pictures = np.random.default_rng(1).integers(0, 256, (number, size, size, 3), np.uint8)
    for index, pixels in enumerate(pictures):
        write_png(os.path.join(folder, "pictures", f"{index}.png"), pixels)
    return pictures


def stir_norms(model, seed):
    """Random numbers for every tensor of a norm, and for what begins too small to be seen, so that each counts."""
    generator = torch.Generator().manual_seed(seed)
    for name, tensor in model.named_parameters():
        if name.split(".")[-1] in ("layer_scale", "gamma", "class_token", "cls_token"):
            tensor.data.uniform_(0.2, 0.8, generator=generator)
        elif name in ("heads.head.weight", "head.weight"):
            tensor.data.normal_(generator=generator)
    for module in model.modules():
        if isinstance(module, torch.nn.BatchNorm2d):
            for tensor, low, high in ((module.weight, 0.5, 1.0), (module.bias, -0.2, 0.2), (module.running_mean, -0.2, 0.2),
                                      (module.running_var, 0.5, 2.0)):
                tensor.data.uniform_(low, high, generator=generator)
        if isinstance(module, torch.nn.LayerNorm):
            module.weight.data.uniform_(0.5, 1.5, generator=generator)
            module.bias.data.uniform_(-0.2, 0.2, generator=generator)
