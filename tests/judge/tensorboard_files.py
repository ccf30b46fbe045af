"""The tensorboard package reads back dtrain's event files: every scalar with its step, and the image's pixels."""
import io
import tempfile

import numpy
from PIL import Image
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from _cases import dump, end, must

STEPS = 100  # of dump_events in dump_checkpoint.cpp, as are the formulas below


def judge_scalars(events, tag, value):
    scalars = events.Scalars(tag)
    must([s.step for s in scalars] == [391 * i for i in range(STEPS)], "other steps")
    must([s.value for s in scalars] == [float(numpy.float32(value(i))) for i in range(STEPS)], "other values")
    must(all(a.wall_time <= b.wall_time for a, b in zip(scalars, scalars[1:])), "the clock ran backwards")


def judge_image(events):
    (event,) = events.Images("first batch")
    must((event.step, event.width, event.height) == (1, 7, 5), f"step, width, height {event.step}, {event.width}, {event.height}")
    pixels = numpy.asarray(Image.open(io.BytesIO(event.encoded_image_string)))
    expected = (2 * numpy.arange(5 * 7 * 3) + 1).astype("uint8").reshape(5, 7, 3)
    must(numpy.array_equal(pixels, expected), "other pixels")


def judge_tags(events):
    tags = events.Tags()
    must(sorted(tags["scalars"]) == ["train/accuracy", "train/loss"] and tags["images"] == ["first batch"], str(tags))
    must(events.file_version == 2.0, f"version {events.file_version}")


def main():
    with tempfile.TemporaryDirectory() as folder:
        dump("--events", folder)
        events = EventAccumulator(folder, size_guidance={"scalars": 0, "images": 0}).Reload()
    checks = {
        "tags": lambda: judge_tags(events),
        "loss": lambda: judge_scalars(events, "train/loss", lambda i: 1 / (1 + i)),
        "accuracy": lambda: judge_scalars(events, "train/accuracy", lambda i: 0.01 * i),
        "image": lambda: judge_image(events),
    }
    passed = failed = 0
    for name, check in checks.items():
        try:
            check()
            passed += 1
            print(f"ok   {name}")
        except Exception as error:  # whatever the real library throws is a verdict
            failed += 1
            print(f"FAIL {name}: {type(error).__name__}: {error}")
    end(passed, failed)


main()
