"""meet.py FOLDER: a rank of `dtrain launch --framework horovod`. Rank 0 serves a store at the port that PyTorch would take.
Once FOLDER/go is there, each rank asks that store, and leaves a word at the rendezvous of Horovod."""

import os
import pathlib
import socket
import socketserver
import sys
import threading
import time
import urllib.request

folder, rank = pathlib.Path(sys.argv[1]), int(os.environ["RANK"])
place = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])


class Store(socketserver.BaseRequestHandler):
    def handle(self):
        if self.request.recv(100) == b"hello":  # PyTorch's hangs up on other words too
            self.request.sendall(b"HELLO")


class Server(socketserver.ThreadingTCPServer):
    allow_reuse_address, daemon_threads, request_queue_size = True, True, 1024


if rank == 0:
    threading.Thread(target=Server(place, Store).serve_forever, daemon=True).start()
(folder / f"rank{rank}").touch()
while not (folder / "go").exists():
    time.sleep(0.05)
with socket.create_connection(place, 60) as store:
    store.sendall(b"hello")
    assert store.recv(100) == b"HELLO"
scope = f"http://{os.environ['HOROVOD_GLOO_RENDEZVOUS_ADDR']}:{os.environ['HOROVOD_GLOO_RENDEZVOUS_PORT']}/words/"
urllib.request.urlopen(urllib.request.Request(f"{scope}{rank}", method="PUT", data=b"here"), timeout=60).close()
with urllib.request.urlopen(f"{scope}{rank}", timeout=60) as answer:
    assert answer.read() == b"here"
(folder / f"met{rank}").touch()
while rank == 0 and not (folder / "met1").exists():  # it serves the other one
    time.sleep(0.05)
