#!/usr/bin/env python3
"""Data and checkpoints of training runs behind s3://, against moto. test_training.py DTRAIN"""

import json
import os
import subprocess
import sys

import lib

# Small, and the same bits wherever the data and the checkpoints are.
WORDS = ["train", "--network", "mlp", "--image-shape", "3,28,28", "--batch-size", "32", "--threads", "1", "--lr", "0.0001"]
COMMAND_OF_KEYS = '{"Version": 1, "AccessKeyId": "key", "SecretAccessKey": "secret"}'


def make_shapes(world, *words):
    world.run("data", "prepare", "shapes", "--out", *(words or ["d"]), "--train-count", 256, "--val-count", 64)


def near(world, epochs=1, prefix="near"):
    world.run(*WORDS, "--data-train", "d/shapes_train.rec", "--data-val", "d/shapes_val.rec", "--num-epochs", epochs,
              "--model-prefix", prefix)
    return world.json("inspect", prefix)["state_sha256"]


def far_words(world):
    return [*WORDS, "--data-train", world.s3("d/shapes_train.rec"), "--data-val", world.s3("d/shapes_val.rec"),
            "--cache-dir", "c"]


def gives_the_same_bits_from_a_bucket_and_to_one(world):
    make_shapes(world)
    world.run("data", "cp", "-r", "d", world.s3("d"))
    world.run(*far_words(world), "--num-epochs", 1, "--model-prefix", world.s3("m/far"))
    assert [key for key in world.keys() if key.startswith("m/")] == ["m/far-0001.json", "m/far-0001.safetensors"]
    assert world.json("inspect", world.s3("m/far"))["state_sha256"] == near(world)
    assert list((world.folder / "c").rglob("0")), "nothing was cached"
    assert not (world.folder / "s3:").exists()


def goes_on_from_a_bucket(world):
    make_shapes(world)
    make_shapes(world, world.s3("d"))
    for epochs in (1, 2):
        world.run(*far_words(world), "--num-epochs", epochs, "--model-prefix", world.s3("m/r"), "--resume")
    assert world.json("inspect", world.s3("m/r"))["state_sha256"] == near(world, epochs=2)
    world.run(*far_words(world), "--num-epochs", 2, "--model-prefix", world.s3("m/r"), "--load-epoch", 1, "--force")
    error = world.run(*far_words(world), "--num-epochs", 9, "--model-prefix", world.s3("m/r"), "--load-epoch", 7, status=1)
    assert "m/r-0007.json: there is no such checkpoint" in error and "the newest is " + world.s3("m/r-0002") in error, error


def evaluates_and_exports_there(world):
    make_shapes(world, world.s3("d"))
    world.run(*far_words(world), "--num-epochs", 1, "--model-prefix", world.s3("m/e"), "--checkpoint-format", "mxnet")
    assert {"m/e-symbol.json", "m/e-0001.params", "m/e-0001.safetensors"} <= set(world.keys())
    assert world.json("eval", world.s3("m/e"), "--data-val", world.s3("d/shapes_val.rec"))["samples"] == 64
    world.run("export", world.s3("m/e"), "--to", "onnx", "--out", world.s3("x/e.onnx"))
    world.run("export", world.s3("m/e"), "--to", "onnx", "--out", "e.onnx")
    for name in ("m/e-0001.json", "m/e-0001.safetensors"):
        world.delete(name)
    assert world.json("eval", world.s3("m/e"), "--load-epoch", 1, "--image-shape", "3,28,28", "--data-val",
                      world.s3("d/shapes_val.rec"))["samples"] == 64
    assert world.get("x/e.onnx") == (world.folder / "e.onnx").read_bytes()


def exports_over_nothing_but_earlier_exports(world):
    make_shapes(world, world.s3("d"))
    world.run(*far_words(world), "--num-epochs", 1, "--model-prefix", world.s3("m/e"))
    kept = {key: world.get(key) for key in ("d/shapes_val.rec", "m/e-0001.safetensors")}
    export = ["export", world.s3("m/e"), "--to", "safetensors", "--out"]
    error = world.run(*export, world.s3("d/shapes_val.rec"), status=2)
    assert world.s3("d/shapes_val.rec") + ": is there already and is no earlier export" in error, error
    for words in ([], ["--force"]):
        error = world.run(*export, world.s3("m/e-0001.safetensors"), *words, status=2)
        assert "is a file of a checkpoint" in error, error
    assert kept == {key: world.get(key) for key in kept}
    for _ in range(2):
        world.run(*export, world.s3("x/e.safetensors"))
    world.put("x/e.safetensors", b"notes")
    world.run(*export, world.s3("x/e.safetensors"), "--force")
    assert world.get("x/e.safetensors") != b"notes"


