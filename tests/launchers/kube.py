"""A stand-in of a Kubernetes cluster: runs the pods of a training as processes on the machines of a lab.

A container has the command, the variables, the user, the host name and the mounts of its manifest, no rights, a root that
it cannot write, and is process 1 of its namespace. A StatefulSet has its numbered pods, a Job its attempts with its failure
policy; preStop, SIGTERM, the grace period and both probes are carried out. It misbehaves as a cluster does: views are
late, pods stay pending, logs break off, containers restart, pods are evicted.

It does not show: the API's validation (tests/judge/kubernetes_manifests.py), images and their registries, a real container
runtime, the scheduler and its resources, cgroups, storage classes and their drivers, Services and DNS, pod disruption
budgets, GPUs, and roles that forbid something.
"""

from __future__ import annotations

import json
import os
import pathlib
import socketserver
import threading
import time

import yaml

from lab import SHARED, Host
from pods import VOLUME, Container, Pod, now_text
from world import SLOWNESS

PROBE_SECONDS = 0.5
BACK_OFF = 0.5  # ten seconds and more in a real cluster


class Kube:
    """The control plane. Its faults: `lag` seconds of views, `pending` seconds of pods, `break_logs` lines of a log, and
    `eager`: the Job's next pod is made as soon as one ends, whatever its code, so that views without it are hardly seen,
    and what `exec` runs ends well a moment before its container does."""

    def __init__(self, nodes: list[Host], lag: float = 0.5, pending: float = 0.3, break_logs: int = 0, eager: bool = False):
        self.nodes, self.lag, self.pending, self.break_logs = nodes, lag * SLOWNESS, pending, break_logs
        self.eager = eager
        self.objects: dict[tuple[str, str], dict] = {}
        self.applied: list[dict] = []  # everything that was ever applied
        self.pods: dict[str, Pod] = {}
        self.gone: list[Pod] = []
        self.views: list[tuple[float, list[dict]]] = []
        self.image_trouble = self.refused_kind = ""  # of objects that the user has no right to make
        self.held_kind = ""    # whose pods find no node
        self.lost_deletes = 0  # that do not reach the control plane
        self.attempts = 0
        self.lock, self.over = threading.RLock(), threading.Event()
        VOLUME.mkdir(exist_ok=True)
        os.chown(VOLUME, 65532, 65532)
        self.server = serve(self)
        self.thread = threading.Thread(target=self.work, daemon=True)
        self.thread.start()

    def end(self) -> None:
        self.over.set()
        self.thread.join()
        self.server.shutdown()
        self.server.server_close()
        for pod in self.pods.values():
            if pod.container:
                pod.container.kill()

    # What a user does.

    def apply(self, text: str) -> str:
        said = refused = ""
        for document in yaml.safe_load_all(text):
            key = (document["kind"], document["metadata"]["name"])
            if key[0] == self.refused_kind:
                refused = f"Error from server (Forbidden): you cannot create {key[0]} \"{key[1]}\""
                continue
            known = self.objects.get(key)
            if known and known["kind"] == "Job" and known["spec"] != document["spec"]:
                raise ValueError(f"The Job \"{key[1]}\" is invalid: spec.template: field is immutable")
            self.applied.append(json.loads(json.dumps(document)))
            document["metadata"]["uid"] = f"{key[0]}-{len(self.applied)}"
            self.objects.setdefault(key, document)
            said += f"{key[0].lower()}/{key[1]} {'configured' if known else 'created'}\n"
        if refused:
            raise ValueError(refused)
        return said

    def scale(self, name: str, replicas: int) -> None:
        with self.lock:
            self.objects["StatefulSet", name]["spec"]["replicas"] = replicas

    def delete(self, kinds: list[str], matches) -> str:
        said = ""
        for kind, name in list(self.objects):
            if kind.lower() in kinds and matches(self.objects[kind, name]):
                del self.objects[kind, name]
                said += f"{kind.lower()} \"{name}\" deleted\n"
        return said

    def evict(self, name: str) -> None:
        """As a drained node does: the pod ends in peace, and comes back elsewhere."""
        with self.lock:
            self.pods[name].disrupted = True
            self.pods[name].end()

    def coordinator(self) -> Pod | None:
        pods = [pod for pod in self.pods.values() if pod.kind == "Job" and pod.code is None]
        return pods[-1] if pods else None

    # The controllers.

    def work(self) -> None:
        while not self.over.wait(0.05):
            with self.lock:
                for (kind, _), owner in list(self.objects.items()):
                    if kind == "StatefulSet":
                        self.settle_set(owner)
                    if kind == "Job":
                        self.settle_job(owner)
                self.end_orphans()
                for pod in list(self.pods.values()):
                    self.settle_pod(pod)
                self.views.append((time.monotonic(), self.view()))
                self.views = self.views[-400:]
            for pod in list(self.pods.values()):
                self.probe(pod)

    def settle_set(self, owner: dict) -> None:
        name, wanted = owner["metadata"]["name"], owner["spec"]["replicas"]
        for number in range(wanted):
            self.pods.setdefault(f"{name}-{number}", Pod(f"{name}-{number}", owner, time.monotonic() + self.pending))
        for pod in list(self.pods.values()):
            if pod.kind == "StatefulSet" and int(pod.name.rsplit("-", 1)[1]) >= wanted:
                pod.end()

    def settle_job(self, owner: dict) -> None:
        status = owner.setdefault("status", {})
        if status.get("conditions"):
            return
        own = [pod for pod in self.pods.values() if pod.owner == owner["metadata"]["uid"]]
        for pod in own:
            if pod.code == 0:
                status["conditions"] = [{"type": "Complete", "status": "True"}]
                return
            rule = next((rule for rule in owner["spec"]["podFailurePolicy"]["rules"] if rule_fits(rule, pod)), None)
            if pod.code is not None and rule and rule["action"] == "FailJob" and not self.eager:
                status["conditions"] = [{"type": "Failed", "status": "True", "reason": "PodFailurePolicy",
                                         "message": f"container exited with {pod.code}"}]
                return
        if not all(pod.code is not None for pod in own):
            status["next"] = 0
        elif own and not self.eager and not status["next"]:
            status["next"] = time.monotonic() + BACK_OFF
        elif time.monotonic() > status.setdefault("next", 0):
            self.attempts += 1
            name = f"{owner['metadata']['name']}-{self.attempts:05d}"
            self.pods[name] = Pod(name, owner, time.monotonic() + self.pending)

    def end_orphans(self) -> None:
        for pod in list(self.pods.values()):
            if not any(item["metadata"]["uid"] == pod.owner for item in self.objects.values()):
                if pod.code is not None:
                    self.forget(pod)
                else:
                    pod.end()

    def forget(self, pod: Pod) -> None:
        self.gone.append(self.pods.pop(pod.name))

    def settle_pod(self, pod: Pod) -> None:
        pod.trouble = self.image_trouble if not pod.container else ""
        if pod.container and pod.container.code is not None and pod.code is None:
            pod.ready = False
            if pod.kind == "Job":
                pod.code = pod.container.code
            elif pod.ending:
                self.forget(pod)
            else:
                pod.lines, pod.container = pod.log(), None
                pod.restarts += 1
                pod.start = time.monotonic() + BACK_OFF
        if not pod.container and pod.ending:
            self.forget(pod)
        elif not pod.container and not pod.trouble and pod.kind != self.held_kind and time.monotonic() >= pod.start:
            node = self.nodes[-1] if pod.kind == "Job" else \
                self.nodes[int(pod.name.rsplit("-", 1)[1]) % len(self.nodes)]
            pod.container = Container(pod, node, self.secrets())

    def secrets(self) -> dict[str, dict[str, str]]:
        return {name: item["stringData"] for (kind, name), item in self.objects.items() if kind == "Secret"}

    def probe(self, pod: Pod) -> None:
        container = pod.spec["containers"][0]
        if not pod.runs() or pod.ending or "readinessProbe" not in container or time.monotonic() < pod.probed + PROBE_SECONDS:
            return
        pod.probed = time.monotonic()
        pod.ready = pod.container.run(container["readinessProbe"]["exec"]["command"]).returncode == 0
        alive = pod.container.run(container["livenessProbe"]["exec"]["command"]).returncode == 0
        pod.sick = 0 if alive else pod.sick + 1
        if pod.sick >= container["livenessProbe"]["failureThreshold"] + 4:  # containers that begin have five seconds
            pod.lines.append((now_text(), "killed: its liveness probe fails\n"))
            pod.container.kill()

    # Answers.

    def view(self) -> list[dict]:
        jobs = [json.loads(json.dumps(value)) for (kind, _), value in self.objects.items() if kind == "Job"]
        return jobs + [pod.view() for pod in self.pods.values()]

    def late_view(self) -> list[dict]:
        with self.lock:
            wanted = time.monotonic() - self.lag
            return next((view for at, view in reversed(self.views) if at <= wanted), [])

    def answer(self, words: list[str], text: str, send) -> int:
        words = [word for word in words if not word.startswith("--namespace=")]
        if words[0] == "logs":
            return self.logs(words, send)
        if words[0] == "exec":
            pod = self.pods.get(words[1])
            answer = pod.container.run(words[words.index("--") + 1:]) if pod and pod.container else None
            if not answer:
                send("err", f"Error from server (NotFound): pods \"{words[1]}\" not found\n")
                return 1
            send("out", answer.stdout)
            send("err", answer.stderr)
            return 0 if self.eager else answer.returncode
        try:
            send("out", self.short_answer(words, text))
            return 0
        except ValueError as error:
            send("err", f"{error}\n")
            return 1

    def short_answer(self, words: list[str], text: str) -> str:
        if words[:2] == ["get", "job,pod"]:
            return json.dumps({"kind": "List", "items": [item for item in self.late_view() if has_labels(item, words[3])]})
        with self.lock:
            if words[0] == "apply":
                return self.apply(text)
            if words[0] == "delete" and self.lost_deletes > 0:
                self.lost_deletes -= 1
                raise ValueError("Unable to connect to the server: net/http: TLS handshake timeout")
            if words[0] == "delete" and words[2] == "-l":
                return self.delete(words[1].split(","), lambda item: has_labels(item, words[3]))
            if words[0] == "delete":
                return self.delete([words[1]], lambda item: item["metadata"]["name"] == words[2])
            if words[0] == "scale":
                self.scale(words[1].split("/")[1], int(words[-1]))
                return f"{words[1]} scaled\n"
        raise ValueError(f"error: unknown command {words}")

    def logs(self, words: list[str], send) -> int:
        """As the real one: everything since a second, with the lines of that second again."""
        since = next((word.partition("=")[2][:19] for word in words if word.startswith("--since-time=")), "")
        pod = self.pods.get(words[-1]) or next((pod for pod in reversed(self.gone) if pod.name == words[-1]), None)
        if not pod:
            send("err", f"Error from server (NotFound): pods \"{words[-1]}\" not found\n")
            return 1
        assert "--follow" in words and "--timestamps" in words
        shown, breaks, self.break_logs = 0, self.break_logs, 0
        while not self.over.is_set():
            over = not pod.runs()
            for moment, line in pod.log()[shown:]:
                shown += 1
                if moment[:19] >= since:
                    send("out", f"{moment} {line}")
                if breaks and shown >= breaks:
                    send("err", "error: unexpected EOF\n")
                    return 1
            if over and pod.container:
                return 0
            time.sleep(0.05)
        return 1


