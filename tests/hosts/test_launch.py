"""dtrain launch over ssh: other people's programs as ranks on several machines."""

import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys

from cluster import Cluster
from lab import Host, command_line, parent_of
from runner import Skip
from world import eventually

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
sys.path.append(str(REPOSITORY / "tests" / "launch"))

from launches import Crew, PYTHON, kill_now  # noqa: E402
from told import odd_words, told_in  # noqa: E402


def copied(world: Cluster, path: str) -> pathlib.Path:
    """A program of the repository where all machines see it."""
    return pathlib.Path(shutil.copy(REPOSITORY / path, world.folder))


def over_ssh(world: Cluster, hosts: list[str], *more) -> list:
    (world.folder / "hosts").write_text("".join(f"{host}\n" for host in hosts))
    return ["-H", world.folder / "hosts", *more]


def launch(world: Cluster, options, *words, check: bool = True):
    return world.run("launch", "--job-dir", world.folder / "job", *options, "--", *words, check=check, timeout=240)


def crew_on(world: Cluster, hosts: list[str], *options, members=()) -> Crew:
    return Crew(world, options=over_ssh(world, hosts, *options), members=members, program=copied(world, "tests/launch/programs/member.py"))


def ranks_on(host: Host) -> list[int]:
    """Processes of programs there, also of those that left their session."""
    return host.processes("member.py") + host.processes("sleep")


def expect_nothing_runs(world: Cluster, *names: str) -> None:
    eventually(lambda: not any(ranks_on(world.lab[name]) for name in names), "no rank is left", 15)


def test_a_ddp_job_on_two_machines(world: Cluster):
    """An ordinary PyTorch script on two machines ends with the loss of two ranks on one."""
    if subprocess.run([PYTHON, "-c", "import torch"], check=False, capture_output=True).returncode != 0:
        raise Skip("no torch here")
    world.boot("h1", "h2")
    script = copied(world, "examples/launch/ddp.py")
    final = []
    for name, options in (("far", over_ssh(world, ["h1", "h2"])), ("near", ["-n", 1, "--nproc-per-host", 2])):
        answer = launch(world, [*options, "--env", "OMP_NUM_THREADS=1", "--job-dir", world.folder / name], PYTHON, script,
                        "--checkpoint", world.folder / f"{name}.pt")
        final += re.findall(r"done after .*", answer.stdout)
    assert len(final) == 2 and final[0] == final[1], final


def test_who_is_where(world: Cluster):
    """Ranks learn the addresses and network cards of their own machines; two on each have local ranks."""
    world.boot("h1", "h2")
    launch(world, over_ssh(world, ["h1 slots=2", "h2 slots=2"]), PYTHON, copied(world, "tests/launch/programs/tell.py"), world.folder)
    told = told_in(world.folder)
    assert sorted(told) == [f"worker-{rank}" for rank in range(4)]
    groups = {}
    for rank in range(4):
        have = told[f"worker-{rank}"].environment
        machine = world.lab[have["DTRAIN_HOST"]]
        assert have["HOROVOD_HOSTNAME"] == machine.address and have["GLOO_SOCKET_IFNAME"] == "eth0", have
        assert (have["LOCAL_WORLD_SIZE"], have["GROUP_WORLD_SIZE"], have["HOROVOD_CROSS_SIZE"]) == ("2", "2", "2")
        assert have["MASTER_ADDR"] == world.lab[told["worker-0"].environment["DTRAIN_HOST"]].address
        groups.setdefault((machine.name, have["GROUP_RANK"], have["HOROVOD_CROSS_RANK"]), []).append(have["LOCAL_RANK"])
    assert sorted(key[1:] for key in groups) == [("0", "0"), ("1", "1")], groups
    assert all(sorted(local) == ["0", "1"] for local in groups.values()), groups


