"""dtrain plot: a picture of a job from its folder."""

import json
import signal
import struct

from world import World, eventually, send_signal


def test_plot_marks_every_change(world: World):
    """Who joined, left and died stands in the picture; a job that goes on after a stop is one curve."""
    job = world.job().start().wait_running()
    job.hosts_command("add", "w3")
    job.wait_members("w1", "w2", "w3").wait_steps(2)
    lost = job.training()["w2"]
    send_signal(lost, signal.SIGKILL)
    eventually(lambda: job.training().get("w2", lost) != lost, "w2 is back", job=job)
    job.hosts_command("remove", "w1")
    job.wait_members("w2", "w3").wait_steps(2)
    eventually(lambda: len((job.folder / "steps.jsonl").read_text().splitlines()) > 3, "steps are written down", job=job)
    job.stop()

    job.start("--resume").wait_running(2).wait_steps(2)
    job.stop()
    picture = world.folder / "run.svg"
    answer = json.loads(world.run("plot", job.folder, "--out", picture, "--json").stdout)
    assert answer["schema"] == "dtrain.plot/1" and answer["changes"] >= 5, answer
    text = picture.read_text()
    for sign in ("+w3", "\u00d7w2", "+w2", "\u2212w1", "resumed"):
        assert f">{sign}<" in text, f"{sign} is missing"
    assert text.count("<polyline") > 10

    world.run("plot", job.folder, "--out", world.folder / "run.png")
    data = (world.folder / "run.png").read_bytes()
    assert data[:8] == b"\x89PNG\r\n\x1a\n" and struct.unpack(">I", data[16:20])[0] == 2000


def test_plot_of_a_training_in_one_process(world: World):
    """With --job-dir its curves and events are recorded, and --resume continues them; a running job's folder is refused."""
    job = world.job()
    words = [*job.training_arguments, "--model-prefix", job.prefix, "--job-dir", job.folder]
    world.run(*words, "--num-epochs", 2)
    kinds = [event["event"] for event in job.events()]
    assert kinds.count("evaluation") == 2 and kinds[-1] == "finish" and job.events()[-1]["exit_code"] == 0, kinds
    world.run(*words, "--num-epochs", 3, "--resume")
    assert [event["seq"] for event in job.events()] == list(range(len(job.events())))
    picture = world.folder / "run.svg"
    world.run("plot", job.folder, "--out", picture)
    text = picture.read_text()
    assert "workers 1" in text and ">resumed<" in text and "<polyline" in text, text[:2000]
    job.start("--force").wait_running()
    answer = world.run(*job.training_arguments, "--num-epochs", 1, "--job-dir", job.folder, check=False)
    assert answer.returncode == 1 and "a job runs there already" in answer.stderr, answer.stderr
    job.stop()


def test_plot_refuses(world: World):
    """A folder without a training, and a picture of no known kind, are mistakes that say what to do."""
    (world.folder / "empty").mkdir()
    answer = world.run("plot", world.folder / "empty", "--out", "x.png", check=False)
    assert answer.returncode == 2 and "--job-dir" in answer.stderr, answer.stderr
    answer = world.run("plot", world.folder / "empty", "--out", "x.jpg", check=False)
    assert answer.returncode == 2 and ".svg" in answer.stderr, answer.stderr
