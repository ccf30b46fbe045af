"""MXNet reads the record files that dtrain writes, and dtrain reads MXNet's."""
import gzip
import json
import os
import struct
import subprocess
import tempfile
from pathlib import Path

from _mxnet import mxnet as mx
import numpy as np

DTRAIN = os.environ["DTRAIN"]
GOLDEN = Path(__file__).resolve().parent.parent / "unit/data/golden"
MAGIC = bytes([0x0A, 0x23, 0xD7, 0xCE])
PIXELS_HEADER = 20  # man/dtrain-records.5


def dtrain(*arguments):
    done = subprocess.run([DTRAIN, *map(str, arguments)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def records_of(rec):
    """(header, payload) of every record, by MXNet's indexed reader."""
    reader = mx.recordio.MXIndexedRecordIO(str(rec.with_suffix(".idx")), str(rec), "r")
    return [mx.recordio.unpack(reader.read_idx(key)) for key in reader.keys]


def pixels_of(payload):
    assert payload[:4] == b"DTPX"
    c, h, w = struct.unpack_from("<HII", payload, 6)
    return np.frombuffer(payload, np.uint8, offset=PIXELS_HEADER).reshape(h, w, c)


def shapes(folder, encoding):
    dtrain("data", "prepare", "shapes", "--train-count", 40, "--val-count", 20, "--encoding", encoding, "--out", folder)
    return records_of(folder / "shapes_train.rec")


def mxnet_reads_what_dtrain_writes(folder):
    raw = shapes(folder / "raw", "raw")
    assert [header.id for header, _ in raw] == list(range(40))
    assert [header.label for header, _ in raw] == [i % 10 for i in range(40)]
    for encoding in ("auto", "png"):
        for header, payload in shapes(folder / encoding, encoding):
            image = mx.image.imdecode(payload).asnumpy()
            assert np.array_equal(image, pixels_of(raw[header.id][1])), (encoding, header)
    for header, payload in shapes(folder / "jpeg", "jpeg"):
        difference = mx.image.imdecode(payload).asnumpy().astype(int) - pixels_of(raw[header.id][1])
        assert np.abs(difference).mean() < 8, (header, np.abs(difference).mean())


def mxnet_trains_on_what_dtrain_writes(folder):
    batch = mx.io.ImageRecordIter(path_imgrec=str(folder / "auto/shapes_val.rec"), data_shape=(3, 32, 32), batch_size=20,
                                  shuffle=False).next()
    expected = [pixels_of(payload) for _, payload in records_of(folder / "raw/shapes_val.rec")]
    assert np.array_equal(batch.label[0].asnumpy(), [i % 10 for i in range(20)])
    assert np.array_equal(batch.data[0].asnumpy().transpose(0, 2, 3, 1), np.stack(expected))


def mxnet_joins_what_dtrain_cuts(folder):
    """Pictures that hold the container's magic, at a multiple of 4 and not."""
    rng = np.random.default_rng(1)
    images = rng.integers(0, 256, (6, 28, 28), np.uint8).reshape(6, -1)
    for i, places in enumerate([[0], [4, 8], [780], [1], [0, 400, 780], []]):
        for place in places:
            images[i, place:place + 4] = list(MAGIC)
    folder.mkdir()
    for name in ("train", "t10k"):
        with gzip.open(folder / f"{name}-images-idx3-ubyte.gz", "wb") as out:
            out.write(struct.pack(">4I", 0x803, 6, 28, 28) + images.tobytes())
        with gzip.open(folder / f"{name}-labels-idx1-ubyte.gz", "wb") as out:
            out.write(struct.pack(">2I", 0x801, 6) + bytes(range(6)))
    dtrain("data", "prepare", "mnist", "--from", folder, "--raw", "--out", folder)
    for (_, payload), image in zip(records_of(folder / "mnist_train.rec"), images):
        assert np.array_equal(pixels_of(payload).reshape(-1), image)


def dtrain_reads_what_mxnet_writes(folder):
    payloads = [(GOLDEN / name).read_bytes() for name in ("colour_progressive.jpg", "grey.jpg", "palette.png")]
    headers = [mx.recordio.IRHeader(0, 4, 11, 0), mx.recordio.IRHeader(0, 0, 12, 0), mx.recordio.IRHeader(0, 4, 13, 0),
               mx.recordio.IRHeader(0, np.array([1, 0.5, 0.25], np.float32), 14, 0)]
    rec = folder / "mxnet.rec"
    writer = mx.recordio.MXIndexedRecordIO(str(rec.with_suffix(".idx")), str(rec), "w")
    for header, payload in zip(headers, payloads + payloads[:1]):
        writer.write_idx(header.id, mx.recordio.pack(header, payload))
    writer.close()
    contents = json.loads(dtrain("data", "ls", rec, "--json"))
    assert contents["records"] == 4, contents
    assert contents["encodings"] == {"jpeg": 3, "png": 1}, contents
    assert contents["classes"] == {"0": 1, "4": 2}, contents
    dtrain("data", "verify", rec)
    rec.with_suffix(".idx").unlink()
    assert json.loads(dtrain("data", "ls", rec, "--json")) == contents


def dtrain_joins_what_mxnet_cuts(folder):
    """dtrain's own records, written again by MXNet: cut at the same places, so every byte is the same."""
    ours = folder / "cut/mnist_train.rec"
    theirs = folder / "cut/again.rec"
    writer = mx.recordio.MXIndexedRecordIO(str(theirs.with_suffix(".idx")), str(theirs), "w")
    for header, payload in records_of(ours):
        writer.write_idx(header.id, mx.recordio.pack(header, payload))
    writer.close()
    assert theirs.read_bytes() == ours.read_bytes()
    assert theirs.with_suffix(".idx").read_bytes() == ours.with_suffix(".idx").read_bytes()
    dtrain("data", "verify", theirs)


def mxnet_reads_what_dtrain_packs(folder):
    """As im2rec would have: labels by folder, the list, pixels of pictures kept and re-encoded."""
    for label, names in {"a": ["colour_progressive.jpg"], "b": ["palette.png", "colour16.png"]}.items():
        (folder / "photos" / label).mkdir(parents=True)
        for name in names:
            (folder / "photos" / label / name).write_bytes((GOLDEN / name).read_bytes())
    dtrain("data", "pack", folder / "photos", "--train-ratio", 1, "--out", folder / "kept")
    dtrain("data", "pack", folder / "photos", "--train-ratio", 1, "--out", folder / "small", "--resize", 16,
           "--encoding", "png")
    files = ["a/colour_progressive.jpg", "b/colour16.png", "b/palette.png"]
    lines = [line.split("\t") for line in (folder / "kept.lst").read_text().splitlines()]
    assert lines == [[str(i), f"{float(i > 0):f}", name] for i, name in enumerate(files)], lines
    for header, payload in records_of(folder / "kept.rec"):
        assert (header.flag, header.label, header.id2) == (0, float(header.id > 0), 0), header
        assert mx.image.imdecode(payload).shape == mx.image.imread(str(folder / "photos" / files[header.id])).shape
    assert records_of(folder / "kept.rec")[0][1] == (GOLDEN / "colour_progressive.jpg").read_bytes()
    for _, payload in records_of(folder / "small.rec"):
        assert min(mx.image.imdecode(payload).shape[:2]) == 16


with tempfile.TemporaryDirectory() as name:
    mxnet_reads_what_dtrain_packs(Path(name) / "pack")
    mxnet_reads_what_dtrain_writes(Path(name))
    mxnet_trains_on_what_dtrain_writes(Path(name))
    mxnet_joins_what_dtrain_cuts(Path(name) / "cut")
    dtrain_reads_what_mxnet_writes(Path(name))
    dtrain_joins_what_mxnet_cuts(Path(name))
