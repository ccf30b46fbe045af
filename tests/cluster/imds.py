"""The instance metadata service of one machine, version 2: requests without a token are refused. Its identity
document is signed like that of AWS, by a key whose certificate the tests give to those who verify it."""

import base64
import datetime
import http.server
import json
import pathlib
import secrets
import sys
import threading

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from cryptography.hazmat.primitives.serialization import pkcs7
from cryptography.x509.oid import NameOID

TOKEN = "x-aws-ec2-metadata-token"


class Authority:
    """Signs identity documents, as AWS does in one region."""

    def __init__(self):
        self.key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "identity documents of the tests")])
        now = datetime.datetime.now(datetime.timezone.utc)
        self.certificate = (x509.CertificateBuilder().subject_name(name).issuer_name(name)
                            .public_key(self.key.public_key()).serial_number(x509.random_serial_number())
                            .not_valid_before(now - datetime.timedelta(days=1))
                            .not_valid_after(now + datetime.timedelta(days=1)).sign(self.key, hashes.SHA256()))
        self.pem = self.certificate.public_bytes(serialization.Encoding.PEM).decode()

    def signature(self, document):
        """The base64 text of /dynamic/instance-identity/signature."""
        return base64.encodebytes(self.key.sign(document.encode(), padding.PKCS1v15(), hashes.SHA256())).decode()

    def pkcs7(self, document):
        """The base64 text of /dynamic/instance-identity/rsa2048."""
        signed = (pkcs7.PKCS7SignatureBuilder().set_data(document.encode())
                  .add_signer(self.certificate, self.key, hashes.SHA256())
                  .sign(serialization.Encoding.DER, [pkcs7.PKCS7Options.Binary, pkcs7.PKCS7Options.NoCapabilities]))
        return base64.encodebytes(signed).decode()


def identity_document(instance, account="123456789012", region="us-east-1"):
    """The document of EC2 for an instance as boto3 describes it."""
    return json.dumps({"accountId": account, "architecture": "x86_64", "availabilityZone":
                       instance["Placement"]["AvailabilityZone"], "imageId": instance["ImageId"],
                       "instanceId": instance["InstanceId"], "instanceType": instance["InstanceType"],
                       "pendingTime": "2030-01-01T00:00:00Z", "privateIp": instance["PrivateIpAddress"],
                       "region": region, "version": "2017-09-30"}, indent=2)


class Imds:
    """Serves `paths`, {path below /latest/: text}, which a test may change while it runs."""

    def __init__(self, paths=None, address="127.0.0.1", port=0):
        self.paths, self.tokens = dict(paths or {}), set()
        handler = type("Handler", (Handler,), {"imds": self})
        self.server = http.server.ThreadingHTTPServer((address, port), handler)
        self.server.daemon_threads = True
        self.url = f"http://{address}:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()

    @staticmethod
    def of(instance, user_data, authority, address="127.0.0.1", port=0, region="us-east-1"):
        """The service as the instance sees it."""
        document = identity_document(instance, region=region)
        paths = {"meta-data/instance-id": instance["InstanceId"], "meta-data/local-ipv4": instance["PrivateIpAddress"],
                 "meta-data/instance-type": instance["InstanceType"], "meta-data/placement/region": region,
                 "meta-data/placement/availability-zone": instance["Placement"]["AvailabilityZone"],
                 "dynamic/instance-identity/document": document,
                 "dynamic/instance-identity/signature": authority.signature(document),
                 "dynamic/instance-identity/rsa2048": authority.pkcs7(document), "user-data": user_data}
        paths |= {f"meta-data/tags/instance/{tag['Key']}": tag["Value"] for tag in instance.get("Tags", [])}
        return Imds(paths, address, port)

    def told(self):
        return self.paths

    def close(self):
        self.server.shutdown()
        self.server.server_close()


class Handler(http.server.BaseHTTPRequestHandler):
    imds = None

    def do_PUT(self):
        if self.path != "/latest/api/token" or not self.headers.get(TOKEN + "-ttl-seconds", "").isdigit():
            return self.reply(400, "")
        token = secrets.token_hex(16)
        self.imds.tokens.add(token)
        return self.reply(200, token)

    def do_GET(self):
        if self.headers.get(TOKEN) not in self.imds.tokens:
            return self.reply(401, "")
        text = self.imds.told().get(self.path.removeprefix("/latest/"))
        return self.reply(404, "") if text is None else self.reply(200, text)

    def reply(self, status, text):
        self.send_response_only(status)
        self.send_header("Content-Length", str(len(text.encode())))
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *_):
        pass


class ImdsOfFile(Imds):
    """The service of another process: the paths are in a file, which is read for each request."""

    def __init__(self, file, address, port):
        self.file = pathlib.Path(file)
        super().__init__(address=address, port=port)

    def told(self):
        return json.loads(self.file.read_text())


if __name__ == "__main__":
    ImdsOfFile(sys.argv[1], sys.argv[2], int(sys.argv[3]))
    threading.Event().wait()
