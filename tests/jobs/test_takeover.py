"""The launcher of a job on this machine is lost or held up: the job goes on, and its command returns what the job does."""

import pathlib
import signal
import subprocess

from world import Job, World, alive, eventually, send_signal


def lose_coordinator(job: Job, term: int) -> None:
    """kill -9 of the present coordinator: another takes over, and no worker is started again."""
    before = job.training()
    send_signal(job.record()["pid"], signal.SIGKILL)
    if job.process:
        assert job.process.wait() == -signal.SIGKILL
        job.process = None
    job.wait_for_term(term)
    eventually(lambda: job.training() == before, "the same workers train")


def agent_of(worker: int) -> int:
    """The parent of this process."""
    with open(f"/proc/{worker}/stat", encoding="utf-8") as stat:
        return int(stat.read().rsplit(")", 1)[1].split()[1])


def finite(world: World, epochs: int) -> Job:
    """A job that comes to its end by itself."""
    return world.job(epochs=epochs, arguments=["--disp-batches", 1])


def hold_up_launcher(job: Job) -> None:
    """The launcher stands still until the agents have chosen another coordinator, and then finds out."""
    send_signal(job.process.pid, signal.SIGSTOP)
    job.wait_for_term(2)
    send_signal(job.process.pid, signal.SIGCONT)
    eventually(lambda: "leads the job" in job.said(), "the launcher knows of it", job=job)


def test_kill_the_launcher(world: World):
    """kill -9 of the launcher, and of the coordinator after it: the same workers go on, to the same bits."""
    job = world.job(hosts=3).start().wait_running().wait_steps(5)
    lose_coordinator(job, 2)
    job.wait_steps(5)
    lose_coordinator(job, 3)
    job.wait_steps(5).expect_calm_bits()
    assert job.record()["exit_code"] == 75


def test_a_successor_keeps_the_folder_of_the_user(world: World):
    """The folder in which the user began the job is not there for the next coordinator: its record names it still."""
    began = world.folder.resolve() / "began"
    began.mkdir()
    job = world.job(hosts=3).start(folder=began).wait_running()
    began.rename(world.folder / "moved")
    lose_coordinator(job, 2)
    assert job.record()["started_in"] == str(began)
    world.run("stop", "--job-dir", job.folder)


def test_stop_at_a_takeover(world: World):
    """A stop that waits for the next coordinator ends the job as soon as that leads: its records lack nothing."""
    job = world.job(hosts=3).start().wait_running().wait_steps(25)
    send_signal(job.record()["pid"], signal.SIGKILL)
    job.process.wait()
    said = world.run("stop", "--job-dir", job.folder).stdout
    kinds = [event["event"] for event in job.events()]
    assert "takeover" in kinds and kinds[-2:] == ["finish", "goodput"], kinds
    # By its number: an evaluation that ends later is added to the epoch's own file.
    newest = max(job.prefix.parent.glob("job-*.json"), key=lambda path: path.stem)
    assert newest.name in said, (newest, said)
    job.start("--resume").wait_running().wait_steps(3).expect_undisturbed_bits()


def test_kill_the_launcher_of_one_worker(world: World):
    """The agent of the only worker starts the next coordinator, and the job comes to its end."""
    job = world.job(hosts=1, epochs=80).start().wait_running()
    lose_coordinator(job, 2)
    eventually(lambda: job.record().get("ended"), "the job ends", 120)
    assert job.record()["exit_code"] == 0 and job.state_hash() == world.alone(job, 80)
    job.expect_exactly_once(80)


def test_kill_the_coordinator_of_a_detached_job(world: World):
    """With --detach as well; hosts join and leave under the next coordinator, which also ends what agents leave behind."""
    job = world.job().start("--detach")
    assert job.process.wait(60) == 0
    job.process = None
    job.wait_steps(3)
    lose_coordinator(job, 2)
    job.hosts_command("add", "w3")
    job.wait_members("w1", "w2", "w3").wait_steps(2)
    job.hosts_command("remove", "w1")
    job.wait_members("w2", "w3").wait_steps(2)
    job.expect_calm_bits()


def test_takeover_beside_a_refused_list(world: World):
    """A host list that was refused as an accident removes no worker after a takeover either; an accepted one does."""
    job = world.job(hosts=3).start().wait_running()
    job.edit("w1\n")
    eventually(lambda: "looks like an accident" in job.said(), "the list is refused", job=job)
    lose_coordinator(job, 2)
    eventually(lambda: any(event["event"] == "hosts_refused" and event["seq"] > takeover_number(job) for event in job.events()),
               "the next coordinator refuses it too")
    job.wait_steps(3)
    assert set(job.training()) == {"w1", "w2", "w3"}, job.training()
    job.edit("w1\nw2\n")
    job.wait_members("w1", "w2").wait_steps(2)
    job.expect_calm_bits()


def takeover_number(job: Job) -> int:
    return next(event["seq"] for event in job.events() if event["event"] == "takeover")


