"""A terminal is closed while it runs dtrain."""

import errno
import os
import pty
import re
import select
import signal
import subprocess
import time

from world import PATIENCE, World, eventually


STOP, GO, INTERRUPT = b"\x13", b"\x11", b"\x03"  # Ctrl-S, Ctrl-Q and Ctrl-C


class Terminal:
    """A command on a real terminal, of which it is the session's leader."""

    def __init__(self, world: World, arguments, before=()):
        self.text = ""
        self.pid, self.master = pty.fork()
        if self.pid == 0:
            words = [*before, *world.command(arguments)]
            os.chdir(world.folder)
            signal.signal(signal.SIGHUP, signal.SIG_DFL)  # that under which the tests run may be nohup
            os.execvpe(words[0], words, world.environment)

    def read_until(self, words: str) -> None:
        end = time.monotonic() + PATIENCE
        while words not in self.text:
            assert time.monotonic() < end, f"no {words!r} in: {self.text}"
            if select.select([self.master], [], [], 0.1)[0]:
                self.text += os.read(self.master, 65536).decode(errors="replace")

    def read_to_end(self) -> None:
        """Until no process has the terminal open."""
        try:
            while True:
                self.text += os.read(self.master, 65536).decode(errors="replace")
        except OSError as error:
            assert error.errno == errno.EIO, error

    def press(self, key: bytes) -> None:
        os.write(self.master, key)

    def close(self) -> int:
        """The kernel hangs up on the session. The command's exit code, as subprocess counts it."""
        os.close(self.master)
        return os.waitstatus_to_exitcode(eventually(self.ended, "the command ends")[0])

    def ended(self) -> tuple[int] | None:
        pid, status = os.waitpid(self.pid, os.WNOHANG)
        return (status,) if pid else None


def test_training_saves(world: World):
    """A training without workers saves a checkpoint and exits 75; it goes on to the same bits."""
    job = world.job()
    terminal = Terminal(world, [*job.training_arguments, "--num-epochs", job.epochs, "--model-prefix", job.prefix])
    terminal.read_until("Epoch[1] Batch")
    assert terminal.close() == 75
    job.expect_bits_of_alone()


def test_an_interrupt_is_answered(world: World):
    """Ctrl-C: the training says at once what happens now, saves, and exits 75."""
    job = world.job()
    terminal = Terminal(world, [*job.training_arguments, "--num-epochs", 100000, "--model-prefix", job.prefix])
    terminal.read_until("Epoch[1] Batch")
    terminal.press(INTERRUPT)
    terminal.read_until("Stopping: this step is finished")
    terminal.read_to_end()
    assert terminal.close() == 75
    job.expect_bits_of_alone()


def test_training_that_keeps_nothing(world: World):
    """Without --model-prefix there is nothing to save: the signal ends it."""
    terminal = Terminal(world, [*world.job().training_arguments, "--num-epochs", 100000])
    terminal.read_until("Epoch[1] Batch")
    assert terminal.close() == -signal.SIGHUP


def test_job_saves(world: World):
    """The launcher of a job stops it as Ctrl-C does, with a checkpoint, and no process is left."""
    job = world.job()
    (world.folder / "job.hosts").write_text("w1\nw2\n")
    terminal = Terminal(world, job.arguments)
    job.wait_running()
    assert terminal.close() == 75
    assert any(event["event"] == "stop" and "SIGHUP" in event["reason"] for event in job.events())
    world.expect_no_process_left()
    job.expect_exactly_once(job.expect_bits_of_alone())


def test_launch_ends_its_programs(world: World):
    """`dtrain launch` gives the ranks their time to save, and ends by the signal as by SIGTERM."""
    program = 'trap "touch saved.$RANK; exit 0" TERM; echo ready.$RANK; while :; do sleep 0.1; done'
    terminal = Terminal(world, ["launch", "-n", 2, "--job-dir", world.folder / "job", "--", "sh", "-c", program])
    for rank in range(2):
        terminal.read_until(f"ready.{rank}")
    assert terminal.close() == -signal.SIGHUP
    assert (world.folder / "saved.0").exists() and (world.folder / "saved.1").exists()
    world.expect_no_process_left()


def test_a_job_whose_reader_goes(world: World):
    """`train --json | head`: the launcher stops the job with a checkpoint, and no process is left."""
    job = world.job()
    (world.folder / "job.hosts").write_text("w1\nw2\n")
    with open(job.log_path, "ab") as log:
        process = subprocess.Popen(world.command([*job.arguments, "--json"]), cwd=world.folder, env=world.environment,
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log)
    job.wait_running()
    assert process.stdout.readline()
    process.stdout.close()
    assert process.wait(PATIENCE) == 75
    assert any(event["event"] == "stop" and "SIGPIPE" in event["reason"] for event in job.events())
    world.expect_no_process_left()


def test_a_terminal_that_stands_still(world: World):
    """Ctrl-S: the job trains on while its terminal shows nothing; Ctrl-Q shows everything."""
    job = world.job()
    (world.folder / "job.hosts").write_text("w1\nw2\n")
    terminal = Terminal(world, job.arguments)
    job.wait_running()
    terminal.press(STOP)
    job.wait_steps(100)
    world.run("stop", "--job-dir", job.folder)
    terminal.press(GO)
    terminal.read_to_end()
    batches = [20 * int(epoch) + int(batch) for epoch, batch in re.findall(r"Epoch\[(\d+)\] Batch ?\[(\d+)\]", terminal.text)]
    assert batches == [step for step in range(max(batches) + 1) if step % 20 in (5, 10, 15)] and max(batches) > 80, batches
    assert terminal.close() == 75
    job.expect_exactly_once(job.expect_bits_of_alone())


def test_nohup(world: World):
    """A command that was started with nohup goes on to its end."""
    job = world.job()
    words = [*job.training_arguments, "--num-epochs", 8, "--model-prefix", job.prefix]
    terminal = Terminal(world, words, ["nohup"])
    log = world.folder / "nohup.out"
    eventually(lambda: log.exists() and "Epoch[1] Batch" in log.read_text(), "it trains")
    assert terminal.close() == 0
    assert job.state_hash() == world.alone(job, 8)
