"""Leaving with notice: signals to workers and agents, and what EC2 tells an instance about its end."""

import http.server
import pathlib
import signal
import socket
import threading
import time

from world import World, alive, children, eventually, send_signal


class MetadataService:
    """A stand-in for EC2's instance metadata (IMDSv2), one instance a host: http://127.0.0.1:PORT/HOST/latest/...

    It refuses whoever has no session token, as version 2 of the service does. Not the real one: it is as documented.
    """

    def __init__(self):
        self.actions: dict[str, str] = {}
        self.recommended: set[str] = set()
        self.asked: list[str] = []
        service = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def log_message(self, *_):
                pass

            def do_PUT(self):
                wanted = self.path.endswith("/latest/api/token") and self.headers["X-aws-ec2-metadata-token-ttl-seconds"]
                self.answer(200, "a-token") if wanted else self.answer(400, "")

            def do_GET(self):
                host = self.path.split("/")[1]
                service.asked.append(self.path)
                if self.headers["X-aws-ec2-metadata-token"] != "a-token":
                    self.answer(401, "")
                elif self.path.endswith("/spot/instance-action") and host in service.actions:
                    self.answer(200, '{"action": "terminate", "time": "%s"}' % service.actions[host])
                elif self.path.endswith("/rebalance") and host in service.recommended:
                    self.answer(200, '{"noticeTime": "2026-01-31T08:22:00Z"}')
                else:
                    self.answer(404, "")

            def answer(self, status: int, body: str):
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body.encode())

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/{{host}}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


def agent_of(world: World, job, host: str) -> int:
    worker = job.training()[host]
    return next(pid for pid in world.processes() if worker in children(pid))


def test_sigusr1_to_a_worker(world: World):
    """SIGUSR1 to a worker: it leaves at the next step, its process ends well, and the job goes on."""
    job = world.job().start().wait_running()
    pid = job.training()["w2"]
    send_signal(pid, signal.SIGUSR1)
    eventually(lambda: not alive(pid), "the process of w2 is gone", job=job)
    assert not [event for event in job.events() if event["event"] in ("failed", "freeze")]
    job.wait_steps(5).expect_undisturbed_bits()


def test_sigterm_to_an_agent(world: World):
    """SIGTERM to an agent: its workers leave at the next step, also where changes wait for epochs; then it ends."""
    job = world.job(boundary="epoch").start().wait_running()
    agent = agent_of(world, job, "w2")
    send_signal(agent, signal.SIGTERM)
    job.wait_members("w1")
    eventually(lambda: not alive(agent), "the agent is gone", 30, job=job)
    assert not [event for event in job.events() if event["event"] in ("failed", "freeze")]
    eventually(lambda: "signal 15" in job.row("w2")["reason"], "the list says why", job=job)
    job.expect_undisturbed_bits()


def test_second_signal_to_an_agent(world: World):
    """A second signal ends the agent and its workers at once, also when they cannot leave; the others go on."""
    job = world.job().start().wait_running()
    agent, worker = agent_of(world, job, "w2"), job.training()["w2"]
    send_signal(worker, signal.SIGSTOP)
    send_signal(agent, signal.SIGTERM)
    eventually(lambda: [event for event in job.events() if event["event"] == "notice"], "the first is heard", job=job)
    send_signal(agent, signal.SIGTERM)
    eventually(lambda: not alive(agent) and not alive(worker), "both are gone", 20, job=job)
    job.wait_members("w1").expect_undisturbed_bits()


def by_mpirun_here(world: World):
    """A job whose agents a stand-in for mpirun starts on this machine: each has a supervisor."""
    folder = world.folder / "programs"
    folder.mkdir()
    (folder / "mpirun").write_text('#!/bin/sh\n[ "$1" = --version ] && echo HYDRA && exit\nshift 4\nexec "$@"\n')
    (folder / "mpirun").chmod(0o755)
    world.environment["PATH"] = f"{folder}:{world.environment['PATH']}"
    return world.job(launcher="mpi").start().wait_running()


