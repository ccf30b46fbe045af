"""Folders of runs that other users fill: links and FIFOs in them, and callers who are other users."""

import json
import os
import subprocess
import sys

from browser import BoardWorld
from runner import Skip
from test_folders import write_run
from world import eventually

# The status of a request by another user of this machine, who may not read all modules of Python.
CALL = """
import encodings.idna, os, sys, urllib.error, urllib.request
os.setgid(65534), os.setuid(65534)
request = urllib.request.Request(sys.argv[1], headers={"Cookie": sys.argv[2]}, data=b"{}" if sys.argv[1].endswith("action") else None)
try:
    print(urllib.request.urlopen(request, timeout=20).status)
except urllib.error.HTTPError as error:
    print(error.code)
"""


def test_links_and_fifos_lead_nowhere(world: BoardWorld):
    """What a link in a run's folder leads to is not shown, a FIFO keeps nobody waiting, and the board ends."""
    (world.folder / "secret").write_text("a secret\n")
    run = world.folder / "m" / "job"
    write_run(run, 20)
    (run / "logs").mkdir()
    (run / "logs" / "w1.log").write_text("a log\n")
    (run / "logs" / "w0.log").symlink_to(world.folder / "secret")
    os.mkfifo(run / "logs" / "w2.log")
    report = run / "rep"
    report.mkdir()
    (report / "per_class.csv").write_text("class,f1\na,1\n")
    (report / "own.png").write_bytes(b"PNG")
    (report / "a.png").symlink_to(world.folder / "secret")
    os.mkfifo(report / "b.png")
    os.mkfifo(run / "coordinator.json")
    (world.folder / "m" / "linked-run").symlink_to(world.folder / "elsewhere")
    write_run(world.folder / "elsewhere", 20)
    board = world.board("m")
    rows = eventually(board.rows, "a run is found")
    assert [row["name"] for row in rows] == ["m/job"], rows
    key = rows[0]["id"]
    assert [log["name"] for log in json.loads(board.ask(f"/api/logs?run={key}")[1])["logs"]] == ["w1.log"]
    assert json.loads(board.ask(f"/api/evaluation?run={key}")[1])["pictures"] == ["own.png"]
    assert board.ask(f"/api/report?run={key}&report=rep&name=own.png")[0] == 200
    for _ in range(6):  # there are four answerers
        for question in ("log?name=w0.log", "log?name=w2.log", "report?report=rep&name=a.png", "report?report=rep&name=b.png"):
            status, text = board.ask(f"/api/{question}&run={key}")
            assert status == 404 and "secret" not in text, (question, status, text)
        assert not json.loads(board.ask(f"/api/live?run={key}")[1])["running"]
    board.process.terminate()
    assert board.process.wait(timeout=20) == 0


def test_settings_of_others_name_nothing_to_open(world: BoardWorld):
    """The page says why the records and checkpoints are not opened that a train.toml of another user names."""
    folder = world.folder / "m" / "job"
    write_run(folder, 20)
    (world.folder / "elsewhere").mkdir()
    settings = folder / "train.toml"
    settings.write_text(f'network = "mlp"\ndata-train = "{world.data / "shapes_train.rec"}"\nmodel-prefix = "{world.folder / "elsewhere" / "m"}"\n')
    board = world.board("m")
    key = eventually(board.rows, "a run is found")[0]["id"]
    data, model = f"/api/data?run={key}", f"/api/model?run={key}"
    assert json.loads(board.ask(data)[1])["records"] and "no checkpoint yet" in board.ask(model)[1]
    settings.chmod(0o666)
    for question, what in ((data, "records"), (model, "checkpoints")):
        code, text = board.ask(question)
        assert code == 200 and json.loads(text)["missing"] == f"other users may write train.toml, so the board does not open the {what} that it names", text
    assert board.ask(f"/api/sheet?run={key}")[0] == 404
    screen = world.screen().open(board.url + "#/data/" + key).wait("main", "other users may write train.toml")
    screen.go("#/model/" + key).wait("main", "does not open the checkpoints").expect_no_error()


def test_a_folder_that_is_a_link_is_shown(world: BoardWorld):
    """The user named it."""
    write_run(world.folder / "disk" / "a-run", 20)
    (world.folder / "m").symlink_to(world.folder / "disk")
    board = world.board("m")
    key = eventually(board.rows, "a run is found")[0]["id"]
    assert json.loads(board.ask(f"/api/series?run={key}")[1])["rows"] == 20


def test_another_user_gets_nothing_also_with_the_token(world: BoardWorld):
    """On this machine the caller's user counts, whether or not the board may act."""
    if os.geteuid() != 0:
        raise Skip("only root may ask as another user")
    write_run(world.folder / "a-run", 20)
    for words in ((), ("--allow-actions",)):
        board = world.board(world.folder, *words)
        token = board.url.partition("token=")[2]
        cookie = f"dtrain_board_{board.facts['port']}={token}"
        for path in (f"/?token={token}", "/api/board", "/api/action"):
            asked = subprocess.run([sys.executable, "-c", CALL, board.root + path, cookie], capture_output=True, text=True, timeout=60)
            assert asked.stdout == "403\n", (words, path, asked)
        assert board.ask("/api/board", {"Cookie": cookie})[0] == 200
