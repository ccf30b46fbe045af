"""Writes its arguments and environment, byte for byte, to FOLDER/ROLE-RANK.json; in the other words {rank} and so on may
stand, so the file is named after what the environment says. Workers wait until servers told too: who is alone then is
asked to end. Where FOLDER/mxnet is there, workers call MXNet's scheduler and wait for it too."""

import json
import os
import pathlib
import socket
import sys
import time

folder = pathlib.Path(sys.argv[1])
me = {"words": [os.fsencode(word).hex() for word in sys.argv[2:]],
      "environment": {name.hex(): value.hex() for name, value in os.environb.items()}, "folder": os.getcwd()}
name = f"{os.environ['DTRAIN_ROLE']}-{os.environ['DTRAIN_TASK_INDEX']}"
(folder / f"{name}.part").write_text(json.dumps(me))
(folder / f"{name}.part").rename(folder / f"{name}.json")

if os.environ["DTRAIN_ROLE"] == "worker":
    servers = len(json.loads(os.environ["TF_CONFIG"])["cluster"].get("ps", []))
    schedulers = 1 if (folder / "mxnet").exists() else 0
    if schedulers:
        call = socket.create_connection((os.environ["DMLC_PS_ROOT_URI"], int(os.environ["DMLC_PS_ROOT_PORT"])))
    while len(list(folder.glob("ps-*.json"))) < servers or len(list(folder.glob("scheduler-*.json"))) < schedulers:
        time.sleep(0.01)
