"""What ranks of programs/tell.py said: who each was, its words, its environment."""

import json
import pathlib
import random


class Told:
    def __init__(self, path: pathlib.Path):
        known = json.loads(path.read_text())
        self.words = [bytes.fromhex(word) for word in known["words"]]
        self.raw = {bytes.fromhex(name): bytes.fromhex(value) for name, value in known["environment"].items()}
        self.environment = {name.decode(): value.decode(errors="surrogateescape") for name, value in self.raw.items()}
        self.folder = known["folder"]


def told_in(folder: pathlib.Path) -> dict[str, Told]:
    """{"worker-0": what it said}."""
    return {path.stem: Told(path) for path in sorted(folder.glob("*.json"))}


ODD = [b" ", b"  ", b"'", b'"', b"\\", b"\n", b"\r", b"\t", b"$", b"$HOME", b"${X}", b"`id`", b"$(id)", b"*", b"?", b"~", b"!",
       b"#", b";", b"&", b"|", b"<", b">", b"(", b")", b"{", b"}", b"{rank}", b"[", b"]", b"=", b":", b",", b"-", b"--", b"%s",
       b"\x01", b"\x7f", b"\x80", b"\xff", b"\xc3\x28", b"\xed\xa0\x80", "\u00fc\u2603\U0001f600".encode(), b"a", b"Z", b"0"]


def odd_words(count: int, seed: int) -> list[bytes]:
    """Random words of whatever a shell, a quoting or a text format may stumble over; the first ones are always the same."""
    chance = random.Random(seed)
    fixed = [b"", b" ", b"--help", b"-n", b"--", b"$HOME", b"\n", b"'", b'"', b"\xff", b"{rank} {role}", b"x" * 5000]
    return fixed + [b"".join(chance.choices(ODD, k=chance.randrange(12))) for _ in range(count - len(fixed))]
