#!/usr/bin/env python3
"""dtrain board shows runs behind s3://. test_board.py DTRAIN"""

import json
import sys
import time
import urllib.request

import lib

BEGIN = '{"time":"2026-01-31T12:00:00.000000Z","begins":true}\n'
STEP = '{"time":"2026-01-31T12:00:%02d.000000Z","epoch":0,"step":%d,"steps":100,"samples":8,"seconds":1,"loss":%d}\n'


def steps(count):
    return BEGIN + "".join(STEP % (i + 1, i, i) for i in range(count))


def until(question, what):
    end = time.monotonic() + lib.PATIENCE
    while not (value := question()):
        assert time.monotonic() < end, what
        time.sleep(0.1)
    return value


def a_run_behind_a_bucket_appears_and_grows(world):
    world.put("m/deep/a-run/steps.jsonl", steps(3))
    world.put("m/deep/a-run/logs/w1.0.log", "2026-01-31T12:00:00.000000Z generation 1: rank 0 of 1\n")
    world.put("m/deep/a-run/train.toml", 'network = "mlp"\n')
    world.put("mine/steps.jsonl", steps(9))
    board = world.start("board", world.s3("m"), "--port", 0, "--json")
    try:
        url = json.loads(board.stdout.readline())["url"]
        ask = lambda path: json.loads(urllib.request.urlopen(url + path, timeout=lib.PATIENCE).read())
        [row] = until(lambda: ask("api/board")["rows"], "the run is found")
        assert row["name"] == "deep/a" and row["lines"] == 3 and row["network"] == "mlp" and row["updated"] > 0, row  # read before it is shown
        assert ask("api/series?run=" + row["id"])["columns"]["loss"]["mean"] == [0, 1, 2]
        assert ask("api/logs?run=" + row["id"])["logs"][0]["name"] == "w1.0.log"
        assert "rank 0" in ask("api/log?name=w1.0.log&run=" + row["id"])["text"]
        world.put("m/deep/a-run/steps.jsonl", steps(7))
        until(lambda: ask("api/board")["rows"][0]["lines"] == 7, "the run grows")
        world.put("m/deep/a-run/steps.jsonl", steps(50))
        until(lambda: ask("api/board")["rows"][0]["lines"] == 50, "the run grows far beyond what is kept in memory")
        assert ask("api/series?run=" + row["id"])["columns"]["loss"]["mean"] == list(range(50))
        world.run("board", world.s3("m"), "--export", world.folder / "run.html")
        assert '"mean":[0,1,2,3,' in (world.folder / "run.html").read_text().replace(".0,", ","), "each line, not means"
        refused = world.run("board", f"s3://{world.bucket}-not/m", "--export", "none.html", status=4)
        assert "no run or job" not in refused and f"{world.bucket}-not" in refused, refused
        world.delete("m/deep/a-run/steps.jsonl")
        until(lambda: not ask("api/board")["rows"], "the run is gone")
    finally:
        board.terminate()
        board.communicate()


sys.exit(0 if lib.run_tests([a_run_behind_a_bucket_appears_and_grows], sys.argv[1]) else 1)
