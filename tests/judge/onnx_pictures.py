"""onnxruntime names pictures as `dtrain predict` does, with a model that normalises pixels and gives probabilities."""
import json
import os
import pathlib
import struct
import subprocess
import sys
import tempfile
import zlib

import numpy
import onnx
import onnxruntime

from _cases import end, must, must_be_near

SIDE = 20
TRAINING = ("--network resnet --num-layers 20 --num-classes 2 --batch-size 8 --num-epochs 1 --lr 0.01 "
            "--rgb-mean 120,110,100 --rgb-std 58,57,56").split()


def dtrain(*arguments):
    result = subprocess.run([os.environ["DTRAIN"], *map(str, arguments)], capture_output=True, text=True, check=False)
    must(result.returncode == 0, result.stderr)
    return result.stdout


def write_png(path, pixels):
    """An uncompressed picture of [h, w, c] bytes."""
    path.parent.mkdir(parents=True, exist_ok=True)
    height, width, channels = pixels.shape
    rows = b"".join(b"\0" + row.tobytes() for row in pixels)

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, height, 8, 0 if channels == 1 else 2, 0, 0, 0)
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


def judge(folder, channels, loss):
    random = numpy.random.default_rng(7)
    pictures = {}
    for name, light in (("dark, or so", 60), ("light", 160)):
        for i in range(12):
            path = folder / "photos" / name / f"{i}.png"
            pictures[str(path)] = random.integers(light - 50, light + 60, (SIDE, SIDE, channels), dtype=numpy.uint8)
            write_png(path, pictures[str(path)])
    dtrain("data", "pack", folder / "photos", "--train-ratio", 1, "--out", folder / "p", "--encoding", "png")
    dtrain("train", *TRAINING, *loss, "--image-shape", f"{channels},{SIDE},{SIDE}", "--data-train", folder / "p.rec",
           "--model-prefix", folder / "m")
    dtrain("export", folder / "m", "--to", "onnx", "--with-preprocessing", "--softmax", "--out", folder / "m.onnx")
    model = onnx.load(folder / "m.onnx")
    onnx.checker.check_model(model, full_check=True)
    metadata = {entry.key: entry.value for entry in model.metadata_props}
    names = json.loads(metadata["classes"])
    must(names == ["dark, or so", "light"], f"classes {names}")

    session = onnxruntime.InferenceSession(str(folder / "m.onnx"), providers=["CPUExecutionProvider"])
    (entry,) = session.get_inputs()
    must((entry.name, entry.type, entry.shape) == ("pixels", "tensor(uint8)", ["n", SIDE, SIDE, channels]), f"input {entry}")
    lines = [json.loads(line) for line in dtrain("predict", folder / "m", folder / "photos", "--top", 2, "--json").splitlines()]
    must(len(lines) == len(pictures), f"{len(lines)} answers")
    (found,) = session.run(["probabilities"], {"pixels": numpy.stack([pictures[line["path"]] for line in lines])})
    expected = numpy.zeros_like(found)
    for row, line in zip(expected, lines):
        for guess in line["top"]:
            must(guess["class"] == names[guess["label"]], "another name")
            row[guess["label"]] = guess["probability"]
    must(len({float(value) for value in expected[:, 0]}) > 2, "the pictures look alike to the network")
    return must_be_near(found, expected, "probabilities", 1e-5)


PASSED = FAILED = 0
for count, loss in ((1, ()), (3, ()), (3, ("--bce-loss",))):
    with tempfile.TemporaryDirectory() as scratch:
        try:
            print(f"ok   {count} channels {loss}: {judge(pathlib.Path(scratch), count, loss)}")
            PASSED += 1
        except Exception as error:  # whatever the real library throws is a verdict
            print(f"FAIL {count} channels {loss}: {type(error).__name__}: {error}", file=sys.stderr)
            FAILED += 1
end(PASSED, FAILED)
