"""A rank that writes who it is to FOLDER/GENERATION-RANK.json and goes on until FOLDER/end is there.

Each signal that asks it to end is written to FOLDER/signals; `stubborn` goes on after it. `orphan` starts a descendant
in a session of its own, which ignores every such signal; `bare-orphan` one with nothing in its environment. `saves` says
after SIGHUP that its state is saved, `forgets` does nothing then. `unfit` fails on the host w9.
"""

import json
import os
import pathlib
import signal
import sys
import time

folder, wishes = pathlib.Path(sys.argv[1]), sys.argv[2:]
ASKING = (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1, signal.SIGHUP)


def heard(number, _frame):
    with open(folder / "signals", "a", encoding="ascii") as file:
        file.write(f"{os.environ['RANK']} {number}\n")
    if number == signal.SIGHUP and "forgets" in wishes:
        return
    if number == signal.SIGHUP and "saves" in wishes:
        pathlib.Path(os.environ["DTRAIN_SAVED_FILE"]).touch()
        return
    if "stubborn" not in wishes:
        sys.exit(0)


def orphan(environment: dict[str, str]) -> int:
    read, write = os.pipe()
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            for number in ASKING:
                signal.signal(number, signal.SIG_IGN)  # stays so in another program
            os.write(write, str(os.getpid()).encode())
            os.execve("/bin/sleep", ["sleep", "1000"], environment)
        os._exit(0)
    os.wait()
    return int(os.read(read, 32))


def main():
    if "unfit" in wishes and os.environ["DTRAIN_HOST"] == "w9":
        sys.exit("no module named here")
    for number in ASKING:
        signal.signal(number, heard)
    me = {name: int(os.environ[variable]) for name, variable in
          {"generation": "DTRAIN_GENERATION", "rank": "RANK", "world": "WORLD_SIZE", "restart": "DTRAIN_RESTART",
           "failures": "TORCHELASTIC_RESTART_COUNT"}.items()}
    me |= {"pid": os.getpid(), "host": os.environ["DTRAIN_HOST"], "orphans": []}
    if "orphan" in wishes:
        me["orphans"].append(orphan(dict(os.environ)))
    if "bare-orphan" in wishes:
        me["orphans"].append(orphan({}))
    name = f"{me['generation']}-{me['rank']}"
    part = folder / f"{name}.part"
    part.write_text(json.dumps(me))
    part.rename(folder / f"{name}.json")
    while not (folder / "end").exists():
        time.sleep(0.02)


main()
