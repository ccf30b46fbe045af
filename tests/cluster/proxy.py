"""Stands between dtrain and moto_server: checks every signature, refuses what the policy of `cluster iam-policy` does not
allow (policy.py), counts every call, applies the faults of a test, and enforces the rules of AWS where moto does not
(strictness.py)."""

import email.utils
import http.client
import http.server
import json
import threading
import time
import urllib.parse

import signatures
from faults import Answer, Dropped, refusal
from lag import Lag
from strictness import Strictness

KEYS = {"test": ("test", None), **{key: ("temporary", "session-token") for key in ("ASIATEST", "ASIAHEAD", "ASIAWORKER")}}
UNSIGNED = ("AssumeRoleWithWebIdentity",)  # a token in the body authenticates the caller
PUBLIC = "/offers/"  # price lists
READS = ("Describe", "Get", "GET /offers/", "List")
# What moto answers without a look at the account, from files that take it long: asked once for each question.
FIXED = ("DescribeInstanceTypes", "DescribeInstanceTypeOfferings", "DescribeRegions")


class Exchange:
    """One request, and how it is forwarded."""

    def __init__(self, proxy, method, target, headers, body):
        self.proxy, self.method, self.target, self.headers, self.body = proxy, method, target, headers, body
        self.path, _, self.query = target.partition("?")
        self.at = time.monotonic()
        self.region, self.service = signatures.scope_of(headers) or ("", "unsigned")
        self.form = {}
        if self.headers.get("content-type", "").startswith("application/x-www-form-urlencoded"):
            self.form = dict(urllib.parse.parse_qsl(body.decode(), keep_blank_values=True))
        self.action = self.name_of_action()
        self.number = self.total = 0  # among those of this action, and among all; from 1

    def name_of_action(self):
        if "Action" in self.form:
            return self.form["Action"]
        if "x-amz-target" in self.headers:
            return self.headers["x-amz-target"].rpartition(".")[2]
        if self.service == "elasticfilesystem":
            verbs = {"GET": "Describe", "POST": "Create", "PUT": "Update", "DELETE": "Delete"}
            things = {"file-systems": "FileSystem", "mount-targets": "MountTarget", "resource-tags": "Tag"}
            thing = things.get(self.path.split("/")[2], self.path)
            return verbs.get(self.method, self.method) + thing + ("s" if self.method == "GET" else "")
        return f"{self.method} {self.path}"

    def json(self):
        return json.loads(self.body or b"{}")

    def key(self):
        """The access key of the caller."""
        return self.headers.get("authorization", "").partition("Credential=")[2].partition("/")[0]

    def is_mutating(self):
        return not self.action.startswith(READS)

    def set_form(self, **changes):
        """Fields of the forwarded request; None removes a field."""
        for name, value in changes.items():
            self.form.pop(name, None)
            if value is not None:
                self.form[name] = str(value)
        self.body = urllib.parse.urlencode(self.form).encode()

    def forward(self):
        if self.action not in FIXED:
            return self.ask()
        question = (self.region, self.target, self.body)
        if question not in self.proxy.fixed:
            self.proxy.fixed[question] = self.ask()
        known = self.proxy.fixed[question]
        return Answer(known.status, known.body, known.kind, dict(known.headers))

    def ask(self):
        account = http.client.HTTPConnection(self.proxy.account, timeout=120)
        headers = {name: value for name, value in self.headers.items() if name not in ("content-length", "connection")}
        account.request(self.method, self.target, self.body, headers)
        reply = account.getresponse()
        kept = {name: value for name, value in reply.getheaders() if name.lower().startswith(("x-amz", "etag", "last-mod"))}
        answer = Answer(reply.status, reply.read(), reply.getheader("Content-Type", "text/plain"), kept)
        account.close()
        return answer


class Plan:
    def __init__(self, action, fault, calls):
        self.action, self.fault, self.calls = action, fault, calls

    def fits(self, exchange):
        if self.action not in ("*", exchange.action):
            return False
        return self.calls is None or (exchange.total if self.action == "*" else exchange.number) in self.calls