def replaces_a_prepared_set_only_by_force(world):
    words = ["data", "prepare", "shapes-detection", "--train-count", 12, "--val-count", 6, "--out", world.s3("d")]
    train = "d/shapes-detection_train"
    others = {f"{train}_old.rec", "d/old/shapes-detection_train_7.rec", "d/shapes_train_7.rec"}
    for key in others:
        world.put(key, b"x")
    world.run(*words, "--shards", 3)
    before = world.get(f"{train}_0.rec")
    world.run(*words, "--shards", 3)
    error = world.run(*words, "--shards", 2, status=2)
    assert f"{world.s3(train)}_2.rec: is there already, of an earlier set" in error, error
    error = world.run(*words, "--shards", 3, "--seed", 2, status=2)
    assert ".rec: is there already and holds other records" in error and "--force" in error, error
    assert world.get(f"{train}_0.rec") == before
    world.run(*words, "--shards", 2, "--seed", 2, "--force")
    keys = set(world.keys())
    assert world.get(f"{train}_0.rec") != before and others < keys, keys
    assert f"{train}_1.rec" in keys and not [key for key in keys if "_2." in key], keys
    world.run(*words, "--force")
    assert not [key for key in world.keys() if key.startswith(f"{train}_1.")], world.keys()


def names_pictures_there(world):
    for first, name in enumerate(("circle", "square")):
        folder = world.folder / "photos" / name
        folder.mkdir(parents=True)
        for number in range(3):
            world.run("data", "prepare", "shapes", "--out", "d", "--train-count", 8, "--val-count", 8, "--force", "--seed", 3 * first + number)
            world.run("data", "show", "d/shapes_val.rec", "--out", folder / f"{number}.png", "--count", 4)
    world.run("data", "pack", "photos", "--train-ratio", "1", "--out", "p/p")
    world.run("data", "cp", "-r", "p", world.s3("p"))
    world.run("data", "cp", "-r", "photos", world.s3("photos"))
    words = ["train", "--network", "mlp", "--image-shape", "3,28,28", "--num-classes", 2, "--batch-size", 4, "--lr", "0.0001",
             "--cache-dir", "c", "--num-epochs", 1]
    world.run(*words, "--data-train", world.s3("p/p.rec"), "--model-prefix", "m/p")
    assert world.json("inspect", "m/p")["preprocessing"]["classes"] == ["circle", "square"], "no names from the bucket"
    near_answers = world.run("predict", "m/p", "photos", "--csv")
    for folder in (world.s3("photos/"), world.s3("photos")):
        far_answers = world.run("predict", "m/p", folder, "--csv")
        assert far_answers.replace(world.s3("photos"), "photos") == near_answers, far_answers
    one = world.run("predict", "m/p", world.s3("photos/circle/1.png"), world.s3("photos/*/2.png"), "--csv", "--out-dir", "sorted")
    assert len(one.splitlines()) == 4 and len(list((world.folder / "sorted").rglob("*.png"))) == 3, one
    assert "photos/none.png: is not there" in world.run("predict", "m/p", world.s3("photos/none.png"), status=1)
    (world.folder / "p/p.pack.json").write_text('{"classes": ["circle", "star"]}')
    error = world.run("eval", "m/p", "--data-val", "p/p.rec", status=1)
    assert 'class 1 is "star", but in the checkpoint it is "square"' in error, error


def takes_sets_of_several_objects(world):
    make_shapes(world)
    for number in range(2):
        for ending in ("rec", "idx"):
            world.run("data", "cp", f"d/shapes_train.{ending}", world.s3(f"d/p_{number}.{ending}"))
    for spec in ("d/p", "d/p_*.rec", "d/p_*", f"d/p_0.rec,{world.s3('d/p_1.rec')}"):
        out = world.run(*WORDS, "--data-train", world.s3(spec), "--num-epochs", 1, "--json", "--cache-dir", "c")
        assert '"samples_seen":512' in out, (spec, out)
    world.client.delete_object(Bucket=world.bucket, Key="d/p_0.rec")
    assert "p_0.rec is not there" in world.run(*WORDS, "--data-train", world.s3("d/p"), status=1)
    assert "no object has such a name" in world.run(*WORDS, "--data-train", world.s3("d/q*.rec"), status=1)


