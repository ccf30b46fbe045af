"""What cannot run is refused at once, with the reason."""

import json
import os
import pathlib
import re
import resource
import shutil
import subprocess

from world import eventually


def refused(world, *arguments, before=None, **more) -> str:
    answer = subprocess.run(world.command(["launch", *arguments, "--", "true"]), cwd=world.folder, env=world.environment,
                            capture_output=True, text=True, timeout=60, preexec_fn=before, check=False, **more)
    assert answer.returncode == 2 and "hint:" in answer.stderr, answer.stderr
    return answer.stderr


def test_too_many_ranks(world):
    """-n 2000 on one machine."""
    assert "2000 ranks on this machine" in refused(world, "-n", 2000)


def test_too_few_open_files(world):
    """ulimit -n 16: the limit is named, and the number that would do."""
    def limit():
        resource.setrlimit(resource.RLIMIT_NOFILE, (16, 16))
    said = refused(world, "-n", 2, before=limit)
    assert "may open 16 files" in said and "ulimit -n 64" in said, said


def test_a_host_file_without_end(world):
    """--hostfile /dev/full, /dev/zero: no text."""
    for file in ("/dev/full", "/dev/zero"):
        assert f"--hostfile {file}: this is no text" in refused(world, "--hostfile", file)


def test_a_host_file_that_is_a_pipe(world):
    """One that the shell names is read once; a FIFO without a writer is refused, and a pipe of a queued job."""
    hosts = world.folder / "hosts.fifo"
    os.mkfifo(hosts)
    answer = subprocess.run(world.command(["launch", "--hostfile", hosts, "--", "true"]), cwd=world.folder,
                            env=world.environment, capture_output=True, text=True, timeout=60, check=False)
    assert answer.returncode == 1 and "is a FIFO, not a file" in answer.stderr, answer.stderr
    said = refused(world, "--hostfile", "/dev/stdin", "--detach", "--job-queue", "queue", input="w1\n")
    assert "--hostfile /dev/stdin: is no file that can be read again later" in said, said
    assert "--hostfile /dev/stdin: holds nothing" in refused(world, "--hostfile", "/dev/stdin", input="")


def test_the_current_folder_stays_clean(world):
    """Without --job-dir the files of a job on this machine go to a folder of their own, which is named."""
    answer = world.run("launch", "-n", 2, "--", "true")
    assert "Job folder: /" in answer.stderr, answer.stderr
    assert not list(world.folder.iterdir()), list(world.folder.iterdir())


def own_folder(said: str) -> pathlib.Path:
    return pathlib.Path(re.search(r"Job folder: (/\S*?)([.] |$)", said, re.MULTILINE)[1])


def test_the_folder_of_a_launch_goes_with_it(world):
    """It stays where it holds what the command has not shown: after a failure, and with --no-output."""
    for words, stays in ((("--", "true"), False), (("--", "false"), True), (("--no-output", "--", "true"), True),
                         (("--prepare", "echo ready", "--prepare-all", "--", "true"), False),
                         (("--hostfile", "/dev/full", "--launcher", "local", "--", "true"), False)):
        said = world.run("launch", "-n", 1, *words, check=False).stderr
        if "Job folder: " not in said:
            continue  # refused before
        folder = own_folder(said)
        assert folder.exists() == stays, (words, said)
        shutil.rmtree(folder, ignore_errors=True)


def test_the_folder_of_a_launch_stays_for_what_the_program_keeps(world):
    """A program may keep files in $DTRAIN_JOB_FOLDER and $DTRAIN_RUN_DIR; its messages to dtrain go."""
    for script, kept in (("echo 7 >$DTRAIN_PROGRESS_FILE; echo >$DTRAIN_SAVED_FILE", ""),
                         ("echo x >$DTRAIN_JOB_FOLDER/weights.pt", "weights.pt"),
                         ("mkdir $DTRAIN_RUN_DIR/$RANK/best; echo x >$DTRAIN_RUN_DIR/$RANK/best/w.pt", "run/0/best"),
                         ("echo x >$DTRAIN_JOB_FOLDER/logs/loss.0.log", "logs/loss.0.log")):
        said = world.run("launch", "-n", 1, "--", "sh", "-c", script).stderr
        folder = own_folder(said)
        assert (folder / kept if kept else folder).exists() == bool(kept), (script, said)
        note = f"{folder} stays, because it holds files that dtrain did not make: {kept}\n"
        assert (note in said) == bool(kept), (script, said)
        shutil.rmtree(folder, ignore_errors=True)


def test_a_detached_launch_as_json(world):
    """One document answers where the job runs; where it is over, its records do; no record is on standard error."""
    good = world.launch("sleep", "1000", options=["--json", "--detach"], name="good")
    assert [row["schema"] for row in map(json.loads, good.stdout.splitlines())] == ["dtrain.detached/1"], good
    assert "dtrain.launch/1" not in good.stderr, good
    log = world.folder / "good" / "logs" / "coordinator.log"
    eventually(lambda: "dtrain.launch/1" in log.read_text(), "the start is in the log")
    world.run("stop", "--job-dir", world.folder / "good")
    quick = world.launch("sh", "-c", "exit 7", options=["--json", "--detach"], name="quick", check=False)
    assert "dtrain.launch/1" not in quick.stderr and quick.stdout, quick
    assert {row["schema"] for row in map(json.loads, quick.stdout.splitlines())} <= {"dtrain.launch/1", "dtrain.detached/1"}, quick
    bad = world.launch("no-such-program", options=["--json", "--detach"], name="bad", check=False)
    assert bad.returncode != 0 and "dtrain.launch/1" not in bad.stderr, bad
    assert "no-such-program" in json.loads(bad.stderr.splitlines()[-1])["error"]["message"], bad


def test_the_result_as_json(world):
    """launch --json ends with a result, also of a failure; events --json names its schema."""
    rows = [json.loads(line) for line in world.launch("true", options=["--json"], name="good").stdout.splitlines()]
    assert rows[-1]["schema"] == "dtrain.launch/1" and rows[-1]["event"] == "result" and rows[-1]["exit_code"] == 0, rows
    answer = world.launch("sh", "-c", "echo why; exit 7", options=["--json", "--no-output"], name="bad", check=False)
    result = next(row for row in map(json.loads, answer.stdout.splitlines()) if row.get("event") == "result")
    assert (result["schema"], result["exit_code"], result["first_failure"]["rank"]) == ("dtrain.launch/1", 7, 0), result
    assert result["first_failure"]["last_lines"] == ["why"], result
    events = [json.loads(line) for line in world.run("events", "--job-dir", world.folder / "bad", "--json").stdout.splitlines()]
    assert {event["schema"] for event in events} == {"dtrain.event/1"}, events