def test_words_and_environment_byte_for_byte(world: Cluster):
    """Odd arguments and --env arrive on other machines as they are; nothing else of this machine's environment does."""
    world.boot("h1", "h2")
    words, values = odd_words(120, seed=3), odd_words(40, seed=4)
    world.environment |= {"SECRET_KEY": "stays here"}
    named = [word for number, value in enumerate(values) for word in ("--env", f"FUZZ_{number}={os.fsdecode(value)}")]
    launch(world, over_ssh(world, ["h1", "h2"], *named), PYTHON, copied(world, "tests/launch/programs/tell.py"), world.folder,
           *map(os.fsdecode, words))
    told = told_in(world.folder)
    assert sorted(told) == ["worker-0", "worker-1"]
    for name, rank in told.items():
        assert rank.words == words, f"{name}: {[pair for pair in zip(words, rank.words) if pair[0] != pair[1]][:3]}"
        for number, value in enumerate(values):
            assert rank.raw.get(b"FUZZ_%d" % number) == value, f"{name}: {value}"
        assert b"SECRET_KEY" not in rank.raw, name


def test_the_first_failure_is_named(world: Cluster):
    """A rank that fails on another machine: its host, rank, code and last words are shown."""
    world.boot("h1", "h2")
    script = '[ "$DTRAIN_HOST" = h2 ] && { echo why >&2; exit 5; }; sleep 1000'
    answer = launch(world, over_ssh(world, ["h1", "h2"]), "sh", "-c", script, check=False)
    assert answer.returncode not in (0, 75), answer.stderr
    assert re.search(r"the first failure was h2 \(rank \d\): its program ended with exit code 5", answer.stderr), answer.stderr
    assert "why" in answer.stderr, answer.stderr
    expect_nothing_runs(world, "h1", "h2")


def test_a_machine_without_the_program(world: Cluster):
    """What cannot be started there is named with its host."""
    world.boot("h1", "h2")
    world.lab["h1"].run("install", "-m", "755", "/bin/true", "/usr/local/bin/only-here")
    answer = launch(world, over_ssh(world, ["h1", "h2"]), "only-here", check=False)
    assert answer.returncode != 0 and "h2" in answer.stderr and "only-here: no such program in PATH" in answer.stderr, answer.stderr


def test_members_come_die_and_go(world: Cluster):
    """kill -9 of a rank, a machine more, a machine that crashes: each time all others start again together."""
    world.boot("h1", "h2", "h3")
    crew = crew_on(world, ["h1", "h2"], "--elastic").start()
    before = crew.wait_crew(2)
    victim = next(member for member in before if member["host"] == "h2")
    kill_now(world.lab["h2"].outside(victim["pid"]))
    second = crew.wait_crew(2, after=before[0]["generation"])
    assert {member["failures"] for member in second} == {1}
    crew.hosts_command("add", "h3")
    third = crew.wait_crew(3, after=second[0]["generation"])
    assert {member["host"] for member in third} == {"h1", "h2", "h3"}
    world.lab["h2"].crash()
    fourth = crew.wait_crew(2, after=third[0]["generation"])
    assert {member["host"] for member in fourth} == {"h1", "h3"}
    crew.let_end().finish(240)


def test_stop_leaves_nothing(world: Cluster):
    """SIGINT here: ranks everywhere get the signal, and they and what left their session are gone."""
    world.boot("h1", "h2")
    crew = crew_on(world, ["h1", "h2"], "--stop-signal", "USR1", members=["orphan", "bare-orphan"]).start()
    crew.wait_crew(2)
    kill_launcher(world, signal.SIGINT)
    crew.wait()
    assert sorted(crew.signals()) == [f"0 {signal.SIGUSR1}", f"1 {signal.SIGUSR1}"], crew.signals()
    expect_nothing_runs(world, "h1", "h2")


def test_kill_of_an_agent(world: Cluster):
    """kill -9 of the agent of a machine, alone: nothing of its rank is left there."""
    world.boot("h1", "h2")
    crew = crew_on(world, ["h1", "h2"], members=["orphan", "bare-orphan", "stubborn"]).start()
    crew.wait_crew(2)
    kill_now(agent_of(world.lab["h2"]))
    assert crew.wait(240) != 0
    expect_nothing_runs(world, "h1", "h2")


def agent_of(host: Host) -> int:
    """The one below its keeper."""
    agents = [pid for pid in host.processes(" agent") if "--worker" not in command_line(pid)]
    return next(pid for pid in agents if parent_of(pid) in agents)


def kill_launcher(world: Cluster, number: int) -> None:
    os.kill(next(pid for pid in world.seat.processes(" launch ")), number)
