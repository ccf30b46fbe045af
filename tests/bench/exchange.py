#!/usr/bin/env python3
"""Compares simulated exchanges of gradients with real ones between network namespaces whose links tc shapes.

usage: exchange.py [--peers|--flows] DTRAIN EXCHANGE_BENCH [RANKS[/RANKS_PER_HOST]:RATE[/FLOW]:MEGABYTES ...]

A host is a namespace with a veth pair to one bridge; a token bucket (tbf) limits both directions. A rank is a process
on a host of its own, or several share one. Prints a table in Markdown: the real time, the simulated one, and the error of the simulation.
With --peers it compares the real time with those of Gloo's and Open MPI's algorithms on the same links instead.
With --flows it compares numbers of connections from a rank to a rank; FLOW limits what each of them sends.
Needs root, or the right to make namespaces. Everything lives in namespaces of this run and ends with it.
"""

from __future__ import annotations

import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import open_mpi  # noqa: E402

# Slow enough that links are the limit and not two cores.
CASES = {"simulation": ("2:500mbit:50", "2:100mbit:10", "3:100mbit:10", "4:100mbit:10", "4:50mbit:20", "8:25mbit:2.5",
                        "8:50mbit:5", "8:50mbit:20", "12:25mbit:2.5", "16:25mbit:2.5", "16:20mbit:6", "8/2:50mbit:5",
                        "12/4:25mbit:5"),
         "peers": ("8:50mbit:5", "16:25mbit:5", "8/2:50mbit:5", "16/4:25mbit:5"),
         "flows": ("2:200mbit/50mbit:10", "2:200mbit:10", "4:100mbit/25mbit:10", "4:100mbit:10", "8:50mbit/25mbit:5",
                   "8:50mbit:5")}
HEADS = {"simulation": "| ranks | link | MB | ring's bound ms | real ms | simulated ms | error | with equal turns |\n"
                       "|---|---|---|---|---|---|---|---|",
         "peers": "| ranks | link | MB | dtrain ms | Gloo's best ms | Gloo / dtrain | Open MPI's best ms | "
                  "Open MPI / dtrain |\n|---|---|---|---|---|---|---|---|",
         "flows": "| ranks | link/connection | MB | 1 connection ms | 2 | 4 | 8 | 1 / 4 |\n|---|---|---|---|---|---|---|---|"}
CONNECTIONS = (1, 2, 4, 8)  # of --flows
ROUNDS = 5
LATENCY = os.environ.get("EXCHANGE_LATENCY", "50us")  # of the simulated links; veth pairs have about this
CONTROL = os.environ.get("EXCHANGE_CONTROL", "cubic")  # of TCP's congestion: the default of most machines
# Packets of 64 KiB fit in, and so does what a link carries while the kernel does not look.
LEAST_BURST, BURST_SECONDS = 128 << 10, 0.004
UNITS = {"mbit": 1e6, "gbit": 1e9}
PATIENCE = 300
NETWORK = "10.78.0.0/24"


def ip(*arguments) -> None:
    subprocess.run(["ip", *map(str, arguments)], check=True)


def in_host(number: int, *command) -> None:
    subprocess.run(["ip", "netns", "exec", f"h{number}", *map(str, command)], check=True)


def address(number: int) -> str:
    return f"10.78.0.{number + 1}"


def bits_a_second(rate: str) -> float:
    return float(rate[:-4]) * UNITS[rate[-4:]]


def burst(rate: str) -> int:
    """Bytes."""
    return max(LEAST_BURST, int(bits_a_second(rate) / 8 * BURST_SECONDS))


def make_hosts(count: int, rate: str) -> None:
    ip("link", "add", "switch", "type", "bridge")
    ip("link", "set", "switch", "up")
    for number in range(count):
        ip("netns", "add", f"h{number}")
        ip("link", "add", f"port{number}", "type", "veth", "peer", "name", "eth0", "netns", f"h{number}")
        ip("link", "set", f"port{number}", "master", "switch", "up")
        in_host(number, "ip", "address", "add", f"{address(number)}/24", "dev", "eth0")
        in_host(number, "ip", "link", "set", "eth0", "up")
        in_host(number, "ip", "link", "set", "lo", "up")
        in_host(number, "ip", "route", "replace", NETWORK, "dev", "eth0", "congctl", CONTROL)
        shape = ["root", "tbf", "rate", rate, "burst", str(burst(rate)), "latency", "100ms"]
        in_host(number, "tc", "qdisc", "add", "dev", "eth0", *shape)
        subprocess.run(["tc", "qdisc", "add", "dev", f"port{number}", *shape], check=True)


def counts(ranks: str) -> tuple[int, int]:
    """Ranks, and how many of them share a host."""
    number, _, per_host = ranks.partition("/")
    return int(number), int(per_host or 1)


