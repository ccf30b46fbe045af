"""Random lives of jobs on real images, many jobs at once, many changes: what takes long."""

import os
import pathlib
import random
import signal

from runner import Skip, slow
from world import World, alive, eventually, send_signal, state_hash

SAMPLES = 2000
SCHEDULES = 20


def cifar(world: World) -> list:
    """Arguments that name a part of CIFAR-10, prepared once a test."""
    source = os.environ.get("DTRAIN_TEST_DATA")
    if not source:
        raise Skip("DTRAIN_TEST_DATA is not set")
    if not (world.folder / "c").exists():
        world.run("data", "prepare", "cifar10", "--from", f"{source}/cifar-10-batches-bin", "--out", "c", timeout=300)
    return ["--data-train", "c/cifar10_train.rec", "--data-val", "c/cifar10_val.rec", "--num-examples", SAMPLES]


def act_at_random(job, dice: random.Random, names: list[str]) -> None:
    """One thing that may happen to a job."""
    members = job.training()
    spare = [name for name in names if name not in (job.folder / "host_worker").read_text().split()]
    choice = dice.choice(["add", "remove", "drain", "kill", "hang", "term"])
    if choice == "add" and spare:
        job.hosts_command("add", dice.choice(spare), check=False)
    elif len(members) < 2:
        return
    elif choice == "remove":
        job.hosts_command("remove", dice.choice(sorted(members)), "--yes", check=False)
    elif choice == "drain":
        job.hosts_command("drain", dice.choice(sorted(members)), check=False)
    else:
        number = {"kill": signal.SIGKILL, "hang": signal.SIGSTOP, "term": signal.SIGTERM}.get(choice)
        if number:
            send_signal(members[dice.choice(sorted(members))], number)


@slow
def test_all_of_cifar10(world: World):
    """The whole data set for 3 epochs, detached, with a join and a leave by command: the bits of one process."""
    cifar(world)
    training = ["train", "--network", "resnet", "--num-layers", 8, "--data-train", "c/cifar10_train.rec", "--data-val",
                "c/cifar10_val.rec", "--num-epochs", 3, "--global-batch", 192, "--logical-shards", 8, "--seed", 1]
    world.run(*training, "--model-prefix", "m/alone", timeout=1800)
    job = world.job("job")
    (world.folder / "hosts").write_text("w1\nw2\n")
    world.run(*training, "--model-prefix", "m/job", "-n", 2, "-H", "hosts", "--launcher", "local", "--elastic",
              "--elastic-boundary", "step", "--job-dir", "job", "--sample-ledger", "--detach")
    job.hosts_command("add", "w3")
    job.wait_members("w1", "w2", "w3")
    job.hosts_command("remove", "w1")
    job.wait_members("w2", "w3")
    eventually(lambda: not world.processes(), "the job is over", 1800)
    assert job.state_hash() == state_hash(world, world.folder / "m" / "alone"), "other bits"
    job.expect_exactly_once(3, 50000)


@slow
def test_random_schedules(world: World):
    """20 random schedules of joins, leaves, drains, kills and hangs end in the bits of one process, every sample once."""
    data, epochs = cifar(world), 4
    expected = world.alone(world.job("first", data=data), epochs)
    for seed in range(SCHEDULES):
        dice = random.Random(seed)
        names = [f"w{number}" for number in range(1, 7)]
        job = world.job(f"s{seed}", hosts=names[:dice.randint(1, 4)], epochs=epochs, data=data).start()
        job.wait_running()
        while job.process.poll() is None:
            act_at_random(job, dice, names)
            try:
                job.wait(dice.uniform(0.5, 4))
            except Exception:  # still running
                continue
        assert job.process.returncode == 0, f"seed {seed}: exit {job.process.returncode}"
        assert job.state_hash() == expected, f"seed {seed}: other bits"
        job.expect_exactly_once(epochs, SAMPLES)


@slow
def test_log_after_50_edits_and_3_restarts(world: World):
    """host_worker_log keeps its grammar, and every host is ADDED and REMOVED in turn."""
    dice, names = random.Random(1), [f"w{number}" for number in range(1, 7)]
    job = world.job(hosts=2, arguments=["--allow-mass-remove"]).start().wait_running()
    for edit in range(50):
        if edit % 13 == 12:
            job.stop().start("--resume").wait_running(len(hosts))
        hosts = dice.sample(names, dice.randint(2, 5))
        job.edit("".join(f"{host}\n" for host in hosts))
        job.wait_members(*hosts)
    job.stop()
    last = {}
    for change, host in job.member_log():
        assert change == ("REMOVED" if last.get(host) == "ADDED" else "ADDED"), job.member_log()
        last[host] = change


@slow
def test_fifty_jobs_at_once(world: World):
    """50 jobs of one worker at once: no port clash, the same bits."""
    jobs = [world.job(f"job{number}", hosts=1, epochs=1).start() for number in range(50)]
    assert len({job.finish(900).state_hash() for job in jobs}) == 1


@slow
def test_no_leak_over_500_changes(world: World):
    """500 changes of membership leave no descriptor and no thread behind, in the coordinator and in a worker that stays."""
    job = world.job().start().wait_running()
    pids = [job.process.pid, job.training()["w1"]]
    change(job, 10)
    before = [resources(pid) for pid in pids]
    change(job, 500)
    for pid, old in zip(pids, before):
        for name, new, allowed in zip(("descriptors", "threads"), resources(pid), (old[0] + 4, old[1] + 2)):
            assert new <= allowed, f"{name} of {pid}: {old} became {resources(pid)}"
    job.stop()


def change(job, times: int) -> None:
    for _ in range(times // 2):
        job.hosts_command("add", "w3")
        eventually(lambda: "w3" in job.training(), "w3 joined", job=job)
        pid = job.training()["w3"]
        job.hosts_command("remove", "w3")
        eventually(lambda: not alive(pid), "w3 left", job=job)


def resources(pid: int) -> tuple[int, int]:
    return len(list(pathlib.Path(f"/proc/{pid}/fd").iterdir())), len(list(pathlib.Path(f"/proc/{pid}/task").iterdir()))
