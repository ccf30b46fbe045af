"""Ranks that die, hosts that come and go: the others start again with new ranks."""

import os
import signal
import time

from launches import Crew, kill_now
from world import eventually

ELASTIC = ["-n", 2, "--elastic"]


def test_a_killed_rank(world):
    """kill -9 of a rank: both start again as a new generation, which counts one failure, on the same hosts."""
    crew = Crew(world, options=ELASTIC).start()
    before = crew.wait_crew(2)
    assert [(member["failures"], member["restart"]) for member in before] == [(0, 0)] * 2, before
    kill_now(before[1]["pid"])
    after = crew.wait_crew(2, after=before[0]["generation"])
    assert [(member["failures"], member["restart"]) for member in after] == [(1, 1)] * 2, after
    assert {member["pid"] for member in before}.isdisjoint(member["pid"] for member in after)
    assert {member["host"] for member in before} == {member["host"] for member in after}
    crew.let_end().finish()
    assert "its program was killed by signal 9 (SIGKILL); all ranks start again (1 of" in crew.said(), crew.said()


def test_all_ranks_killed_at_once(world):
    """kill -9 of every rank together is survived too."""
    crew = Crew(world, options=["-n", 3, "--elastic"]).start()
    before = crew.wait_crew(3)
    for member in before:
        kill_now(member["pid"])
    after = crew.wait_crew(3, after=before[0]["generation"])
    assert after[0]["failures"] >= 1
    crew.let_end().finish()


def test_hosts_come_and_go(world):
    """hosts add and hosts remove change WORLD_SIZE of a running job; that is not a failure."""
    crew = Crew(world, options=ELASTIC).start()
    two = crew.wait_crew(2)
    crew.hosts_command("add", "w9")
    three = crew.wait_crew(3, after=two[0]["generation"])
    assert {member["world"] for member in three} == {3} and "w9" in {member["host"] for member in three}
    assert {member["failures"] for member in three} == {0} and {member["restart"] for member in three} == {1}, three
    crew.hosts_command("remove", three[0]["host"])
    fewer = crew.wait_crew(2, after=three[0]["generation"])
    assert {member["world"] for member in fewer} == {2} and three[0]["host"] not in {member["host"] for member in fewer}
    assert {member["failures"] for member in fewer} == {0}, fewer
    crew.let_end().finish()


def test_the_host_file_is_read(world):
    """A line more in host_worker is a rank more."""
    crew = Crew(world, options=ELASTIC).start()
    two = crew.wait_crew(2)
    crew.edit((crew.folder / "host_worker").read_text() + "w9\n")
    assert {member["world"] for member in crew.wait_crew(3, after=two[0]["generation"])} == {3}
    crew.let_end().finish()


def test_ranks_may_end_their_work_before_they_start_again(world):
    """A change of the membership gives ranks the stop signal and their grace, not a kill."""
    crew = Crew(world, options=[*ELASTIC, "--stop-signal", "USR1", "--grace", 60]).start()
    two = crew.wait_crew(2)
    crew.hosts_command("add", "w9")
    crew.wait_crew(3, after=two[0]["generation"])
    assert sorted(crew.signals()) == ["0 10", "1 10"], crew.signals()
    crew.let_end().finish()


def test_the_program_saves_before_a_change(world):
    """--save-signal: the ranks get it first; the change waits until they have saved, and then asks them to end."""
    crew = Crew(world, options=[*ELASTIC, "--save-signal", "HUP", "--save-timeout", 60], members=["saves"]).start()
    two = crew.wait_crew(2)
    begin = time.monotonic()
    crew.hosts_command("add", "w9")
    crew.wait_crew(3, after=two[0]["generation"])
    assert time.monotonic() - begin < 40, "the whole timeout was waited for"
    heard = crew.signals()
    for rank in "01":
        assert [line for line in heard if line.startswith(rank)] == [f"{rank} 1", f"{rank} 15"], heard
    crew.let_end().finish()


def test_a_program_that_does_not_save_delays_a_change_no_longer_than_it_may(world):
    """After --save-timeout the change goes on."""
    crew = Crew(world, options=[*ELASTIC, "--save-signal", "HUP", "--save-timeout", 2], members=["forgets"]).start()
    two = crew.wait_crew(2)
    begin = time.monotonic()
    crew.hosts_command("add", "w9")
    crew.wait_crew(3, after=two[0]["generation"])
    assert time.monotonic() - begin >= 2
    crew.let_end().finish()


def test_restarts_are_counted(world):
    """After --max-restarts failures the next one is the job's, and is named."""
    crew = Crew(world, options=[*ELASTIC, "--max-restarts", 1]).start()
    first = crew.wait_crew(2)
    kill_now(first[0]["pid"])
    second = crew.wait_crew(2, after=first[0]["generation"])
    kill_now(second[1]["pid"])
    assert crew.wait() != 0
    assert f"the first failure was {second[1]['host']} (rank 1): its program was killed by signal 9" in crew.said(), crew.said()


def test_a_newcomer_that_fails_is_no_failure_of_the_job(world):
    """A host on which the program cannot run is left out, and named; it uses up no restarts."""
    crew = Crew(world, options=[*ELASTIC, "--max-restarts", 0], members=["unfit"]).start()
    two = crew.wait_crew(2)
    crew.hosts_command("add", "w9")
    words = "on w9, rank 2 failed: its program ended with exit code 1 (the others continue; w9 is started again automatically)"
    eventually(lambda: words in crew.said(), "the newcomer's failure is shown", job=crew)

    def without_it():
        members = crew.members()
        return members if len(members) == 2 and {member["world"] for member in members} == {2} else None
    again = eventually(without_it, "the two others run by themselves", job=crew)
    assert again[0]["generation"] > two[0]["generation"] and {member["failures"] for member in again} == {0}, again
    assert {member["host"] for member in again} == {member["host"] for member in two}, again
    assert "[w9.0] no module named here" in crew.said(), crew.said()
    crew.hosts_command("remove", "w9")
    crew.let_end().finish()


def test_without_elastic_a_failure_ends_the_job(world):
    """No --elastic: the first failure ends all ranks."""
    crew = Crew(world, options=["-n", 2]).start()
    members = crew.wait_crew(2)
    kill_now(members[1]["pid"])
    assert crew.wait() != 0
    eventually(lambda: not world.processes(), "all are gone", 15)


def test_a_stopped_rank_is_not_taken_for_dead(world):
    """A program that does nothing for longer than --heartbeat-timeout, here by SIGSTOP, is left alone: only it knows why."""
    crew = Crew(world, options=[*ELASTIC, "--heartbeat-timeout", 3]).start()
    members = crew.wait_crew(2)
    os.kill(members[0]["pid"], signal.SIGSTOP)
    time.sleep(5)
    os.kill(members[0]["pid"], signal.SIGCONT)
    crew.let_end().finish()
    assert crew.members()[0]["generation"] == members[0]["generation"]
