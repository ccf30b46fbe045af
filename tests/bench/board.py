"""What the board costs and how soon it shows: board.py DTRAIN [--quick]. Run by board.sh, in the virtual environment.

Prints one line a figure. TensorBoard gets the same points in its own files.
"""

import datetime
import gzip
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "jobs"), str(HERE.parent / "board")]
DTRAIN = os.path.realpath(sys.argv[1])
os.environ["DTRAIN"] = DTRAIN
QUICK = "--quick" in sys.argv
BEGIN = datetime.datetime(2026, 1, 1)


def stamp(seconds: float) -> str:
    return (BEGIN + datetime.timedelta(seconds=seconds)).isoformat(timespec="microseconds") + "Z"


def write_run(folder: pathlib.Path, lines: int, number: int = 0) -> None:
    folder.mkdir(parents=True)
    with (folder / "steps.jsonl").open("w") as file:
        file.write(f'{{"time":"{stamp(0)}","begins":true}}\n')
        for i in range(lines):
            loss = 2.3 / (1 + i / lines * 9) + 0.001 * ((i * 7919 + number) % 97) / 97
            file.write(f'{{"time":"{stamp(i + 1)}","epoch":{i // 1000},"step":{i % 1000},"steps":1000,"samples":2048,"seconds":0.9{i % 1000:03},'
                       f'"loss":{loss!r},"accuracy":{1 - loss / 2.4!r},"learning_rate":0.1,"samples_seen":{2048 * (i + 1)}}}\n')
    (folder / "events.jsonl").write_text(f'{{"seq":0,"time":"{stamp(lines)}","event":"finish","exit_code":0,"reason":"training is complete"}}\n')


def write_tensorboard(folder: pathlib.Path, runs: int, lines: int) -> None:
    from tensorboard.compat.proto.event_pb2 import Event
    from tensorboard.compat.proto.summary_pb2 import Summary
    from tensorboard.summary.writer.event_file_writer import EventFileWriter
    for number in range(runs):
        writer = EventFileWriter(str(folder / f"r{number}"), max_queue_size=1000)
        for i in range(lines):
            loss = 2.3 / (1 + i / lines * 9)
            for tag, value in (("loss", loss), ("accuracy", 1 - loss / 2.4), ("learning_rate", 0.1), ("speed", 2000.0)):
                writer.add_event(Event(wall_time=1.7e9 + i, step=i, summary=Summary(value=[Summary.Value(tag=tag, simple_value=value)])))
        writer.close()


def memory_of(pid: int, field: str) -> int:
    """Bytes of a process and its descendants."""
    total = 0
    for entry in [pid, *descendants(pid)]:
        try:
            for line in pathlib.Path(f"/proc/{entry}/status").read_text().splitlines():
                if line.startswith(field):
                    total += int(line.split()[1]) * 1024
        except OSError:
            pass
    return total


def descendants(pid: int) -> list[int]:
    from world import children
    return [one for child in children(pid) for one in [child, *descendants(child)]]


def seconds_of_cpu(pid: int) -> float:
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def ask(url: str):
    with urllib.request.urlopen(url, timeout=60) as answer:
        return json.loads(answer.read())


def until(question, pause: float = 0.02):
    while True:
        try:
            value = question()
            if value:
                return value
        except OSError:
            pass
        time.sleep(pause)


class Board:
    def __init__(self, folder: pathlib.Path):
        self.process = subprocess.Popen([DTRAIN, "board", str(folder), "--port", "0", "--json"], stdout=subprocess.PIPE, text=True)
        self.url = json.loads(self.process.stdout.readline())["url"]

    def rows(self):
        return ask(self.url + "api/board")["rows"]

    def end(self):
        self.process.terminate()
        self.process.wait()


def first_curve_of_board(folder: pathlib.Path, lines: int) -> tuple[float, int]:
    begin = time.monotonic()
    board = Board(folder)
    def curve():
        rows = board.rows()
        return rows and len(ask(f"{board.url}api/series?run={rows[0]['id']}&points=1000")["x"]) >= 500
    until(curve)
    took = time.monotonic() - begin
    until(lambda: len(board.rows()) >= len(list(folder.iterdir())) and all(row["lines"] == lines for row in board.rows()), 0.1)
    memory = memory_of(board.process.pid, "VmRSS")
    print(f"    all {len(board.rows())} runs read after {time.monotonic() - begin:.2f} s, peak {memory_of(board.process.pid, 'VmHWM') / 2**20:.0f} MiB")
    board.end()
    return took, memory


