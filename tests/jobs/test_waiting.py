"""--launcher folder: hosts that wait in the job folder, as `dtrain hosts join`, take their orders from there."""

import json
import signal
import subprocess
import threading
import time

from world import Job, World, alive, eventually, send_signal


def folder_job(world: World, hosts: int = 2, epochs: int = 100000, **options) -> Job:
    """Hosts come by themselves: no -H."""
    job = world.job(hosts=hosts, launcher="folder", epochs=epochs, **options)
    at = job.arguments.index("-H")
    job.arguments[at:at + 2] = ["-n", hosts]
    return job


def wait_there(world: World, job: Job, name: str) -> subprocess.Popen:
    """`dtrain hosts join` under this name."""
    with open(world.folder / f"{name}.log", "ab") as log:
        return subprocess.Popen(world.command(["hosts", "join", "--name", name, "--job-dir", job.folder]), cwd=world.folder,
                                env=world.environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log)


def probe(world: World, job: Job, name: str, kind: str) -> bool:
    return world.run("hosts", "join", "--probe", kind, "--name", name, "--job-dir", job.folder, check=False).returncode == 0


def end(*waiting: subprocess.Popen) -> None:
    for process in waiting:
        process.send_signal(signal.SIGTERM)
    for process in waiting:
        assert process.wait(60) == 0


def test_join_and_leave_while_it_trains(world: World):
    """2 -> 3 -> 1 hosts by `hosts join`, SIGTERM and `hosts leave`: the bits of an undisturbed run, every sample once."""
    job = folder_job(world).start()
    first = wait_there(world, job, "w1")
    eventually(lambda: "1 of 2 hosts wait" in job.said(), "it waits for the second host", job=job)
    assert probe(world, job, "w1", "alive") and not probe(world, job, "w1", "ready")
    assert not probe(world, job, "w7", "alive"), "nobody waits under this name"
    second = wait_there(world, job, "w2")
    job.wait_members("w1", "w2").wait_steps(3)
    assert probe(world, job, "w2", "ready")
    third = wait_there(world, job, "w3")
    job.wait_members("w1", "w2", "w3").wait_steps(3)
    end(second)
    job.wait_members("w1", "w3").wait_steps(3)
    world.run("hosts", "leave", "--name", "w3", "--job-dir", job.folder)
    assert set(job.training()) == {"w1"} and alive(third.pid), "it has left, and its process waits for SIGTERM"
    eventually(lambda: [host["name"] for host in job.list()["hosts"]] == ["w1"], "the list has forgotten both", job=job)
    assert not probe(world, job, "w3", "ready")
    job.wait_steps(3).expect_undisturbed_bits()
    assert alive(first.pid), "it waits for the next job of the folder"
    end(first, third)
    assert not list((job.folder / "waiting").iterdir()), "their files are gone"


def test_the_last_host_saves(world: World):
    """When the only host leaves, the job saves and ends with 75; the same command goes on when a host has come back."""
    job = folder_job(world, hosts=1, epochs=30).start()
    only = wait_there(world, job, "w1")
    job.wait_members("w1").wait_steps(5)
    end(only)
    assert job.wait() == 75, job.said()
    job.start("--resume")
    again = wait_there(world, job, "w1")
    job.finish()
    assert job.state_hash() == world.alone(job, 30), "other bits"
    job.expect_exactly_once(30)
    end(again)


def test_a_host_is_lost_and_comes_back(world: World):
    """kill -9 of everything of a host: the others go on, and the host joins again under its name."""
    job = folder_job(world).start()
    first, second = wait_there(world, job, "w1"), wait_there(world, job, "w2")
    job.wait_members("w1", "w2").wait_steps(3)
    worker = job.training()["w2"]
    send_signal(second.pid, signal.SIGKILL)
    send_signal(worker, signal.SIGKILL)
    second.wait()
    eventually(lambda: not alive(worker), "its worker is gone", job=job)
    second = wait_there(world, job, "w2")
    job.wait_members("w1").wait_members("w1", "w2").wait_steps(3).expect_undisturbed_bits()
    end(first, second)


def test_a_command_that_is_started_again_follows(world: World):
    """The coordinator is killed, an agent's takes over: the same command with --resume follows the job to its end."""
    job = folder_job(world, epochs=60).start()
    waiting = [wait_there(world, job, name) for name in ("w1", "w2")]
    job.wait_members("w1", "w2").wait_steps(3)
    send_signal(job.record()["pid"], signal.SIGKILL)
    job.process.wait()
    job.wait_for_term(2)
    job.start("--resume")
    eventually(lambda: "the job runs; its log follows" in job.said(), "it follows", job=job)
    job.finish(180)
    assert "Epoch[59]" in job.said(), "its log was shown"
    assert job.state_hash() == world.alone(job, 60), "other bits"
    end(*waiting)


