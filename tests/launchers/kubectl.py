#!/usr/bin/python3
"""A stand-in of kubectl: hands its command line and its standard input to the control plane of kube.py, and shows what
that answers. The configuration in $KUBECONFIG is {"current-context", "contexts": {NAME: SOCKET}}."""

import json
import os
import pathlib
import socket
import sys


def main(arguments: list[str]) -> int:
    configuration = {"current-context": "", "contexts": {}}
    path = pathlib.Path(os.environ.get("KUBECONFIG", "/missing"))
    if path.exists():
        configuration = json.loads(path.read_text())
    context, words = configuration["current-context"], []
    for word in arguments:
        if word.startswith("--context="):
            context = word.partition("=")[2]
        else:
            words.append(word)
    contexts = configuration["contexts"]
    if words[:2] == ["config", "current-context"]:
        return say(context) if context else complain("error: current-context is not set")
    if words[:2] == ["config", "get-contexts"]:
        return say(words[2]) if words[2] in contexts else complain(f"error: context {words[2]} not found")
    if context not in contexts:
        return complain("The connection to the server localhost:8080 was refused - did you specify the right host or port?")
    return converse(contexts[context], words)


def say(text: str) -> int:
    print(text)
    return 0


def complain(text: str) -> int:
    print(text, file=sys.stderr)
    return 1


def converse(path: str, words: list[str]) -> int:
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(path)
        stream = connection.makefile("rw")
        text = sys.stdin.read() if words[:1] == ["apply"] else ""
        stream.write(json.dumps({"words": words, "input": text}) + "\n")
        stream.flush()
        for line in stream:
            answer = json.loads(line)
            if "exit" in answer:
                return answer["exit"]
            print(answer.get("out", ""), end="", flush=True)
            print(answer.get("err", ""), end="", file=sys.stderr, flush=True)
    return complain("error: unexpected EOF")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
