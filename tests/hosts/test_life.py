"""A job over ssh: how it begins, what its workers get, how it ends, and what is left behind."""

import json
import os
import pathlib
import signal
import time

from cluster import Cluster
from lab import command_line, send_kill
from world import alive, eventually, send_signal


def test_a_job_on_two_machines(world: Cluster):
    """Two machines train to the end; the bits are those of one process, and every epoch consumed each sample once."""
    world.boot("h1", "h2")
    job = world.job(epochs=2).start().finish()
    assert job.state_hash() == world.alone(job, 2), "other bits"
    job.expect_exactly_once(2)
    assert sorted(job.member_log()[:2]) == [("ADDED", "h1"), ("ADDED", "h2")]
    assert "h2" in (job.folder / "known_hosts").read_text() or world.lab["h2"].address in (job.folder / "known_hosts").read_text()


def test_strict_host_keys(world: Cluster):
    """StrictHostKeyChecking yes refuses a new key; one that the machine's administrator installed starts the job."""
    world.boot("h1", "h2")
    seat = world.lab["h1"]
    seat.run("sh", "-c", "cat >~/.ssh/config", text="Host *\n  StrictHostKeyChecking yes\n")
    refused = world.job("refused").start()
    assert refused.wait() not in (0, None)
    assert "is not in" in refused.said(), refused.said()
    assert not (refused.folder / "known_hosts").exists()
    seat.run("sh", "-c", "ssh-keyscan h1 h2 >/etc/ssh/ssh_known_hosts 2>/dev/null")
    job = world.job("known").start().wait_running()
    assert not (job.folder / "known_hosts").exists(), "keys that were known were added"
    job.stop()


def test_workers_are_where_they_belong(world: Cluster):
    """One agent and one worker on each machine, in a session of their own: no ssh connection is needed any more."""
    world.boot("h1", "h2")
    job = world.job().start().wait_running()
    for name, worker in job.training().items():
        host = world.lab[name]
        assert worker in host.processes("dtrain"), f"the worker of {name} is elsewhere"
        assert not [pid for pid in host.processes("sshd: root@")], "an ssh connection is still open"
    job.stop()


def test_the_token_is_in_no_command_line(world: Cluster):
    """Neither the token nor anything of the join data can be read in a list of processes, on no machine."""
    world.boot("h1", "h2")
    job = world.job().start().wait_running()
    token = json.loads((job.folder / "coordinator.json").read_text())["token"]
    for pid in world.processes():
        assert token not in command_line(pid), command_line(pid)
        assert token.encode() not in pathlib.Path(f"/proc/{pid}/environ").read_bytes(), "in the environment"
    job.stop()


def test_stop_from_any_machine(world: Cluster):
    """Every machine that sees the job folder can list, drain and stop; all processes of the job are gone then."""
    world.boot("h1", "h2", "h3")
    job = world.job(hosts=["h1", "h2"]).start().wait_running()
    listed = json.loads(world.run_on("h3", "hosts", "list", "--job-dir", job.folder, "--json").stdout)
    assert [host["address"] for host in listed["hosts"]] == [world.lab["h1"].address, world.lab["h2"].address]
    world.run_on("h3", "hosts", "drain", "h2", "--job-dir", job.folder)
    job.wait_members("h1")
    world.run_on("h3", "stop", "--job-dir", job.folder)
    assert job.wait() == 75
    world.expect_no_process_left()


def test_environment_arrives_byte_for_byte(world: Cluster):
    """Variables of dtrain and those of --env reach workers on other machines with every byte; others do not."""
    world.boot("h1", "h2")
    values = {"DTRAIN_X": "a b", "FUZZ_QUOTES": "'\"`$HOME\\", "FUZZ_LINES": "one\ntwo\n", "FUZZ_EMPTY": "",
              "FUZZ_BYTES": "gr\udcfc\udcdfe \u2603", "FUZZ_STARS": "* ? [a] {b,c} ; & | # ~ !"}
    world.environment |= values | {"SECRET_KEY": "stays here"}
    named = [word for name in values if name.startswith("FUZZ_") and name != "FUZZ_LINES" for word in ("--env", name)]
    job = world.job(arguments=[*named, "--env", f"FUZZ_LINES={values['FUZZ_LINES']}"]).start().wait_running()
    environment = pathlib.Path(f"/proc/{job.training()['h2']}/environ").read_bytes().split(b"\0")
    for name, value in values.items():
        assert f"{name}={value}".encode(errors="surrogateescape") in environment, f"{name} did not arrive"
    assert not any(variable.startswith(b"SECRET_KEY=") for variable in environment), "a variable that nobody named"
    job.stop()


