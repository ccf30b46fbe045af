"""Faults of the proxy. A fault is a function of the proxy's Exchange: its result is the answer; None passes the call to the
next fault, and finally to the account."""
import re


class Answer:
    def __init__(self, status, body, kind="text/xml", headers=None):
        self.status, self.kind, self.headers = status, kind, dict(headers or {})
        self.body = body.encode() if isinstance(body, str) else body


class Dropped:
    """No answer: the connection is closed."""


def refusal(exchange, code, message="planted", status=400):
    """An error as the service of the call writes it."""
    if exchange.service in ("ec2",):
        return Answer(status, f"<?xml version='1.0'?><Response><Errors><Error><Code>{code}</Code><Message>{message}</Message>"
                              "</Error></Errors><RequestID>planted-request-id</RequestID></Response>")
    if exchange.service in ("sts", "iam"):
        return Answer(status, f"<ErrorResponse><Error><Type>Sender</Type><Code>{code}</Code><Message>{message}</Message></Error>"
                              "<RequestId>planted-request-id</RequestId></ErrorResponse>")
    if exchange.service == "s3":
        return Answer(status, f"<Error><Code>{code}</Code><Message>{message}</Message></Error>")
    return Answer(status, f'{{"__type": "{code}", "message": "{message}"}}', "application/x-amz-json-1.1",
                  {"x-amzn-RequestId": "planted-request-id", "x-amzn-ErrorType": code})


def error(code, message="planted", status=400):
    return lambda exchange: refusal(exchange, code, message, status)


def page(status=503, body="<html>not a document of this service</html>"):
    return lambda exchange: Answer(status, body, "text/html")


def delay(seconds):
    def wait(exchange):
        exchange.proxy.over.wait(seconds)
    return wait


def lose_request():
    return lambda exchange: Dropped()


def lose_reply():
    """The call takes effect, and its reply is lost."""
    def forward_and_drop(exchange):
        exchange.proxy.lag.see(exchange) or exchange.proxy.lag.seen(exchange, exchange.proxy.strict.answer(exchange))
        return Dropped()
    return forward_and_drop


def end_at_once(cloud):
    """The call starts its machines, and the account ends the first of them."""
    def answer_and_end(exchange):
        answer = exchange.proxy.strict.answer(exchange)
        cloud.ec2.terminate_instances(InstanceIds=[re.search(rb">(i-\w+)<", answer.body)[1].decode()])
        return answer
    return answer_and_end


def ended_by(code):
    """Machines that ended did so for this reason."""
    def say(exchange):
        answer = exchange.proxy.strict.answer(exchange)
        answer.body = answer.body.replace(b"Client.UserInitiatedShutdown", code.encode())
        return answer
    return say
