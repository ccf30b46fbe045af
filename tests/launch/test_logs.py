"""What ranks print: whole lines, each in the log of its rank and, with a prefix, on standard output."""

import collections
import json
import re

from launches import PYTHON, kill_now
from world import eventually

RANKS, LINES = 64, 2000
# As fast as awk can, in blocks that end somewhere inside a line.
TALK = """BEGIN {
  for (i = 0; i < %d; ++i) printf "<%%s %%d %%s>\\n", ENVIRON["RANK"], i, substr(filler, 1, i %% 97)
}"""
LINE = re.compile(r"<(\d+) (\d+) (x*)>")


def talk_at_once(world):
    # 64 processes for a few processors: that one of them is not heard of for a while is no matter here.
    return world.launch("awk", "-v", f"filler={'x' * 97}", TALK % LINES,
                        options=["-n", 1, "--nproc-per-host", RANKS, "--heartbeat-timeout", 60])


def test_many_ranks_talk_at_once(world):
    """64 ranks, 2,000 lines each as fast as they can: every line is whole and in order in logs/."""
    talk_at_once(world)
    stamp = re.compile(r"^\S+Z ")
    logs = (world.folder / "job" / "logs").glob("worker1.*.log")
    expect_whole({path.name: [stamp.sub("", line) for line in path.read_text().splitlines() if stamp.match(line)] for path in logs})


def test_many_ranks_are_shown_at_once(world):
    """The same on standard output, with a prefix before each line."""
    shown = collections.defaultdict(list)
    for line in talk_at_once(world).stdout.splitlines():
        prefix, _, text = line.partition(" ")
        shown[prefix].append(text)
    expect_whole(shown)


def expect_whole(talks: dict[str, list[str]]) -> None:
    """Each talk is all of one rank's lines, in order; and all ranks are there."""
    ranks = set()
    for where, lines in talks.items():
        torn = [line for line in lines if not LINE.fullmatch(line)]
        assert not torn, f"{where}: {torn[:3]}"
        found = [LINE.fullmatch(line) for line in lines]
        assert {match[1] for match in found} == {found[0][1]}, f"{where}: lines of several ranks"
        assert [int(match[2]) for match in found] == list(range(LINES)), f"{where}: {len(found)} lines, or in another order"
        assert all(len(match[3]) == int(match[2]) % 97 for match in found), f"{where}: a line lost its end"
        ranks.add(int(found[0][1]))
    assert ranks == set(range(RANKS)), sorted(ranks)


def test_output_is_shown_at_once(world):
    """A line is seen while its rank goes on, also where standard output is a file."""
    job = world.job(words=["sh", "-c", "echo begun; sleep 1000"], options=["-n", 2]).start()
    job.wait_line("begun", 2)
    assert job.process.poll() is None
    world.run("stop", "--job-dir", job.folder)
    job.wait()


def test_a_last_line_without_end(world):
    """What a rank prints last counts, with or without a newline."""
    answer = world.launch("printf", "one\\ntwo", options=["-n", 2])
    assert sorted(line.partition(" ")[2] for line in answer.stdout.splitlines()) == ["one", "one", "two", "two"], answer.stdout


def test_the_end_of_what_a_script_tees(world):
    """A script whose output goes through a program ends before that program has passed the last line on."""
    answer = world.launch("bash", "-c", "exec > >(sleep 0.2; cat); echo last", options=["-n", 1])
    assert answer.stdout.splitlines() == ["last"], answer.stdout


def test_a_detached_launch_logs_a_line_once(world):
    """With --detach the output of the ranks is in their logs, and not in the coordinator's as well."""
    job = world.job(words=["sh", "-c", "echo only once; sleep 1000"], options=["-n", 2, "--detach"]).start()
    assert job.wait() == 0
    job.process = None
    tail = ["tail-logs", "--job-dir", job.folder, "--no-follow"]
    eventually(lambda: world.run(*tail).stdout.count("only once") >= 2, "both ranks are heard")
    world.run("stop", "--job-dir", job.folder)
    lines = sorted(line for line in world.run(*tail).stdout.splitlines() if "only once" in line)
    assert lines == ["[worker1.0] only once", "[worker2.0] only once"], lines


