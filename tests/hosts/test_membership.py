"""Machines that join, leave, crash and are cut off while a job trains."""

import os
import signal
import threading
import time

from cluster import Cluster
from lab import command_line, send_kill
from runner import Skip, slow
from world import PATIENCE, alive, eventually, send_signal

LONG = 120.0


def come_and_go(world: Cluster, job) -> None:
    """A third machine by an edit, one drained, a worker killed, one cut off and healed. h1 to h4 are up."""
    job.wait_running()
    job.edit("h1\nh2\nh3\n")
    job.wait_members("h1", "h2", "h3")
    job.hosts_command("drain", "h2", "--reason", "new disk")
    job.wait_members("h1", "h3")
    refused = job.hosts_command("add", "h4", "h3", check=False)
    assert refused.returncode == 2 and "h3 is in the host list already" in refused.stderr, refused.stderr
    assert "h4" not in (row["name"] for row in job.list()["hosts"]), "it was added all the same"
    job.hosts_command("add", "h4", "h4")
    job.wait_members("h1", "h3", "h4")
    send_kill(job.training()["h3"])
    eventually(lambda: "h3" not in job.training(), "h3 is missed", job=job)
    job.wait_members("h1", "h3", "h4").wait_steps(3)
    world.lab["h4"].partition()
    eventually(lambda: set(job.training()) == {"h1", "h3"}, "h4 is given up", LONG, job)
    job.wait_steps(3)
    world.lab["h4"].heal()
    eventually(lambda: set(job.training()) == {"h1", "h3", "h4"}, "h4 is back", LONG, job)
    job.wait_steps(3)


def test_machines_come_and_go(world: Cluster):
    """Joins by edit and command, a drain, a kill, a cut and its healing leave the bits of an undisturbed run."""
    world.boot()
    job = world.job(hosts=["h1", "h2"]).start()
    come_and_go(world, job)
    changes = [("ADDED", "h3"), ("REMOVED", "h2"), ("ADDED", "h4")]
    eventually(lambda: job.member_log()[2:] == changes, "the member log tells them", job=job)
    job.expect_undisturbed_bits()


@slow
def test_machines_come_and_go_on_cifar10(world: Cluster):
    """The same on real images."""
    source = os.environ.get("DTRAIN_TEST_DATA")
    if not source:
        raise Skip("DTRAIN_TEST_DATA is not set")
    world.boot()
    world.run("data", "prepare", "cifar10", "--from", f"{source}/cifar-10-batches-bin", "--out", "c", timeout=600)
    data = ["--data-train", "c/cifar10_train.rec", "--data-val", "c/cifar10_val.rec", "--num-examples", 2000]
    job = world.job(hosts=["h1", "h2"], data=data, samples=2000).start()
    come_and_go(world, job)
    job.expect_undisturbed_bits()


def test_a_crashed_machine_comes_back(world: Cluster):
    """All processes of a machine are killed: the others go on; booted again it is taken in again."""
    world.boot("h1", "h2", "h3")
    job = world.job(hosts=["h1", "h2", "h3"]).start().wait_running()
    world.lab["h3"].crash()
    job.wait_members("h1", "h2").wait_steps(3)
    world.lab["h3"].boot().wait_for_ssh()
    eventually(lambda: set(job.training()) == {"h1", "h2", "h3"}, "h3 is back", LONG, job)
    job.wait_steps(3).expect_undisturbed_bits()


def test_a_cut_is_noticed_soon(world: Cluster):
    """A machine that is switched off without a word is given up within 5 s of its last sign of life."""
    world.boot("h1", "h2", "h3")
    job = world.job(hosts=["h1", "h2", "h3"]).start().wait_running().wait_steps(10)
    world.lab["h3"].power_off()
    eventually(lambda: set(job.training()) == {"h1", "h2"}, "h3 is given up", LONG, job)
    changes = [event for event in job.events() if event["event"] == "generation"]
    assert changes[-1]["seconds"]["detect"] <= 5, changes[-1]
    job.wait_steps(3).stop()


def test_a_changed_host_key_is_refused(world: Cluster):
    """A machine that shows another key than before is not talked to; `hosts list` says how to accept it."""
    world.boot("h1", "h2", "h3")
    job = world.job(hosts=["h1", "h2", "h3"]).start().wait_running()
    job.hosts_command("remove", "h3")
    job.wait_members("h1", "h2")
    h3 = world.lab["h3"]
    h3.crash()
    h3.new_host_key().boot().wait_for_ssh()
    job.hosts_command("add", "h3")
    row = eventually(lambda: job.row("h3") if "key" in job.row("h3").get("reason", "") else None, "it is refused", job=job)
    assert row["next"].startswith("ssh-keygen -R") and "hosts remove h3" in row["next"], row
    job.wait_steps(3).stop()


