"""Pictures of two aspects with boxes and masks: aspect_scenes.py FOLDER WIDE HIGH writes so many of 80x48 and of 48x80
pixels (width first) into FOLDER, and FOLDER.json, their annotations as COCO has them. Each shows a bright rectangle of
one of two kinds on a dark ground."""

import json
import random
import struct
import sys
from pathlib import Path

LONG, SHORT = 80, 48


def bitmap(width: int, height: int, pixel) -> bytes:
    """A BMP of 24 bits, its rows from the bottom up."""
    rows = []
    for y in reversed(range(height)):
        row = b"".join(bytes(pixel(x, y)) for x in range(width))
        rows.append(row + bytes(-len(row) % 4))
    pixels = b"".join(rows)
    head = struct.pack("<IiiHHIIiiII", 40, width, height, 1, 24, 0, len(pixels), 2835, 2835, 0, 0)
    return struct.pack("<2sIHHI", b"BM", 54 + len(pixels), 0, 0, 54) + head + pixels


def scene(draw: random.Random, width: int, height: int):
    """The pixels, and the box as x, y, width, height, and its kind."""
    across, down = draw.randint(16, 30), draw.randint(16, 30)
    left, top, kind = draw.randint(0, width - across), draw.randint(0, height - down), draw.randint(0, 1)
    colour = (40, 60, 220) if kind else (220, 180, 40)

    def pixel(x: int, y: int):
        inside = left <= x < left + across and top <= y < top + down
        return [min(255, max(0, value + draw.randint(-20, 20))) for value in (colour if inside else (30, 30, 30))]

    return bitmap(width, height, pixel), (left, top, across, down), kind


def main(folder: str, wide: int, high: int):
    draw = random.Random(5)
    document = {"images": [], "annotations": [],
                "categories": [{"id": 1, "name": "yellow"}, {"id": 2, "name": "red"}]}
    Path(folder).mkdir()
    sizes = [(LONG, SHORT)] * wide + [(SHORT, LONG)] * high
    draw.shuffle(sizes)
    for number, (width, height) in enumerate(sizes, 1):
        name = f"{number:03}.bmp"
        content, (x, y, across, down), kind = scene(draw, width, height)
        (Path(folder) / name).write_bytes(content)
        corners = [x, y, x + across, y, x + across, y + down, x, y + down]
        document["images"].append({"id": number, "file_name": name, "width": width, "height": height})
        document["annotations"].append({"id": number, "image_id": number, "category_id": kind + 1, "iscrowd": 0,
                                        "bbox": [x, y, across, down], "area": across * down,
                                        "segmentation": [corners]})
    Path(f"{folder}.json").write_text(json.dumps(document))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
