"""How launches end: asked to, killed, and what is left then."""

import signal
import subprocess
import time

from launches import Crew, Launch, PROGRAMS, PYTHON, expect_gone, kill_now
from world import alive, children, eventually, send_signal


def pids_of(members) -> list[int]:
    return [pid for member in members for pid in (member["pid"], *member["orphans"])]


def test_an_interrupt_asks_the_ranks(world):
    """SIGINT to dtrain: every rank gets --stop-signal once, ends in its grace, and dtrain by that signal too."""
    crew = Crew(world, options=["-n", 2, "--stop-signal", "USR1", "--grace", 60]).start()
    members = crew.wait_crew(2)
    begin = time.monotonic()
    crew.process.send_signal(signal.SIGINT)
    assert crew.wait() == -signal.SIGINT, crew.process.returncode
    assert sorted(crew.signals()) == [f"0 {signal.SIGUSR1}", f"1 {signal.SIGUSR1}"], crew.signals()
    assert time.monotonic() - begin < 50, "the whole grace was waited for"
    expect_gone(pids_of(members))


def test_an_interrupt_arrives_as_one(world):
    """Without --stop-signal Ctrl-C reaches the ranks as SIGINT, and SIGTERM as SIGTERM."""
    for number in (signal.SIGINT, signal.SIGTERM):
        crew = Crew(world, f"job{int(number)}", options=["-n", 2]).start()
        crew.wait_crew(2)
        crew.process.send_signal(number)
        crew.wait()
        assert sorted(crew.signals()) == [f"0 {int(number)}", f"1 {int(number)}"], crew.signals()


def stop(world, crew: Crew) -> int:
    world.run("stop", "--job-dir", crew.folder)
    return crew.wait()


def test_dtrain_stop_asks_the_ranks(world):
    """`dtrain stop`: every rank gets SIGTERM, and all are gone."""
    crew = Crew(world, options=["-n", 2]).start()
    members = crew.wait_crew(2)
    assert stop(world, crew) != 0
    assert sorted(crew.signals()) == ["0 15", "1 15"], crew.signals()
    expect_gone(pids_of(members))


def test_the_exit_code_of_a_stop(world):
    """Ended on request is not failed: 75, as for every job."""
    crew = Crew(world, options=["-n", 2]).start()
    crew.wait_crew(2)
    assert stop(world, crew) == 75, crew.process.returncode


def test_deaf_ranks_are_killed_after_their_grace(world):
    """A rank that goes on after the signal is killed when --grace is over, not before."""
    crew = Crew(world, options=["-n", 2, "--grace", 2], members=["stubborn"]).start()
    members = crew.wait_crew(2)
    begin = time.monotonic()
    crew.process.send_signal(signal.SIGTERM)
    crew.wait()
    assert time.monotonic() - begin >= 2, "killed before its grace was over"
    assert sorted(crew.signals()) == ["0 15", "1 15"], crew.signals()
    expect_gone(pids_of(members))


def test_a_second_interrupt_ends_at_once(world):
    """A second SIGINT does not wait for the grace."""
    crew = Crew(world, options=["-n", 2, "--grace", 1000], members=["stubborn"]).start()
    members = crew.wait_crew(2)
    crew.process.send_signal(signal.SIGINT)
    eventually(lambda: len(crew.signals()) == 2, "both were asked", job=crew)
    time.sleep(0.4)  # at once, it would be the same request
    crew.process.send_signal(signal.SIGINT)
    assert crew.wait(60) != 0
    expect_gone(pids_of(members))


def test_descendants_in_other_sessions_end_too(world):
    """What left the rank's session by a double fork ends with the rank, even with nothing in its environment; a program that
    only looks alike stays."""
    with subprocess.Popen([PYTHON, PROGRAMS / "member.py", world.folder, "stubborn"], start_new_session=True, env={
            "DTRAIN_GENERATION": "1", "RANK": "7", "WORLD_SIZE": "8", "DTRAIN_RESTART": "0", "DTRAIN_HOST": "w1",
            "TORCHELASTIC_RESTART_COUNT": "0"}) as bystander:
        try:
            crew = Crew(world, options=["-n", 2], members=["orphan", "bare-orphan"]).start()
            members = crew.wait_crew(2)
            assert all(alive(pid) for pid in pids_of(members)) and len(pids_of(members)) == 6
            stop(world, crew)
            expect_gone(pids_of(members))
            assert bystander.poll() is None, "somebody else's process is gone"
        finally:
            bystander.kill()


