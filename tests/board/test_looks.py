"""What the pages look like: screenshots of fixed runs beside reviewed ones in looks/, in light, in dark and on a phone.

DTRAIN_REVIEW_LOOKS=1 writes new ones, to be looked at before they are committed. They are small, so that fonts of other
machines do not matter: what moves, is missing or has another colour does.
"""

import io
import json
import os
import pathlib

from browser import BoardWorld, Screen
from PIL import Image
from test_folders import write_run

LOOKS = pathlib.Path(__file__).parent / "looks"
SHRUNK_BY = 5
TILES = (16, 12)
LEAST_APART, MOST_OF_INK = 1.5, 0.4  # of 255: less is a rounding; and of what a tile shows: less is another font
MOST_TILES = 0.05
# What is another thing on each machine, or at each time.
HIDDEN = "for (const node of document.querySelectorAll('#machine, #live, .runs td:last-child')) node.style.visibility = 'hidden';"


def write_job(folder: pathlib.Path) -> None:
    """Two hosts train, a third one joins, a worker is killed and comes back, the job is stopped."""
    write_run(folder, 280)
    at = lambda second: f"2026-01-31T12:{second // 60:02}:{second % 60:02}.000000Z"
    members = {1: ["w1", "w2"], 2: ["w1", "w2", "w3"], 3: ["w1", "w3"], 4: ["w1", "w3", "w2"]}
    events = [(second, {"event": event, "host": host, **more}) for host, begin, worker in (("w1", 0, 1), ("w2", 0, 2), ("w3", 90, 1003), ("w2", 185, 4))
              for second, event, more in ((begin, "host_starting", {}), (begin + 4, "worker_starting", {"worker": worker}), (begin + 14, "worker_ready", {"worker": worker}))]
    events += [(second, {"event": "commit", "generation": generation, "members": members[generation], "reason": reason})
               for second, generation, reason in ((16, 1, "the job begins"), (106, 2, "w3 joined"), (182, 3, "worker 2 was killed by signal 9"), (201, 4, "w2 joined"))]
    events += [(second, {"event": "generation", "generation": generation, "workers": len(members[generation]), "pause_seconds": pause, "reason": reason, "seconds": {"prepare": pause / 4, "sync": pause / 2}})
               for second, generation, pause, reason in ((18, 1, 2, "the job begins"), (108, 2, 2.5, "w3 joined"), (184, 3, 4, "worker 2 was killed by signal 9"), (203, 4, 1.5, "w2 joined"))]
    events += [(90, {"event": "hosts", "by": "command", "added": ["w3"], "removed": []}), (180, {"event": "failed", "worker": 2, "host": "w2", "reason": "killed by signal 9"}),
               (150, {"event": "straggler", "worker": 1003, "host": "w3", "score": 2.1, "compute_seconds": 0.4, "median_seconds": 0.19}), (240, {"event": "evaluation", "epoch": 2, "loss": 0.4, "accuracy": 0.81}),
               (280, {"event": "stop", "reason": "stopped by SIGINT"}), (290, {"event": "finish", "exit_code": 75, "reason": "stopped by SIGINT"}), (290, {"event": "goodput", "percent": 93.1, "samples_seen": 51200})]
    events.sort(key=lambda one: one[0])
    (folder / "events.jsonl").write_text("".join(json.dumps({"seq": i, "time": at(second), **event}) + "\n" for i, (second, event) in enumerate(events)))
    (folder / "journal.jsonl").write_text("")


def shrunk(picture: bytes) -> Image.Image:
    image = Image.open(io.BytesIO(picture)).convert("RGB")
    return image.resize((image.width // SHRUNK_BY, image.height // SHRUNK_BY), Image.Resampling.BOX)


def different_tiles(one: Image.Image, other: Image.Image) -> float:
    """The share of tiles that show clearly more, less or other colours: letters may be elsewhere in their line."""
    paper = max(one.getcolors(one.width * one.height))[1]
    apart = 0
    for a, b in zip(*(image.resize(TILES, Image.Resampling.BOX).getdata() for image in (one, other))):
        distance = max(abs(x - y) for x, y in zip(a, b))
        ink = max(abs(x - y) for tile in (a, b) for x, y in zip(tile, paper))
        apart += distance > LEAST_APART and distance > MOST_OF_INK * ink
    return apart / (TILES[0] * TILES[1])


def expect_look(screen: Screen, name: str) -> None:
    screen.script(HIDDEN + "document.activeElement.blur(); return new Promise((done) => setTimeout(done, 400))")
    now, path = shrunk(screen.keep(name)), LOOKS / f"{name}.png"
    if os.environ.get("DTRAIN_REVIEW_LOOKS"):
        LOOKS.mkdir(exist_ok=True)
        now.quantize(32).save(path, optimize=True)
    reviewed = Image.open(path).convert("RGB")
    assert now.size == reviewed.size, f"{name}: {now.size} and {reviewed.size}"
    apart = different_tiles(now, reviewed)
    assert apart <= MOST_TILES, f"{name} looks different in {100 * apart:.0f} % of the page"


def test_pages_look_as_they_were_reviewed(world: BoardWorld):
    """Table, curves, comparison and job, in light and dark and as wide as a phone."""
    for name, loss in (("alpha", 2.0), ("beta", 1.0), ("gamma", 0.5)):
        write_run(world.folder / "m" / f"{name}-run", 900, loss, finished=True)
    write_job(world.folder / "m" / "job")
    board = world.board("m")
    ids = {}
    while len(ids) < 4:
        ids = {row["name"]: row["id"] for row in board.rows()}
    pages = {"runs": "#/", "run": "#/run/" + ids["alpha"], "compare": "#/run/" + ",".join(ids[name] for name in ("alpha", "beta", "gamma")), "job": "#/job/" + ids["m/job"]}
    for style, options in (("light", {}), ("dark", {"theme": "dark"}), ("phone", {"width": 420, "height": 860})):
        theme = options.pop("theme", "light")
        screen = world.screen(**options).open(board.url).wait("tbody tr", "alpha")
        screen.script("localStorage.setItem('theme', arguments[0])", theme)
        screen.open("about:blank").open(board.url).wait("tbody tr", "gamma")
        for name, part in pages.items():
            screen.go(part).wait({"runs": ".runs", "job": ".timeline path.lost"}.get(name, ".chart path"))
            expect_look(screen, f"{name}_{style}")
        assert "1003" in screen.text("[aria-label^='Workers that held']"), "the number of a worker is a name"
        screen.expect_no_error()


def test_another_look_is_noticed(world: BoardWorld):
    """The comparison itself: a page without its chart differs, the same page does not."""
    write_run(world.folder / "m" / "alpha-run", 900, 2.0, finished=True)
    board = world.board("m")
    screen = world.screen().open(board.url).wait("tbody tr", "alpha").press("tbody a", "ENTER").wait(".chart path")
    first = shrunk(screen.keep("whole"))
    assert different_tiles(first, shrunk(screen.keep("whole"))) == 0
    screen.script("document.querySelector('.panel').style.visibility = 'hidden'")
    assert different_tiles(first, shrunk(screen.keep("without"))) > MOST_TILES
    screen.script("document.querySelector('.panel').style.visibility = ''; document.getElementById('theme').click(); document.getElementById('theme').click()")
    assert different_tiles(first, shrunk(screen.keep("dark"))) > 0.5
