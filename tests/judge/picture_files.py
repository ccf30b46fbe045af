"""Pillow judges BMP and TIFF: `data pack` keeps the pixels of files that Pillow writes, of every kind that dtrain reads."""

import io
import os
import pathlib
import struct
import subprocess
import sys
import tempfile

import numpy as np
from PIL import Image

DTRAIN = os.environ["DTRAIN"]
H, W = 37, 53


def dtrain(*arguments):
    result = subprocess.run([DTRAIN, *map(str, arguments)], capture_output=True, text=True, check=False)
    if result.returncode != 0:
        raise SystemExit(result.stderr)
    return result.stdout


def pictures():
    """Names, pictures and what save() is given."""
    random = np.random.default_rng(1)
    noise = Image.fromarray(random.integers(0, 256, (H, W, 3), np.uint8))
    y, x = np.mgrid[0:H, 0:W]
    smooth = Image.fromarray(np.stack([4 * x, 6 * y, x + y], axis=2).astype(np.uint8))
    kinds = {"rgb": noise, "smooth": smooth, "grey": smooth.convert("L"), "palette": smooth.quantize(200),
             "black": noise.convert("1"), "alpha": noise.convert("RGBA")}
    for kind, picture in kinds.items():
        yield f"{kind}.bmp", picture, {}
        for compression in ("raw", "tiff_lzw", "tiff_adobe_deflate", "packbits"):
            yield f"{kind}-{compression}.tif", picture, {"compression": compression}
    for kind in ("rgb", "smooth", "grey"):
        for compression in ("tiff_lzw", "tiff_adobe_deflate"):
            yield f"{kind}-{compression}-predicted.tif", kinds[kind], {"compression": compression, "tiffinfo": {317: 2}}
            yield f"{kind}-{compression}-strips.tif", kinds[kind], {"compression": compression, "tiffinfo": {278: 5}}
    large = Image.fromarray(random.integers(0, 3, (300, 400, 3), np.uint8) * 100)
    yield "large-lzw.tif", large, {"compression": "tiff_lzw"}
    yield "turned.tif", noise, {"tiffinfo": {274: 6}}
    deep = random.integers(0, 65536, (H, W), np.uint16)
    yield "deep.tif", Image.fromarray(deep), {}
    yield "motorola.tif", Image.frombytes("I;16B", (W, H), deep.astype(">u2").tobytes()), {}


def expected(path):
    picture = Image.open(path)
    if picture.mode.startswith("I;16"):
        values = np.frombuffer(picture.tobytes(), ">u2" if picture.mode.endswith("B") else "<u2").reshape(H, W)
        return np.repeat((values >> 8).astype(np.uint8)[:, :, None], 3, axis=2)
    return np.asarray(picture.convert("RGB"))


def read_records(path):
    """Numbers and pictures of a RecordIO file; a record that holds the magic is stored in parts."""
    data, at, whole = path.read_bytes(), 0, b""
    magic = struct.pack("<I", 0xCED7230A)
    while at < len(data):
        size = struct.unpack_from("<I", data, at + 4)[0]
        part, kind = data[at + 8:at + 8 + (size & 0x1FFFFFFF)], size >> 29
        whole = whole + magic + part if kind in (2, 3) else part
        at += 8 + (len(part) + 3) // 4 * 4
        if kind in (0, 3):
            yield struct.unpack_from("<Q", whole, 8)[0], io.BytesIO(whole[24:])


def main():
    failed = 0
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "photos" / "a").mkdir(parents=True)
        (folder / "photos" / "b").mkdir()
        for file, picture, options in pictures():
            picture.save(folder / "photos" / "a" / file, **options)
        Image.new("RGB", (8, 8)).save(folder / "photos" / "b" / "x.png")
        dtrain("data", "pack", folder / "photos", "--out", folder / "p", "--train-ratio", 1, "--encoding", "png")
        lines = [line.split("\t") for line in (folder / "p.lst").read_text().splitlines()]
        names = {int(line[0]): line[-1] for line in lines}
        for number, payload in read_records(folder / "p.rec"):
            file = names[number]
            if not file.startswith("a/"):
                continue
            mine = np.asarray(Image.open(payload).convert("RGB"))
            theirs = expected(folder / "photos" / file)
            good = mine.shape == theirs.shape and np.array_equal(mine, theirs)
            failed += not good
            print(f"{'ok  ' if good else 'FAIL'} {file} {mine.shape}")
    return failed


sys.exit(main())
