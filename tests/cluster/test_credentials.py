"""Requirement 14: the credentials of a command. Each source gives keys of its own, and the signature shows which were used."""

import hashlib
import http.server
import json
import re
import threading
import time

import proxy as account
import pytest
from faults import Answer, error
from imds import Imds

SOURCES = ("environment", "role", "web identity", "sso", "credentials file", "command", "config file", "container", "instance")
AGAIN = ("container", "container again")  # what the container gives first, and then
AHEAD = 3600


def name(source):
    return "AKIA" + source.replace(" ", "").upper()


def at(seconds):
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + seconds))


def document(source, expires=AHEAD):
    return json.dumps({"Version": 1, "AccessKeyId": name(source), "SecretAccessKey": "temporary", "SessionToken": "session-token",
                       "Token": "session-token", "Expiration": at(expires), "Code": "Success"})


def keys(source):
    return f"aws_access_key_id = {name(source)}\naws_secret_access_key = temporary\naws_session_token = session-token\n"


class Portal(http.server.BaseHTTPRequestHandler):
    """A container's endpoint, and SSO's portal and OIDC."""

    def do_GET(self):
        if self.path == "/container":
            self.server.asked += 1
            return self.reply(200 if self.headers["Authorization"] == "container's token" else 403, document(AGAIN[self.server.asked > 1]))
        if self.path != "/federation/credentials?account_id=1&role_name=r" and self.path != \
                "/federation/credentials?role_name=r&account_id=1":
            return self.reply(404, "{}")
        if self.headers["x-amz-sso_bearer_token"] not in ("valid", "renewed"):
            return self.reply(401, '{"message": "Session token not found or invalid"}')
        return self.reply(200, json.dumps({"roleCredentials": {
            "accessKeyId": name("sso"), "secretAccessKey": "temporary", "sessionToken": "session-token",
            "expiration": int(time.time() + AHEAD) * 1000}}))

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        renewed = self.path == "/token" and asked["grantType"] == "refresh_token" and asked["refreshToken"] == "again"
        return self.reply(200 if renewed else 400, json.dumps({"accessToken": "renewed", "expiresIn": AHEAD}))

    def reply(self, status, text):
        self.send_response(status)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *_):
        pass


