"""The pages of a real job that gains and loses workers."""

import json
import signal
import subprocess
import time

from browser import BoardWorld
from world import eventually, send_signal


def changed_job(world: BoardWorld):
    """A job in which w3 joined and a worker of w2 was killed; it trains on."""
    job = world.job().start().wait_running()
    job.hosts_command("add", "w3")
    job.wait_members("w1", "w2", "w3").wait_steps(2)
    lost = job.training()["w2"]
    send_signal(lost, signal.SIGKILL)
    eventually(lambda: job.training().get("w2", lost) != lost, "w2 is back", job=job)
    return job


def test_every_page_of_a_job_that_changes(world: BoardWorld):
    """The table, curves, members, waiting, logs, model, data and machines show a running job, without an error."""
    job = changed_job(world)
    eventually(lambda: any(event["event"] == "checkpoint" for event in job.events()), "a checkpoint", job=job)
    board = world.board(job.folder)
    screen = world.screen().open(board.url)
    screen.wait("tbody tr", "training").keep("runs")
    assert screen.count("tbody tr") == 1
    screen.expect_accessible()
    screen.press("tbody a", "ENTER").wait(".chart path").wait("h2", "Loss").wait("h2", "Learning rate").keep("run")
    screen.expect_accessible()

    screen.click("Job", "nav a").wait(".timeline rect.training").wait(".timeline path.lost")
    lanes = screen.text(".timeline .lane")
    assert all(host in lanes for host in ("w1", "w2", "w3")), lanes
    screen.wait("table", "w3 joined").wait(".events", "Worker").wait(".panel", "Waits for others")
    screen.keep("job")
    screen.expect_accessible()
    screen.wait(".facts", "Sent between workers").wait("[aria-label^='Each rank']", "Received")
    screen.click("Check that every sample counted once").wait(".good", "exactly once")

    screen.click("Curves", "nav a").wait(".chart path")
    screen.script("const s = document.querySelector('select'); s.value = 'time'; s.dispatchEvent(new Event('change'))")
    screen.wait(".legend", "change of members").wait(".chart line.change").press(".chart svg", "END").wait(".tip", "3 workers since")

    screen.click("Logs", "nav a").wait(".log", "generation")
    screen.find("input[type=search]").send_keys("rank 0\n")
    screen.wait("[role=status]", "line").keep("logs")
    assert "[object" not in screen.text(".log")
    assert all("rank 0" in line for line in screen.text(".log").splitlines() if line.strip()), screen.text(".log")[:500]
    screen.expect_accessible()

    screen.click("Model", "nav a").wait("table", "conv0")
    screen.click("Show how weights and the optimizer's state are spread").wait(".histogram rect").keep("model")
    screen.expect_accessible()
    screen.click("Data", "nav a").wait("table", "circle")
    eventually(lambda: screen.script("const i = document.querySelector('img.sheet'); return i && i.naturalWidth"), "the sheet is drawn")
    screen.keep("data")
    screen.click("Evaluation", "nav a").wait("table", "Accuracy").keep("evaluation")
    screen.click("Machines", "nav a").wait("table", "w3").keep("machines")
    screen.expect_accessible().expect_no_error()
    job.stop()
    assert job.events()[-1]["sent_bytes"] > 100_000, job.events()[-1]


