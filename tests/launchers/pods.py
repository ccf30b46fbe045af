"""The pods of kube.py: containers as processes on the machines of a lab."""

from __future__ import annotations

import datetime
import re
import signal
import subprocess
import threading
import time

from lab import SHARED, Host, number_inside
from world import children, send_signal

VOLUME = SHARED / "volume"  # the claim of every job


def now_text() -> str:
    time_now = datetime.datetime.now(datetime.timezone.utc)
    return time_now.strftime("%Y-%m-%dT%H:%M:%S.") + f"{time_now.microsecond:06d}000Z"


def expanded(word: str, variables: dict[str, str]) -> str:
    """As Kubernetes replaces references to variables in the command of a container."""
    def replaced(found: re.Match) -> str:
        return "$" if found[0] == "$$" else variables.get(found[1], found[0])
    return re.sub(r"\$\$|\$\(([A-Za-z_.-][\w.-]*)\)", replaced, word)


def value_of(variable: dict, secrets: dict[str, dict[str, str]]) -> str:
    if "value" in variable:
        return variable["value"]
    wanted = variable["valueFrom"]["secretKeyRef"]
    return secrets[wanted["name"]][wanted["key"]]


class Container:
    """One run of a pod's container on a machine."""

    def __init__(self, pod: Pod, node: Host, secrets: dict[str, dict[str, str]]):
        spec = pod.spec["containers"][0]
        self.node, self.pod, self.lines, self.code = node, pod, [], None
        user, self.folder = pod.spec["securityContext"], spec["workingDir"]
        self.rights = ["setpriv", f"--reuid={user['runAsUser']}", f"--regid={user['runAsGroup']}", "--clear-groups",
                       "--no-new-privs", "--inh-caps=-all", "--bounding-set=-all"]
        self.variables = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOSTNAME": pod.name}
        self.variables |= {variable["name"]: value_of(variable, secrets) for variable in spec["env"]}
        assert spec["securityContext"]["readOnlyRootFilesystem"] and user["runAsNonRoot"] and user["runAsUser"] != 0
        script = (f"hostname {pod.name} && mkdir -p /work && mount --bind {VOLUME} /work && mount -t tmpfs -o mode=1777 tmp /tmp"
                  f" && mount -o remount,bind,ro / && cd {spec['workingDir']} && exec \"$@\"")
        command = ["unshare", "--uts", "--pid", "--mount", "--ipc", "--fork", "--kill-child=KILL", "--mount-proc",
                   "--propagation", "private", "sh", "-c", script, "pod", *self.rights, "--", *(expanded(word, self.variables) for word in spec["command"])]
        self.process = subprocess.Popen(node.command(command), env=self.variables, stdin=subprocess.DEVNULL,
                                        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def read(self) -> None:
        for line in self.process.stdout:
            self.lines.append((now_text(), line))
        code = self.process.wait()
        self.code = 128 - code if code < 0 else code

    def init(self) -> int:
        """Its first process, as seen from outside."""
        pids = [self.process.pid]
        while pids:
            for pid in pids:
                if pid != self.process.pid and number_inside(pid) == 1:
                    return pid
            pids = [child for pid in pids for child in children(pid)]
        return 0

    def run(self, words: list[str], timeout: float = 150) -> subprocess.CompletedProcess:
        """A command in the container, as a probe or `kubectl exec` runs it."""
        init = self.init()
        if not init or self.code is not None:
            return subprocess.CompletedProcess(words, 137, "", "error: the container does not run\n")
        enter = ["nsenter", "-t", str(init), "--all", "--root", f"--wd={self.folder}", *self.rights, "--", *words]
        return subprocess.run(enter, env=self.variables, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              errors="replace", timeout=timeout, check=False)

    def kill(self, number: int = signal.SIGKILL) -> None:
        if init := self.init():
            send_signal(init, number)


class Pod:
    def __init__(self, name: str, owner: dict, start: float):
        template = owner["spec"]["template"]
        self.name, self.labels, self.spec = name, template["metadata"]["labels"], template["spec"]
        self.created, self.start, self.kind, self.owner = now_text(), start, owner["kind"], owner["metadata"]["uid"]
        self.container: Container | None = None
        self.lines: list[tuple[str, str]] = []  # of containers that ended
        self.code: int | None = None            # of a pod of a Job that is over
        self.ready = self.disrupted = False
        self.restarts = self.sick = 0
        self.probed = 0.0
        self.trouble = ""
        self.ending: threading.Thread | None = None

    def runs(self) -> bool:
        return self.container is not None and self.container.code is None

    def log(self) -> list[tuple[str, str]]:
        return self.lines + (self.container.lines if self.container else [])

    def end(self) -> None:
        """preStop, SIGTERM, and SIGKILL after the grace period."""
        if not self.ending:
            self.ending = threading.Thread(target=self.end_slowly, daemon=True)
            self.ending.start()

    def end_slowly(self) -> None:
        over = time.monotonic() + self.spec["terminationGracePeriodSeconds"]
        hook = self.spec["containers"][0].get("lifecycle", {}).get("preStop")
        if hook and self.runs():
            answer = self.container.run(hook["exec"]["command"])
            if answer.returncode:
                self.lines.append((now_text(), f"preStop failed: {answer.stderr}"))
        if self.container:
            self.container.kill(signal.SIGTERM)
            while self.container.code is None and time.monotonic() < over:
                time.sleep(0.05)
            self.container.kill()

    def view(self) -> dict:
        state: dict = {"waiting": {"reason": "ContainerCreating"}}
        if self.trouble:
            state = {"waiting": {"reason": self.trouble, "message": "as the test wants it"}}
        elif self.runs():
            state = {"running": {"startedAt": self.created}}
        elif self.code is not None:
            state = {"terminated": {"exitCode": self.code}}
        phase = "Running" if self.runs() else "Pending" if self.code is None else "Failed" if self.code else "Succeeded"
        status = {"phase": phase, "containerStatuses": [{"name": "dtrain", "state": state, "ready": self.ready}]}
        return {"apiVersion": "v1", "kind": "Pod", "status": status,
                "metadata": {"name": self.name, "creationTimestamp": self.created, "labels": self.labels,
                             "ownerReferences": [{"kind": self.kind, "uid": self.owner}]}}