class Person:
    """A user with the credential sources of the test, and no other."""

    def __init__(self, cloud, monkeypatch):
        self.cloud, self.home = cloud, cloud.folder / "home"
        self.config, self.sessions, self.credentials = "[profile p]\n", "", "[p]\n"
        self.words = {"AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": "", "AWS_PROFILE": "", "AWS_EC2_METADATA_DISABLED": "true"}
        self.portal = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Portal)
        self.portal.daemon_threads, self.portal.asked = True, 0
        threading.Thread(target=self.portal.serve_forever, args=(0.05,), daemon=True).start()
        self.portal_url = f"http://127.0.0.1:{self.portal.server_address[1]}"
        self.imds = Imds({"meta-data/iam/security-credentials/": "node",
                          "meta-data/iam/security-credentials/node": document("instance")})
        known = {name(source): ("temporary", "session-token") for source in (*SOURCES, *AGAIN)}
        monkeypatch.setattr(account, "KEYS", {**account.KEYS, **known})

    def close(self):
        for server in (self.portal, self.imds.server):
            server.shutdown()
            server.server_close()

    def write(self, path, text):
        place = self.home / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
        return place

    def gets(self, source):
        getattr(self, "has_" + source.replace(" ", "_"))()

    def has_environment(self):
        self.words |= {"AWS_ACCESS_KEY_ID": name("environment"), "AWS_SECRET_ACCESS_KEY": "temporary",
                       "AWS_SESSION_TOKEN": "session-token"}

    def has_role(self):
        """A profile that assumes a role with the keys of another."""
        self.config += "role_arn = arn:aws:iam::1:role/r\nsource_profile = base\n"
        self.credentials += "[base]\naws_access_key_id = test\naws_secret_access_key = test\n"
        self.words["AWS_PROFILE"] = "p"
        self.gives_role("AssumeRole", "role")

    def has_web_identity(self):
        self.words |= {"AWS_WEB_IDENTITY_TOKEN_FILE": str(self.write("token", "who I am")), "AWS_ROLE_ARN": "arn:aws:iam::1:role/r"}
        self.gives_role("AssumeRoleWithWebIdentity", "web identity")

    def gives_role(self, action, source):
        """STS's answer; the account would give unpredictable keys."""
        given = (f"<{action}Response><{action}Result><Credentials><AccessKeyId>{name(source)}</AccessKeyId><SecretAccessKey>temporary"
                 f"</SecretAccessKey><SessionToken>session-token</SessionToken><Expiration>{at(AHEAD)}</Expiration></Credentials>"
                 f"</{action}Result></{action}Response>")
        self.cloud.proxy.on(action, lambda _: Answer(200, given))

    def has_sso(self, token="valid", expires=AHEAD, **more):
        self.config += "sso_session = corp\nsso_account_id = 1\nsso_role_name = r\n"
        self.sessions = "[sso-session corp]\nsso_region = us-east-1\nsso_start_url = https://corp.example\n"
        self.words |= {"AWS_PROFILE": "p", "AWS_ENDPOINT_URL_SSO": self.portal_url, "AWS_ENDPOINT_URL_SSO_OIDC": self.portal_url}
        self.write(f".aws/sso/cache/{hashlib.sha1(b'corp').hexdigest()}.json",
                   json.dumps({"accessToken": token, "expiresAt": at(expires), **more}))

    def has_credentials_file(self):
        self.credentials += keys("credentials file")
        self.words["AWS_PROFILE"] = "p"

    def has_command(self):
        self.config += f"credential_process = cat {self.write('said', document('command'))}\n"
        self.words["AWS_PROFILE"] = "p"

    def has_config_file(self):
        self.config += keys("config file")
        self.words["AWS_PROFILE"] = "p"

    def has_container(self):
        self.words |= {"AWS_CONTAINER_CREDENTIALS_FULL_URI": self.portal_url + "/container",
                       "AWS_CONTAINER_AUTHORIZATION_TOKEN": "container's token"}

    def has_instance(self):
        self.words |= {"AWS_EC2_METADATA_DISABLED": "", "AWS_EC2_METADATA_SERVICE_ENDPOINT": self.imds.url}

    def asks(self, status=2):
        """AWS answers that there is no such cluster; or the credentials are refused."""
        self.write(".aws/config", self.config + self.sessions)
        self.write(".aws/credentials", self.credentials)
        return self.cloud.run("cluster", "status", "demo", status=status, **self.words)

    def asked_as(self):
        """The access keys of the calls to EC2."""
        calls = [call for call in self.cloud.proxy.calls if call.service == "ec2"]
        return {re.search("Credential=([^/]+)/", call.headers["authorization"])[1] for call in calls}


@pytest.fixture
def person(cloud, monkeypatch):
    made = Person(cloud, monkeypatch)
    yield made
    made.close()


@pytest.mark.parametrize("source", SOURCES)
def test_r14_keys_come_from_every_source(person, source):
    person.gets(source)
    person.asks()
    assert person.asked_as() == {name(source)}


@pytest.mark.parametrize("first,second", [("environment", "role"), ("environment", "web identity"), ("web identity", "container"),
                                          ("role", "credentials file"), ("sso", "container"), ("credentials file", "command"),
                                          ("credentials file", "config file"), ("command", "container"),
                                          ("config file", "container"), ("container", "instance")])
def test_r14_the_first_source_is_taken(person, first, second):
    person.gets(second)
    person.gets(first)
    person.asks()
    assert person.asked_as() == {name(first)}


def test_r14_a_sign_in_is_renewed_or_its_command_named(person):
    person.has_sso("old", -1, refreshToken="again", clientId="c", clientSecret="s")
    person.asks()
    assert person.asked_as() == {name("sso")}
    person.has_sso("old", -1)
    assert "aws sso login --profile p" in person.asks(status=2).stderr


def test_r14_keys_that_end_while_they_are_used_are_asked_for_again(person):
    person.has_container()
    person.cloud.proxy.on("DescribeInstances", error("ExpiredToken", status=400), calls=[1])
    person.asks()
    assert person.asked_as() == set(map(name, AGAIN))


def test_r14_who_has_none_is_told_all_that_was_tried(person):
    told = person.asks(status=2).stderr
    assert "AWS_ACCESS_KEY_ID is not set" in told and "AWS_EC2_METADATA_DISABLED is true" in told
    for source in ("environment", "web identity", "profile", "container", "instance"):
        assert f"{source} (" in told, told
