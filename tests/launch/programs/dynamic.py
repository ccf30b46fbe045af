"""What MXNet of Dynamic Training does at every epoch, without MXNet: its scheduler compares WORKER_HOST_FILE with the hosts that
it knows, appends those that left to a log beside it, and fails at a new one, which it cannot start. Workers write who they are
to FOLDER/GENERATION-RANK.json and go on until FOLDER/end is there."""

import json
import os
import pathlib
import socket
import sys
import time

folder, host_file = pathlib.Path(sys.argv[1]), pathlib.Path(os.environ["WORKER_HOST_FILE"])
reads = folder / f"scheduler-{os.environ['DTRAIN_GENERATION']}"  # it knows the first hosts


def read() -> set[str]:
    return set(host_file.read_text().splitlines())


def schedule():
    listener = socket.create_server(("", int(os.environ["DMLC_PS_ROOT_PORT"])))
    listener.listen()
    known = read()
    reads.touch()
    while not (folder / "end").exists():
        time.sleep(0.05)
        now = read()
        for sequence, host in enumerate(known - now):
            with open(f"{host_file}_log", "a", encoding="ascii") as log:
                log.write(f"{sequence} REMOVED {host} {time.time_ns()}\n")
        if now - known:
            sys.exit("Check failed: MXNET_LAUNCH_SCRIPT_PATH")
        known = now


def serve():
    while not (folder / "end").exists():
        time.sleep(0.02)


def work():
    while not reads.exists():
        time.sleep(0.02)
    me = {name: int(os.environ[variable]) for name, variable in
          {"generation": "DTRAIN_GENERATION", "rank": "RANK", "failures": "TORCHELASTIC_RESTART_COUNT"}.items()}
    part = folder / f"{me['generation']}-{me['rank']}.part"
    part.write_text(json.dumps(me | {"hosts": sorted(read())}))
    part.rename(part.with_suffix(".json"))
    serve()


if os.environ["DMLC_ROLE"] == "scheduler":
    schedule()
else:
    call = socket.create_connection((os.environ["DMLC_PS_ROOT_URI"], int(os.environ["DMLC_PS_ROOT_PORT"])))
    work() if os.environ["DMLC_ROLE"] == "worker" else serve()