def test_names_and_paths_with_odd_characters(world: Cluster):
    """A job folder and a model prefix with spaces, quotes, newlines and $ work on every machine."""
    world.boot("h1", "h2")
    odd = world.folder / "a b'c\"d$HOME\n\u2603"
    odd.mkdir()
    job = world.job(epochs=1)
    job.arguments[job.arguments.index("--job-dir") + 1] = job.folder = odd / "job"
    job.arguments[job.arguments.index("--model-prefix") + 1] = job.prefix = odd / "m odd"
    job.start().finish()
    assert job.state_hash() == world.alone(job, 1), "other bits"


def test_a_detached_job_outlives_its_terminal(world: Cluster):
    """--detach returns once the first step is done; the job goes on to its end."""
    world.boot("h1", "h2")
    job = world.job(epochs=3).start("--detach").finish()
    eventually(lambda: not world.processes(), "the job is over", 120)
    job.expect_exactly_once(3)


def test_a_second_interrupt_ends_all(world: Cluster):
    """A second SIGINT ends the job on all machines without waiting: it is no loss of the coordinator that agents repair."""
    world.boot("h1", "h2")
    job = world.job().start().wait_running()
    for pid in job.training().values():
        send_signal(pid, signal.SIGSTOP)
    send_signal(job.coordinator(), signal.SIGINT)
    eventually(lambda: "Stopping" in job.said(), "the first one is heard", job=job)
    time.sleep(0.4)  # at once, it would be the same request
    send_signal(job.coordinator(), signal.SIGINT)
    assert job.wait(60) in (130, -signal.SIGINT)
    time.sleep(5)  # longer than agents look for a coordinator before they choose one
    assert not world.processes(), "the job goes on"


def test_a_killed_agent_leaves_nothing(world: Cluster):
    """kill -9 of the agent of one machine: its worker is gone, a bystander is untouched, the job goes on."""
    world.boot("h1", "h2")
    job = world.job().start().wait_running()
    bystander = world.lab["h2"].start("sleep", "1000")
    worker = job.training()["h2"]
    send_kill(job.agent("h2"))
    eventually(lambda: not alive(worker), "the worker of h2 is gone", 20)
    job.wait_members("h1", "h2").wait_steps(3)
    assert bystander.poll() is None, "somebody else's process was ended"
    job.expect_undisturbed_bits()


def test_a_killed_keeper_ends_its_agent(world: Cluster):
    """kill -9 of the process that watches over an agent: nothing stays on that machine, the job goes on."""
    world.boot("h1", "h2")
    job = world.job().start().wait_running()
    send_kill(job.keeper("h2"))
    eventually(lambda: not world.lab["h2"].processes("dtrain"), "h2 is empty", 20)
    job.wait_members("h1").wait_steps(3).stop()


def test_exit_codes_are_true(world: Cluster):
    """4 where no host can be reached, 2 for a mistake, 75 after stop, 0 at the end."""
    world.boot("h1")
    job = world.job(hosts=["h1", "h2"], elastic=False).start()
    assert job.wait() == 4, job.said()
    assert "h2" in job.said()
    assert world.run("train", "--launcher", "ssh", "-n", 2, check=False).returncode == 2
    assert os.path.exists(job.folder / "events.jsonl")


def test_a_coordinator_without_a_key(world: Cluster):
    """The agent with the key is gone from the coordinator's machine: `hosts add` on one with a key starts the newcomer, unless
    another user could say by coordinator.json what that key starts."""
    world.lab["h1"].without("key")
    world.boot("h1", "h2", "h3", "h4")
    world.lend_key("h1")
    job = world.job(hosts=["h1", "h2"]).start().wait_running()
    world.take_key_back("h1")
    job.hosts_command("add", "h3")
    row = eventually(lambda: job.row("h3") if job.row("h3")["state"] == "quarantined" else None, "nobody has a key", job=job)
    assert "no key opens it" in row["reason"] and row["next"], row
    (job.folder / "coordinator.json").chmod(0o666)
    said = world.run_on("h2", "hosts", "add", "h4", "--job-dir", job.folder).stderr
    assert "The coordinator starts the host, and not this machine" in said and "other users may write it" in said, said
    eventually(lambda: job.row("h4")["state"] == "quarantined", "the coordinator has no key", job=job)
    (job.folder / "coordinator.json").chmod(0o600)
    job.hosts_command("remove", "h4")
    world.run_on("h2", "hosts", "add", "h4", "--job-dir", job.folder)
    job.wait_members("h1", "h2", "h4").wait_steps(3)
    job.expect_undisturbed_bits()
