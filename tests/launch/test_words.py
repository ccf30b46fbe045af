"""Arguments and environment arrive byte for byte."""

import os

from launches import PYTHON
from told import odd_words, told_in


def text(word: bytes) -> str:
    return os.fsdecode(word)


def test_arguments(world):
    """200 odd words reach every rank as they are."""
    words = odd_words(200, seed=1)
    world.launch(PYTHON, world.program("tell.py"), world.folder, *map(text, words), options=["-n", 2])
    told = told_in(world.folder)
    assert sorted(told) == ["worker-0", "worker-1"]
    for name, rank in told.items():
        assert rank.words == words, f"{name}: {[pair for pair in zip(words, rank.words) if pair[0] != pair[1]][:3]}"


def test_arguments_of_a_template(world):
    """--template replaces the names that it knows, and leaves every other byte of the same words alone."""
    words = odd_words(200, seed=5)
    world.launch(PYTHON, world.program("tell.py"), world.folder, *map(text, words), options=["-n", 2, "--template"])
    for rank, told in enumerate(told_in(world.folder).values()):
        wanted = [word.replace(b"{rank}", b"%d" % rank).replace(b"{role}", b"worker") for word in words]
        assert told.words == wanted, f"{rank}: {[pair for pair in zip(wanted, told.words) if pair[0] != pair[1]][:3]}"


def test_environment(world):
    """Odd values that dtrain itself has, and those of --env, reach every rank as they are."""
    values = odd_words(60, seed=2)
    named = {f"FUZZ_NAMED_{number}": value for number, value in enumerate(values)}
    world.environment |= {f"FUZZ_OWN_{number}": text(value) for number, value in enumerate(values)}
    options = [word for name, value in named.items() for word in ("--env", f"{name}={text(value)}")]
    world.launch(PYTHON, world.program("tell.py"), world.folder, options=["-n", 2, *options])
    for name, rank in told_in(world.folder).items():
        for number, value in enumerate(values):
            assert rank.raw.get(b"FUZZ_OWN_%d" % number) == value, f"{name}: own {value}"
            assert rank.raw.get(b"FUZZ_NAMED_%d" % number) == value, f"{name}: --env {value}"


def test_a_folder_with_an_odd_name(world):
    """The program runs in the folder in which dtrain was started, and a job folder may be called anything."""
    odd = world.folder / text(b"a b'c\"d$HOME\n\xff{rank}")
    odd.mkdir()
    world.launch(PYTHON, world.program("tell.py"), odd, options=["-n", 2, "--job-dir", odd / "job"])
    told = told_in(odd)
    assert {rank.folder for rank in told.values()} == {str(world.folder)}
    assert told["worker-1"].environment["DTRAIN_RUN_DIR"] == str(odd / "job" / "run")


def test_options_end_at_the_program(world):
    """What follows -- is the program's, also where dtrain has an option of that name."""
    words = ["-n", "7", "--elastic", "--help", "--version", "--", "--job-dir", "x"]
    world.launch(PYTHON, world.program("tell.py"), world.folder, *words)
    assert [word.decode() for word in told_in(world.folder)["worker-0"].words] == words
