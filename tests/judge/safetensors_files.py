"""The safetensors library reads dtrain's checkpoints and exports; the hashes are those of src/train/checkpoint_tensors.hpp."""
import hashlib
import json

from safetensors import safe_open
from safetensors.numpy import load_file

from _cases import judge_all, must, must_equal

ENDINGS = {"_weight": ".weight", "_gamma": ".weight", "_bias": ".bias", "_beta": ".bias", "_moving_mean": ".running_mean",
           "_moving_var": ".running_var"}


def sha256(data):
    return hashlib.sha256(data).hexdigest()


def judge(case):
    path, manifest = case.path("-0001.safetensors"), case.manifest
    tensors = load_file(path)
    must(list(tensors) and set(tensors) == {t["name"] for t in manifest["tensors"]}, "other names than in the manifest")
    lines = []
    for entry in manifest["tensors"]:
        tensor = tensors[entry["name"]]
        must(list(tensor.shape) == entry["shape"], f"{entry['name']}: shape {tensor.shape}")
        must(sha256(tensor.tobytes()) == entry["sha256"], f"{entry['name']}: other hash")
        extents = ", ".join(map(str, entry["shape"]))
        lines.append(f"{entry['name']} [{extents}] {entry['sha256']}\n")
    judge_hashes(path, manifest, lines)
    return f"{len(tensors)} tensors, " + judge_export(case)


def torch_name(name):
    for ours, theirs in ENDINGS.items():
        if name.endswith(ours) and not name.endswith(f".in_proj{ours}"):  # of torch.nn.MultiheadAttention itself
            return name.removesuffix(ours) + theirs
    return name


def judge_hashes(path, manifest, lines):
    first_statistic = next((i for i, t in enumerate(manifest["tensors"]) if "_moving_" in t["name"]), None)
    first_slot = next((i for i, t in enumerate(manifest["tensors"]) if t["name"].startswith("optimizer/")), None)
    parameters = lines[: min(i for i in (first_statistic, first_slot, len(lines)) if i is not None)]
    must(sha256("".join(parameters).encode()) == manifest["weights_sha256"], "other weights_sha256")
    state = "".join(lines) + f"updates {manifest['updates']}\n"
    state += f"epoch {manifest['epoch']} step {manifest['step']} samples_seen {manifest['samples_seen']}\n"
    if scale := manifest.get("loss_scale"):
        state += f"loss_scale {float(scale['value']):.17g} good_steps {scale['good_steps']}\n"
    must(sha256(state.encode()) == manifest["state_sha256"], "other state_sha256")
    with open(path, "rb") as file:
        length = file.read(8)
        header = length + file.read(int.from_bytes(length, "little"))
    must(sha256(header) == manifest["data"]["header_sha256"], "other header_sha256")
    must(path.stat().st_size == manifest["data"]["size"], "other size")


def judge_export(case):
    with safe_open(case.path(".safetensors"), "numpy") as export:
        tensors = {torch_name(name): tensor for name, tensor in case.tensors().items()}
        must(set(export.keys()) == set(tensors), "the export has other tensors")
        for name, tensor in tensors.items():
            must_equal(export.get_tensor(name), tensor, name)
        metadata = export.metadata()
    must(json.loads(metadata["preprocessing"]) == case.manifest["preprocessing"], "other preprocessing")
    return f"{len(tensors)} exported"


judge_all(judge)
