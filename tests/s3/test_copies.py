#!/usr/bin/env python3
"""Files there and back, and archives: data cp, data unpack and cluster prepare-s3 against moto. test_copies.py DTRAIN"""

import contextlib
import functools
import http.server
import io
import os
import re
import sys
import tarfile
import threading

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


def leaves_the_neighbours_of_a_folder(world):
    for key in ("shapes/a", "shapes2/a", "w/a", "w/a/b"):
        world.put(key, key.encode())
    assert world.json("data", "cp", "-r", world.s3("shapes"), "d")["files"] == 1
    assert "no object is there" in world.run("data", "cp", "-r", world.s3("shape"), "e", status=1)
    assert "cannot be a file and a folder" in world.run("data", "cp", "-r", world.s3("w"), "e", status=1)
    assert not (world.folder / "e").exists()


def replaces_files_and_nothing_else(world):
    world.put("a", b"new")
    os.mkfifo(world.folder / "pipe")
    for target in ("pipe", "/dev/stdout"):
        assert "no regular file" in world.run("data", "cp", world.s3("a"), target, status=2)
    (world.folder / "file").touch(mode=0o600)
    (world.folder / "link").symlink_to("file")
    world.run("data", "cp", world.s3("a"), "link")
    assert (world.folder / "link").is_symlink() and (world.folder / "file").read_bytes() == b"new"
    assert (world.folder / "file").stat().st_mode & 0o777 == 0o600


def names_what_is_not_there(world):
    error = world.run("data", "cp", "s3://no-such-bucket-at-all/x", "x", status=4)
    assert "s3://no-such-bucket-at-all/x" in error and "NoSuchBucket" in error, error
    assert world.s3("none") in world.run("data", "cp", world.s3("none"), "x", status=4)
    assert sorted(path.name for path in world.folder.iterdir()) == []


def takes_a_bucket_for_no_object(world):
    world.put("in/it", b"its")
    (world.folder / "a").write_text("of the user")
    for source in (f"s3://{world.bucket}", world.s3("")):
        error = world.run("data", "cp", source, "a", status=2)
        assert f"{source}: names no object" in error and "--recursive" in error, error
        world.run("data", "cp", source, world.s3("copy"), status=2)
    assert (world.folder / "a").read_text() == "of the user" and world.keys() == ["in/it"], world.keys()


def copies_a_file_whose_name_has_a_question_mark(world):
    (world.folder / "is it?.txt").write_text("yes")
    world.run("data", "cp", "is it?.txt", world.s3("in/"))
    assert world.keys() == ["in/is it?.txt"], world.keys()


def names_no_secret_of_a_url(world):
    error = world.run("data", "cp", "http://user:hunter2@127.0.0.1:1/x?X-Amz-Signature=SECRET", "y", status=4)
    assert "http://127.0.0.1:1/x" in error and "hunter2" not in error and "SECRET" not in error, error


class QuietHandler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