def test_a_reader_is_not_disturbed_by_what_happens_meanwhile(world: BoardWorld):
    """An event that was opened stays open, tables keep their place and the focus, and a growing ledger is not called wrong."""
    job = world.job().start().wait_running()
    board = world.board(job.folder)
    screen = world.screen(width=420, height=800).open(board.url + "#/job/" + board_id(board)).wait(".events", "commit").wait(".panel", "Waits for others")
    screen.script("document.querySelector('.events details').open = true; document.querySelector('[aria-label^=\"Each change\"]').scrollLeft = 40")
    screen.script("window.table = document.querySelector('[aria-label^=\"Each change\"]'); document.querySelector('[aria-label^=\"Each rank\"]').focus()")
    first = screen.text("[aria-label^='Each rank']")
    job.hosts_command("add", "w3")
    screen.wait(".events", "w3 should join")
    eventually(lambda: screen.text("[aria-label^='Each rank']") != first, "the ranks are shown anew")
    assert screen.count(".events details[open] pre") == 1, "the event that was opened"
    job.wait_members("w1", "w2", "w3")
    screen.wait("[aria-label^='Each change']", "w3 joined")
    kept = screen.script("""const table = document.querySelector('[aria-label^="Each change"]');
        return [table.scrollLeft, document.activeElement.getAttribute('aria-label') || '']""")
    assert kept[0] == 40 and kept[1].startswith("Each rank"), kept
    for _ in range(6):
        screen.click("Check that every sample counted once").wait(".good, .bad", "every sample counted exactly once")
        assert screen.count("details:not([open]) table") == 1, "the list of epochs is folded"
        screen.go("#/").wait(".runs").go("#/job/" + board_id(board)).wait(".panel", "Ledger")
    screen.expect_no_error()
    job.stop()


def test_an_event_comes_to_the_page_by_itself(world: BoardWorld):
    """What happens to the job appears by itself, soon; the state follows the end of the job."""
    job = world.job().start().wait_running()
    board = world.board(world.folder)
    screen = world.screen().open(board.url + "#/job/" + board_id(board))
    screen.wait(".timeline rect.training").wait(".events", "commit", 60)
    job.hosts_command("add", "w3")
    event = eventually(lambda: next((one for one in job.events() if one["event"] == "hosts" and one["added"] == ["w3"]), None), "w3 is named")
    screen.wait(".events", "w3 should join")
    screen.script("window.seen = Date.now() / 1000")
    print(f"    w3 was on the page after {time.time() - seconds_of(event['time']):.2f} s")  # tests/bench/board.sh measures
    job.stop()
    screen.wait("main .state", "stopped").expect_no_error()
    screen.wait(".facts", "Goodput")


def test_actions_need_leave_and_are_recorded(world: BoardWorld):
    """With --allow-actions the page asks for the token, asks once before it acts, and the act stands in the events."""
    job = world.job().start().wait_running()
    board = world.board(job.folder, "--allow-actions")
    assert board.ask("/api/board")[0] == 401 and "token=" in board.url
    screen = world.screen().open(board.url)
    screen.wait("tbody tr", "job")
    assert "token" not in screen.driver.current_url, "the token leaves the address"
    screen.go("#/job/" + screen.script("return document.querySelector('tbody a').hash.split('/')[2]"))
    screen.wait(".panel", "Drain").hide()
    eventually(lambda: not screen.count("#newhost"), "a page that is hidden asks nothing")
    screen.hide(False).wait(".panel", "Drain")
    screen.script("[...document.querySelectorAll('button')].find((one) => one.ariaLabel === 'Drain w2').click()")
    screen.wait("dialog", "w2 leaves at the next step").keep("confirm")
    screen.click("Yes", "dialog button").wait("dialog", "Done")
    drained = eventually(lambda: [one for one in job.events() if one["event"] == "drain"], "the drain is recorded")
    assert drained[0]["host"] == "w2" and "board" in drained[0]["reason"], drained
    job.wait_members("w1")
    screen.click("Close", "dialog button").wait("[aria-label^='Hosts that do not train']", f"dtrain hosts add w2 --job-dir {job.folder}")

    def confirm(question: str, answer: str = "Yes") -> None:
        screen.wait("dialog", question).click(answer, "dialog button")
        if answer == "Yes":
            screen.wait("dialog", "Done").click("Close", "dialog button")

    screen.press("#newhost", "w3")
    screen.click("Add", "button")
    confirm("Add w3 to the job?", "No")
    assert not any(event.get("added") == ["w3"] for event in job.events()), "a question that is answered with No does nothing"
    screen.click("Add", "button")
    confirm("Add w3 to the job?")
    job.wait_members("w1", "w3")
    screen.wait(".panel", "w3")
    eventually(lambda: screen.script("const b = [...document.querySelectorAll('button')].find((one) => one.ariaLabel === 'Remove w3'); b && b.click(); return Boolean(b)"), "w3 can be removed")
    confirm("Remove w3 from the job?")
    job.wait_members("w1")
    run = screen.script("return location.hash.split('/')[2]")
    for action in ("drain", "remove"):
        code, text = board.ask(f"/api/action?run={run}", cookie_of(board), json.dumps({"action": action, "host": "w1"}).encode())
        assert code == 400 and "of at least 1" in text and f"{action} w1 --yes" in json.loads(text)["hint"], (code, text)
    screen.click("Stop the job")
    confirm("Stop the job?")
    screen.wait("main .state", "stopped")
    changes = [event for event in job.events() if event["event"] in ("hosts", "stop")]
    assert any(event.get("added") == ["w3"] for event in changes) and any(event.get("removed") == ["w3"] for event in changes), changes
    assert any("board" in event.get("reason", "") for event in changes if event["event"] == "stop"), changes
    screen.expect_no_error("401")


