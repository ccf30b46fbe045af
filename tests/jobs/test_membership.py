"""Joining and leaving on purpose."""

import json
import signal

from world import World, alive, eventually, send_signal


def test_replace_is_one_change(world: World):
    """w1 w2 w3 becomes w1 w2 w4 by an edit: one generation, w4 is started once."""
    job = world.job(hosts=3).start().wait_running()
    before = len([event for event in job.events() if event["event"] == "commit"])
    job.edit("w1\nw2\nw4\n")
    job.wait_members("w1", "w2", "w4").wait_steps(2)
    assert len([event for event in job.events() if event["event"] == "commit"]) == before + 1, "more than one change"
    assert (job.folder / "logs" / "w4.0.log").read_text().count(", process ") == 1, "w4 was started more than once"
    eventually(lambda: sorted(job.member_log()[3:]) == [("ADDED", "w4"), ("REMOVED", "w3")], str(job.member_log()), 30)
    job.expect_undisturbed_bits()


def test_every_worker_can_leave(world: World):
    """All first hosts leave one by one, rank 0 first, while others join; the bits stay."""
    job = world.job().start().wait_running()
    for gone, new in (("w1", "w3"), ("w2", "w4")):
        job.hosts_command("add", new)
        eventually(lambda new=new: new in job.training(), f"{new} joined", job=job)
        pid = job.training()[gone]
        job.hosts_command("remove", gone)
        eventually(lambda pid=pid: not alive(pid), f"{gone} left", job=job)
    job.wait_members("w3", "w4").expect_undisturbed_bits()


def test_drain_leaves_the_file(world: World):
    """A drained host leaves at the next step, also where changes wait for epochs, and stays in host_worker."""
    job = world.job(boundary="epoch").start().wait_running()
    drained = json.loads(job.hosts_command("drain", "w2", "--reason", "new disk", "--json").stdout)
    hosts = str(job.folder / "host_worker")
    assert drained == {"schema": "dtrain.hosts-drain/1", "drained": ["w2"], "file": hosts}, drained
    job.wait_members("w1")
    assert "w2" in (job.folder / "host_worker").read_text()
    row = eventually(lambda: job.row("w2") if job.row("w2")["state"] == "drained" else None, "w2 is drained", job=job)
    assert "new disk" in row["reason"] and "hosts add w2" in row["next"] and "--job-dir " in row["next"], row
    job.hosts_command("add", "w2")
    job.wait_members("w1", "w2").expect_undisturbed_bits()


def test_sigterm_to_a_worker_is_a_wish_to_leave(world: World):
    """A worker that gets SIGTERM leaves at the next step; the job goes on."""
    job = world.job().start().wait_running()
    pid = job.training()["w2"]
    send_signal(pid, signal.SIGTERM)
    eventually(lambda: not alive(pid), "the process of w2 is gone", job=job)
    job.wait_steps(5).expect_undisturbed_bits()


def test_too_many_are_spares(world: World):
    """Above --max-workers a host is a spare, says which option changes it, and takes the place of one that leaves."""
    job = world.job(arguments=["--max-workers", 2]).start().wait_running()
    added = json.loads(job.hosts_command("add", "w3", "--json").stdout)
    assert added["schema"] == "dtrain.hosts-add/1" and added["added"] == ["w3"], added
    row = eventually(lambda: job.row("w3") if job.row("w3")["state"] == "spare" else None, "w3 is a spare", job=job)
    assert "--max-workers" in row["reason"] + row["next"], row
    job.hosts_command("remove", "w1")
    job.wait_members("w2", "w3")
    job.stop()


def test_too_few_hold(world: World):
    """Below --min-workers the job holds its state in memory and goes on when there are enough again."""
    job = world.job(arguments=["--min-workers", 2]).start().wait_running()
    pids = job.training()
    answer = job.hosts_command("drain", "w2", check=False)
    assert answer.returncode == 2 and "--yes" in answer.stderr and "1 worker of at least 2" in answer.stderr, answer
    job.hosts_command("drain", "w2", "--yes")
    eventually(lambda: any(event["event"] == "hold" for event in job.events()), "the job holds", job=job)
    listed = json.loads(job.hosts_command("list", "--json").stdout)
    assert listed["state"] == "waiting" and "1 worker of at least 2" in listed["state_reason"], listed
    assert 0 < listed["stops_in_seconds"] <= 600, listed
    assert "the job stops in" in job.hosts_command("list").stdout.splitlines()[0]
    job.hosts_command("add", "w3")
    job.wait_members("w1", "w3")
    assert job.training()["w1"] == pids["w1"], "w1 was started again"
    job.wait_steps(5).expect_undisturbed_bits()


def test_mass_removal_needs_a_yes(world: World):
    """More than half of the hosts go by command only with --yes, by hand only with --allow-mass-remove."""
    job = world.job(hosts=3).start().wait_running()
    answer = job.hosts_command("remove", "w1", "w2", check=False)
    assert answer.returncode == 2 and "--yes" in answer.stderr, answer
    job.edit("w3\n")
    eventually(lambda: "--allow-mass-remove" in job.said(), "the edit is refused", job=job)
    assert set(job.training()) == {"w1", "w2", "w3"}
    job.edit("w1\nw2\nw3\n")
    job.hosts_command("remove", "w1", "w2", "--yes")
    job.wait_members("w3").stop()


def test_a_host_that_is_named_twice_counts_once(world: World):
    """`hosts add` and `hosts remove` take repeated words once, and add nothing where one host is in the job already."""
    job = world.job().start().wait_running()
    refused = job.hosts_command("add", "w3", "w2", check=False)
    assert refused.returncode == 2 and "w2 is in the host list already" in refused.stderr, refused.stderr
    assert "w3" not in (row["name"] for row in job.list()["hosts"]), "it was added all the same"
    job.hosts_command("add", "w3", "w3")
    job.wait_members("w1", "w2", "w3")
    job.hosts_command("remove", "w3", "w3")
    job.wait_members("w1", "w2").stop()


def test_hosts_of_a_fixed_job_stay(world: World):
    """Without --elastic `hosts add`, `remove` and `drain` are refused, nothing is written, and the job goes on."""
    job = world.job(elastic=False).start().wait_running()
    before = (job.folder / "host_worker").read_text()
    for request, host in (("add", "w3"), ("remove", "w2"), ("drain", "w2")):
        answer = job.hosts_command(request, host, check=False)
        assert answer.returncode == 2 and "--elastic" in answer.stderr and "dtrain stop" in answer.stderr, answer.stderr
    assert (job.folder / "host_worker").read_text() == before
    job.wait_steps(2).stop()


def test_coordinator_that_does_not_answer(world: World):
    """`hosts add` at a coordinator that stands still, and that no other one replaces, says that it does not answer."""
    job = world.job(elastic=False).start().wait_running()
    send_signal(job.process.pid, signal.SIGSTOP)
    answer = job.hosts_command("add", "w3", check=False)
    send_signal(job.process.pid, signal.SIGCONT)
    assert answer.returncode == 4 and "does not answer" in answer.stderr and "token" not in answer.stderr, answer.stderr
    job.wait_steps(2).stop()
