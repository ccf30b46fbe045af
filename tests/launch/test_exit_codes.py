"""What dtrain launch ends with, and what it says about it."""

import json
import signal

from launches import PYTHON

FIRST_FAILS = """
import os, sys, time
if os.environ["RANK"] == "1":
    for number in range(30): print("line", number, file=sys.stderr)
    os._exit(7)
time.sleep(1000)
"""


def code(world, *words, options=(), name="job"):
    return world.launch(*words, options=options, check=False, name=name)


def test_the_programs_own_code(world):
    """On one host the code is the program's; a signal is 128 and its number, as in a shell."""
    for number, (script, wanted) in enumerate([("exit 0", 0), ("exit 3", 3), ("exit 93", 93), ("exit 255", 255),
                                               ("kill -SEGV $$", 128 + signal.SIGSEGV), ("kill -KILL $$", 128 + signal.SIGKILL),
                                               ("kill -TERM $$", 128 + signal.SIGTERM)]):
        answer = code(world, "sh", "-c", script, name=f"job{number}")
        assert answer.returncode == wanted, f"{script}: {answer.returncode}\n{answer.stderr}"


def test_the_code_of_one_of_several_ranks(world):
    """Several ranks on one host: the first failure's code is passed, and its rank, host and last lines are shown."""
    answer = code(world, PYTHON, "-c", FIRST_FAILS, options=["--nproc-per-host", 3])
    assert answer.returncode == 7, answer.stderr
    assert "(rank 1): its program ended with exit code 7" in answer.stderr, answer.stderr
    assert all(f"line {number}" in answer.stderr for number in range(15, 30)), answer.stderr


def last_lines(world, name: str, kind: str) -> list[str]:
    events = [json.loads(line) for line in (world.folder / name / "events.jsonl").read_text().splitlines()]
    return next(event["last_lines"] for event in events if event["event"] == kind and event["rank"] == 1)


def test_events_of_a_failure_have_its_last_lines(world):
    """`failed`, and `rank_failed` where all ranks start again."""
    code(world, PYTHON, "-c", FIRST_FAILS, options=["--nproc-per-host", 2], name="once")
    assert last_lines(world, "once", "failed")[-1] == "line 29"
    code(world, PYTHON, "-c", FIRST_FAILS, options=["--nproc-per-host", 2, "--max-restarts", 1], name="twice")
    assert last_lines(world, "twice", "rank_failed")[-1] == "line 29"


def test_the_last_lines_are_those_of_the_last_attempt(world):
    """After restarts: what earlier attempts printed is not among them, and they are shown once."""
    answer = code(world, "sh", "-c", "echo attempt $TORCHELASTIC_RESTART_COUNT; exit 3", options=["--max-restarts", 2])
    assert answer.stdout.splitlines() == ["attempt 0", "attempt 1", "attempt 2"], answer.stdout
    shown = [line.strip() for line in answer.stderr.splitlines() if "attempt" in line]
    assert shown == ["attempt 2"], answer.stderr
    assert "last lines of" in answer.stderr, answer.stderr
    log = (world.folder / "job" / "logs" / "worker1.0.log").read_text()
    assert "program starts" not in log, log


def test_the_first_failure_wins(world):
    """A rank that fails because another one did is not the one that is named."""
    second = ("trap 'exit 9' TERM; while :; do sleep 0.1; done")
    answer = code(world, "sh", "-c", f'[ "$RANK" = 2 ] && {{ echo why >&2; exit 5; }}; {second}', options=["--nproc-per-host", 4])
    assert answer.returncode == 5, answer.stderr
    assert "rank 2" in answer.stderr and "exit code 5" in answer.stderr and "why" in answer.stderr, answer.stderr
    assert "exit code 9" not in answer.stderr, answer.stderr


def test_success_is_prompt(world):
    """A program that does nothing is through in seconds, and says that all is well."""
    answer = code(world, "true", options=["-n", 4])
    assert answer.returncode == 0 and "All ranks are done" in answer.stderr, answer.stderr


def expect_refused(world, answer, *parts) -> None:
    assert answer.returncode != 0
    for part in parts:
        assert part in answer.stderr, f"no {part!r} in: {answer.stderr}"
    assert "hint: " in answer.stderr, answer.stderr