def of_dtrain_and_gloo(bench: str, ranks: int, per_host: int, megabytes: str, connections: int, *more,
                       environment: dict[str, str] | None = None) -> dict[str, float]:
    """Median seconds by algorithm, in namespaces that are there."""
    with tempfile.TemporaryDirectory() as folder:
        processes = [
            subprocess.Popen(["ip", "netns", "exec", f"h{rank // per_host}", bench, folder, str(rank), str(ranks),
                              address(rank // per_host), megabytes, str(ROUNDS), str(connections), *more],
                             stdout=subprocess.PIPE, text=True, env={**os.environ, **(environment or {})})
            for rank in range(ranks)
        ]
        try:
            outputs = [process.communicate(timeout=PATIENCE)[0] for process in processes]
        finally:
            for process in processes:
                process.kill()
        if any(process.returncode for process in processes):
            raise SystemExit("a rank failed")
    times: dict[str, list[float]] = {}
    for line in outputs[0].splitlines():
        name, _, seconds = line.rpartition(" ")
        times.setdefault(name, []).append(float(seconds))
    return {name: statistics.median(values) for name, values in times.items()}


def of_numbers_of_connections(bench: str, ranks: int, per_host: int, megabytes: str, flow: str) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as folder:
        environment = {}
        if flow:
            library, source = pathlib.Path(folder) / "paced_flows.so", pathlib.Path(__file__).with_name("paced_flows.c")
            subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", library, source], check=True)
            environment = {"LD_PRELOAD": str(library), "PACED_FLOWS": str(int(bits_a_second(flow) / 8))}
        return {str(connections): of_dtrain_and_gloo(bench, ranks, per_host, megabytes, connections,
                                                     environment=environment)["tree"] for connections in CONNECTIONS}


def of_mpi(ranks: int, per_host: int, megabytes: str) -> dict[str, float]:
    """Open MPI starts its daemon in the namespace of a host by `ip netns exec`, where it would call ssh. It takes ranks with
    the same name of a host to share memory."""
    with tempfile.TemporaryDirectory() as folder:
        program, agent = open_mpi.compile_program(pathlib.Path(folder)), pathlib.Path(folder) / "agent"
        agent.write_text('#!/bin/sh\nhost=h$((${1##*.} - 1)); shift\n'
                         'exec ip netns exec $host unshare --uts sh -c "hostname $host; $*"\n')
        agent.chmod(0o755)
        hosts = ",".join(f"{address(host)}:{per_host}" for host in range(-(-ranks // per_host)))
        surroundings = ["--host", hosts, "--mca", "plm_rsh_agent", agent, "--mca", "btl_tcp_if_include", NETWORK,
                        "--mca", "oob_tcp_if_include", NETWORK]
        times = {}
        for algorithm in open_mpi.ALGORITHMS:
            mpirun = open_mpi.command(ranks, "self,vader,tcp", algorithm, *surroundings)
            answer = subprocess.run([agent, address(0), *mpirun, program, megabytes, str(ROUNDS)], check=True,
                                    stdout=subprocess.PIPE, text=True, timeout=PATIENCE)
            times[f"Open MPI: {algorithm}"] = float(answer.stdout) / 1e3
        return times


def simulated(dtrain: str, ranks: int, rate: str, megabytes: str, *more, answer: str = "simulations") -> dict:
    command = [dtrain, "bench", "allreduce", "--link", f"{rate},{LATENCY}", "--simulate", str(ranks), "--megabytes",
               megabytes, "--json", *more]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)[answer][0]


def row_beside_simulation(dtrain: str, ranks: str, rate: str, megabytes: str, times: dict[str, float]) -> str:
    number, per_host = counts(ranks)
    shared = ["--ranks-per-host", str(per_host)]
    model = simulated(dtrain, number, rate, megabytes, *shared)
    even = simulated(dtrain, number, rate, megabytes, *shared, "--unevenness", "0")
    return (f"{1e3 * model['ring_seconds']:.0f} | {1e3 * times['tree']:.0f} | {1e3 * model['seconds']:.0f} | "
            f"{100 * (model['seconds'] / times['tree'] - 1):+.0f} % | {1e3 * even['seconds']:.0f} |")


def row_beside_peers(times: dict[str, float]) -> str:
    tree, cells = times.pop("tree"), []
    for library in ("gloo", "Open MPI"):
        seconds, name = min((value, name) for name, value in times.items() if name.startswith(library))
        cells.append(f"{1e3 * seconds:.0f} ({name.partition(': ')[2]}) | {seconds / tree:.2f}")
    return f"{1e3 * tree:.0f} | {' | '.join(cells)} |"


def row_of_flows(times: dict[str, float]) -> str:
    cells = [f"{1e3 * times[str(connections)]:.0f}" for connections in CONNECTIONS]
    return f"{' | '.join(cells)} | {times['1'] / times['4']:.2f} |"


def main() -> None:
    if len(sys.argv) == 7 and sys.argv[1] == "--inside":
        # A private folder of names for `ip netns`.
        subprocess.run(["mount", "-t", "tmpfs", "tmpfs", "/run/netns"], check=True)
        _, _, what, bench, ranks, rate, megabytes = sys.argv
        number, per_host = counts(ranks)
        rate, _, flow = rate.partition("/")
        make_hosts(-(-number // per_host), rate)
        if what == "flows":
            times = of_numbers_of_connections(bench, number, per_host, megabytes, flow)
        else:
            times = of_dtrain_and_gloo(bench, number, per_host, megabytes, 1, *(["gloo"] if what == "peers" else []))
        if what == "peers":
            times |= of_mpi(number, per_host, megabytes)
        print(json.dumps(times))
        return
    words = sys.argv[1:]
    what = {"--peers": "peers", "--flows": "flows"}.get("".join(words[:1]), "simulation")
    words = words[what != "simulation":]
    if len(words) < 2:
        raise SystemExit(__doc__)
    dtrain, bench, *cases = words
    pathlib.Path("/run/netns").mkdir(exist_ok=True)
    print(HEADS[what])
    for case in cases or CASES[what]:
        ranks, rate, megabytes = case.split(":")
        command = ["unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", sys.executable, __file__, "--inside",
                   what, bench, ranks, rate, megabytes]
        times = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)
        row = {"peers": row_beside_peers, "flows": row_of_flows}[what](times) if what != "simulation" else \
            row_beside_simulation(dtrain, ranks, rate, megabytes, times)
        print(f"| {ranks} | {rate} | {megabytes} | {row}", flush=True)


if __name__ == "__main__":
    main()