def rule_fits(rule: dict, pod: Pod) -> bool:
    if any(condition["type"] == "DisruptionTarget" for condition in rule.get("onPodConditions", [])):
        return pod.disrupted
    return pod.code in rule.get("onExitCodes", {}).get("values", [])


def has_labels(item: dict, selector: str) -> bool:
    labels = item["metadata"]["labels"]
    return all(labels.get(pair.split("=")[0]) == pair.split("=")[1] for pair in selector.split(","))


def serve(kube: Kube) -> socketserver.ThreadingUnixStreamServer:
    """Answers kubectl.py at SHARED/kube.sock."""
    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            question = json.loads(self.rfile.readline())

            def send(key: str, value) -> None:
                self.wfile.write((json.dumps({key: value}) + "\n").encode())
            try:
                send("exit", kube.answer(question["words"], question["input"], send))
            except (BrokenPipeError, ConnectionResetError):
                pass

    path = SHARED / "kube.sock"
    path.unlink(missing_ok=True)
    socketserver.ThreadingUnixStreamServer.daemon_threads = True
    server = socketserver.ThreadingUnixStreamServer(str(path), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


def kubectl_of(folder: pathlib.Path) -> dict[str, str]:
    """A folder for PATH with kubectl in it, and $KUBECONFIG."""
    programs = folder / "programs"
    programs.mkdir()
    source = pathlib.Path(__file__).with_name("kubectl.py").read_text()
    (programs / "kubectl").write_text(source)
    (programs / "kubectl").chmod(0o755)
    (folder / "kubeconfig").write_text(json.dumps({"current-context": "lab", "contexts": {"lab": str(SHARED / "kube.sock")}}))
    return {"PATH": f"{programs}:/usr/local/bin:/usr/bin:/bin", "KUBECONFIG": str(folder / "kubeconfig")}