def test_descendants_end_when_the_rank_ends(world):
    """A rank that ends well leaves no descendant behind."""
    crew = Crew(world, options=["-n", 2], members=["orphan", "bare-orphan"]).start()
    members = crew.wait_crew(2)
    crew.let_end().finish()
    expect_gone(pids_of(members))


def expect_a_new_generation_without_them(world, orphans: list[str]) -> None:
    crew = Crew(world, options=["-n", 2, "--elastic"], members=orphans).start()
    before = crew.wait_crew(2)
    kill_now(before[0]["pid"])
    after = crew.wait_crew(2, after=before[0]["generation"])
    expect_gone(pids_of(before))
    assert all(alive(pid) for pid in pids_of(after))
    stop(world, crew)
    expect_gone(pids_of(after))


def test_descendants_end_when_the_rank_is_killed(world):
    """Nor does one that is killed: the next generation begins without them."""
    expect_a_new_generation_without_them(world, ["orphan"])


def test_bare_descendants_end_when_the_rank_is_killed(world):
    """The same for a descendant with nothing in its environment."""
    expect_a_new_generation_without_them(world, ["bare-orphan"])


def expect_nothing_left(world, crew: Crew, victims: list[int]) -> None:
    members = crew.wait_crew(2)
    for pid in victims:
        send_signal(pid, signal.SIGKILL)
    crew.wait()
    expect_gone(pids_of(members))
    eventually(lambda: not world.processes(), "everything is gone", 15)


def test_kill_of_the_launcher(world):
    """kill -9 of dtrain launch: all ranks and their descendants are gone soon."""
    crew = Crew(world, options=["-n", 2, "--grace", 2], members=["orphan", "bare-orphan", "stubborn"]).start()
    crew.wait_crew(2)
    expect_nothing_left(world, crew, [crew.process.pid])


def test_kill_of_the_launcher_leaves_the_ranks_their_grace(world):
    """kill -9 of dtrain launch: the ranks have --grace to save their state."""
    program = 'trap "sleep 4; touch saved.$RANK; exit 0" TERM; echo ready.$RANK; while :; do sleep 0.1; done'
    launch = Launch(world, "job", ["sh", "-c", program], ["-n", 2, "--grace", 60]).start()
    launch.wait_line("ready", 2)
    send_signal(launch.process.pid, signal.SIGKILL)
    launch.wait()
    eventually(lambda: all((world.folder / f"saved.{rank}").exists() for rank in range(2)), "the ranks have saved", 30)
    eventually(lambda: not world.processes(), "everything is gone", 15)


def test_kill_of_the_launcher_of_an_elastic_job(world):
    """With --elastic the agents choose another coordinator, under which all ranks start again until the job is stopped."""
    crew = Crew(world, options=["-n", 2, "--elastic"], members=["orphan", "bare-orphan"]).start()
    before = crew.wait_crew(2)
    send_signal(crew.process.pid, signal.SIGKILL)
    crew.process.wait()
    crew.process = None
    crew.wait_for_term(2)
    eventually(lambda: not set(pids_of(before)) & set(world.processes()), "the first ranks are gone", 60)
    crew.wait_crew(2, after=1)
    world.run("stop", "--job-dir", crew.folder)
    eventually(lambda: not world.processes(), "everything is gone", 30)


def test_kill_of_a_worker(world):
    """kill -9 of what stands between dtrain and a rank: the rank and its descendants are gone, and the job fails."""
    crew = Crew(world, options=["-n", 2], members=["orphan", "bare-orphan", "stubborn"]).start()
    crew.wait_crew(2)
    members = crew.members()
    between = next(pid for pid in world.processes() if members[1]["pid"] in children(pid))
    expect_nothing_left(world, crew, [between])
    assert crew.process.returncode != 0


def test_detached(world):
    """--detach returns while the job runs; `dtrain stop` ends it and its ranks."""
    crew = Crew(world, options=["-n", 2, "--detach"]).start()
    assert crew.wait() == 0
    crew.process = None
    members = crew.wait_crew(2)
    world.run("stop", "--job-dir", crew.folder)
    expect_gone(pids_of(members))
