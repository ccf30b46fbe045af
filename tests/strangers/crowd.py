"""crowd.py COUNT ADDRESS:PORT...: holds COUNT connections to each place until its input ends. A third of them says nothing,
a third begins a TLS handshake and stops, and a third sends a byte of one now and then. A connection that is closed is
opened again, so many a second."""

import os
import resource
import select
import socket
import sys
import threading
import time

HELLO = bytes.fromhex("1603010200010001fc0303") + bytes(range(64))  # the beginning of a handshake
REOPENED_PER_SECOND = 20  # for each place


def call(place: tuple[str, int], number: int) -> socket.socket:
    one = socket.create_connection(place, 30)
    one.settimeout(0)
    if number % 3 == 1:
        one.send(HELLO)
    return one


def is_closed(one: socket.socket) -> bool:
    try:
        return one.recv(1 << 12) == b""
    except BlockingIOError:
        return False
    except OSError:
        return True


def hold(place: tuple[str, int], connections: list) -> None:
    turn = 0
    while True:
        time.sleep(1 / REOPENED_PER_SECOND)
        for number in range(turn, len(connections), REOPENED_PER_SECOND):
            try:
                if is_closed(connections[number]):
                    connections[number].close()
                    connections[number] = call(place, number)
                    break
                if number % 3 == 2:
                    connections[number].send(HELLO[number % len(HELLO):][:1])
            except OSError:
                continue
        turn = (turn + 1) % REOPENED_PER_SECOND


def main() -> None:
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    count = int(sys.argv[1])
    places = [(word.rpartition(":")[0], int(word.rpartition(":")[2])) for word in sys.argv[2:]]
    for place in places:
        connections = [call(place, number) for number in range(count)]
        threading.Thread(target=hold, args=(place, connections), daemon=True).start()
    print("all are open", flush=True)
    select.select([sys.stdin], [], [])
    os._exit(0)


main()