def test_a_stop_is_final_for_a_job_of_a_queue(world: BoardWorld):
    """The queue does not start it again; and a program that runs is not called one that is being prepared."""
    queue = world.folder / "q"
    world.run("launch", "--detach", "--job-queue", queue, "--", "sleep", "600")
    runner = subprocess.Popen(world.command(["jobs", "run", "--job-queue", queue]), cwd=world.folder, env=world.environment,
                              stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    board = world.board(queue, "--allow-actions")
    cookie = cookie_of(board)
    rows = lambda: json.loads(board.ask("/api/board", cookie)[1])["rows"]
    run = eventually(lambda: [row["id"] for row in rows() if row["state"] == "training"], "the program runs")[0]
    code, text = board.ask(f"/api/action?run={run}", cookie, b'{"action":"stop"}')
    assert code == 200, text
    answer = world.run("jobs", "wait", 1, "--job-queue", queue, check=False)
    assert (answer.returncode, answer.stdout) == (75, "job 1: cancelled\n"), answer
    runner.terminate()
    runner.wait(60)


def test_without_leave_nothing_acts(world: BoardWorld):
    """A board without --allow-actions refuses, and so do pages of other sites."""
    job = world.job().start().wait_running()
    board = world.board(job.folder)
    wish = json.dumps({"action": "stop"}).encode()
    address = "/api/action?run=" + board_id(board)
    assert board.ask(address, data=wish)[0] == 403
    acting = world.board(job.folder, "--allow-actions")
    cookie = cookie_of(acting)
    eventually(lambda: json.loads(acting.ask("/api/board", cookie)[1])["rows"], "the run is found")
    assert acting.ask(address, {**cookie, "Origin": "http://evil.example"}, wish)[0] == 403
    assert acting.ask(address, {**cookie, "Cookie": cookie["Cookie"] + "x"}, wish)[0] == 401
    assert acting.ask("/api/action?run=none", cookie, wish)[0] == 404
    assert acting.ask(address, cookie, b"{broken")[0] in (400, 500)
    assert acting.ask(address, cookie, b'{"action":"reboot","host":"w1"}')[0] == 400
    old_page = [acting.ask("/api/board", {"Cookie": cookie["Cookie"] + str(i)})[0] for i in range(12)]
    assert set(old_page) == {401}, old_page
    wrong = [acting.ask(f"/?token=guess{i}")[0] for i in range(12)]
    assert wrong[0] == 401 and wrong[-1] == 429, wrong
    assert acting.ask("/api/board", cookie)[0] == 200, "wrong tokens keep out who knows the right one"
    job.wait_steps(1).stop()


def cookie_of(board) -> dict:
    return {"Cookie": f"dtrain_board_{board.facts['port']}={board.url.split('token=')[1]}"}


def board_id(board) -> str:
    return eventually(lambda: [row["id"] for row in board.rows()], "a run is found")[0]


def seconds_of(text: str) -> float:
    import datetime
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()
