"""The schemas of Kubernetes 1.25 and newer accept the manifests of --launcher kubernetes, and know every field of them."""
import os
import subprocess
import sys

import yaml

try:
    import kubernetes_validate
    from kubernetes_validate.utils import all_versions
except ImportError:
    print("no kubernetes-validate here")
    sys.exit(77)

TRAIN = ["train", "--network", "resnet", "--data-train", "data/train.rec", "-n", "2", "--launcher", "kubernetes"]
PREFIX = "m/it's \"here\": {x} #1 \u00fc"
MORE = [[], ["--kube-claim", "mine"],
        ["--elastic", "--kube-gpus", "2", "--kube-cpus", "0.5", "--kube-namespace", "vision", "--kube-name", "cats",
         "--model-prefix", PREFIX, "--kube-storage-class", "fast", "--env", "TOKEN=a"]]


def documents(more):
    command = [os.environ["DTRAIN"], *TRAIN, "--kube-image", "registry.invalid/dtrain:1", "--kube-print", *more]
    return list(yaml.safe_load_all(subprocess.run(command, check=True, capture_output=True, text=True).stdout))


def refusal(document, version):
    try:
        kubernetes_validate.validate(document, version, strict=True)
        return ""
    except kubernetes_validate.ValidationError as error:
        return str(error)


versions = sorted(set(all_versions()))
count = 0
for more in MORE:
    for document in documents(more):
        for version in versions:
            problem = refusal(document, version)
            assert not problem, f"{document['kind']} in {version}: {problem}"
            count += 1
coordinator = documents(MORE[-1])[-1]
command = coordinator["spec"]["template"]["spec"]["containers"][0]["command"]
assert command[command.index("--model-prefix") + 1] == PREFIX, command
coordinator["spec"]["backoffLimits"] = 1
assert refusal(coordinator, versions[-1]), "a field that is misspelt is seen"
print(f"{count} documents agree with {len(versions)} versions")
