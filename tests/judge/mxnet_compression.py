"""MXNet 1.9.1 judges --gradient-compression 2bit: the same gradients, step after step, are sent as the same values.

MXNet's worker quantises and its server, a process of its own, gets what was sent; nothing travels but on this machine.
"""

import os
import pathlib
import socket
import subprocess
import sys

import numpy as np

STEPS, SIZE = 40, 1003
THRESHOLDS = (0.5, 0.25, 0.1)


def gradients() -> np.ndarray:
    drawn = np.random.default_rng(5).normal(size=(STEPS, SIZE)).astype(np.float32)
    drawn[:, 0] = 0.25  # reaches the border itself
    drawn[:, 1] = -0.25
    drawn[:, 2] = 3  # more in each step than a step can send
    drawn[:, 3] = 1e-3
    return drawn


def worker(threshold: float) -> None:
    """In a process of MXNet's: writes what the server has after each step."""
    from _mxnet import mxnet as mx

    store = mx.kv.create("dist_sync")
    store.set_gradient_compression({"type": "2bit", "threshold": threshold})
    store.init("weights", mx.nd.zeros(SIZE))
    received = mx.nd.zeros(SIZE)
    for gradient in gradients():
        store.push("weights", mx.nd.array(gradient))
        store.pull("weights", out=received)
        sys.stdout.buffer.write(received.asnumpy().astype(np.float32).tobytes())


def sent_by_mxnet(threshold: float) -> np.ndarray:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    environment = os.environ | {"DMLC_PS_ROOT_URI": "127.0.0.1", "DMLC_PS_ROOT_PORT": str(port), "DMLC_NUM_WORKER": "1",
                                "DMLC_NUM_SERVER": "1", "DMLC_INTERFACE": "lo", "OMP_NUM_THREADS": "1"}
    words = [sys.executable, __file__, "worker", str(threshold)]
    others = [subprocess.Popen(words, env=environment | {"DMLC_ROLE": role}) for role in ("scheduler", "server")]
    try:
        answer = subprocess.run(words, env=environment | {"DMLC_ROLE": "worker"}, check=True, stdout=subprocess.PIPE, timeout=900)
    finally:
        for process in others:
            process.kill()
            process.wait()
    return np.frombuffer(answer.stdout, np.float32).reshape(STEPS, SIZE)


def sent_by_dtrain(threshold: float) -> np.ndarray:
    program = pathlib.Path(os.environ["DTRAIN"]).parent / "tests" / "dtrain_dump_quantised"
    answer = subprocess.run([program, str(threshold), str(SIZE)], input=gradients().tobytes(), check=True, stdout=subprocess.PIPE)
    return np.frombuffer(answer.stdout, np.float32).reshape(STEPS, SIZE)


def main() -> None:
    try:
        from _mxnet import mxnet  # noqa: F401  (whether it is here)
    except ImportError as missing:
        print(f"no MXNet here: {missing}")
        raise SystemExit(77) from missing
    for threshold in THRESHOLDS:
        theirs, ours = sent_by_mxnet(threshold), sent_by_dtrain(threshold)
        other = np.argwhere(theirs != ours)
        if other.size:
            step, place = other[0]
            raise SystemExit(f"threshold {threshold}: {len(other)} values differ, first in step {step} at {place}: "
                             f"MXNet sends {theirs[step, place]}, dtrain {ours[step, place]}")
        print(f"threshold {threshold}: {np.count_nonzero(ours)} of {ours.size} values sent, all as MXNet")


if __name__ == "__main__":
    if sys.argv[1:2] == ["worker"]:
        worker(float(sys.argv[2]))
    else:
        main()