def test_no_such_program(world):
    """It is named, with where it was looked for."""
    expect_refused(world, code(world, "no-such-program"), "no-such-program", "PATH")
    expect_refused(world, code(world, "./nothing-here", name="path"), "./nothing-here", "is not there")


def test_a_file_that_is_not_executable(world):
    """It is named, with what to do."""
    (world.folder / "train.py").write_text("print(1)\n")
    expect_refused(world, code(world, "./train.py"), "./train.py", "not executable")


def test_a_script_in_place_of_a_program(world):
    """As torchrun takes it: the way to start it is shown, and the reason once, not for each rank."""
    (world.folder / "train.py").write_text("print(1)\n")
    answer = code(world, "train.py", options=["--nproc-per-node", 2])
    expect_refused(world, answer, "hint: start it through its interpreter: python3 train.py")
    assert answer.stderr.count("no program in PATH") == 1, answer.stderr


def test_a_missing_interpreter(world):
    """A script whose #! names nothing: script and interpreter are named, since only the second is missing."""
    script = world.folder / "train.py"
    script.write_text("#!/no/such/interpreter\nprint(1)\n")
    script.chmod(0o755)
    expect_refused(world, code(world, "./train.py"), "./train.py", "/no/such/interpreter")


def test_a_script_without_an_interpreter(world):
    """A script without #!: the kernel calls it a format error, so the line that is missing is shown."""
    script = world.folder / "train.sh"
    script.write_text("echo here\n")
    script.chmod(0o755)
    expect_refused(world, code(world, "./train.sh"), "./train.sh", "#!/bin/sh", "sh FILE")


def test_a_command_line_in_one_word(world):
    """Quotes around program and arguments: the way to give them is shown."""
    expect_refused(world, code(world, "python train.py --lr 1"), "no such program", "separate words")


def test_a_folder_in_place_of_a_program(world):
    """A folder can be entered, but not run."""
    (world.folder / "train").mkdir()
    expect_refused(world, code(world, "./train"), "./train")


def test_standard_input_is_empty(world):
    """A rank that asks gets no answer instead of waiting for ever."""
    answer = code(world, PYTHON, "-c", "import sys; print('read', len(sys.stdin.read()))", options=["-n", 2])
    assert answer.stdout.count("read 0") == 2, answer.stdout


def test_output_of_one_rank_is_its_own(world):
    """One rank alone speaks as if nobody were between: its lines have no prefix, its bytes stay."""
    answer = code(world, "printf", "%s\\n", "one", "two  three", "\u2603")
    assert answer.stdout == "one\ntwo  three\n\u2603\n", answer.stdout


def test_streams_stay_apart(world):
    """What a rank writes to stderr comes out of stderr, also of several ranks, and --json names the stream."""
    both = ("sh", "-c", "echo result; echo complaint >&2; printf 'no newline' >&2")
    one = code(world, *both)
    assert one.stdout == "result\n" and "complaint\n" in one.stderr and "no newline\n" in one.stderr, one
    two = code(world, *both, options=["-n", 2])
    assert sorted(two.stdout.splitlines()) == ["[worker1.0] result", "[worker2.0] result"], two.stdout
    assert two.stderr.count("] complaint\n") == two.stderr.count("] no newline\n") == 2, two.stderr
    rows = [json.loads(line) for line in code(world, *both, options=["--json"]).stdout.splitlines()]
    said = {(row["stream"], row["line"]) for row in rows if row.get("event") == "output"}
    assert said == {("stdout", "result"), ("stderr", "complaint"), ("stderr", "no newline")}, rows


def test_json(world):
    """--json: every line of output is an object."""
    answer = code(world, "sh", "-c", "echo \"it's\"; echo '\"'", options=["-n", 2, "--json"])
    rows = [json.loads(line) for line in answer.stdout.splitlines()]
    said = [(row["worker"], row["line"]) for row in rows if row.get("event") == "output"]
    assert sorted(said) == [(f"worker{n}.0", line) for n in (1, 2) for line in ('"', "it's")], rows
