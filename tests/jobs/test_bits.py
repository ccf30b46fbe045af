"""The same bits, whatever the number of workers is and however it changes; and every sample exactly once."""

import json
import re

from world import World, eventually, slowed


def test_same_bits_for_any_number_of_workers(world: World):
    """1, 2, 3, 4 and 8 workers end in the state of one process that trains alone, each with its own shards."""
    jobs = [world.job(f"n{count}", hosts=count, elastic=False, epochs=2) for count in (1, 2, 3, 4, 8)]
    expected = world.alone(jobs[0], 2)
    for job in jobs:
        job.start().finish()
        assert job.state_hash() == expected, f"{job.name}: other bits"
        job.expect_exactly_once(2)
        expect_shares(job)


def expect_shares(job) -> None:
    """Every worker says in its log which shards it computes; they add up to V = 8."""
    shares = []
    for path in sorted((job.folder / "logs").glob("*.log")):
        for first, last in re.findall(r"shards \[(\d+), (\d+)\) of 8", path.read_text()):
            shares += range(int(first), int(last))
    assert sorted(shares) == list(range(8)), shares


def test_shards_move_away_from_a_slow_worker(world: World):
    """They move while it is slow; a worker joins then; the bits stay those of a calm run."""
    # Wide enough that a step lasts longer than the process is held at a time: a step between two holds shows nothing.
    wide = ("resnet", "--num-layers", 8, "--width", 24, "--lr", 0.02)
    job = world.job("uneven", hosts=2, network=wide).start().wait_running()

    def moved() -> list[list[int]]:
        return [event["shards"] for event in job.events() if event["event"] == "shards"]
    with slowed(job.worker_of_rank(1)[1]):
        eventually(lambda: any(first > second for first, second, *others in moved()), "shards move", job=job)
        job.hosts_command("add", "w3")
        job.wait_members("w1", "w2", "w3").wait_steps(5)
    assert "Shards follow the speed of the workers: ranks compute" in job.said()
    job.expect_undisturbed_bits()


def test_rounded_gradients(world: World):
    """Gradients that travel as bfloat16 give other bits than float32, the same for 2 and 3 workers."""
    first, second = (world.job(f"n{count}", hosts=count, elastic=False, epochs=1, arguments=["--gradient-dtype", "bfloat16"])
                     for count in (2, 3))
    first.start().finish()
    second.start().finish()
    assert first.state_hash() == second.state_hash() != world.alone(first, 1)


def test_a_schedule_that_knows_the_end(world: World):
    """Workers learn how long the run is: warm-up and cosine give 2 workers the bits of one process."""
    job = world.job("cosine", hosts=2, elastic=False, epochs=2, arguments=["--lr-schedule", "cosine", "--warmup-epochs", 1])
    job.training_arguments += ["--lr-schedule", "cosine", "--warmup-epochs", 1]
    job.start().finish()
    assert job.state_hash() == world.alone(job, 2)


def test_orthogonal_steps(world: World):
    """The matrix products of muon give 1 and 3 workers the same bits."""
    first, second = (world.job(f"n{count}", hosts=count, elastic=False, epochs=1, arguments=["--optimizer", "muon"])
                     for count in (1, 3))
    first.start().finish()
    second.start().finish()
    assert first.state_hash() == second.state_hash() != world.alone(first, 1)


def test_every_recipe(world: World):
    """Mixed images, cut gradients, lengths of tensors and the average of weights give 1 and 3 workers the same bits."""
    recipe = ["--mixup", 0.8, "--cutmix", 1, "--clip-norm", 0.5, "--clip-gradient", 0.1, "--ema", 0.9, "--optimizer", "lamb"]
    first, second = (world.job(f"n{count}", hosts=count, elastic=False, epochs=1, arguments=recipe) for count in (1, 3))
    first.start().finish()
    second.start().finish()
    assert first.state_hash() == second.state_hash() != world.alone(first, 1)


def test_several_slots_and_gloo(world: World):
    """A host with two slots is two workers; what carries the gradients changes no bit."""
    slots = world.job("slots", hosts=["a slots=2", "b"], elastic=False, epochs=1).start().finish()
    expect_shares(slots)
    assert sorted(path.name for path in (slots.folder / "logs").glob("*.log")) == ["a.0.log", "a.1.log", "b.0.log"]
    gloo = world.job("gloo", elastic=False, epochs=1, arguments=["--transport", "gloo"]).start().finish()
    assert slots.state_hash() == gloo.state_hash() == world.alone(slots, 1)


def test_batch_for_each_worker(world: World):
    """With --elastic-batch per-worker steps grow with the workers, and every sample still counts once."""
    job = world.job(arguments=["--elastic-batch", "per-worker", "--batch-size", 24])
    for name in ("--global-batch", "--logical-shards"):
        at = job.arguments.index(name)
        del job.arguments[at:at + 2]
    job.start().wait_running()
    job.hosts_command("add", "w3")
    job.wait_members("w1", "w2", "w3").wait_steps(40)
    job.hosts_command("remove", "w1")
    job.wait_members("w2", "w3").wait_steps(40).stop()
    checkpoint = json.loads(world.run("inspect", job.prefix, "--json").stdout)
    assert (checkpoint["global_batch"], checkpoint["rate_batch"]) == (48, 48) and "logical_shards" not in checkpoint
    sizes = {event["workers"]: (event["global_batch"], event["rate_factor"]) for event in job.events()
             if event["event"] == "generation"}
    assert sizes == {2: (48, 1), 3: (72, 1.5)}, sizes
    assert "3 workers, 72 samples a step, learning rate x 1.5" in job.said(), job.said()[-2000:]
    job.expect_exactly_once(checkpoint["epoch"])
    rows = map(json.loads, world.run("events", "--job-dir", job.folder, "--ledger", "--json").stdout.splitlines())
    assert {48, 72} <= {len(row["samples"]) for row in rows}


def test_shown_by(world: World):
    """A worker joins and one leaves, by command, while a detached job trains: the bits of an undisturbed run."""
    job = world.job()
    assert job.start("--detach").process.wait(60) == 0
    job.hosts_command("add", "w3")
    job.wait_members("w1", "w2", "w3")
    job.hosts_command("remove", "w1")
    job.wait_members("w2", "w3")
    told = {("ADDED", "w1"), ("ADDED", "w2"), ("ADDED", "w3"), ("REMOVED", "w1")}
    eventually(lambda: set(job.member_log()) == told, "the member log tells it")
    eventually(lambda: sizes_of_generations(world, job) == [2, 3, 2], str(sizes_of_generations(world, job)))
    world.run("stop", "--job-dir", job.folder)
    eventually(lambda: not world.processes(), "the job is gone")
    job.start("--resume").wait_running()
    job.expect_undisturbed_bits()


def sizes_of_generations(world: World, job) -> list[int]:
    """How many workers did a step together, generation by generation, as `dtrain events` tells it."""
    lines = world.run("events", "--job-dir", job.folder, "--json").stdout.splitlines()
    return [event["workers"] for event in map(json.loads, lines) if event["event"] == "generation"]


def test_changes_at_epochs(world: World):
    """With --elastic-boundary epoch, the default, a newcomer joins where an epoch begins."""
    job = world.job(boundary="epoch").start().wait_running()
    job.hosts_command("add", "w3")
    job.wait_members("w1", "w2", "w3")
    ledger = eventually(lambda: "".join(path.read_text() for path in (job.folder / "ledger").glob("w3-*")), "w3 trains")
    assert json.loads(ledger.strip().splitlines()[0])["start"]["step"] == 0, ledger[:200]
    job.expect_undisturbed_bits()
