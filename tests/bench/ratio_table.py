#!/usr/bin/env python3
"""Reads the lines of compare.sh (case, who, JSON) and prints medians and ratios as a Markdown table."""
import collections
import json
import statistics
import sys


def median(rows, key):
    values = [row[key] for row in rows if row.get(key)]
    return statistics.median(values) if values else None


def main():
    runs = collections.defaultdict(lambda: collections.defaultdict(list))
    for line in open(sys.argv[1], encoding="utf-8"):
        case, who, result = line.rstrip("\n").split("\t")
        runs[case][who].append(json.loads(result) if result else {})

    print("| case | who | images/s | of the limit | best dtrain / this | peak memory MiB | runs |")
    print("|---|---|---|---|---|---|---|")
    for case, peers in runs.items():
        speeds = {who: median(rows, "images_per_second") for who, rows in peers.items()}
        best = max((speed for who, speed in speeds.items() if who.startswith("dtrain") and speed), default=None)
        for who, rows in peers.items():
            speed, limit = speeds[who], median(rows, "limit_share")
            memory = median(rows, "peak_memory_bytes")
            cells = [case, who, f"{speed:,.0f}" if speed and speed >= 100 else f"{speed:.3g}" if speed else "failed", f"{limit:.0%}" if limit else "",
                     f"{best / speed:.2f}" if best and speed else "", f"{memory / 2**20:,.0f}" if memory else "", str(len(rows))]
            print("| " + " | ".join(cells) + " |")


main()
