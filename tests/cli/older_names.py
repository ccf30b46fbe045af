"""Renames the tensors of a detector as torchvision called them before its release 0.13: older_names.py IN OUT.

Both are safetensors files, as `dtrain export` writes them.
"""

import json
import re
import struct
import sys

OLDER = (
    (r"(fpn\.(?:inner|layer)_blocks\.\d)\.0\.", r"\1."),
    (r"rpn\.head\.conv\.0\.0\.", "rpn.head.conv."),
    (r"(_head\.conv)\.(\d)\.0\.", lambda match: f"{match[1]}.{2 * int(match[2])}."),
    (r"mask_head\.(\d)\.0\.", lambda match: f"mask_head.mask_fcn{int(match[1]) + 1}."),
)


def older(name):
    renamed = re.sub(r"_(weight|bias)$", r".\1", name)
    for pattern, since in OLDER:
        renamed = re.sub(pattern, since, renamed)
    return renamed


def main():
    content = open(sys.argv[1], "rb").read()
    size = struct.unpack("<Q", content[:8])[0]
    header = json.loads(content[8:8 + size])
    renamed = json.dumps({older(name): tensor for name, tensor in header.items()}).encode()
    with open(sys.argv[2], "wb") as out:
        out.write(struct.pack("<Q", len(renamed)) + renamed + content[8 + size:])
    print(sum(any(re.search(pattern, name.replace("_weight", ".weight").replace("_bias", ".bias")) for pattern, _ in OLDER)
              for name in header))


if __name__ == "__main__":
    main()
