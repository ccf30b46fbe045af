"""A script in the manner of TensorFlow 1: --job_name, --task_index, --ps_hosts and --worker_hosts say who it is.

A parameter server listens at its own address, adds what workers push, and never ends by itself. Workers push to all servers
and wait until each holds the pushes of all workers; worker 0 also listens, and every other worker reports to it.
"""

import argparse
import os
import socket
import socketserver
import threading
import time

parser = argparse.ArgumentParser()
for name in ("job_name", "ps_hosts", "worker_hosts"):
    parser.add_argument(f"--{name}", required=True)
parser.add_argument("--task_index", type=int, required=True)
me = parser.parse_args()
servers, workers = me.ps_hosts.split(","), me.worker_hosts.split(",")
held: list[int] = []


class Answer(socketserver.StreamRequestHandler):
    def handle(self):
        word = self.rfile.readline().split()
        if word[0] == b"push":
            held.append(int(word[1]))
        self.wfile.write(b"%d %d\n" % (len(held), sum(held)))


class Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True


def listen(address: str) -> Server:
    host, _, port = address.rpartition(":")
    return Server((host, int(port)), Answer)


def ask(address: str, text: str) -> list[int]:
    host, _, port = address.rpartition(":")
    while True:
        try:
            with socket.create_connection((host, int(port)), 10) as connection:
                connection.sendall(text.encode() + b"\n")
                return [int(word) for word in connection.makefile().readline().split()]
        except ConnectionRefusedError:
            time.sleep(0.05)


def wait_for(address: str, count: int) -> int:
    while (answer := ask(address, "look"))[0] < count:
        time.sleep(0.05)
    return answer[1]


if me.job_name == "ps":
    print(f"ps {me.task_index} listens, GPUs '{os.environ.get('CUDA_VISIBLE_DEVICES')}'", flush=True)
    listen(servers[me.task_index]).serve_forever()
own = listen(workers[me.task_index])
threading.Thread(target=own.serve_forever, daemon=True).start()
for server in servers:
    ask(server, f"push {10 ** me.task_index}")
sums = [wait_for(server, len(workers)) for server in servers]
ask(workers[0], f"push {me.task_index}")
wait_for(workers[0], len(workers))
print(f"worker {me.task_index} has {sums}, GPUs '{os.environ.get('CUDA_VISIBLE_DEVICES')}'", flush=True)
if me.task_index == 0:
    time.sleep(0.5)  # the others look once more
