#!/usr/bin/env python3
"""A stand-in of YARN's ResourceManager and nodes: resource_manager.py PORT FOLDER.

It accepts only requests that the documentation of the REST API ("Cluster New Application", "Cluster Applications (Submit
Application)", "Cluster Application", "Cluster Application State") allows, and what it refuses or does is a line of
FOLDER/requests. An application runs what Hadoop's DistributedShell would run: the file `shellCommands`, in a process group.
"""

import http.server
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import threading
import urllib.parse

PORT, FOLDER = int(sys.argv[1]), pathlib.Path(sys.argv[2])
MASTER = "org.apache.hadoop.yarn.applications.distributedshell.ApplicationMaster"
lock = threading.Lock()
applications: dict[str, dict] = {}


class Refused(Exception):
    pass


def require(condition, what: str) -> None:
    if not condition:
        raise Refused(what)


def check_submission(body: dict) -> pathlib.Path:
    """The file that the application runs."""
    require(body.get("application-id") in applications, "application-id was not given by new-application")
    require(applications[body["application-id"]]["state"] == "NEW", "the application was submitted already")
    require(isinstance(body.get("application-name"), str), "application-name is a string")
    require(body.get("unmanaged-AM") is False, "unmanaged-AM is false")
    require(isinstance(body.get("max-app-attempts"), int), "max-app-attempts is a number")
    require(set(body["resource"]) == {"memory", "vCores"}, "resource has memory and vCores")
    require(body.get("queue", "default") in ("default", "training"), f"unknown queue: {body.get('queue')}")
    known = {"application-id", "application-name", "queue", "priority", "am-container-spec", "unmanaged-AM", "max-app-attempts",
             "resource", "application-type", "keep-containers-across-application-attempts", "application-tags"}
    require(set(body) <= known, f"unknown fields {set(body) - known}")
    container = body["am-container-spec"]
    command = container["commands"]["command"]
    require(MASTER in command and re.search(r"--container_memory \d+ --container_vcores \d+ --num_containers 1\b", command), command)
    require(any(entry["key"] == "CLASSPATH" for entry in container["environment"]["entry"]), "no CLASSPATH")
    resource, = container["local-resources"]["entry"]
    require(resource["key"] == "shellCommands", "DistributedShell reads shellCommands")
    value = resource["value"]
    require(set(value) == {"resource", "type", "visibility", "size", "timestamp"}, "fields of a local resource")
    require(value["type"] == "FILE" and value["visibility"] == "APPLICATION", "type and visibility")
    url = urllib.parse.urlparse(value["resource"])
    require(url.scheme == "file", "a file that all nodes see")
    path = pathlib.Path(url.path)
    facts = path.stat()
    require(facts.st_size == value["size"], "the resource's size changed")
    require(int(facts.st_mtime * 1000) == value["timestamp"], "the resource changed on its file system")
    return path


def read_utf(path: pathlib.Path) -> str:
    """Reads like Java's DataInputStream.readUTF."""
    content = path.read_bytes()
    length = int.from_bytes(content[:2], "big")
    require(length == len(content) - 2, "readUTF: the length in front is wrong")
    return content[2:].decode()


def run(application: dict, command: str) -> None:
    # Like a node: between double quotes of a shell.
    line = f'exec /bin/bash -c "{command} 1>{FOLDER}/stdout 2>{FOLDER}/stderr"'
    application["process"] = subprocess.Popen(["/bin/bash", "-c", line], start_new_session=True, stdin=subprocess.DEVNULL)
    application["state"] = "RUNNING"
    threading.Thread(target=watch, args=(application,), daemon=True).start()


def watch(application: dict) -> None:
    code = application["process"].wait()
    with lock:
        if application["state"] == "RUNNING":
            application["state"] = "FINISHED" if code == 0 else "FAILED"
            application["diagnostics"] = "" if code == 0 else f"Exception from container-launch. Exit code: {code}"


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def answer(self, status: int, body: dict | None = None) -> None:
        data = json.dumps(body).encode() if body is not None else b""
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def serve(self, method: str) -> None:
        url = urllib.parse.urlparse(self.path)
        text = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        with open(FOLDER / "requests", "a", encoding="utf-8") as log:
            try:
                require(urllib.parse.parse_qs(url.query).get("user.name") == ["root"], "user.name is missing")
                with lock:
                    done = self.act(method, url.path.removeprefix("/ws/v1/cluster/"), text)
                self.answer(*done)
                log.write(f"{done[0]} {method} {url.path}\n")
            except (Refused, KeyError, ValueError, OSError) as why:
                log.write(f"400 {method} {url.path} {why!r}\n")
                self.answer(400, {"RemoteException": {"exception": "BadRequestException", "message": str(why),
                                                      "javaClassName": "org.apache.hadoop.yarn.webapp.BadRequestException"}})

    def act(self, method: str, path: str, text: bytes):
        if (method, path) == ("POST", "apps/new-application"):
            name = f"application_1404198295326_{len(applications) + 1:04}"
            applications[name] = {"state": "NEW", "diagnostics": ""}
            return 200, {"application-id": name, "maximum-resource-capability": {"memory": 8192, "vCores": 32}}
        if method == "POST" and path == "apps":
            require(self.headers["Content-Type"] == "application/json", "Content-Type")
            body = json.loads(text)
            run(applications[body["application-id"]], read_utf(check_submission(body)))
            return 202,
        name = path.split("/")[1]
        application = applications[name]
        if method == "GET" and path == f"apps/{name}":
            return 200, {"app": {"id": name, "state": application["state"], "diagnostics": application["diagnostics"]}}
        require((method, path) == ("PUT", f"apps/{name}/state"), f"unknown request {method} {path}")
        require(json.loads(text) == {"state": "KILLED"}, "only KILLED may be asked for")
        application["state"] = "KILLED"
        os.killpg(application["process"].pid, signal.SIGKILL)
        return 202, {"state": "ACCEPTED"}

    def do_GET(self):
        self.serve("GET")

    def do_POST(self):
        self.serve("POST")

    def do_PUT(self):
        self.serve("PUT")


http.server.ThreadingHTTPServer(("127.0.0.1", PORT), Handler).serve_forever()
