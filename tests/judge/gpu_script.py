"""run-gpu.sh as far as it goes without a GPU: its benchmarks and its race with a few samples on this CPU, dtrain beside PyTorch."""

import json
import os
import pathlib
import statistics
import subprocess
import sys
import tarfile
import tempfile

TESTS = pathlib.Path(__file__).resolve().parent.parent
BUILD = pathlib.Path(os.environ["DTRAIN"]).parent

# Two slow steps at the start, which do not count, and an evaluation before the last, which does not either.
EVENTS = [{"event": "start", "dtype": "float32"},
          *({"event": "step", "loss": 2.5e-01, "accuracy": 0.1, "seconds": seconds} for seconds in (9, 7, 1)),
          {"event": "epoch", "accuracy": 0.2, "seconds": 17.25},
          {"event": "evaluation", "accuracy": 0.3, "top_k_accuracy": 0.9, "seconds": 100},
          *({"event": "step", "accuracy": 0.1, "seconds": seconds} for seconds in (1, 1, 4)),
          {"event": "epoch", "accuracy": 0.4, "seconds": 6},
          {"event": "evaluation", "accuracy": 0.94, "top_k_accuracy": 0.99, "seconds": 0.5}]
SECONDS = (17.25 - 9 - 7 + 2 * 7 / 4) + 6 + 0.5


def shell(command, *arguments):
    """What functions of race.sh print."""
    script = f'. "{TESTS}/gpu/race.sh"; {command}'
    return subprocess.run(["bash", "-c", script, "-", *arguments], check=True, capture_output=True, text=True).stdout


def check_rule(folder):
    events = folder / "events.jsonl"
    events.write_text("".join(json.dumps(event, separators=(",", ":")) + "\n" for event in EVENTS))
    run = json.loads(shell('race_run 7 1000000000.25 1000000012.5 "$1"', events))
    yield "a run's seconds are those of the rule", run == {"seed": 7, "accuracy": 0.94, "seconds": SECONDS,
                                                           "wall_seconds": 12.25}
    found = json.loads("{" + shell(r'printf "0.93\n0.94\n0.95\n" | race_accuracy') + "}")
    error = statistics.stdev((0.93, 0.94, 0.95)) / 3 ** 0.5
    yield "accuracies are added up", (found["runs"] == 3 and abs(found["accuracy_mean"] - 0.94) < 1e-6 and
                                      abs(found["accuracy_standard_error"] - error) < 1e-4 and
                                      abs(found["share_at_94"] - 2 / 3) < 1e-3)


def check_rehearsal(folder):
    done = subprocess.run(["bash", TESTS / "run-gpu.sh", "rehearse", BUILD, folder], capture_output=True, text=True)
    print(done.stdout + done.stderr)
    yield "the rehearsal succeeds", done.returncode == 0
    summary = json.loads((folder / "summary.json").read_text())
    tiny = summary["networks"]["tiny-float32"]
    yield "dtrain has a speed", not summary["failed"] and tiny["images_per_second"] > 0
    if "none" not in summary["pytorch"]:
        yield "PyTorch has a speed", tiny["pytorch_images_per_second"] > 0
    if os.environ.get("DTRAIN_TEST_DATA") or os.environ.get("DTRAIN_GPU_CIFAR"):
        yield from check_race(folder, summary)
    else:
        yield "without CIFAR-10 there is no race", summary["race"] is None


def check_limits(folder):
    """A call that has no time, and the one after it; an order of its own; one archive of all."""
    def call(**variables):
        return subprocess.run(["bash", TESTS / "run-gpu.sh", "rehearse", BUILD, folder], capture_output=True, text=True,
                              env={**os.environ, **variables})

    done = call(DTRAIN_GPU_SECONDS="1")
    yield "no step begins without time", done.returncode == 3 and "not begun" in done.stdout
    done = call(DTRAIN_GPU_ONLY="tiny:float32 nothing:float32")
    table = (folder / "table.txt").read_text()
    yield "what cannot be done is a failure", done.returncode == 1 and "no network is called nothing" in table
    yield "steps can be chosen", "bench-tiny-float32-1" in table and "torch" not in table and "speednet" not in table
    with tarfile.open(folder / "results.tgz") as archive:
        names = [pathlib.Path(name).name for name in archive.getnames()]
    yield "all results are one file", {"summary.json", "table.txt", "bench-tiny-float32-1.json"} <= set(names)
    (folder / "out").mkdir()
    call(DTRAIN_GPU_ONLY="tiny:float32", OUT=str(folder / "out"))
    yield "and lie where they are asked for", [file.name for file in (folder / "out").iterdir()] == ["results.tgz"]


def check_race(folder, summary):
    race = summary["race"]
    sides = ["dtrain"] if "none" in summary["pytorch"] else ["dtrain", "pytorch"]
    for side in sides:
        numbers = race[side]
        yield f"{side} raced twice", numbers["runs"] == 2 and 0 < numbers["accuracy_mean"] < 1 and numbers["seconds_median"] > 0
    yield "dtrain's runs are timed from exec to exit", race["dtrain"]["wall_seconds_median"] > 0
    if "pytorch" in sides:
        start = json.loads((folder / "race-1.jsonl").read_text().splitlines()[0])
        peer = json.loads((folder / "torch-race.json").read_text())
        yield "both train the same network", peer["parameters"] == start["parameters"]
        yield "on as many images", peer["images"] == 2000 and race["times_pytorch"] > 0


def main():
    failed = 0
    for checks in (check_rule, check_limits, check_rehearsal):
        with tempfile.TemporaryDirectory() as folder:
            for sentence, holds in checks(pathlib.Path(folder)):
                failed += not holds
                print(f"{'ok  ' if holds else 'FAIL'} {sentence}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
