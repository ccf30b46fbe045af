"""`cluster plan --forecast`: hours and dollars of a training whose speed was measured, and no guess where none was."""

import json

PLAN = ("plan", "demo", "-w", 1, "--instance-type", "c5.large")


def records(folder, seconds, steps_a_second=1):
    """A job folder in which a training made so many seconds of steps of 64 samples, 100 to an epoch."""
    folder.mkdir()
    (folder / "train.toml").write_text("num-epochs = 9\n")
    lines = [{"time": "2026-01-31T12:00:00Z", "begins": True}]
    lines += [{"time": f"2026-01-31T12:00:{second:02}.500000Z", "epoch": 0, "step": second * steps_a_second, "steps": 100,
               "samples": 64 * steps_a_second, "seconds": 1} for second in range(seconds + 1)]
    (folder / "steps.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return folder


def test_a_plan_says_what_a_training_takes_and_costs(cloud):
    job = records(cloud.folder / "job", 20)
    plan = cloud.json(*PLAN, "--forecast", job)
    told = plan["forecast"]
    assert (told["samples_per_second"], told["epochs"], told["whole"]) == (64, 9, True)
    assert abs(told["hours"] - 0.25) < 1e-6 and abs(told["dollars"] - told["hours"] * plan["dollars_per_hour"]) < 1e-6
    said = cloud.cluster(*PLAN, "--forecast", job).stdout
    assert "the training of 9 epochs takes 15:00 and costs $0.04, at 64 samples a second, as measured for 20.0 s" in said
    assert "forecast" not in cloud.json(*PLAN)
    assert cloud.json(*PLAN, "--forecast", "job")["forecast"]["epochs"] == 9, "named from the current folder"


def test_nothing_is_guessed(cloud):
    short = cloud.cluster(*PLAN, "--forecast", records(cloud.folder / "short", 5), status=2).stderr
    assert "only 5.0 s of a training were recorded" in short and "let it train for a minute" in short
    missing = cloud.cluster(*PLAN, "--forecast", cloud.folder, status=2).stderr
    assert f"{cloud.folder}/steps.jsonl: no such file" in missing and "no step of a training was recorded" in missing
    assert cloud.proxy.calls == []


def test_a_job_folder_without_a_forecast_is_refused(cloud):
    assert "give --forecast too" in cloud.cluster("cost", "demo", "--job-dir", "/x", status=2).stderr