def signal_all(world: World, agent: int, number: int) -> None:
    """The agent, and a moment later its supervisor, which passes the signal on."""
    supervisor = next(pid for pid in world.processes() if agent in children(pid))
    send_signal(agent, number)
    time.sleep(0.02)
    send_signal(supervisor, number)


def test_one_signal_to_all_processes_of_a_host(world: World):
    """A scheduler signals the supervisor as well: it is one notice, and a worker in a step of 2 s leaves after it."""
    job = by_mpirun_here(world)
    for number in (signal.SIGTERM, signal.SIGUSR2, signal.SIGXCPU):
        agent, worker = agent_of(world, job, "w2"), job.training()["w2"]
        send_signal(worker, signal.SIGSTOP)
        signal_all(world, agent, number)
        time.sleep(2)
        assert alive(worker), f"signal {number} ended the worker before its step did"
        send_signal(worker, signal.SIGCONT)
        job.wait_members("w1")
        eventually(lambda: not alive(agent), "the agent is gone", 30, job=job)
        assert not [event for event in job.events() if event["event"] in ("failed", "freeze")]
        job.hosts_command("remove", "w2")
        job.hosts_command("add", "w2")
        job.wait_running()
    job.expect_undisturbed_bits()


def test_a_warning_to_the_coordinator(world: World):
    """SIGUSR2, SIGUSR1 and SIGXCPU, also more than once, save and end the job with 75."""
    job = world.job()
    for number in (signal.SIGUSR2, signal.SIGUSR1, signal.SIGXCPU):
        job.start("--resume").wait_running()
        for _ in range(3):
            send_signal(job.process.pid, number)
            time.sleep(0.4)
        assert job.wait() == 75, job.said()
    job.start("--resume").wait_running().expect_undisturbed_bits()


def test_too_few_left(world: World):
    """A notice that leaves fewer than --min-workers: the job saves, says why, and exits 75."""
    job = world.job(arguments=["--min-workers", 2]).start().wait_running()
    send_signal(job.training()["w2"], signal.SIGTERM)
    assert job.wait(60) == 75
    assert "fewer than 2 workers" in job.said(), job.said()
    assert list(pathlib.Path(world.folder / "m").glob("job-*.json")), "nothing was saved"
    job.start("--resume").wait_running(2).expect_undisturbed_bits()


def test_spot_notice(world: World):
    """A spot notice of one host: it leaves, the others go on; a rebalance recommendation is an event."""
    service = MetadataService()
    job = world.job(hosts=3, arguments=["--notice-url", service.url]).start().wait_running()
    service.recommended.add("w1")
    service.actions["w3"] = "2026-01-31T08:22:00Z"
    eventually(lambda: set(job.training()) == {"w1", "w2"}, "w3 has left", 30, job=job)
    eventually(lambda: "2026-01-31T08:22:00Z" in job.row("w3")["reason"], "the list says why", job=job)
    notices = eventually(lambda: [event for event in job.events() if event["event"] == "notice" and not event["leave"]],
                         "the recommendation is an event", 30, job=job)
    assert notices[0]["host"] == "w1" and set(job.training()) == {"w1", "w2"}, notices
    job.expect_undisturbed_bits()


def test_spot_notice_for_all(world: World):
    """A notice for every host: a whole checkpoint and exit 75 before the two minutes are over."""
    service = MetadataService()
    job = world.job(arguments=["--notice-url", service.url]).start().wait_running()
    service.actions.update(w1="2026-01-31T08:22:00Z", w2="2026-01-31T08:22:00Z")
    assert job.wait(60) == 75
    service.actions.clear()
    job.start("--resume").wait_running(2).expect_undisturbed_bits()


def test_silent_metadata_service(world: World):
    """A metadata service that accepts and never answers slows nothing down, neither a step nor the end."""
    silent = socket.create_server(("127.0.0.1", 0), backlog=64)
    url = f"http://127.0.0.1:{silent.getsockname()[1]}/{{host}}"
    job = world.job(arguments=["--notice-url", url]).start().wait_running()
    job.wait_steps(20).stop()