@contextlib.contextmanager
def plain_server(folder):
    """The folder's files over HTTP, whatever user, password and query a URL has: yields HOST:PORT."""
    handler = functools.partial(QuietHandler, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"127.0.0.1:{server.server_address[1]}"
        server.shutdown()


def packed(name):
    """A tar archive of one small file."""
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as tar:
        info = tarfile.TarInfo(name)
        info.size = 1
        tar.addfile(info, io.BytesIO(b"x"))
    return archive.getvalue()


def names_no_secret_of_an_archives_url(world):
    """Neither in answers nor in errors and their hints."""
    refused = {"a.tar.xz": b"\xfd7zXZ\0" + bytes(600), "damaged.tar": b"x" * 1024,
               "damaged.tar.gz": b"\x1f\x8b" + b"x" * 600, "leads-away.tar": packed("../x")}
    for name, content in {"a.tar": packed("a"), "a.zip": b"PK\3\4" + bytes(600), **refused}.items():
        (world.folder / name).write_bytes(content)
    with plain_server(world.folder) as address:
        def url(name):
            return f"http://user:hunter2@{address}/{name}?X-Amz-Signature=SECRET"

        said = {name: world.run("data", "unpack", url(name), "--out", "o", status=1) for name in refused}
        said["a.zip"] = world.run("data", "unpack", url("a.zip"), "--out", "o", status=2)
        said["a.tar"] = world.run("data", "cp", url("a.tar"), "copy", "--json")
        for name, text in said.items():
            assert f"http://{address}/{name}" in text and "hunter2" not in text and "SECRET" not in text, text
        assert "xz -d a.tar.xz" in said["a.tar.xz"], said
        answer = world.json("data", "unpack", url("a.tar"), "--out", "o")
        assert answer["from"] == f"http://{address}/a.tar" and answer["files"] == 1, answer
    assert (world.folder / "copy").read_bytes() == packed("a") and (world.folder / "o/a").read_bytes() == b"x"


def leaves_the_unfinished_upload_of_another_program(world):
    world.client.create_multipart_upload(Bucket=world.bucket, Key="a", ChecksumAlgorithm="CRC32")
    (world.folder / "a").write_bytes(CONTENT)
    world.run("data", "cp", "a", world.s3("a"))
    assert world.get("a") == CONTENT
    assert len(world.fragments()) == 1, world.fragments()


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


def make_sources(world, content):
    """A data folder with what is awkward in it, and two files beside it."""
    long = "photos/" + "/".join(["folder" * 10] * 3) + "/é " + "x" * 90 + ".jpg"
    for name, bytes_ in {"photos/a/1.jpg": content, long: b"long", "photos/empty.txt": b"", "model.npz": b"npz"}.items():
        path = world.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(bytes_)
    (world.folder / "photos/b").mkdir()
    (world.folder / "photos/linked.jpg").symlink_to("a/1.jpg")
    (world.folder / "train.sh").write_text("#!/bin/sh\n")
    (world.folder / "train.sh").chmod(0o755)
    return ["photos/", "model.npz", "train.sh"]


def below(folder):
    """Every path below the folder, with its content; None: a folder."""
    return {str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None for path in folder.rglob("*")}


def a_bundle_unpacks_to_the_same_bytes(world):
    sources = make_sources(world, b"")
    for content in (b"small", CONTENT):  # one request; several parts
        (world.folder / "photos/a/1.jpg").write_bytes(content)
        answer = world.json("cluster", "prepare-s3", *sources, "--to", world.s3("in/bundle.tar"))
        there = world.client.head_object(Bucket=world.bucket, Key="in/bundle.tar")["ContentLength"]
        assert answer["size"] == there and answer["files"] == 6 and answer["read_back"], answer
        assert ("-" in answer["checksum_crc32c"]) == (content == CONTENT), answer
        world.run("data", "unpack", world.s3("in/bundle.tar"), "--out", "out")
        want = below(world.folder / "photos")
        assert below(world.folder / "out/photos") == want and want["b"] is None and len(want) == 9, want
        assert (world.folder / "out/train.sh").read_text() == "#!/bin/sh\n"
        assert sorted(path.name for path in (world.folder / "out").iterdir()) == ["model.npz", "photos", "train.sh"]
    with tarfile.open(fileobj=io.BytesIO(world.get("in/bundle.tar"))) as tar:
        assert tar.getmember("train.sh").mode == 0o755
        assert {member.name for member in tar} == {"photos", "model.npz", "train.sh"} | {f"photos/{name}" for name in want}
    assert not world.fragments()


def a_bundle_that_is_killed_is_gone_on_with(world):
    sources = make_sources(world, CONTENT * 4)

    def parts():
        return [part for upload in world.fragments() for part in world.client.list_parts(
            Bucket=world.bucket, Key=upload["Key"], UploadId=upload["UploadId"]).get("Parts", [])]

    world.kill_underway("cluster", "prepare-s3", *sources, "--to", world.s3("b.tar"), when=parts)
    assert world.keys() == []
    world.run("cluster", "prepare-s3", *sources, "--to", world.s3("b.tar"))
    world.run("data", "unpack", world.s3("b.tar"), "--out", "out")
    assert (world.folder / "out/photos/a/1.jpg").read_bytes() == CONTENT * 4
    assert not world.fragments()


class LyingRoad(lib.NarrowRoad):
    """A road on which the sizes that the server tells become odd."""

    def carry(self, source, target, rate):
        if source.getpeername()[1] != int(self.server[1]):
            super().carry(source, target, rate)
            return
        with contextlib.suppress(OSError):
            while chunk := source.recv(64 << 10):
                target.sendall(re.sub(rb"(?i)(content-length: [1-9]\d*)\d", rb"\g<1>9", chunk))


def a_bundle_that_is_not_what_was_sent_is_seen(world):
    make_sources(world, b"small")
    road = LyingRoad(world.url, 60 << 20)
    world.environment["AWS_ENDPOINT_URL"] = road.url
    assert "is not what was sent" in world.run("cluster", "prepare-s3", "photos", "--to", world.s3("b.tar"), status=1)
    road.close()


def a_bundle_refuses_what_it_could_not_hold(world):
    make_sources(world, b"small")
    to = ["--to", world.s3("b.tar")]
    assert "no such file" in world.run("cluster", "prepare-s3", "photos", "photoes", *to, status=2)
    assert "two sources hold photos" in world.run("cluster", "prepare-s3", "photos", "./photos/../photos", *to, status=2)
    assert "names no object" in world.run("cluster", "prepare-s3", "photos", "--to", world.s3("in/"), status=2)
    (world.folder / "photos/out").symlink_to(world.folder)
    assert "a link to a folder" in world.run("cluster", "prepare-s3", "photos", *to, status=1)
    assert world.keys() == [] and not world.fragments()


TESTS = [copies_a_file_there_and_back, copies_keys_of_all_kinds, copies_folders_and_leaves_what_is_there,
         refuses_keys_that_would_leave_the_folder, leaves_the_neighbours_of_a_folder,
         replaces_files_and_nothing_else, names_what_is_not_there, names_no_secret_of_a_url,
         names_no_secret_of_an_archives_url, copies_a_file_whose_name_has_a_question_mark,
         takes_a_bucket_for_no_object,
         leaves_the_unfinished_upload_of_another_program,
         says_where_credentials_and_region_come_from_when_there_are_none, takes_a_role_that_a_profile_names,
         an_upload_that_is_killed_is_gone_on_with, a_download_that_is_killed_is_gone_on_with,
         an_unpacking_that_is_killed_is_gone_on_with, unpacks_an_archive_as_it_comes,
         a_bundle_unpacks_to_the_same_bytes, a_bundle_that_is_killed_is_gone_on_with,
         a_bundle_that_is_not_what_was_sent_is_seen, a_bundle_refuses_what_it_could_not_hold]

if __name__ == "__main__":
    sys.exit(0 if lib.run_tests(TESTS, os.path.abspath(sys.argv[1])) else 1)