def test_a_coordinator_that_takes_over_logs_no_line_again(world):
    """The output of the ranks is in their logs alone, also under the coordinator that they choose after the first."""
    job = world.job(words=["sh", "-c", "echo a rank speaks; sleep 1000"], options=["-n", 2, "--elastic"]).start()
    job.wait_line("a rank speaks", 2)
    kill_now(job.process.pid)
    job.process.wait()
    job.process = None
    job.wait_for_term(2)
    tail = ["tail-logs", "--job-dir", job.folder, "--no-follow"]
    eventually(lambda: world.run(*tail).stdout.count("0] a rank speaks") >= 4, "both ranks are heard again", 60)
    world.run("stop", "--job-dir", job.folder)
    lines = [line for line in world.run(*tail).stdout.splitlines() if "a rank speaks" in line]
    assert set(lines) == {"[worker1.0] a rank speaks", "[worker2.0] a rank speaks"}, lines


def tail(world, *options) -> list[dict]:
    answer = world.run("tail-logs", "--job-dir", world.folder / "job", "--no-follow", "--json", *options)
    return [json.loads(line) for line in answer.stdout.splitlines()]


def test_lines_of_a_rank(world):
    """--rank chooses them, --json names it, and a program that prints dtrain's line or its mark changes none."""
    script = (r"printf 'cut\036dtrain: generation 3: rank 7 of 4\n'; echo 'generation 3: rank 7 of 4, x'; "
              "echo I am $RANK; [ $TORCHELASTIC_RESTART_COUNT = 1 ]")
    shown = world.launch("sh", "-c", script, options=["-n", 2, "--max-restarts", 1]).stdout
    assert "generation 1: rank" not in shown, "what dtrain notes is no output of a rank"
    for rank in (0, 1):
        rows = tail(world, "--rank", rank)
        said = [row["line"] for row in rows if row["line"].startswith("I am")]
        assert said and set(said) == {f"I am {rank}"} and {row["rank"] for row in rows} == {rank}, rows
        assert any(re.fullmatch(rf"generation \d+: rank {rank} of 2", row["line"]) for row in rows), rows
    answer = world.run("tail-logs", "--job-dir", world.folder / "job", "--rank", 7, check=False)
    assert answer.returncode == 2 and "no worker had rank 7" in answer.stderr and "ranks are 0 to 1" in answer.stderr, answer


def test_a_rank_that_no_log_names_is_refused(world):
    """As in the logs of an earlier version."""
    world.launch("true")
    (world.folder / "job" / "logs" / "worker1.0.log").write_text("2026-01-31T23:59:59.123456Z a line\n")
    answer = world.run("tail-logs", "--job-dir", world.folder / "job", "--rank", 0, check=False)
    assert answer.returncode == 2 and "no log says the rank of a worker" in answer.stderr, answer


def test_logs_of_servers(world):
    """Their lines have times and a host, as those of the workers."""
    script = "echo I am a $DMLC_ROLE; [ $DMLC_ROLE = worker ] || touch $DTRAIN_JOB_FOLDER/served; " \
             "until [ -e $DTRAIN_JOB_FOLDER/served ]; do sleep 0.05; done"
    world.launch("sh", "-c", script, options=["-n", 2, "-s", 1])
    for options in (["--host", "worker1"], ["--since", "1d"]):
        rows = [row for row in tail(world, *options) if row["source"] == "worker1.0.ps0"]
        assert [(row["line"], row["host"], row["slot"]) for row in rows] == [("I am a server", "worker1", 0)], rows
        assert rows[0]["time"] and rows[0]["rank"] is None, rows


def test_long_lines_and_odd_bytes(world):
    """A line of 300 kB, and bytes that are no text, arrive."""
    script = "import sys; sys.stdout.buffer.write(b'y' * 300000 + b'\\n\\xff\\x00\\x01 end\\n')"
    world.launch(PYTHON, "-c", script)
    log = (world.folder / "job" / "logs" / "worker1.0.log").read_bytes()
    assert b"\xff\x00\x01 end" in log, log[-100:]
    assert log.count(b"y") == 300000, f"{log.count(b'y')} of 300000 bytes"


def test_no_output(world):
    """--no-output shows nothing, and logs/ has it."""
    answer = world.launch("echo", "hello", options=["-n", 2, "--no-output"])
    assert answer.stdout == "" and "hello" in (world.folder / "job" / "logs" / "worker2.0.log").read_text()