def test_takeover_without_a_host_list(world: World):
    """host_worker is missing, then empty, when a coordinator takes over: the hosts stay, and the file counts once it is back."""
    job = world.job(hosts=3).start().wait_running()
    (job.folder / "host_worker").unlink()
    lose_coordinator(job, 2)
    (job.folder / "host_worker").write_text("")
    lose_coordinator(job, 3)
    job.wait_steps(3)
    log = (job.folder / "logs" / "coordinator.log").read_text()
    assert "names no host" in log and "the job keeps its hosts, w1, w2, w3" in log, log
    job.edit("w1\nw2\nw3\nw4\n")
    job.wait_members("w1", "w2", "w3", "w4").wait_steps(2)
    job.expect_calm_bits()


def test_kill_an_agent_after_a_takeover(world: World):
    """An agent that is no child of the coordinator dies: its worker is gone with it, and its host comes back."""
    job = world.job(hosts=3).start().wait_running().wait_steps(3)
    lose_coordinator(job, 2)
    worker = job.training()["w3"]
    send_signal(agent_of(worker), signal.SIGKILL)
    eventually(lambda: not alive(worker), "its worker is gone", 20)
    eventually(lambda: job.training().get("w3", worker) != worker, "w3 is back", 120)
    job.expect_calm_bits()


def test_replaced_launcher_watches(world: World):
    """A launcher that was held up shows the log of the next coordinator, and returns the job's exit code."""
    job = finite(world, 60).start().wait_running()
    hold_up_launcher(job)
    shown = job.said().count("Speed:")
    eventually(lambda: job.said().count("Speed:") > shown + 2, "log lines go on", job=job)
    job.finish()
    assert "60 epochs trained" in job.said(), job.said()[-500:]
    assert job.state_hash() == world.alone(job, 60)


def test_interrupt_of_a_replaced_launcher(world: World):
    """Ctrl-C at its terminal saves and exits 75, as before."""
    job = world.job().start().wait_running()
    hold_up_launcher(job)
    send_signal(job.process.pid, signal.SIGINT)
    assert job.wait() == 75
    assert "--resume" in job.said() and list((world.folder / "m").glob("job-*.json"))
    assert job.record()["exit_code"] == 75


def test_one_job_a_folder_during_a_takeover(world: World):
    """While the agents choose a coordinator, no other job can begin in their folder."""
    job = world.job().start().wait_running()
    send_signal(job.process.pid, signal.SIGKILL)
    job.process.wait()
    answer = world.run(*job.arguments, "--resume", check=False)
    assert answer.returncode == 1 and "a job runs there already" in answer.stderr, answer.stderr
    job.process = None
    job.wait_for_term(2)
    job.expect_calm_bits()


def test_all_processes_are_killed(world: World):
    """Nothing is left to choose a coordinator: commands say so, and --resume goes on to the same bits."""
    job = world.job(arguments=["--checkpoint-every", 5]).start().wait_running().wait_steps(12)
    for pid in world.processes():
        send_signal(pid, signal.SIGSTOP)
    for pid in world.processes():
        send_signal(pid, signal.SIGKILL)
    job.process.wait()
    world.expect_no_process_left()
    answer = job.hosts_command("list", check=False)
    assert answer.returncode == 4 and "--resume" in answer.stderr, answer.stderr
    job.start("--resume").wait_running().expect_undisturbed_bits()


def test_agents_without_a_coordinator(world: World):
    """Too few agents are left to choose one: commands say so, and no other job takes the folder or the prefix."""
    job = world.job(hosts=3, arguments=["--checkpoint-every", 5]).start().wait_running().wait_steps(12)
    left, *lost = map(agent_of, job.training().values())
    for number in (signal.SIGSTOP, signal.SIGKILL):
        for pid in (job.process.pid, *lost):
            send_signal(pid, number)
    job.process.wait()
    latest = (job.folder / "latest_checkpoint").read_text()
    other = list(job.arguments)
    other[other.index("--job-dir") + 1] = world.folder / "other"
    for words, code in ((["stop", "--job-dir", job.folder], 4), ([*job.arguments, "--resume"], 1), ([*other, "--resume"], 1)):
        answer = world.run(*words, check=False)
        assert answer.returncode == code and "no coordinator" in answer.stderr, answer.stderr
        if str(left) in pathlib.Path("/proc/locks").read_text():
            assert f"kill -HUP {left}" in answer.stderr, answer.stderr
    assert (job.folder / "latest_checkpoint").read_text() == latest
    send_signal(left, signal.SIGHUP)
    eventually(lambda: not world.processes(), "the agent is gone", 60)
    job.start("--resume").wait_running().expect_undisturbed_bits()


def test_third_interrupt_starts_nothing_again(world: World):
    """Ctrl-C again and again: the agents take the launcher's end for the job's, and elect nobody."""
    job = world.job().start().wait_running()
    for pid in job.training().values():
        send_signal(pid, signal.SIGSTOP)
    while job.process.poll() is None:
        send_signal(job.process.pid, signal.SIGINT)
        try:
            job.process.wait(0.02)
        except subprocess.TimeoutExpired:
            pass
    assert job.process.returncode in (130, -signal.SIGINT)
    world.expect_no_process_left()
    assert job.record()["ended"]
