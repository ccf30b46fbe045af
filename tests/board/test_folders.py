"""Folders of runs: what appears, grows, vanishes and is damaged, and files that the page gives away."""

import datetime
import json
import shutil

from browser import BoardWorld
from world import eventually


def write_run(folder, steps: int, loss: float = 1.0, finished: bool = False, network: str = "resnet") -> None:
    """A run as a training in one process leaves it."""
    folder.mkdir(parents=True, exist_ok=True)
    begin = datetime.datetime(2026, 1, 31, 12)
    stamp = lambda seconds: (begin + datetime.timedelta(seconds=seconds)).isoformat(timespec="microseconds").removesuffix("+00:00") + "Z"
    lines = [json.dumps({"time": stamp(0), "begins": True})]
    lines += [json.dumps({"time": stamp(i + 1), "epoch": i // 100, "step": i % 100, "steps": 100, "samples": 128, "seconds": 0.5,
                          "loss": loss / (1 + i / 50), "accuracy": 1 - 1 / (1 + i / 50), "learning_rate": 0.1, "samples_seen": 128 * i})
              for i in range(steps)]
    (folder / "steps.jsonl").write_text("\n".join(lines) + "\n")
    events = [{"event": "evaluation", "epoch": epoch, "loss": loss / (1 + epoch), "accuracy": 1 - 0.5 / (1 + epoch), "seconds": 1} for epoch in range(steps // 100)]
    if finished:
        events.append({"event": "finish", "exit_code": 0, "reason": "training is complete"})
    (folder / "events.jsonl").write_text("".join(json.dumps({"seq": i, "time": stamp(100 * i + 100), **event}) + "\n" for i, event in enumerate(events)))
    (folder / "train.toml").write_text(f'[train]\nnetwork = "{network}"\nnum-epochs = {max(1, steps // 100)}\n')


def test_runs_appear_grow_and_vanish(world: BoardWorld):
    """A folder that is not there yet is watched; runs in it come, grow and go by themselves."""
    board = world.board("m")
    screen = world.screen().open(board.url).wait("h1", "Runs")
    assert screen.count("tbody tr") == 0
    write_run(world.folder / "m" / "first-run", 150)
    screen.wait("tbody tr", "first").wait("tbody tr", "1.5 / 1")
    write_run(world.folder / "m" / "deep" / "er" / "second-run", 300, finished=True)
    screen.wait("tbody tr", "deep/er/second").wait("tbody tr", "finished")
    with (world.folder / "m" / "first-run" / "steps.jsonl").open("a") as file:
        file.write('{"time":"2026-01-31T13:00:00.000000Z","epoch":1,"step":99,"steps":100,"samples":128,"seconds":0.5,"loss":0.125')
        file.flush()
        file.write(',"accuracy":0.5,"samples_seen":9}\n')
    screen.wait("tbody tr", "2 / 1")
    shutil.rmtree(world.folder / "m" / "first-run")
    eventually(lambda: screen.count("tbody tr") == 1, "the run is gone")
    screen.expect_no_error()
    assert "not there yet" in board.stop()


def append_step(folder, epoch: int) -> None:
    """A line that the training writes now."""
    now = datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="microseconds").replace("+00:00", "Z")
    with (folder / "steps.jsonl").open("a") as file:
        file.write(json.dumps({"time": now, "epoch": epoch, "step": 0, "steps": 100, "samples": 128, "seconds": 0.5, "loss": 0.5}) + "\n")


def test_rows_of_runs_that_train_stay_in_place(world: BoardWorld):
    """They are sorted by what the table shows of their age, and a row that moves keeps the keyboard's focus."""
    for name in ("a", "b"):
        write_run(world.folder / f"{name}-run", 20)
    board = world.board(world.folder)
    screen = world.screen().open(board.url).wait(".tools", "2 runs")
    names = "return [...document.querySelectorAll('tbody a')].map((one) => one.textContent).join('')"
    focused = "return document.activeElement.textContent"
    assert screen.script(names) == "ab"
    screen.script("[...document.querySelectorAll('tbody a')][1].focus()")
    append_step(world.folder / "b-run", 1)
    eventually(lambda: screen.script(names) == "ba", "the newer one is above")
    assert screen.script(focused) == "b", "the row has lost the focus"
    append_step(world.folder / "a-run", 1)
    eventually(lambda: screen.script(names) == "ab", "both are new, so their names count")
    append_step(world.folder / "b-run", 2)
    screen.wait("tbody tr", "2.01 / 1")
    assert screen.script(names) == "ab" and screen.script(focused) == "b"
    screen.expect_no_error()


def test_a_page_that_is_hidden_or_gets_no_answer_comes_back(world: BoardWorld):
    """A hidden page holds no connection and catches up; an error goes away with the next answer."""
    write_run(world.folder / "m" / "a-run", 150)
    board = world.board("m")
    screen = world.screen().open(board.url).wait("tbody tr", "a").wait("#live", "live").hide()
    write_run(world.folder / "m" / "b-run", 150)
    eventually(lambda: len(board.rows()) == 2, "the board has found it")
    screen.script("return new Promise((done) => setTimeout(done, 500))")
    assert screen.count("tbody tr") == 1, f"a hidden page listens: {screen.text()}"
    screen.hide(False).wait("tbody tr", "b")
    screen.go("#/cluster").wait("main", "No job with machines")
    fail, answer = "window.answering = fetch; window.fetch = () => Promise.reject(new Error('no way'))", "window.fetch = window.answering"
    screen.script(fail)
    screen.wait("main", "no way")
    screen.script(answer)
    screen.wait("main", "No job with machines").go("#/").wait("h1", "Runs")
    screen.script(fail)
    screen.hide().hide(False).wait("h1", "does not answer")
    screen.script(answer)
    screen.hide().hide(False).wait("h1", "Runs").wait("tbody tr", "b")
    screen.expect_no_error()


def test_the_end_of_a_log_is_followed_however_fast_it_grows(world: BoardWorld):
    """What is far behind the end is left out; without following, nothing is."""
    folder = world.folder / "m" / "job"
    write_run(folder, 20)
    (folder / "logs").mkdir()
    log = folder / "logs" / "w1.0.log"
    log.write_text("the begin\n")
    board = world.board("m")
    run = eventually(board.rows, "a run is found")[0]["id"]
    screen = world.screen().open(board.url + "#/logs/" + run).wait(".log", "the begin")
    with log.open("a") as file:
        file.write("much\n" * 500_000 + "the end\n")
    screen.wait("[role=status]", "The last 256 KiB of").wait(".log", "the end")
    assert "the begin" not in screen.text(".log")
    screen.click("Follow the end", "label")
    with log.open("a") as file:
        file.write("more\n" * 300_000 + "done\n")
    screen.wait(".log", "done")
    assert screen.text(".log").count("more") == 300_000
    screen.expect_no_error()


def test_a_long_table_is_drawn_once_a_frame(world: BoardWorld):
    """Rows that cannot be seen are not drawn, and many scroll events of one frame are one look at the table."""
    for number in range(200):
        write_run(world.folder / f"run{number:03}-run", 2, finished=True)
    board = world.board(world.folder)
    screen = world.screen().open(board.url).wait(".tools", "200 runs")
    first = "return Number(document.querySelector('tbody tr[aria-rowindex]').getAttribute('aria-rowindex'))"
    moved = screen.script("""const holder = document.querySelector('.holder'), seen = () => Number(document.querySelector('tbody tr[aria-rowindex]').getAttribute('aria-rowindex'));
        const changes = [];
        for (let i = 1; i <= 50; i += 1) {
          holder.scrollTop = i * 60;
          holder.dispatchEvent(new Event('scroll'));
          changes.push(seen());
        }
        return new Set(changes).size""")
    assert moved == 1, f"{moved} looks in one frame"
    eventually(lambda: screen.script(first) > 80, "the rows of the new place are drawn")
    assert screen.count("tbody tr") < 90, "no more than can be seen, and some around them"
    screen.expect_no_error()


def test_charts_zoom_smooth_compare_and_download(world: BoardWorld):
    """By pointer and by keyboard; exact values; several runs over each other; CSV, SVG and PNG."""
    for name, loss in (("a", 2.0), ("b", 1.0), ("c", 0.5)):
        write_run(world.folder / f"{name}-run", 3000, loss, finished=True)
    board = world.board(world.folder)
    screen = world.screen().open(board.url)
    eventually(lambda: screen.count("tbody tr") == 3, "three runs")
    for box in screen.driver.find_elements("css selector", "tbody input"):
        box.click()
    screen.click("Compare 3").wait(".chart path").wait(".legend", "b").keep("compare")
    assert screen.count(".panel:first-child .chart path") >= 6, "three curves and their bands"
    screen.press(".chart svg", "HOME", "ARROW_RIGHT").wait(".tip", "step").wait(".tip", "mean of")
    screen.press(".chart svg", *["+"] * 6).wait(".tip", "step")
    eventually(lambda: "mean of" not in screen.text(".tip") and "step" in screen.text(".tip"), "each line by itself: " + screen.text(".tip"))
    shown = screen.text(".tip").split("a: ")[1].split("\n")[0].split(" at ")[0]
    assert shown in {repr(2.0 / (1 + i / 50)) for i in range(3000)}, f"{shown} is no value of the file"
    screen.keep("zoomed")
    ticks = "return import('./format.js').then((format) => [format.ticks(0, 10, 4), format.ticks(1e17, 1e17 + 64, 4)].map((list) => list.length))"
    few, many = screen.script(ticks)
    assert few == 5 and many <= 50, "where numbers are far apart, there are few ticks"
    shares = screen.script("return import('./format.js').then((format) => [0.5, 0.9996, 0.99999, 1].map((part) => format.percent(part)))")
    assert shares == ["50.00 %", "99.96 %", "99.99 %", "100.0 %"], shares
    screen.click("Show all")
    screen.script("const s = document.querySelector('input[type=range]'); s.value = 0.9; s.dispatchEvent(new Event('input'))")
    screen.click("Log scale").keep("log")
    eventually(lambda: screen.count(".panel:first-child path[stroke-opacity]") == 3, "the curves without smoothing stay, faint")
    screen.expect_accessible()
    for button in ("CSV", "SVG", "PNG"):
        screen.click(button, "button")
    # Chromium writes a download under a hidden name and renames it when it is whole.
    eventually(lambda: {file.suffix for file in screen.downloads.glob("[!.]*")} == {".csv", ".svg", ".png"}, "three whole files")
    files = {file.suffix: file for file in screen.downloads.glob("[!.]*")}
    table = files[".csv"].read_text().splitlines()
    assert table[0].startswith("run,steps,lines,loss,accuracy,learning_rate,speed") and len(table) == 9001, (table[0], len(table))
    assert next(line for line in table if line.startswith("a,2001,")).startswith(f"a,2001,1,{2.0 / (1 + 2000 / 50)!r},"), "each line with the digits of its file"
    assert "<script" not in files[".svg"].read_text()
    assert files[".png"].read_bytes()[:4] == b"\x89PNG"
    screen.expect_no_error()


def test_what_was_chosen_stays_while_other_pages_are_looked_at(world: BoardWorld):
    """The filter, the order and the chosen runs of the table; axis, smoothing and scale of the curves."""
    for name in ("alpha", "beta", "gamma", "other"):
        write_run(world.folder / f"{name}-run", 150)
    board = world.board(world.folder)
    screen = world.screen().open(board.url).wait(".tools", "4 runs")
    screen.find("#filter").send_keys("a ")
    screen.wait(".tools", "3 of 4 runs").press("th.text button", "ENTER")
    first = "return document.querySelector('tbody a').textContent"
    eventually(lambda: screen.script(first) == "alpha", "sorted by name")
    for box in screen.driver.find_elements("css selector", "tbody input")[:2]:
        box.click()
    screen.click("Compare 2").wait(".chart path")
    screen.script("const s = document.querySelector('input[type=range]'); s.value = 0.9; s.dispatchEvent(new Event('input'))")
    screen.click("Log scale")
    screen.script("const s = document.querySelector('select'); s.value = 'epochs'; s.dispatchEvent(new Event('change'))")
    screen.go("#/").wait(".tools", "3 of 4 runs").wait("button", "Compare 2")
    assert screen.script(first) == "alpha" and screen.script("return document.querySelectorAll('tbody input:checked').length") == 2
    screen.press("tbody a", "ENTER").wait(".chart path")
    chosen = screen.script("return [document.querySelector('select').value, document.querySelector('input[type=range]').value, document.querySelector('input[type=checkbox]').checked]")
    assert chosen == ["epochs", "0.9", True], chosen
    screen.go("#/").click("Choose none").wait("button", "Compare")
    assert screen.script("return document.querySelectorAll('tbody input:checked').length") == 0 and not screen.find("#filter ~ button, .tools button").is_enabled()
    screen.expect_no_error()


def test_losses_of_tasks_have_charts_of_their_own(world: BoardWorld):
    """Whatever numbers the lines of a run hold, each has a chart; lines that lack one leave no hole in the curve."""
    write_run(world.folder / "a-run", 200)
    path = world.folder / "a-run" / "steps.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    for i, line in enumerate(lines[1:]):
        line["a_zero_loss"] = 0
        line["box_loss"] = 1 / (1 + i)
        if i % 2:
            line["mask_loss"] = 2 / (1 + i)
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    board = world.board(world.folder)
    screen = world.screen().open(board.url).wait("tbody tr", "a").press("tbody a", "ENTER").wait("h2", "box loss").wait("h2", "mask loss")
    drawn = screen.script("return document.querySelector('.panel:last-child path[fill=none]').getAttribute('d')")
    assert drawn.count("M") == 1 and drawn.count("L") > 90, drawn[:200]
    texts = screen.wait("h2", "a zero loss").script("""
        const panel = [...document.querySelectorAll(".panel")].find((one) => one.querySelector("h2").textContent === "a zero loss");
        return [...panel.querySelectorAll(".chart text")].map((node) => node.textContent)""")
    assert "0" in texts and not any(text.startswith("-") for text in texts), texts
    screen.expect_no_error()


def test_runs_that_lack_something(world: BoardWorld):
    """No validation, a loss that is not finite, one epoch that stopped early, millions of steps, guesses by their number."""
    nan, long, top = (world.folder / f"{name}-run" for name in ("nan", "long", "top"))
    write_run(nan, 20)
    lines = [json.loads(line) for line in (nan / "steps.jsonl").read_text().splitlines()]
    (nan / "steps.jsonl").write_text("".join(json.dumps({**line, "loss": None} if "loss" in line else line) + "\n" for line in lines))
    write_run(long, 20)
    lines = [json.loads(line) for line in (long / "steps.jsonl").read_text().splitlines()]
    (long / "steps.jsonl").write_text("".join(json.dumps({**line, "step": 1_999_980 + line["step"], "steps": 2_000_000} if "loss" in line else line) + "\n" for line in lines))
    write_run(top, 100, finished=True)
    events = [json.loads(line) for line in (top / "events.jsonl").read_text().splitlines()]
    (top / "events.jsonl").write_text("".join(json.dumps({**event, "top_k": 3, "top_k_accuracy": 0.75} if "accuracy" in event else event) + "\n" for event in events))
    write_run(world.folder / "huge-run", 20, 4.3e24)
    (top / "train.toml").write_text('[train]\nnetwork = "mlp"\nnum-epochs = 4\n')
    board = world.board(world.folder)
    screen = world.screen().open(board.url).wait("tbody tr", "nan").wait("tbody tr", "not finite").wait("tbody tr", "1 / 4 (25 %)").wait("tbody tr", "e+24")
    ids = {row["name"]: row["id"] for row in board.rows()}
    screen.go("#/run/" + ids["nan"]).wait(".facts", "not finite").wait(".chart text.empty", "no finite value here")
    assert screen.count(".chart text.empty") == 1, "the other charts have values"
    screen.go("#/evaluation/" + ids["nan"]).wait("main", "No validation is recorded")
    screen.go("#/run/" + ids["long"]).wait(".facts", "2\u202f000\u202f000").wait(".chart path")
    words = screen.script("return [...document.querySelectorAll('.panel:first-child .chart text')].map((node) => node.textContent)")
    assert len(set(words)) == len(words), ("ticks that say the same", words)
    screen.go("#/run/" + ids["top"]).wait("h2", "Top-3 accuracy")
    screen.go("#/evaluation/" + ids["top"]).wait("[aria-label^='Each validation']", "Top-3 accuracy").wait("[aria-label^='Each validation']", "75.00 %")
    screen.expect_no_error()


def test_names_with_markup_stay_text(world: BoardWorld):
    """Names of folders, networks, hosts and events cannot become elements."""
    evil = "<img src=x onerror=alert(1)>&\"'"
    write_run(world.folder / f"{evil}-run", 120, network="<script>alert(2)<" + "\\/script>")
    with (world.folder / f"{evil}-run" / "events.jsonl").open("a") as file:
        for event in ({"event": "warning", "message": evil}, {"event": evil, "x": evil}, {"event": "commit", "generation": 1, "members": [evil]}, {"event": "host_starting", "host": evil},
                      {"event": "generation", "generation": 1, "workers": 1, "pause_seconds": 1, "reason": evil, "seconds": {evil: 1}}):
            file.write(json.dumps({"seq": 0, "time": "2026-01-31T12:10:00.000000Z", **event}) + "\n")
    board = world.board(world.folder)
    screen = world.screen().open(board.url).wait("tbody tr", "onerror")
    run = board.rows()[0]["id"]
    for part in ("run", "job", "logs", "model", "data", "evaluation"):
        screen.go(f"#/{part}/{run}").wait("h1", "onerror")
        screen.script("return new Promise((done) => setTimeout(done, 400))")
        assert not screen.count("main img[src=x]") and not screen.count("main script"), part
    page = world.folder / "out.html"
    world.run("board", world.folder, "--export", page)
    exported = world.screen().open(page.as_uri()).wait("tbody tr", "onerror")
    assert not exported.count("main img") and not exported.count("main script")
    exported.expect_no_error()


def test_damaged_files_and_a_clock_that_jumps(world: BoardWorld):
    """Half lines, nonsense, binary, huge numbers: the rest is shown."""
    folder = world.folder / "odd-run"
    write_run(folder, 200)
    with (folder / "steps.jsonl").open("ab") as file:
        file.write(b'{"time":"2025-01-01T00:00:00.000000Z","epoch":2,"step":0,"steps":100,"samples":128,"seconds":0.5,"loss":NaN}\n')
        file.write(b'{"time":"2025-01-01T00:00:00.000000Z","epoch":2,"step":0,"steps":100,"samples":128,"seconds":0.5,"loss":1e999}\n')
        file.write(b'{"time":"2024-01-01T00:00:00.000000Z","epoch":2,"step":9,"steps":100,"samples":128,"seconds":0.5,"loss":0.25}\n')
        file.write(b"\x00\xff\xfe garbage\n" + b"[" * 5000 + b"\n" + b'{"time": "2026')
    (folder / "journal.jsonl").write_bytes(b'{"generation":"x"}\n{\n')
    with (folder / "events.jsonl").open("ab") as file:
        file.write(b"[]\n7\n{}\n\xff\n" + b'{"event":"commit","members":{}}\n{"time":"when","event":"epoch"}\n')
    board = world.board(world.folder)
    screen = world.screen().open(board.url).wait("tbody tr", "odd")
    screen.go("#/run/" + board.rows()[0]["id"]).wait(".chart path")
    screen.script("const s = document.querySelector('select'); s.value = 'time'; s.dispatchEvent(new Event('change'))")
    screen.script("return new Promise((done) => setTimeout(done, 500))")
    answer = json.loads(board.ask(f"/api/series?run={board.rows()[0]['id']}&axis=time")[1])
    assert answer["x"] == sorted(answer["x"]) and answer["x"][-1] < 1000, answer["x"][-3:]
    assert answer["columns"]["loss"]["mean"][-1] == 0.25
    screen.go("#/job/" + board.rows()[0]["id"]).wait(".panel", "one process").expect_no_error()


def test_a_host_that_is_not_admitted_was_not_lost(world: BoardWorld):
    """Its mark says so; and events count epochs from 1, as the table of validations does."""
    folder = world.folder / "m" / "job"
    write_run(folder, 100)
    events = [{"event": "host_starting", "host": "w1"}, {"event": "preparing", "host": "w2"},
              {"event": "failed", "host": "w2", "stage": "health", "reason": "4 GiB of memory are free", "last_lines": []},
              {"event": "evaluation", "epoch": 0, "loss": 0.5, "accuracy": 0.5}]
    (folder / "events.jsonl").write_text("".join(
        json.dumps({"seq": i, "time": f"2026-01-31T12:01:{40 + i}.000000Z", **event}) + "\n" for i, event in enumerate(events)))
    board = world.board("m")
    screen = world.screen().open(board.url).wait("tbody tr", "job").press("tbody a", "ENTER").wait(".chart path")
    screen.click("Job", "nav a").wait(".timeline path.refused").wait(".legend", "not admitted")
    assert screen.count(".timeline path.lost") == 0
    screen.wait(".events", "w2 did not pass the admission check")
    screen.script("""const choice = [...document.querySelectorAll('select')].find((one) => one.querySelector('[value=detail]'));
        choice.value = 'detail';
        choice.dispatchEvent(new Event('change'))""")
    screen.wait(".events", "Validation of epoch 1:")
    screen.click("Evaluation", "nav a").wait("[aria-label^='Each validation'] tbody", "1")
    screen.expect_no_error()


def test_two_boards_on_a_port_and_wrong_words(world: BoardWorld):
    """The second board says who has the port; questions that make no sense are refused."""
    write_run(world.folder / "a-run", 20)
    board = world.board(world.folder)
    second = world.run("board", "--port", board.facts["port"], check=False)
    assert second.returncode == 1 and f"process {board.process.pid}" in second.stderr and "--port" in second.stderr, second.stderr
    run = eventually(board.rows, "a run is found")[0]["id"]
    for path, status in (("/api/nothing", 404), ("/nothing.js", 404), ("/api/series?run=none", 404), (f"/api/series?run={run}&axis=luck", 400),
                         (f"/api/series?run={run}&from=x", 400), (f"/api/log?run={run}&name=..%2F..%2Fevents.jsonl", 404),
                         (f"/api/report?run={run}&report=..&name=x", 404), ("/..%2f..%2fetc%2fpasswd", 404), ("/api/model?run=none", 404)):
        assert board.ask(path)[0] == status, (path, board.ask(path))
    for question in ("model", "data"):  # what is not there yet is no error, which the browser would write down
        code, text = board.ask(f"/api/{question}?run={run}")
        assert code == 200 and json.loads(text)["missing"], text
    assert board.ask("/", {"Host": "evil.example"})[0] == 403, "another name of this machine may be a site that reaches in"
    code, text = board.ask("/")
    assert code == 200 and "<main" in text


def test_the_exported_page_stands_alone(world: BoardWorld):
    """One file, no request, the same curves."""
    write_run(world.folder / "a-run", 500, finished=True)
    page = world.folder / "run.html"
    answer = json.loads(world.run("board", "a", "--export", page, "--json").stdout)
    assert answer["runs"] == 1 and answer["bytes"] == page.stat().st_size
    screen = world.screen().open(page.as_uri()).wait("tbody tr", "finished").wait("#live", "exported")
    screen.press("tbody a", "ENTER").wait(".chart path").wait("h2", "Learning rate").keep("exported")
    screen.click("Job", "nav a").wait(".panel", "one process")
    screen.expect_no_error()
    world.run("board", "a", "--export", page)
    (world.folder / "notes.txt").write_text("mine")
    refused = world.run("board", "a", "--export", "notes.txt", check=False)
    assert refused.returncode == 2 and (world.folder / "notes.txt").read_text() == "mine", refused.stderr
    assert world.run("board", "nowhere", "--export", "x.html", check=False).returncode == 2


def test_phone_and_dark(world: BoardWorld):
    """A narrow window does not scroll sideways as a whole; dark colours have contrast too."""
    write_run(world.folder / "a-run", 400, finished=True)
    board = world.board(world.folder)
    for name, options in (("phone", {"width": 420, "height": 800}), ("dark", {"dark": True})):
        screen = world.screen(**options).open(board.url).wait("tbody tr", "finished")
        if name == "dark":
            screen.script("document.getElementById('theme').click(); document.getElementById('theme').click()")
        screen.keep(name + "_runs")
        screen.expect_accessible()
        screen.press("tbody a", "ENTER").wait(".chart path").keep(name + "_run")
        wide = screen.script("return document.documentElement.scrollWidth - document.documentElement.clientWidth")
        assert wide <= 0, f"{wide} pixels too wide"
        screen.expect_accessible().expect_no_error()