def test_what_is_refused(world: World):
    """A name that is no host's, a second process of the same name, leaving where nobody waits, -H."""
    job = folder_job(world)
    said = world.run("hosts", "join", "--name", "a/b", "--job-dir", job.folder, check=False)
    assert said.returncode == 2 and "not the name of a host" in said.stderr, said.stderr
    said = world.run("hosts", "leave", "--name", "w1", "--job-dir", job.folder, check=False)
    assert said.returncode == 1 and "w1 does not wait there" in said.stderr, said.stderr
    first = wait_there(world, job, "w1")
    eventually(lambda: probe(world, job, "w1", "alive"), "it waits")
    said = world.run("hosts", "join", "--name", "w1", "--job-dir", job.folder, check=False)
    assert said.returncode == 1 and "waits in this folder already" in said.stderr, said.stderr
    end(first)
    said = world.run("train", "--launcher", "folder", "-H", "hosts", "-n", 1, check=False)
    assert said.returncode == 2 and "-H: not supported by --launcher folder" in said.stderr, said.stderr


def test_an_order_that_another_user_may_have_written_is_refused(world: World):
    """It names what runs here, and the log that is appended to. The host says why, and takes the orders of its own coordinator."""
    job = folder_job(world, hosts=1).start()
    only = wait_there(world, job, "w1")
    job.wait_members("w1")
    waiting = job.folder / "waiting"
    assert waiting.stat().st_mode & 0o777 == 0o700
    job.stop()
    planted = waiting / "w1+0.order"
    document = {"job_folder": str(world.folder / "planted"), "host": "w1", "tree": "0"}
    planted.write_text(json.dumps(document))
    planted.chmod(0o666)
    (waiting / "w1+1.order").symlink_to(planted)
    said = world.folder / "w1.log"
    eventually(lambda: f"{planted}: other users may write it, so it is not obeyed" in said.read_text(), "the host says why")
    eventually(lambda: "w1+1.order: it is a symbolic link, so it is not obeyed" in said.read_text(), "nor is a link followed")
    assert alive(only.pid) and not (world.folder / "planted").exists()
    started = world.run("agent", "--join", planted, check=False)
    assert started.returncode == 2 and "is not obeyed" in started.stderr, started
    end(only)


def test_a_name_that_another_machine_has(world: World):
    """A second host of a name is refused while the first renews its file, and touches nothing of it."""
    job = folder_job(world)
    file = job.folder / "waiting" / "w1.json"
    file.parent.mkdir(mode=0o700, parents=True)
    over = threading.Event()

    def renew() -> None:
        while not over.wait(0.3):
            beside = file.with_suffix(".new")
            beside.write_text(json.dumps({"schema": "dtrain.waiting/1", "host": "w1", "state": "in-job", "pid": 1,
                                          "time": int(time.time()), "process": "another boot", "machine": "node7"}))
            beside.rename(file)

    renewing = threading.Thread(target=renew)
    renewing.start()
    try:
        eventually(file.exists, "the other machine shows itself")
        said = world.run("hosts", "join", "--name", "w1", "--job-dir", job.folder, check=False)
        assert said.returncode == 1 and "as process 1 of the machine node7" in said.stderr, said.stderr
        assert "--name" in said.stderr and "for a job" not in said.stderr, said.stderr
        assert json.loads(file.read_text())["machine"] == "node7", "its file stays"
    finally:
        over.set()
        renewing.join()
    first = wait_there(world, job, "w1")
    eventually(lambda: probe(world, job, "w1", "alive"), "the name of a machine that is gone is free again")
    end(first)


def test_a_second_process_leaves_the_worker_alone(world: World):
    """A process that asks for the name of one that stands still is refused, and the worker that it did not start stays."""
    job = folder_job(world).start()
    first, second = wait_there(world, job, "w1"), wait_there(world, job, "w2")
    job.wait_members("w1", "w2").wait_steps(3)
    worker = job.training()["w2"]
    send_signal(second.pid, signal.SIGSTOP)
    assert wait_there(world, job, "w2").wait(60) == 1
    said = (world.folder / "w2.log").read_text()
    assert "w2 waits in this folder already" in said and "--name" in said, said
    send_signal(second.pid, signal.SIGCONT)
    job.wait_steps(3)
    assert job.training().get("w2") == worker, job.list()["hosts"]
    end(first, second)


def test_the_token_is_in_no_sight(world: World):
    """Orders hold the job's token: they are gone once they are taken, and no command line shows it."""
    job = folder_job(world, hosts=1).start()
    only = wait_there(world, job, "w1")
    job.wait_members("w1")
    token = json.loads((job.folder / "coordinator.json").read_text())["token"].encode()
    holders = [path.name for path in job.folder.rglob("*") if path.is_file() and token in path.read_bytes()]
    assert holders == ["coordinator.json"], holders
    for pid in world.processes():
        for part in ("cmdline", "environ"):
            try:
                assert token not in open(f"/proc/{pid}/{part}", "rb").read(), f"{part} of {pid}"
            except OSError:
                pass
    job.stop()
    end(only)
