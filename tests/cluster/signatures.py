"""Verifies a request's Signature Version 4, by the rules of AWS and without its leniency."""

import hashlib
import hmac
import re
import time
import urllib.parse

ALGORITHM = "AWS4-HMAC-SHA256"
HEADER = re.compile(rf"{ALGORITHM} Credential=([^/]+)/(\d{{8}})/([^/]+)/([^/]+)/aws4_request, ?"
                    r"SignedHeaders=([^,]+), ?Signature=([0-9a-f]{64})$")
SKEW = 300  # seconds that a signer's clock may be off
UNRESERVED = "-_.~"


def scope_of(headers):
    """(region, service) of the signature; None: unsigned."""
    match = HEADER.match(headers.get("authorization", ""))
    return (match[3], match[4]) if match else None


def problem_with(method, path, query, headers, body, keys, now):
    """(code, message), or None. `headers` in lower case; `keys`: {access key: (secret, session token or None)}."""
    match = HEADER.match(headers.get("authorization", ""))
    if not match:
        return "MissingAuthenticationToken", "no signature, or one that cannot be read"
    key, day, region, service, names, signature = match.groups()
    if key not in keys:
        return "InvalidClientTokenId", f"nobody has the access key {key}"
    secret, token = keys[key]
    stamp = headers.get("x-amz-date", "")
    if abs(seconds_of(stamp) - now) > SKEW:
        return "RequestTimeTooSkewed", f"{stamp} is not now"
    wrong = unsigned_header(names.split(";"), headers) or wrong_token(headers, token)
    if wrong:
        return "SignatureDoesNotMatch", wrong
    payload = headers.get("x-amz-content-sha256") or hashlib.sha256(body).hexdigest()
    if payload != "UNSIGNED-PAYLOAD" and payload != hashlib.sha256(body).hexdigest():
        return "XAmzContentSHA256Mismatch", "the body is another one"
    canonical = "\n".join([method, canonical_path(path, service), canonical_query(query),
                           "".join(f"{name}:{' '.join(headers[name].split())}\n" for name in names.split(";")), names, payload])
    to_sign = "\n".join([ALGORITHM, stamp, f"{day}/{region}/{service}/aws4_request",
                         hashlib.sha256(canonical.encode()).hexdigest()])
    derived = f"AWS4{secret}".encode()
    for part in (day, region, service, "aws4_request"):
        derived = hmac.digest(derived, part.encode(), "sha256")
    if not stamp.startswith(day) or hmac.new(derived, to_sign.encode(), "sha256").hexdigest() != signature:
        return "SignatureDoesNotMatch", f"the signature is wrong; the request is\n{canonical}"
    return None


def seconds_of(stamp):
    try:
        return time.mktime(time.strptime(stamp, "%Y%m%dT%H%M%SZ")) - time.timezone
    except ValueError:
        return 0


def unsigned_header(names, headers):
    if names != sorted(names):
        return "the signed headers are not sorted"
    if [name for name in names if name not in headers]:
        return "a signed header is missing"
    must = [name for name in headers if name == "host" or name == "content-type" or name.startswith("x-amz-")]
    missing = [name for name in must if name not in names]
    return f"not signed: {', '.join(missing)}" if missing else None


def wrong_token(headers, token):
    return None if headers.get("x-amz-security-token") == token else "the session token is not the key's"


def canonical_path(path, service):
    """S3 signs the path as it is sent, the others encode it once more."""
    return path if service == "s3" else urllib.parse.quote(path, safe="/" + UNRESERVED)


def canonical_query(query):
    pairs = [pair.partition("=")[::2] for pair in query.split("&")] if query else []
    recoded = sorted((recode(name), recode(value)) for name, value in pairs)
    return "&".join(f"{name}={value}" for name, value in recoded)


def recode(word):
    return urllib.parse.quote(urllib.parse.unquote(word), safe=UNRESERVED)
