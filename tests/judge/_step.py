"""What the judges of a training step share: reading dtrain_dump_step's folders and comparing tensors."""

import json
import os
import pathlib
import subprocess
import tempfile

import numpy as np

LOSS, TENSOR, COSINE = 1e-5, 1e-4, 1 - 1e-6  # allowed: relative loss, max|a-b| / max|b| of a tensor, least cosine
# Beyond this many nodes rounding bends a ReLU or two the other way in any float32 library, and each shows as 1e-3 or more
# in the gradients before it. There the loss is judged as ever, tensors by their direction.
DEEP_NODES, DEEP_TENSOR, DEEP_COSINE = 80, 0.5, 0.999


# Rules that take the decay with the gradient, and multiply what comes of both with the factor.
WITH_DECAY = ("adam", "adamax", "adadelta")


class Case:
    """One folder of dtrain_dump_step: the members of case.json, and the arrays by name."""

    def __init__(self, folder):
        vars(self).update(json.loads((folder / "case.json").read_text()))
        self.places = {node["name"]: index for index, node in enumerate(self.graph["nodes"])}
        self.arrays = {path.stem: np.load(path) for path in folder.glob("*.npy")}
        self.samples = len(self.arrays["labels"])

    def views(self, table, flat):
        """The named tensors of a flat buffer; `table` is parameters or statistics."""
        return {v["name"]: flat[v["offset"]:v["offset"] + v["size"]].reshape(v["shape"]) for v in getattr(self, table)}

    def inputs(self, node):
        """Indices of the nodes that `node` reads."""
        return [self.places[name] for name in node.get("inputs", [])]

    def tensors(self, index):
        """Names of node `index`'s parameters, and of its running statistics."""
        tables = self.nodes[index]
        return ([self.parameters[i]["name"] for i in tables["parameters"]],
                [self.statistics[i]["name"] for i in tables["statistics"]])

    def held(self):
        """Names of the parameters that no optimizer moves."""
        first = {self.tensors(index)[0][0] for index, node in enumerate(self.graph["nodes"])
                 if node.get("fix_gamma") or node.get("frozen")}
        return first | {name for index, node in enumerate(self.graph["nodes"]) if not node.get("learns", True)
                        for name in self.tensors(index)[0]}


def weighted_nodes(case):
    return [index for index, node in enumerate(case.graph["nodes"]) if node["layer"] in ("convolution", "dense")]


def head_of(case):
    """Name of the weight that gives the logits."""
    return case.tensors(weighted_nodes(case)[-1])[0][0]


def rates(case):
    """Of each tensor its factor on the rate, and its decay at that rate: the factor is not on the decay, but where adam
    normalises both."""
    rule, head, found = case.optimizer, head_of(case), {}
    for view in case.parameters:
        is_weight = view["name"].endswith("_weight")
        factor = rule["head_lr_factor"] if view["name"] == head else 1 if is_weight else rule["bias_lr_factor"]
        found[view["name"]] = factor, rule["weight_decay"] * view["decays"] / (1 if rule["kind"] in WITH_DECAY else factor)
    return found


class Comparison:
    """Collects what differs by more than allowed."""

    def __init__(self, case):
        self.failures, self.worst = [], 0.0
        deep = len(case.nodes) > DEEP_NODES
        self.tensor, self.cosine = (DEEP_TENSOR, DEEP_COSINE) if deep else (TENSOR, COSINE)

    def scalar(self, what, actual, expected, allowed):
        error = abs(actual - expected) / max(abs(expected), 1e-30)
        if not error <= allowed:
            self.failures.append(f"{what}: {actual} is not {expected}")

    def tensors(self, what, actual, expected, floor=1e-30):
        """`floor`: a tensor that vanishes but for rounding is measured against this instead of its own largest value."""
        for name, b in expected.items():
            a, b = (np.asarray(values, dtype=np.float64).reshape(-1) for values in (actual[name], b))
            error = np.abs(a - b).max() / max(np.abs(b).max(), floor)
            cosine = 1.0 if np.abs(b).max() < floor else a @ b / (np.linalg.norm(a) * np.linalg.norm(b) + 1e-300)
            self.worst = max(self.worst, error)
            if not (error <= self.tensor and cosine >= self.cosine):
                self.failures.append(f"{what} {name}: differs by {error:.2g}, cosine {cosine:.9f}")

    def gradients(self, case, expected):
        """The start of dtrain's contribution: gradients of the summed loss."""
        floor = 1e-3 * max(np.abs(gradient).max() for gradient in expected.values())
        self.tensors("gradient of", case.views("parameters", case.arrays["contribution"]), expected, floor)

    def sums(self, case, statistics, metrics):
        """The rest of it: batch statistics weighted by count, loss sum, correct, correct in top k, count."""
        flat = case.arrays["contribution"][sum(view["size"] for view in case.parameters):]
        self.tensors("batch statistic", case.views("statistics", flat), statistics)
        counts = LOSS if "shares" in case.arrays else 0
        names, allowed = ("loss", "correct", "top_k_correct", "count"), (LOSS, counts, counts, 0)
        for what, actual, expected, limit in zip(names, flat[-4:], metrics, allowed):
            self.scalar(what, actual, expected, limit)

    def updated(self, case, parameters, statistics):
        self.tensors("updated", case.views("parameters", case.arrays["after_parameters"]), parameters)
        self.tensors("updated", case.views("statistics", case.arrays["after_statistics"]), statistics)


def run(judge, backends, cases):
    """Lets each backend compute its cases, and judge(case) -> Comparison each of them. Returns the exit status."""
    program = pathlib.Path(os.environ["DTRAIN"]).parent / "tests" / "dtrain_dump_step"
    passed = failed = 0
    for backend in backends:
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([program, backend, folder, *cases], check=True)
            for path in sorted(pathlib.Path(folder).iterdir()):
                found = judge(Case(path))
                passed, failed = passed + (not found.failures), failed + bool(found.failures)
                print(f"{'FAIL' if found.failures else 'ok  '} {backend} {path.name} (worst tensor {found.worst:.1g})")
                for line in found.failures:
                    print("    " + line)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0
