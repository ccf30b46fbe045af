"""Runs dtrain with command lines, files, limits and environments that are wrong somewhere, and judges how it ends.

    tests/cli/bad_invocations.py DTRAIN [--count N] [--seed S] [--only I] [--jobs J]

Case I of seed S is always the same. Commands and options come from `dtrain help --json`. A case passes if dtrain ends in
time and by no signal, says what is wrong in one line where it fails, and fails where its work is not done. Everything runs in
namespaces of its own: the network is the loopback device alone, /tmp is a private one, and each case is a user of its own
who may write nowhere else.
"""
import argparse
import ctypes
import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from invocation_cases import ASKS, DATA, FIXTURE, NOWHERE, OUTPUTS, TRAIN, Case, Tree

DEADLINE = 90  # seconds, on a busy machine
TESTS = Path(__file__).resolve().parent.parent
FIRST_USER = 200_000  # of the cases; no account has such a number


def make_fixture(dtrain, folder):
    """What the lines above work with, and what is wrong in the ways of files."""
    def run(*words):
        done = subprocess.run([dtrain, *words], cwd=folder, capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 0, (words, done.stderr)

    folder.mkdir()
    run("data", "prepare", "shapes", "--train-count", "60", "--val-count", "20", "--out", "d")
    run("train", *TRAIN.split(), *DATA.split(), "--model-prefix", "m/s")
    run("train", *TRAIN.split(), *DATA.split(), "-n", "2", "--job-dir", "job", "--model-prefix", "m/j")
    golden = TESTS / "unit/data/golden"
    for name, picture in {"a": "grey.jpg", "b": "palette.png"}.items():
        (folder / "pictures" / name).mkdir(parents=True)
        shutil.copy(golden / picture, folder / "pictures" / name)
    subprocess.run(["tar", "-cf", "pictures.tar", "pictures"], cwd=folder, check=True)
    (folder / "hosts").write_text(f"u@{NOWHERE}\n")
    (folder / "empty").touch()
    (folder / "garbage").write_bytes(random.Random(1).randbytes(5000))
    (folder / "secret").touch(mode=0)
    (folder / "secret-folder").mkdir(mode=0)
    (folder / "read-only").mkdir(mode=0o555)
    (folder / "loop").symlink_to("loop")
    (folder / "dangling").symlink_to("nothing")
    with open(folder / "huge", "wb") as huge:
        huge.truncate(1 << 40)


def damage(folder, file, how, where):
    path = folder / file
    if not path.is_file():
        return
    size = path.stat().st_size
    if how in ("cut", "empty"):
        os.truncate(path, int(size * where) if how == "cut" else 0)
    elif how == "flip":
        with open(path, "r+b") as stream:
            stream.seek(int(size * where))
            byte = stream.read(1) or b"\0"
            stream.seek(-len(byte), 1) if byte else None
            stream.write(bytes([byte[0] ^ 0x55]))
    elif how == "closed":
        path.chmod(0)
    else:
        path.unlink()
        if how == "folder":
            path.mkdir()
        if how == "loop":
            path.symlink_to(path.name)


def copy_fixture(folder):
    subprocess.run(["cp", "-a", "--sparse=always", f"{FIXTURE}/.", folder], check=True)


def own(folder, user):
    for place, folders, files in os.walk(folder):
        for name in [".", *folders, *files]:
            os.chown(os.path.join(place, name), user, user, follow_symlinks=False)


def processes_of(user):
    found = []
    for entry in os.scandir("/proc"):
        if entry.name.isdigit():
            try:
                if os.stat(entry.path).st_uid == user and open(entry.path + "/stat", encoding="utf-8").read().split(") ")[-1][0] != "Z":
                    found.append(int(entry.name))
            except OSError:
                pass  # it ended meanwhile
    return found


def end_processes(user):
    """Every process of the case's own user."""
    for _ in range(50):
        left = processes_of(user)
        if not left:
            return
        for process in left:
            try:
                os.kill(process, signal.SIGKILL)
            except ProcessLookupError:
                pass
        time.sleep(0.02)


def run_case(dtrain, case):
    folder = Path(tempfile.mkdtemp(dir="/tmp", prefix="case"))
    user = FIRST_USER + case.number % 100_000
    copy_fixture(folder)
    for file, how, where in case.damages:
        damage(folder, file, how, where)
    if case.toml:
        (folder / "dtrain.toml").write_text(case.toml)
    (folder / "home").mkdir()
    (folder / "tmp").mkdir()
    own(folder, user)
    os.chmod(folder, 0o755)
    nowhere = "http://" + NOWHERE
    environment = {"HOME": str(folder / "home"), "TMPDIR": str(folder / "tmp"), "PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8",
                   "AWS_ENDPOINT_URL": nowhere, "AWS_ACCESS_KEY_ID": "x", "AWS_SECRET_ACCESS_KEY": "x", "AWS_MAX_ATTEMPTS": "1",
                   "AWS_EC2_METADATA_DISABLED": "true", "AWS_EC2_METADATA_SERVICE_ENDPOINT": nowhere, "http_proxy": nowhere,
                   "https_proxy": nowhere, "all_proxy": nowhere}
    environment.update({name: value.replace("\n", " ") for name, value in case.environment.items() if value is not None})
    for name, value in case.environment.items():
        if value is None:
            environment.pop(name, None)

    def become():
        os.setgroups([])
        os.setgid(user)
        os.setuid(user)
        for kind, value in case.limits:
            most = resource.getrlimit(kind)[1]
            lowered = value if most == resource.RLIM_INFINITY else min(value, most)
            resource.setrlimit(kind, (lowered, lowered))
        if case.closed is not None:
            os.close(case.closed)
        if case.deleted:
            os.chdir("gone")
            os.rmdir("../gone")

    if case.deleted:
        (folder / "gone").mkdir()
        os.chown(folder / "gone", user, user)
    words = [os.fsencode(word.replace("\0", "")) for word in case.words]
    begin = time.monotonic()
    process = subprocess.Popen([dtrain, *words], cwd=folder, env=environment, stdin=subprocess.DEVNULL,
                               stdout=open(case.stdout, "wb") if case.stdout else subprocess.PIPE, stderr=subprocess.PIPE,
                               preexec_fn=become, start_new_session=True)
    try:
        answer, text = process.communicate(timeout=DEADLINE)
        code, left = process.returncode, processes_of(user)
    except subprocess.TimeoutExpired:
        code, left = None, []
        end_processes(user)
        answer, text = process.communicate()
    patience = time.monotonic() + DEADLINE
    while left and time.monotonic() < patience:
        time.sleep(0.05)
        left = processes_of(user)
    end_processes(user)
    text, answer = text.decode(errors="replace"), (answer or b"").decode(errors="replace")
    faults = judge(case, code, text, answer, folder)
    if code is not None and left:
        faults.append(f"{len(left)} processes are left")
    subprocess.run(["rm", "-rf", folder], check=False)
    return faults, code, text, time.monotonic() - begin


def without_its_work(case, folder, answer):
    """What a command that succeeded should have left, as far as its words say it."""
    if (ASKS | {"--show-config"}) & set(case.words) or case.deleted or any(name.startswith("DTRAIN_") for name in case.environment) or case.toml:
        return None
    if case.path in OUTPUTS and "--out" in case.words[:-1]:
        out = case.words[len(case.words) - case.words[::-1].index("--out")]
        names = [out, out + "-symbol.json"]
        if not any(out.startswith("--out=") for out in case.words) and not any((folder / name).exists() for name in names):
            return f"{out} is not there"
    if case.path in ("data ls", "inspect", "help", "completion") and not answer and case.stdout is None and case.closed != 1:
        return "no answer"
    return None


def judge(case, code, text, answer, folder):
    faults = []
    if code is None:
        return [f"no end within {DEADLINE} s"]
    if code < 0 or code in (132, 134, 135, 136, 137, 139):
        faults.append(f"ended by signal {-code if code < 0 else code - 128}")
    for sign in ("unexpected:", "terminate called", "Assertion", "(bug)", "runtime error", "what():", "basic_string", "vector::",
                 "Traceback", "stack smashing"):
        if sign in text:
            faults.append(f"stderr has '{sign}'")
    errors = [line for line in text.splitlines() if line.startswith('{"error"') or
              (line.startswith("dtrain: ") and not line.startswith("dtrain: warning:"))]
    if code == 0:
        if case.must_fail():
            faults.append("success with a value or an option that means nothing")
        if errors:
            faults.append("success with an error message")
        if case.stdout and case.path in ("help", "completion", "data ls"):
            faults.append("success although nothing could be answered")
        missing = without_its_work(case, folder, answer)
        if missing:
            faults.append(f"success, but {missing}")
    else:
        by_host = case.path in ("run", "sync") and "dtrain: warning: " in text
        by_loader = code == 127 and "error while loading shared libraries" in text
        explains = errors or answer or "usage: " in text or by_loader or by_host
        if len(errors) > (2 if "-n" in case.words else 1):  # an agent of a job says its own
            faults.append(f"{len(errors)} error messages")
        elif not explains:
            faults.append("failure without an error message")
        elif errors and len(errors[0]) < len("dtrain: x: y"):
            faults.append("an error message that says nothing")
    return faults


def in_namespaces(kept):
    """Only a loopback device, a private /tmp, in which the folders `kept` stay where they are, and processes that end
    with this one; False where that is not allowed."""
    if os.geteuid() != 0:
        return False
    libc = ctypes.CDLL(None, use_errno=True)
    new_mounts, new_net, private, bind = 0x20000, 0x40000000, 0x44000, 0x1000
    if libc.unshare(new_mounts | new_net) != 0 or libc.mount(b"none", b"/", None, private, None) != 0:
        return False
    if subprocess.run(["ip", "link", "set", "lo", "up"], check=False, capture_output=True).returncode != 0:
        return False
    places = {folder: os.open(folder, os.O_PATH) for folder in kept}
    if libc.mount(b"tmpfs", b"/tmp", b"tmpfs", 0, b"mode=1777") != 0:
        return False
    for folder, place in places.items():
        if not folder.is_dir():  # it was below /tmp
            folder.mkdir(parents=True)
            if libc.mount(f"/proc/self/fd/{place}".encode(), bytes(folder), None, bind, None) != 0:
                return False
    return True


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("dtrain")
    parser.add_argument("--count", type=int, default=150)
    parser.add_argument("--seed", default="1")
    parser.add_argument("--only", type=int)
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    dtrain = os.path.realpath(options.dtrain)
    if not in_namespaces([Path(dtrain).parent, TESTS]):
        print("SKIP bad_invocations: needs root, for namespaces and users of its own\n0 passed, 0 failed, 1 skipped")
        return 0
    make_fixture(dtrain, FIXTURE)
    tree = Tree(json.loads(subprocess.run([dtrain, "help", "--json"], capture_output=True, check=True, cwd="/").stdout))
    numbers = range(options.count) if options.only is None else [options.only]
    cases = [Case(tree, options.seed, number) for number in numbers]
    failed, codes, slow = 0, {}, []
    with ThreadPoolExecutor(options.jobs) as pool:
        for case, (faults, code, text, took) in zip(cases, pool.map(lambda case: run_case(dtrain, case), cases)):
            codes[code] = codes.get(code, 0) + 1
            slow.append((took, case.number))
            if options.only is not None:
                print(f"{case.shown()}\nexit code {code}, {took:.1f} s\n{text}")
            if faults:
                failed += 1
                print(f"FAIL bad_invocations: case {case.number} of seed {options.seed}: {'; '.join(faults)}\n    {case.shown()}")
                print("".join(f"    err: {line[:300]}\n" for line in text.splitlines()[-6:]), end="", flush=True)
    print("exit codes: " + ", ".join(f"{code}: {count}" for code, count in sorted(codes.items(), key=str)))
    print("slowest: " + ", ".join(f"case {number} {took:.1f} s" for took, number in sorted(slow, reverse=True)[:5]))
    print(f"{len(cases) - failed} passed, {failed} failed, 0 skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
