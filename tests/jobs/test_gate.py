"""What a host must pass before it may join: the prepare command, then a check of its health."""

from world import World, alive, eventually


def success_file(job, host: str):
    return job.folder / f"prepare_data_success_{host}"


def events_of(job, kind: str, host: str) -> list[dict]:
    return [event for event in job.events() if event["event"] == kind and event.get("host") == host]


def test_newcomer_is_prepared(world: World):
    """The command runs on the newcomer alone, before its worker; its output is kept, and success leaves a file."""
    command = "echo preparing on $DTRAIN_HOST; touch ran_$DTRAIN_HOST; sleep 1"
    job = world.job(arguments=["--prepare", command]).start().wait_running()
    job.hosts_command("add", "w3")
    eventually(lambda: job.row("w3")["state"] == "preparing", "w3 is being prepared", job=job)
    job.wait_members("w1", "w2", "w3")
    assert success_file(job, "w3").exists() and not success_file(job, "w1").exists()
    assert (world.folder / "ran_w3").exists() and not (world.folder / "ran_w1").exists()
    assert "preparing on w3" in (job.folder / "logs" / "prepare_w3.log").read_text()
    prepared = events_of(job, "prepared", "w3")
    assert len(prepared) == 1 and prepared[0]["prepare"] == "ran" and prepared[0]["health"]["data"], prepared
    job.expect_undisturbed_bits()


def test_success_file_by_hand(world: World):
    """A success file that a person made counts: the command does not run, and the job says so."""
    job = world.job(arguments=["--prepare", "touch ran; exit 7"]).start().wait_running()
    success_file(job, "w3").touch()
    job.hosts_command("add", "w3")
    job.wait_members("w1", "w2", "w3")
    assert not (world.folder / "ran").exists() and "by hand" in job.said()
    job.stop()


def test_failing_prepare(world: World):
    """A newcomer whose command fails: reason, last line and next command in the list, and a later try that succeeds."""
    job = world.job(arguments=["--prepare", "echo no such bucket >&2; test -e good || exit 3"]).start().wait_running()
    before = job.training()
    job.hosts_command("add", "w3")
    row = eventually(lambda: "no such bucket" in job.row("w3").get("reason", "") and job.row("w3"), "it failed", job=job)
    assert "exit code 3" in row["reason"] and row["next"].startswith("dtrain tail-logs"), row
    failed = events_of(job, "failed", "w3")
    assert failed[0]["stage"] == "prepare" and failed[0]["last_lines"] == ["no such bucket"], failed
    assert job.training() == before, "the others noticed"
    (world.folder / "good").touch()
    job.wait_members("w1", "w2", "w3")
    job.stop()


def test_prepare_that_takes_too_long(world: World):
    """A command that does not end in time is ended with all that it started."""
    job = world.job(arguments=["--prepare", "sleep 1000 & sleep 1001", "--prepare-timeout", 1]).start().wait_running()
    job.hosts_command("add", "w3")
    eventually(lambda: events_of(job, "failed", "w3"), "w3 failed", job=job)
    assert "did not end within" in events_of(job, "failed", "w3")[0]["reason"]
    assert success_file(job, "w3").exists() is False
    job.stop()


def test_prepare_all(world: World):
    """--prepare-all: the hosts of the start are prepared too; where none can be, the job fails with the reason."""
    job = world.job("good", arguments=["--prepare", "true", "--prepare-all"]).start().wait_running()
    assert success_file(job, "w1").exists() and success_file(job, "w2").exists()
    job.stop()
    job = world.job("bad", arguments=["--prepare", "exit 9", "--prepare-all"]).start()
    assert job.wait() == 1 and "exit code 9" in job.said(), job.said()


def test_newcomer_with_other_data(world: World):
    """A host whose data is not that of the job is refused with the file's name, and the others train on."""
    copy = world.folder / "data"
    copy.mkdir()
    for path in world.data.iterdir():
        (copy / path.name).write_bytes(path.read_bytes())
    data = ["--data-train", copy / "shapes_train.rec", "--data-val", copy / "shapes_val.rec"]
    job = world.job(data=data).start().wait_running()
    index = copy / "shapes_train.idx"
    good = index.read_bytes()
    index.write_bytes(good[:-20])
    job.hosts_command("add", "w3")
    eventually(lambda: events_of(job, "failed", "w3"), "w3 failed", job=job)
    failed = events_of(job, "failed", "w3")[0]
    assert failed["stage"] == "health" and "shapes_train" in failed["reason"], failed
    index.write_bytes(good)
    job.wait_members("w1", "w2", "w3")
    job.stop()


def test_removed_while_preparing(world: World):
    """A newcomer that is removed while it prepares leaves no process of its command."""
    job = world.job(arguments=["--prepare", "sleep 1000"]).start().wait_running()
    job.hosts_command("add", "w3")
    eventually(lambda: job.row("w3")["state"] == "preparing", "w3 is being prepared", job=job)
    sleepers = eventually(lambda: [pid for pid in world.processes() if is_sleep(pid)], "the command runs", job=job)
    job.hosts_command("remove", "w3", "--yes")
    eventually(lambda: not any(alive(pid) for pid in sleepers), "the command is gone", 30, job=job)
    job.stop()


def is_sleep(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return file.read().startswith(b"sleep")
    except OSError:
        return False
