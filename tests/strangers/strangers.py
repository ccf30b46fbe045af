"""Those who are no members of a job: one who listens on the wire, one who stands between two parties, a crowd at the
ports, and another user of a machine."""

from __future__ import annotations

import collections
import contextlib
import pathlib
import socket
import struct
import subprocess
import sys
import threading
import zlib

from lab import Host

HERE = pathlib.Path(__file__).resolve().parent
MOST_RECORDED = 64 << 20
OTHER_USER = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")  # nobody
CROWD = (HERE / "crowd.py").read_text()  # machines of the lab do not see this folder


class Recording:
    """The bytes that TCP connections carry through the cable of a machine, by (address, port) of both ends."""

    def __init__(self, host: Host):
        self.streams: dict[tuple, bytearray] = collections.defaultdict(bytearray)
        self.socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(0x0003))
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 32 << 20)
        self.socket.bind((host.link, 0))
        self.socket.settimeout(0.2)
        self.over = False
        self.thread = threading.Thread(target=self.record)

    def __enter__(self) -> Recording:
        self.thread.start()
        return self

    def __exit__(self, *_) -> None:
        self.over = True
        self.thread.join()
        self.socket.close()

    def record(self) -> None:
        size = 0
        while not self.over and size < MOST_RECORDED:
            try:
                packet = self.socket.recv(1 << 17)
            except TimeoutError:
                continue
            if packet[12:14] != b"\x08\x00" or packet[23] != socket.IPPROTO_TCP:
                continue
            ip = packet[14:14 + struct.unpack("!H", packet[16:18])[0]]
            tcp = ip[(ip[0] & 15) * 4:]
            source, target = struct.unpack("!HH", tcp[:4])
            payload = tcp[(tcp[12] >> 4) * 4:]
            self.streams[(socket.inet_ntoa(ip[12:16]), source), (socket.inet_ntoa(ip[16:20]), target)] += payload
            size += len(payload)

    def everything(self) -> bytes:
        return b"".join(self.streams.values())

    def largest(self) -> bytes:
        """What one connection carried in one direction: the gradients."""
        return bytes(max(self.streams.values(), key=len))


def share_left_by_zlib(content: bytes) -> float:
    return len(zlib.compress(content[:4 << 20])) / len(content[:4 << 20])


class Relay:
    """Passes the bytes of each connection on to `behind`. change(bytes so far, piece) may change what clients send."""

    def __init__(self, behind: tuple[str, int], address: str):
        self.behind, self.listener = behind, socket.create_server((address, 0))
        self.change = lambda before, piece: piece
        self.sent = b""  # by the latest client
        threading.Thread(target=self.serve, daemon=True).start()

    @property
    def port(self) -> int:
        return self.listener.getsockname()[1]

    def serve(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self.listener.accept()
                server = socket.create_connection(self.behind)
                self.sent = b""
                threading.Thread(target=self.carry, args=(client, server, True), daemon=True).start()
                threading.Thread(target=self.carry, args=(server, client, False), daemon=True).start()

    def carry(self, source: socket.socket, target: socket.socket, from_client: bool) -> None:
        with contextlib.suppress(OSError):
            while piece := source.recv(1 << 16):
                if from_client:
                    self.sent, piece = self.sent + piece, self.change(len(self.sent), piece)
                target.sendall(piece)
        for one in (source, target):
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self.listener.close()


@contextlib.contextmanager
def crowd(host: Host, places: list[tuple[str, int]], count: int):
    """A process on that machine holds `count` connections to each place, and opens again what is closed."""
    words = [f"{address}:{port}" for address, port in places]
    process = subprocess.Popen(host.command([sys.executable, "-c", CROWD, count, *words], pathlib.Path("/")),
                               env=host.environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout.readline() == "all are open\n", "the crowd could not connect"
        yield process
    finally:
        process.stdin.close()
        process.wait()


def as_other_user(host: Host, *command, timeout: float = 60) -> subprocess.CompletedProcess:
    """The command as user nobody of that machine."""
    return subprocess.run(host.command([*OTHER_USER, *command]), env=host.environment(), timeout=timeout, check=False,
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="backslashreplace")
