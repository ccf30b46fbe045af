"""Rank 0 binds the ports that the environment names as its own, every rank its TensorFlow port; all keep them until
FOLDER/end is there."""

import json
import os
import pathlib
import socket
import sys
import time

folder = pathlib.Path(sys.argv[1])
rank = int(os.environ["RANK"])
addresses = [json.loads(os.environ["TF_CONFIG"])["cluster"]["worker"][rank]]
if rank == 0:
    addresses += [f"{os.environ['MASTER_ADDR']}:{os.environ['MASTER_PORT']}", os.environ["JAX_COORDINATOR_ADDRESS"]]
held = []
for address in addresses:
    host, _, port = address.rpartition(":")
    held.append(socket.create_server((host, int(port))))
(folder / f"{os.environ['DTRAIN_JOB']}-{rank}").write_text("\n".join(addresses))
while not (folder / "end").exists():
    time.sleep(0.05)
