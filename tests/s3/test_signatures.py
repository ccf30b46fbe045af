#!/usr/bin/env python3
"""Our signatures against botocore's, over requests made at random. test_signatures.py SIGN_PROGRAM"""

import datetime
import hashlib
import json
import random
import subprocess
import sys
import urllib.parse
from unittest import mock

from botocore.auth import S3SigV4Auth, SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

CASES = 300
ALPHABET = "abcXYZ019-_.~ =+:*()'@&%,;!$é漢/"
NOW = datetime.datetime(2015, 8, 30, 12, 36, 0, tzinfo=datetime.timezone.utc)


def text(random_source, low, high, alphabet=ALPHABET):
    return "".join(random_source.choice(alphabet) for _ in range(random_source.randint(low, high)))


def case(number):
    source = random.Random(number)
    service = source.choice(["s3", "ec2", "elasticfilesystem", "sts"])
    return {"service": service, "region": source.choice(["us-east-1", "eu-west-1"]),
            "method": source.choice(["GET", "PUT", "POST", "DELETE"]),
            "path": "/" + text(source, 0, 20, ALPHABET + "/./../"),
            "query": [[text(source, 1, 6, ALPHABET), text(source, 0, 6)] for _ in range(source.randint(0, 4))],
            "host": source.choice(["example.amazonaws.com", "127.0.0.1:5000"]),
            "token": source.choice(["", "a/token+with=signs"]), "body": text(source, 0, 30)}


def botocore_signs(one):
    """The request's headers as botocore signs them."""
    path = urllib.parse.quote(one["path"], safe="/-_.~")
    query = "&".join(f"{urllib.parse.quote(name, safe='-_.~')}={urllib.parse.quote(value, safe='-_.~')}"
                     for name, value in one["query"])
    request = AWSRequest(one["method"], f"http://{one['host']}{path}" + (f"?{query}" if query else ""),
                         data=one["body"].encode())
    request.context["client_config"] = None
    signer = S3SigV4Auth if one["service"] == "s3" else SigV4Auth
    with mock.patch("botocore.auth.get_current_datetime", lambda *_, **__: NOW.replace(tzinfo=None)):
        signer(Credentials("AKID", "SECRET", one["token"] or None), one["service"], one["region"]).add_auth(request)
    return {name: value for name, value in request.headers.items()}


def main(program):
    passed = failed = 0
    with subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as ours:
        for number in range(CASES):
            one = case(number)
            headers = botocore_signs(one)
            wanted = headers.pop("Authorization")
            payload = headers.get("X-Amz-Content-SHA256")
            if payload is None:
                payload = hashlib.sha256(one["body"].encode()).hexdigest()
            signed = wanted.split("SignedHeaders=")[1].split(",")[0].split(";")
            line = {**{key: one[key] for key in ("method", "path", "query", "service", "region")},
                    "headers": [["host", one["host"]]] + [[name, value] for name, value in headers.items()
                                                          if name.lower() in signed and name.lower() != "host"],
                    "payload_hash": payload, "access_key": "AKID", "secret_key": "SECRET", "time": headers["X-Amz-Date"]}
            ours.stdin.write(json.dumps(line) + "\n")
            ours.stdin.flush()
            given = ours.stdout.readline().strip()
            if given == wanted:
                passed += 1
            else:
                failed += 1
                print(f"FAIL case {number} {one}\n  ours     {given}\n  botocore {wanted}")
        ours.stdin.close()
    print(f"{passed} passed, {failed} failed")
    return failed == 0


if __name__ == "__main__":
    sys.exit(0 if main(sys.argv[1]) else 1)
