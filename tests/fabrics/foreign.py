"""Other people's traffic: a TCP stream from one address to another, at a rate or as fast as it goes, until killed."""

import socket
import sys
import time

CHUNK_BYTES = 1 << 17
TIMEOUT_S = 60


def receive(address: str, port: int) -> None:
    with socket.create_server((address, port)) as server:
        print("on", flush=True)
        server.settimeout(TIMEOUT_S)
        stream, _ = server.accept()
        while stream.recv(1 << 20):
            pass


def send(address: str, port: int, bytes_per_s: float) -> None:
    stream = socket.create_connection((address, port), timeout=TIMEOUT_S)
    start, sent, told = time.monotonic(), 0, False
    while True:
        stream.sendall(bytes(CHUNK_BYTES))
        sent += CHUNK_BYTES
        took = time.monotonic() - start
        if took > 0.2 and not told:
            told = True
            print("on", flush=True)
        if bytes_per_s:
            time.sleep(max(0.0, sent / bytes_per_s - took))


if sys.argv[1] == "receive":
    receive(sys.argv[2], int(sys.argv[3]))
else:
    send(sys.argv[2], int(sys.argv[3]), float(sys.argv[4]))