class Proxy:
    """`calls`: Exchanges as they came. `wrong`: signature errors, `denied`: rights that the policy lacks; both are empty at the
    end of a test. `policy`: of the caller; None: everything is allowed."""

    policy = None

    def __init__(self, account_url):
        self.account = account_url.removeprefix("http://")
        self.fixed = {}  # answers to FIXED
        self.lock, self.answered, self.busy = threading.Lock(), threading.Condition(), 0
        self.over = threading.Event()  # ends the delays of a test
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (Handler,), {"proxy": self}))
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()
        self.fresh()

    def rest(self):
        """Waits for the calls of processes that were killed meanwhile: a late one would fall into the next test."""
        self.over.set()
        with self.answered:
            assert self.answered.wait_for(lambda: self.busy == 0, 120), f"{self.busy} calls have no answer after two minutes"
        self.over.clear()

    def fresh(self):
        """Resets the state of earlier tests."""
        self.calls, self.wrong, self.denied, self.plans = [], [], [], []
        self.clock_skew = 0    # seconds that AWS's clock is ahead of ours
        self.policies = {}     # of holders of other keys than the user's: {access key: policy}
        self.forgives = set()  # codes of wrong signatures that a test expects
        self.before_call = self.after_call = None  # called with the Exchange; `after` once it was answered
        self.strict, self.lag = Strictness(self.account), Lag()

    def close(self):
        self.server.shutdown()
        self.server.server_close()

    # Set by tests.

    def on(self, action, fault, calls=None):
        """Applies the fault to these calls of the action, numbered from 1 from now on; None: to all. "*": any action."""
        with self.lock:
            offset = self.counted(action)
        self.plans.append(Plan(action, fault, None if calls is None else {offset + number for number in calls}))

    # Read by tests.

    def counted(self, action):
        return sum(1 for call in self.calls if action in ("*", call.action))

    def count(self, action=None):
        with self.lock:
            return self.counted(action or "*")

    def counts(self):
        """{action: calls}"""
        with self.lock:
            return {name: self.counted(name) for name in sorted({call.action for call in self.calls})}

    def mutating(self):
        with self.lock:
            return [call.action for call in self.calls if call.is_mutating()]

    def times(self, action):
        """Seconds between the calls of an action."""
        with self.lock:
            at = [call.at for call in self.calls if call.action == action]
        return [later - earlier for earlier, later in zip(at, at[1:])]

    # One call.

    def answer(self, exchange):
        with self.lock:
            self.calls.append(exchange)
            exchange.number, exchange.total = self.counted(exchange.action), len(self.calls)
        wrong = signatures.problem_with(exchange.method, exchange.path, exchange.query, exchange.headers, exchange.body,
                                        KEYS, time.time() + self.clock_skew)
        is_public = exchange.action in UNSIGNED or exchange.path.startswith(PUBLIC)
        if wrong and not is_public:
            if wrong[0] not in self.forgives:
                self.wrong.append((exchange.action, *wrong))
            return refusal(exchange, *wrong, status=403)
        policy = self.policies.get(exchange.key(), self.policy)
        denied = policy.refusal(exchange) if policy and not is_public else None
        if denied:
            self.denied.append(str(denied[0]))
            return denied[1]
        for plan in list(self.plans):
            answer = plan.fault(exchange) if plan.fits(exchange) else None
            if answer is not None:
                return answer
        return self.lag.see(exchange) or self.lag.seen(exchange, self.strict.answer(exchange))


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    proxy = None

    def serve(self):
        with self.proxy.answered:
            self.proxy.busy += 1
        try:
            self.serve_call()
        finally:
            with self.proxy.answered:
                self.proxy.busy -= 1
                self.proxy.answered.notify_all()

    def serve_call(self):
        length = int(self.headers.get("Content-Length", 0))
        body = self.rfile.read(length)
        if len(body) < length:  # the caller was killed meanwhile
            self.close_connection = True
            return
        headers = {}
        for name, value in self.headers.items():  # repeated ones are one, as they are signed
            headers[name.lower()] = f"{headers[name.lower()]},{value}" if name.lower() in headers else value
        exchange = Exchange(self.proxy, self.command, self.path, headers, body)
        if self.proxy.before_call:
            self.proxy.before_call(exchange)
        answer = self.proxy.answer(exchange)
        if isinstance(answer, Dropped):
            self.close_connection = True
        else:
            self.reply(answer)
        if self.proxy.after_call:
            self.proxy.after_call(exchange)

    def reply(self, answer):
        self.send_response_only(answer.status)
        self.send_header("Date", email.utils.formatdate(time.time() + self.proxy.clock_skew, usegmt=True))
        self.send_header("Content-Type", answer.kind)
        for name, value in answer.headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(answer.body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(answer.body)

    do_GET = do_POST = do_PUT = do_DELETE = do_HEAD = serve

    def log_message(self, *_):
        pass
