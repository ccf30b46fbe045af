"""A board and a headless Chromium in front of it."""

import json
import os
import pathlib
import shutil
import subprocess
import urllib.error
import urllib.request

import axe_core_python
from selenium import webdriver
from selenium.common.exceptions import StaleElementReferenceException
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from world import DTRAIN, World, eventually

# What is drawn by the theme of the system, and what a page of one screen need not have.
AXE_OPTIONS = {"resultTypes": ["violations"], "runOnly": {"type": "tag", "values": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"]}}


class BoardWorld(World):
    """One test's folders, its boards and its browser."""

    def __init__(self, folder: pathlib.Path, data: pathlib.Path):
        super().__init__(folder, data)
        self.boards: list[Board] = []
        self.screens: list[Screen] = []

    def board(self, *words) -> "Board":
        self.boards.append(Board(self, *words))
        return self.boards[-1]

    def screen(self, **options) -> "Screen":
        self.screens.append(Screen(self, **options))
        return self.screens[-1]

    def end(self) -> None:
        for screen in self.screens:
            screen.driver.quit()
        super().end()

    def expect_no_process_left(self) -> None:
        for board in self.boards:
            board.stop()
        for screen in self.screens:
            screen.driver.quit()
        self.screens.clear()
        super().expect_no_process_left()


class Board:
    """`dtrain board` with these words, on a free port."""

    def __init__(self, world: BoardWorld, *words):
        command = [DTRAIN, "board", *map(str, words), *([] if "--port" in words else ["--port", "0"]), "--json"]
        self.process = subprocess.Popen(command, cwd=world.folder, env=world.environment, stdin=subprocess.DEVNULL,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        line = self.process.stdout.readline()
        if not line:
            raise AssertionError(f"no board: {self.process.stderr.read()}")
        self.facts = json.loads(line)
        self.url = self.facts["url"]
        self.root = f"http://127.0.0.1:{self.facts['port']}"

    def ask(self, path: str, headers: dict | None = None, data: bytes | None = None):
        """(status, body) of the address."""
        request = urllib.request.Request(self.root + path, headers=headers or {}, data=data)
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    def rows(self) -> list[dict]:
        return json.loads(self.ask("/api/board")[1])["rows"]

    def stop(self) -> str:
        """What it wrote to stderr."""
        if self.process.poll() is None:
            self.process.terminate()
        return self.process.communicate(timeout=60)[1]


class Screen:
    """One window."""

    def __init__(self, world: BoardWorld, width: int = 1400, height: int = 1000, dark: bool = False):
        options = Options()
        options.binary_location = shutil.which("chromium") or "/usr/bin/chromium"
        for word in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars",
                     "--force-color-profile=srgb", f"--window-size={width},{height}",
                     *(["--force-dark-mode", "--blink-settings=preferredColorScheme=0"] if dark else [])):
            options.add_argument(word)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        downloads = world.folder / "downloads"
        options.add_experimental_option("prefs", {"download.default_directory": str(downloads)})
        self.driver = webdriver.Chrome(service=Service(shutil.which("chromedriver"), env=world.environment | {"TZ": "UTC"}), options=options)
        self.driver.set_window_size(width, height)
        self.downloads = downloads
        self.told: list[dict] = []

    def open(self, url: str) -> "Screen":
        self.driver.get(url)
        return self

    def go(self, part: str) -> "Screen":
        """To a part of the page, by its hash."""
        self.script("location.hash = arguments[0]", part)
        return self

    def script(self, text: str, *values):
        return self.driver.execute_script(text, *values)

    def hide(self, hidden: bool = True) -> "Screen":
        """As another tab in front of this one does; with False, as its end does."""
        self.script("""const hidden = arguments[0];
            Object.defineProperty(document, 'hidden', { configurable: true, get: () => hidden });
            document.dispatchEvent(new Event('visibilitychange'));""", hidden)
        return self

    def find(self, selector: str):
        return self.driver.find_element(By.CSS_SELECTOR, selector)

    def count(self, selector: str) -> int:
        return self.script("return document.querySelectorAll(arguments[0]).length", selector)

    def text(self, selector: str = "main") -> str:
        return self.script("return [...document.querySelectorAll(arguments[0])].map((node) => node.innerText ?? node.textContent).join('\\n')", selector)

    def wait(self, selector: str, words: str = "", seconds: float = 60) -> "Screen":
        """Until such an element is there, with these words in it."""
        eventually(lambda: self.count(selector) and words in self.text(selector), f"{words or 'an element'} in {selector}: {self.text()[:2000]}", seconds)
        return self

    def click(self, words: str, selector: str = "button, a, label") -> "Screen":
        def act():
            found = [node for node in self.driver.find_elements(By.CSS_SELECTOR, selector) if node.text.strip() == words]
            assert found, f"nothing says {words}: {self.text()[:500]}"
            found[0].click()

        return self.steadily(act)

    def press(self, selector: str, *keys: str) -> "Screen":
        return self.steadily(lambda: self.find(selector).send_keys(*[getattr(Keys, key, key) for key in keys]))

    def steadily(self, act) -> "Screen":
        """An event may replace an element of the page between the look and the act."""
        for _ in range(20):
            try:
                act()
                return self
            except StaleElementReferenceException:
                continue
        act()
        return self

    def keep(self, name: str) -> bytes:
        """The screenshot; DTRAIN_KEEP_SCREENS says where it stays."""
        picture = self.driver.get_screenshot_as_png()
        folder = os.environ.get("DTRAIN_KEEP_SCREENS")
        if folder:
            pathlib.Path(folder).mkdir(parents=True, exist_ok=True)
            (pathlib.Path(folder) / f"{name}.png").write_bytes(picture)
        return picture

    def expect_no_error(self, allowed: str = "") -> "Screen":
        """Nothing on the console, and nothing loaded from anywhere else."""
        self.told += self.driver.get_log("browser")
        bad = [one["message"] for one in self.told if one["level"] in ("SEVERE", "WARNING") and not (allowed and allowed in one["message"])]
        assert not bad, bad
        hosts = self.script("return performance.getEntriesByType('resource').map((one) => new URL(one.name).host)")
        own = self.script("return location.host")
        assert all(host in (own, "") for host in hosts), hosts
        return self

    def expect_accessible(self) -> "Screen":
        self.script(next(pathlib.Path(axe_core_python.__file__).parent.rglob("axe.min.js")).read_text())
        self.driver.set_script_timeout(120)
        found = self.driver.execute_async_script("""const done = arguments[arguments.length - 1];
            axe.run(document, arguments[0]).then(done, (error) => done({error: String(error)}));""", AXE_OPTIONS)
        assert "violations" in found, found
        found = found["violations"]
        words = [f"{one['id']}: {one['help']}: {one['nodes'][0]['html'][:200]} {one['nodes'][0].get('failureSummary', '')[:300]}" for one in found]
        assert not words, "\n".join(words)
        return self
