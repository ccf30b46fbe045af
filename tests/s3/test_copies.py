#!/usr/bin/env python3
"""Files there and back, and archives: data cp and data unpack against moto. test_copies.py DTRAIN"""

import io
import os
import sys
import tarfile

import lib

CONTENT = os.urandom(20 << 20)
ODD_KEYS = ["a=b", "a+b", "a:b", "a*b", "(a)", "it's", "a@b", "é", "a b", "plain/x"]


def copies_a_file_there_and_back(world):
    (world.folder / "a").write_bytes(CONTENT)
    world.run("data", "cp", "a", world.s3("in/"))
    assert world.get("in/a") == CONTENT
    world.run("data", "cp", world.s3("in/a"), "b")
    assert (world.folder / "b").read_bytes() == CONTENT
    assert not world.fragments()
    assert sorted(path.name for path in world.folder.iterdir()) == ["a", "b"]


def copies_keys_of_all_kinds(world):
    for key in ODD_KEYS:
        world.put(key, key.encode())
        world.run("data", "cp", world.s3(key), "got")
        assert (world.folder / "got").read_bytes() == key.encode(), key
        world.run("data", "cp", "got", world.s3("back/" + key))
        assert world.get("back/" + key) == key.encode(), key


def copies_folders_and_leaves_what_is_there(world):
    for name in ("x/a", "x/y/b", "x/c"):
        path = world.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    assert world.json("data", "cp", "-r", "x", world.s3("x"))["files"] == 3
    assert world.keys() == ["x/a", "x/c", "x/y/b"]
    assert world.json("data", "cp", "-r", world.s3("x"), "z")["files"] == 3
    assert (world.folder / "z/y/b").read_text() == "x/y/b"


def refuses_keys_that_would_leave_the_folder(world):
    world.put("in/../../evil", b"x")
    assert "outside of the folder" in world.run("data", "cp", "-r", world.s3("in"), "out", status=1)


def names_what_is_not_there(world):
    error = world.run("data", "cp", "s3://no-such-bucket-at-all/x", "x", status=4)
    assert "s3://no-such-bucket-at-all/x" in error and "NoSuchBucket" in error, error
    assert world.s3("none") in world.run("data", "cp", world.s3("none"), "x", status=4)
    assert sorted(path.name for path in world.folder.iterdir()) == []


def says_where_credentials_and_region_come_from_when_there_are_none(world):
    del world.environment["AWS_ACCESS_KEY_ID"], world.environment["AWS_SECRET_ACCESS_KEY"]
    error = world.run("data", "cp", world.s3("x"), "x", status=2)
    assert "no AWS credentials: tried environment (AWS_ACCESS_KEY_ID is not set)" in error, error
    assert "aws configure" in error, error
    del world.environment["AWS_REGION"], world.environment["AWS_ENDPOINT_URL"]
    assert "set AWS_REGION" in world.run("data", "cp", world.s3("x"), "x", status=2)


def an_upload_that_is_killed_is_gone_on_with(world):
    (world.folder / "a").write_bytes(CONTENT * 4)
    world.kill_underway("data", "cp", "a", world.s3("a"), when=world.fragments)
    assert "a" not in world.keys()
    world.run("data", "cp", "a", world.s3("a"))
    assert world.get("a") == CONTENT * 4
    assert not world.fragments()


def a_download_that_is_killed_is_gone_on_with(world):
    world.put("a", CONTENT * 4)
    noted = world.folder / "a.part.from"
    world.kill_underway("data", "cp", world.s3("a"), "a",
                        when=lambda: noted.exists() and b"1" in noted.read_bytes()[-20:])
    assert not (world.folder / "a").exists()
    world.run("data", "cp", world.s3("a"), "a")
    assert (world.folder / "a").read_bytes() == CONTENT * 4
    assert sorted(path.name for path in world.folder.iterdir()) == ["a"]


def takes_a_role_that_a_profile_names(world):
    (world.folder / "config").write_text(
        "[profile work]\nregion = us-east-1\nrole_arn = arn:aws:iam::123456789012:role/trainer\nsource_profile = own\n"
        "[profile own]\naws_access_key_id = key\naws_secret_access_key = secret\n")
    for name in lib.KEYS.keys() - {"AWS_EC2_METADATA_DISABLED"}:
        del world.environment[name]
    world.environment |= {"AWS_CONFIG_FILE": str(world.folder / "config"), "AWS_PROFILE": "work"}
    world.put("x", b"1")
    world.run("data", "cp", world.s3("x"), "x")


def an_unpacking_that_is_killed_is_gone_on_with(world):
    archive, names = io.BytesIO(), [f"{number:05}" for number in range(20000)]
    with tarfile.open(fileobj=archive, mode="w") as tar:
        for name in names:
            info = tarfile.TarInfo(name)
            info.size = 5000
            tar.addfile(info, io.BytesIO(name.encode() * 1000))
    world.put("t.tar", archive.getvalue())
    world.kill_underway("data", "unpack", world.s3("t.tar"), "--out", "o",
                        when=(world.folder / "o/.dtrain-unpack.json").exists, most=80 << 20)
    assert world.json("data", "unpack", world.s3("t.tar"), "--out", "o")["resumed_at"] > 0
    assert sorted(path.name for path in (world.folder / "o").iterdir()) == names
    assert all((world.folder / "o" / name).read_bytes() == name.encode() * 1000 for name in names)


def unpacks_an_archive_as_it_comes(world):
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for name in ("a/1.jpg", "a/" + "long" * 60 + ".jpg", "b/2.jpg"):
            info = tarfile.TarInfo(name)
            info.size = len(name)
            tar.addfile(info, io.BytesIO(name.encode()))
    world.put("t.tar", archive.getvalue())
    assert world.json("data", "unpack", world.s3("t.tar"), "--out", "o")["files"] == 3
    assert (world.folder / "o/b/2.jpg").read_text() == "b/2.jpg"
    assert not (world.folder / "o/.dtrain-unpack.json").exists()


TESTS = [copies_a_file_there_and_back, copies_keys_of_all_kinds, copies_folders_and_leaves_what_is_there,
         refuses_keys_that_would_leave_the_folder, names_what_is_not_there,
         says_where_credentials_and_region_come_from_when_there_are_none, takes_a_role_that_a_profile_names,
         an_upload_that_is_killed_is_gone_on_with, a_download_that_is_killed_is_gone_on_with,
         an_unpacking_that_is_killed_is_gone_on_with, unpacks_an_archive_as_it_comes]

if __name__ == "__main__":
    sys.exit(0 if lib.run_tests(TESTS, os.path.abspath(sys.argv[1])) else 1)