def test_a_newcomer_whose_sshd_hangs(world: Cluster):
    """Its sshd takes the connection and says nothing: the others train on, the list has the reason; later it joins."""
    world.boot("h1", "h2", "h3")
    job = world.job(hosts=["h1", "h2"]).start().wait_running()
    daemon = next(pid for pid in world.lab["h3"].processes("sshd") if "listener" in command_line(pid))
    send_signal(daemon, signal.SIGSTOP)
    job.hosts_command("add", "h3")
    row = eventually(lambda: job.row("h3") if job.row("h3")["state"] == "quarantined" else None, "it failed", job=job)
    assert "ssh" in row["reason"] and row["next"], row
    job.wait_members("h1", "h2").wait_steps(3)
    send_signal(daemon, signal.SIGCONT)
    eventually(lambda: "h3" in job.training(), "h3 joined", LONG, job)
    job.wait_steps(3).stop()


def test_a_newcomer_without_the_job_folder(world: Cluster):
    """A machine that does not have the shared folder is refused with a reason, and disturbs nobody."""
    world.lab["h3"].without("share")
    world.boot("h1", "h2", "h3")
    job = world.job(hosts=["h1", "h2"]).start().wait_running()
    job.hosts_command("add", "h3")
    row = eventually(lambda: job.row("h3") if job.row("h3")["state"] == "quarantined" else None, "it failed", job=job)
    assert "job folder" in row["reason"], row
    job.wait_members("h1", "h2").wait_steps(3).stop()


def test_ssh_killed_while_a_newcomer_starts(world: Cluster):
    """kill -9 of every ssh connection to a newcomer, for 3 s: it is tried again and joins."""
    world.boot("h1", "h2", "h3")
    job = world.job(hosts=["h1", "h2"]).start().wait_running()
    killed: set[int] = set()

    def kill_connections() -> None:
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            victims = [pid for pid in world.lab["h3"].processes("sshd: ") if "listener" not in command_line(pid)]
            if victims and not killed:
                end = time.monotonic() + 3
            for pid in victims:
                send_kill(pid)
            killed.update(victims)
            time.sleep(0.005)

    # It looks before the first connection is made: one that nobody disturbs is over within a tenth of a second.
    killer = threading.Thread(target=kill_connections)
    killer.start()
    job.hosts_command("add", "h3")
    killer.join()
    assert killed, "no connection was seen"
    eventually(lambda: "h3" in job.training(), "h3 joined", LONG, job)
    job.wait_steps(3).expect_undisturbed_bits()


def test_the_coordinators_machine_is_switched_off(world: Cluster):
    """The machine that coordinates and trains is gone without a word: the others go on within 10 s, with the same bits."""
    world.boot("h1", "h2", "h3")
    job = world.job(hosts=["h1", "h2", "h3"]).start().wait_running()
    workers = job.training()
    world.lab["h1"].power_off()
    job.seen_from("h2")
    eventually(lambda: set(job.training()) == {"h2", "h3"}, "the others train", LONG)
    job.wait_steps(3)
    assert {name: job.training()[name] for name in ("h2", "h3")} == {name: workers[name] for name in ("h2", "h3")}
    job.expect_undisturbed_bits()


def test_a_killed_coordinator_is_replaced(world: Cluster):
    """kill -9 of the coordinator: every worker goes on under another one, none is started anew."""
    world.boot("h1", "h2", "h3")
    job = world.job(hosts=["h1", "h2", "h3"]).start().wait_running()
    workers = job.training()
    job.kill_coordinator()
    job.seen_from("h3")
    eventually(lambda: job.training() == workers, "all workers are members again", LONG)
    job.wait_steps(3)
    job.hosts_command("drain", "h1")
    job.wait_members("h2", "h3").expect_undisturbed_bits()


def test_a_job_that_is_not_elastic_ends_with_its_coordinator(world: Cluster):
    """kill -9 of the coordinator of a job with fixed workers: soon no process of it is left, a bystander is."""
    world.boot("h1", "h2")
    job = world.job(elastic=False).start().wait_running()
    bystander = world.lab["h2"].start("sleep", "1000")
    workers = job.training()
    job.kill_coordinator()
    eventually(lambda: not any(alive(pid) for pid in workers.values()), "the workers are gone", 15)
    world.expect_no_process_left()
    assert bystander.poll() is None, "somebody else's process was ended"