def says_at_the_start_that_checkpoints_cannot_be_kept(world):
    make_shapes(world)
    error = world.run(*WORDS, "--data-train", "d/shapes_train.rec", "--model-prefix", "s3://no-such-bucket/m/x", status=4)
    assert "s3://no-such-bucket/" in error and "NoSuchBucket" in error, error
    world.client.put_bucket_policy(Bucket=world.bucket, Policy=json.dumps({"Version": "2012-10-17", "Statement": [
        {"Effect": "Deny", "Principal": "*", "Action": "s3:PutObject", "Resource": f"arn:aws:s3:::{world.bucket}/*"}]}))
    error = world.run(*WORDS, "--data-train", "d/shapes_train.rec", "--model-prefix", world.s3("m/x"), status=4)
    assert world.s3("m/x.trial") in error and "permission, status 403" in error, error


def two_processes_share_a_cache(world):
    make_shapes(world, world.s3("d"))
    prefixes = [world.s3("m/a"), world.s3("m/b")]
    runs = [world.start(*far_words(world), "--num-epochs", 1, "--model-prefix", prefix) for prefix in prefixes]
    for run in runs:
        error = run.communicate(timeout=lib.PATIENCE * 5)[1]
        assert run.returncode == 0, error
    assert len({world.json("inspect", prefix)["state_sha256"] for prefix in prefixes}) == 1
    names = [path.name for path in (world.folder / "c").rglob("*") if path.is_file()]
    assert all(name == "lock" or name.isdigit() for name in names), names


def goes_on_when_the_disk_of_the_cache_is_full(world):
    make_shapes(world, world.s3("d"))
    small = world.folder / "small"
    small.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "none", small], check=False, capture_output=True).returncode:
        print("SKIPPED LOUDLY: no right to mount a small disk")
        return
    try:
        words = far_words(world)[:-1] + [small]
        process = world.start(*words, "--num-epochs", 1, "--model-prefix", "m")
        error = process.communicate(timeout=lib.PATIENCE * 5)[1]
        assert process.returncode == 0, error
        assert error.count("cannot be written to (No space left on device); going on without it") == 1, error
    finally:
        subprocess.run(["umount", small], check=True)


def reads_labels_through_the_chosen_cache(world):
    make_shapes(world, world.s3("d"))
    world.run(*far_words(world), "--num-epochs", 0, "--class-weights", "balanced")
    assert list((world.folder / "c").rglob("0")), "nothing was cached"
    assert not list((world.folder / "cache").rglob("blocks-1")), "another cache than the chosen one was used"


def a_job_lends_its_workers_what_only_its_coordinator_may_ask_for(world):
    make_shapes(world, world.s3("d"))
    asked = world.folder / "asked"
    (world.folder / "config").write_text(
        f"[default]\ncredential_process = echo $PPID >>{asked}; echo '{COMMAND_OF_KEYS}'\nregion = us-east-1\n")
    for name in lib.KEYS.keys() - {"AWS_EC2_METADATA_DISABLED"}:
        del world.environment[name]
    world.environment["AWS_CONFIG_FILE"] = str(world.folder / "config")
    world.run(*far_words(world), "--num-epochs", 1, "--model-prefix", world.s3("m/j"), "-n", 2, "--job-dir", "job",
              "--launcher", "local", "--elastic")
    askers = set(asked.read_text().split())
    assert len(askers) == 1, f"workers asked too: {askers}"
    assert world.json("inspect", world.s3("m/j"))["samples_seen"] == 256
    kept = [path for path in (world.folder / "job").rglob("*") if path.is_file() and "secret" in path.read_text("latin-1")]
    assert not kept, f"the secret is in {kept}"


TESTS = [gives_the_same_bits_from_a_bucket_and_to_one, goes_on_from_a_bucket, evaluates_and_exports_there,
         exports_over_nothing_but_earlier_exports, replaces_a_prepared_set_only_by_force,
         names_pictures_there, takes_sets_of_several_objects, says_at_the_start_that_checkpoints_cannot_be_kept, two_processes_share_a_cache,
         goes_on_when_the_disk_of_the_cache_is_full, reads_labels_through_the_chosen_cache,
         a_job_lends_its_workers_what_only_its_coordinator_may_ask_for]

if __name__ == "__main__":
    sys.exit(0 if lib.run_tests(TESTS, os.path.abspath(sys.argv[1])) else 1)
