#!/usr/bin/env python3
"""What a membership change costs with torchrun: every worker is killed and started again, and reads a checkpoint.

Without arguments it is the driver: it starts torchrun with two workers, kills one with SIGKILL, and prints one JSON line:
the seconds from the kill to the first step after it, without that step. The model has as many parameters as ResNet-50, and
its state (with momentum) is saved once before the kill, so the restarted workers have it all to read.
"""
import json
import os
import pathlib
import signal
import statistics
import subprocess
import sys
import tempfile
import time

PARAMETERS = 25_557_032  # of ResNet-50


def work(folder: pathlib.Path) -> None:
    import torch
    import torch.distributed as dist

    torch.set_num_threads(1)
    # A store of its own for every restart: with torchrun's own one the restarted workers may find addresses of the dead.
    store = dist.FileStore(str(folder / f"store{os.environ['TORCHELASTIC_RESTART_COUNT']}"), 2)
    dist.init_process_group("gloo", store=store, rank=int(os.environ["RANK"]), world_size=2)
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(PARAMETERS // 1000, 1000, bias=False))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-6, momentum=0.9)
    saved = folder / "state.pt"
    if saved.exists():
        state = torch.load(saved, weights_only=True)
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
    inputs = torch.randn(4, PARAMETERS // 1000)
    rank = dist.get_rank()
    (folder / f"pid{rank}").write_text(str(os.getpid()))
    step = 0
    while True:
        begin = time.monotonic()
        optimizer.zero_grad()
        model(inputs).square().mean().backward()
        optimizer.step()
        step += 1
        if rank == 0:
            with open(folder / "steps", "a", encoding="ascii") as file:
                file.write(f"{time.monotonic()} {time.monotonic() - begin}\n")
            if step == 5 and not saved.exists():
                torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, folder / "part.pt")
                (folder / "part.pt").rename(saved)


def steps(folder: pathlib.Path) -> list[tuple[float, float]]:
    path = folder / "steps"
    if not path.exists():
        return []
    rows = [line.split() for line in path.read_text().splitlines() if line.count(" ") == 1]
    return [(float(when), float(took)) for when, took in rows]


def wait(condition, seconds: float = 300) -> None:
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            sys.exit("torchrun did not get so far")
        time.sleep(0.02)


def drive() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node=2", "--max-restarts=3",
                   "--monitor-interval=0.1", "--standalone", __file__, name]
        with subprocess.Popen(command, stderr=subprocess.DEVNULL, start_new_session=True) as process:
            try:
                wait(lambda: (folder / "state.pt").exists() and len(steps(folder)) > 10)
                usual = statistics.median(took for _, took in steps(folder))
                killed = time.monotonic()
                os.kill(int((folder / "pid1").read_text()), signal.SIGKILL)
                # A step that was under way ends soon after the kill; the first one of the new workers comes seconds later.
                wait(lambda: [when for when, _ in steps(folder) if when > killed + 2 * usual + 0.5])
                after = min(when for when, _ in steps(folder) if when > killed + 2 * usual + 0.5)
                print(json.dumps({"who": "torchrun", "step_seconds": usual, "kill_pause_seconds": after - killed - usual}))
            finally:
                process.terminate()  # torchrun ends its workers, which have sessions of their own
                try:
                    process.wait(20)
                except subprocess.TimeoutExpired:
                    process.kill()


if __name__ == "__main__":
    if len(sys.argv) > 1:
        work(pathlib.Path(sys.argv[1]))
    else:
        drive()