def first_curve_of_tensorboard(folder: pathlib.Path) -> tuple[float, int]:
    program = pathlib.Path(sys.executable).parent / "tensorboard"
    begin = time.monotonic()
    process = subprocess.Popen([str(program), "--logdir", str(folder), "--port", "16006"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    def curve():
        try:
            return len(ask("http://localhost:16006/data/plugin/scalars/scalars?tag=loss&run=r0")) >= 500
        except urllib.error.HTTPError:
            return False
    until(curve)
    took = time.monotonic() - begin
    def tags():
        try:
            return sum(len(run) for run in ask("http://localhost:16006/data/plugin/scalars/tags").values())
        except urllib.error.HTTPError:
            return 0
    before = -1
    while tags() != before:  # all runs are read once nothing more comes
        before = tags()
        time.sleep(5)
    memory = memory_of(process.pid, "VmRSS")
    process.terminate()
    process.wait()
    return took, memory


def compare_with_tensorboard(scratch: pathlib.Path) -> None:
    runs, lines = 50, 1000 if QUICK else 10000
    for number in range(runs):
        write_run(scratch / "ours" / f"r{number}-run", lines, number)
    write_tensorboard(scratch / "theirs", runs, lines)
    ours, our_memory = first_curve_of_board(scratch / "ours", lines)
    theirs, their_memory = first_curve_of_tensorboard(scratch / "theirs")
    print(f"first curve of {runs} runs x {lines} steps x 4 values: board {ours:.2f} s, TensorBoard {theirs:.2f} s, ratio {ours / theirs:.2f}")
    print(f"memory: board {our_memory / 2**20:.0f} MiB, TensorBoard {their_memory / 2**20:.0f} MiB, ratio {our_memory / their_memory:.2f}")


def page_size() -> None:
    folder = HERE.parent.parent / "src" / "board" / "page"
    size = sum(len(gzip.compress(path.read_bytes(), 9)) for path in folder.iterdir())
    print(f"page: {size / 1024:.0f} KiB compressed, {sum(path.stat().st_size for path in folder.iterdir()) / 1024:.0f} KiB as it is")


FRAMES = """const done = arguments[arguments.length - 1], node = document.querySelector(arguments[0]) || document.scrollingElement, gaps = [];
let last = performance.now(), at = 0;
function frame() {
  const now = performance.now();
  gaps.push(now - last);
  last = now;
  at += 1;
  node.scrollTop = at * 120;
  if (at < 150) requestAnimationFrame(frame);
  else done(gaps.slice(5));
}
requestAnimationFrame(frame);"""


def say_frames(what: str, gaps: list[float]) -> None:
    print(f"{what}: frames {statistics.median(gaps):.1f} ms, at most {max(gaps):.1f} ms, {sum(gap > 50 for gap in gaps)} of {len(gaps)} over 50 ms")


def browser_figures(world, scratch: pathlib.Path) -> None:
    from world import eventually
    for number in range(1000):
        write_run(scratch / "many" / f"run{number}-run", 50, number)
    lines = 200_000 if QUICK else 2_000_000
    write_run(scratch / "long" / "long-run", lines)
    begin = time.monotonic()
    board = Board(scratch / "long")
    until(lambda: (board.rows() or [{"lines": 0}])[0]["lines"] == lines)
    print(f"{lines} steps ({(scratch / 'long' / 'long-run' / 'steps.jsonl').stat().st_size / 2**20:.0f} MiB) read after {time.monotonic() - begin:.2f} s, "
          f"memory {memory_of(board.process.pid, 'VmRSS') / 2**20:.0f} MiB")
    run = board.rows()[0]["id"]
    times = []
    for _ in range(5):
        begin = time.monotonic()
        ask(f"{board.url}api/series?run={run}&points=800")
        times.append(time.monotonic() - begin)
    print(f"curves of {lines} steps answered in {1000 * statistics.median(times):.0f} ms")
    screen = world.screen()
    for _ in range(2):
        begin = time.monotonic()
        screen.open(board.url + "#/run/" + run).wait(".chart path")
        took = time.monotonic() - begin
        screen.open("about:blank")
    print(f"{lines} steps: the curves stand after {took:.2f} s")
    screen.open(board.url + "#/run/" + run).wait(".chart path")
    paint = screen.script("return performance.getEntriesByType('paint').map((one) => one.startTime)")
    print(f"first paint after {max(paint):.0f} ms")
    zoom = screen.script("""const chart = document.querySelector('.chart svg'), times = [];
      return new Promise((done) => { let n = 0; const turn = () => { const t = performance.now(); chart.dispatchEvent(new PointerEvent('pointermove', {clientX: 300 + n, clientY: 200}));
      document.body.offsetHeight; times.push(performance.now() - t); n += 1; n < 100 ? requestAnimationFrame(turn) : done(times); }; turn(); });""")
    print(f"hover: {statistics.median(zoom):.1f} ms, at most {max(zoom):.1f} ms")
    screen.driver.set_script_timeout(60)
    say_frames(f"scrolling the page of {lines} steps", screen.driver.execute_async_script(FRAMES, "html"))
    board.end()
    begin = time.monotonic()
    board = Board(scratch / "many")
    until(lambda: len(board.rows()) == 1000)
    print(f"1,000 runs found and read after {time.monotonic() - begin:.2f} s")
    begin = time.monotonic()
    screen.open("about:blank").open(board.url)
    screen.wait(".tools", "1000 runs").wait("tbody tr", "run")
    print(f"1,000 runs: the table stands after {time.monotonic() - begin:.2f} s")
    say_frames("scrolling 1,000 runs", screen.driver.execute_async_script(FRAMES, ".holder"))
    sort = screen.script("""const begin = performance.now(); document.querySelectorAll('.runs thead button')[4].click(); document.body.offsetHeight; return performance.now() - begin;""")
    print(f"sorting 1,000 runs: {sort:.0f} ms")
    time.sleep(2)
    before, begin = seconds_of_cpu(board.process.pid), time.monotonic()
    time.sleep(20)
    print(f"1,000 runs that rest cost {100 * (seconds_of_cpu(board.process.pid) - before) / (time.monotonic() - begin):.2f} % of a core")
    board.end()


def cost_to_a_job(world) -> None:
    job = world.job().start().wait_running()
    board = world.board(job.folder)
    screen = world.screen().open(board.url)
    screen.wait("tbody tr").go("#/job/" + board.rows()[0]["id"]).wait(".timeline rect")
    before, begin = seconds_of_cpu(board.process.pid), time.monotonic()
    time.sleep(30)
    print(f"a running job with its page open: the board takes {100 * (seconds_of_cpu(board.process.pid) - before) / (time.monotonic() - begin):.2f} % of a core")
    delays = []
    for number in range(3):
        screen.script("""window.seen = 0; const host = arguments[0]; const look = () => { if (document.querySelector('.events').innerText.includes(host)) window.seen = Date.now() / 1000;
          else setTimeout(look, 5); }; look();""", f"n{number} should join")
        job.hosts_command("add", f"n{number}")
        until(lambda: screen.script("return window.seen"))
        event = next(one for one in job.events() if one["event"] == "hosts" and one["added"] == [f"n{number}"])
        delays.append(screen.script("return window.seen") - datetime.datetime.fromisoformat(event["time"].replace("Z", "+00:00")).timestamp())
    print(f"an event is on the page after {max(delays):.2f} s at most of {len(delays)}")
    job.stop()


def main() -> None:
    from browser import BoardWorld
    scratch = pathlib.Path(tempfile.mkdtemp(prefix="dtrain-bench-board-"))
    data = scratch / "data"
    data.mkdir()
    world = BoardWorld(scratch, data)
    world.prepare_data()
    try:
        page_size()
        browser_figures(world, scratch)
        cost_to_a_job(world)
        compare_with_tensorboard(scratch)
    finally:
        for board in world.boards:
            board.stop()
        world.end()
        shutil.rmtree(scratch, ignore_errors=True)


main()
