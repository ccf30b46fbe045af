"""Invocations of dtrain that are wrong somewhere, as values: lines that work, and the ways in which they are spoilt."""
import os
import random
import re
import resource
from pathlib import Path

FIXTURE = Path("/tmp/fixture")  # the files of every case
NOWHERE = "127.0.0.1:9"  # the port of the discard service, where nothing listens

TRAIN = "--network mlp --num-epochs 1 --batch-size 20 --lr 0.01 --rgb-std 58 --threads 1 --data-nthreads 1"
DATA = "--data-train d/shapes_train.rec --data-val d/shapes_val.rec"
CLUSTER = "--region us-east-1 --timeout 3"

# Lines that work, apart from those that need an account or other hosts.
BASES = {
    "train": [f"{TRAIN} {DATA} --model-prefix new/m", f"{TRAIN} {DATA} --model-prefix m/s --resume", f"{TRAIN} {DATA}",
              f"{TRAIN} {DATA} -n 2 --job-dir j2 --comm-timeout 5 --hold-timeout 3 --model-prefix new/m",
              f"{TRAIN} --benchmark 1 --image-shape 3,8,8", f"{TRAIN} {DATA} --test-io 1"],
    "launch": ["-n 1 --job-dir j3 -- true", "-n 2 --job-dir j3 -- sh -c exit", "--nproc-per-host 2 -- echo {rank}"],
    "hosts list": ["--job-dir job"], "hosts add": ["w9 --job-dir job"], "hosts remove": ["worker1 --job-dir job"],
    "hosts drain": ["worker1 --job-dir job"], "events": ["--job-dir job", "--job-dir job --json"],
    "plot": ["job --out new.svg", "job --out new.png", "job"], "stop": ["--job-dir job"],
    "run": ["-H hosts --connect-timeout 2 --timeout 3 -- true"], "sync": ["d /tmp/x -H hosts --connect-timeout 2"],
    "tail-logs": ["--job-dir job --no-follow", "--job-dir job --rank 0 --grep a --no-follow"],
    "doctor": ["", "--job-dir job"], "eval": ["m/s --data-val d/shapes_val.rec", "m/s --load-epoch 1 --data-val d/shapes_val",
                                          "m/s --data-val d/shapes_val.rec --report new --per-class"],
    "predict": ["m/s pictures --batch-size 2 --threads 1", "m/s pictures --out-dir new --csv", "m/s pictures --top 2 --json"],
    "inspect": ["m/s", "m/s-0001.json --graph"],
    "export": ["m/s --to onnx --out new.onnx", "m/s --to onnx --with-preprocessing --softmax --out new.onnx",
               "m/s --to safetensors --out new.st", "m/s --to mxnet --out new/x"],
    "data prepare": ["shapes --train-count 20 --val-count 10 --out new", "cifar10 --from d --out new", "mnist --out new"],
    "data pack": ["pictures --out new", "pictures --out new --shards 2 --resize 8 --train-ratio 0.5",
                  "pictures --out new --train-ratio 0.5 --test-ratio 0.2"],
    "data import": ["pictures.tar --out new", "d/shapes_val.rec --out new"], "data ls": ["d/shapes_val.rec"],
    "data verify": ["d/shapes_val.rec d/shapes_train.rec"], "data show": ["d/shapes_val.rec --out new.png --count 4"],
    "data cp": ["d/shapes_val.rec new.rec", "d new -r", "s3://bucket/x new"], "data unpack": ["pictures.tar --out new"],
    "data bench": ["d/shapes_val.rec --seconds 0.1 --data-nthreads 1"],
    "bench train": ["--network mlp --batch-size 8 --warmup 1 --steps 1 --seconds 0.1 --threads 1"],
    "bench allreduce": ["--ranks 1 --megabytes 0.01 --rounds 1"],
    "bench elastic": ["-n 1 --network mlp --image-shape 1,4,4 --rounds 1 --seconds 0.2"],
    "help": ["train", "exit-codes", "", "--json"], "completion": ["bash", "fish"], "agent": ["", "--ask", "--join d"],
    "cluster list": ["--region us-east-1"], "cluster watch": [f"c {CLUSTER} --once"], "cluster template": [f"c {CLUSTER}"],
    "cluster ssh": [f"c {CLUSTER} -- true"], "cluster down": [f"c {CLUSTER} --yes"], "cluster up": [f"c {CLUSTER} --yes -w 1"],
    "cluster iam-policy": ["", "c --region us-east-1 --for head"], "cluster stop": [f"c {CLUSTER} --yes"],
    "cluster start": [f"c {CLUSTER} --yes"], "cluster cost": [f"c {CLUSTER} --by-day"],
    "cluster add": [f"c 1 {CLUSTER}"], "cluster remove": [f"c w1 {CLUSTER} --yes"],
}
# What lets a run take as long as it likes: only small values are tried.
LONG = re.compile(r"epochs|seconds|steps|rounds|count|timeout|every|ttl|autostop|megabytes|warmup|monitor|width|layers|shape|"
                  r"resize|batch|mesh-ranks|num-workers|nproc|nnodes|ranks|zoom|columns|prefetch|time-plans|hosts|pad-size|size|"
                  r"restarts|max-random-scale|workers|parallel|slots")
# They begin something that goes on, or ask for a terminal.
NEVER = {"--detach", "--launcher", "--cluster", "--generate", "--apart", "--worker", "--node", "--head", "--coordinator",
         "--submitted", "--yarn-rm", "--sge-pe", "--queue"}
BAD_NUMBERS = ["", "abc", "-1", "nan", "inf", "-inf", "1e400", "99999999999999999999", "0x10", "1,2", "1.5.2", "--", " ", "1 ",
               "٣", "-0", "1e-400", "+-1"]
NOT_A_NUMBER = {"", "abc", "1.5.2", "0x10", "٣", "+-1", " "}
SMALL_NUMBERS = ["0", "1", "2", "3", "0.5", "-0"]
LARGE_NUMBERS = ["2147483647", "2147483648", "9223372036854775807", "65536", "1e30", "1e-30"]
BAD_TEXTS = ["", " ", "\n", "%s%n", "x" * 5000, "../../..", "-", "é\udc80", "a b", "'", "$(id)", "0", "\t", "*", "~", "[", "s3://",
             "s3://b", "http://" + NOWHERE + "/x", "a,b,,c", ",", "=", "a=b"]
BAD_PATHS = ["missing", "missing/below", "d", "/", "/dev/full", "/dev/null", "/dev/zero", "empty", "huge", "loop", "garbage",
             "secret", "secret-folder/x", "n" * 300, "n/" * 3000, "", ".", "/proc/self/mem", "dangling", "m", "d/shapes_train.idx",
             "hosts", "s3://bucket/key", "http://" + NOWHERE + "/x.rec", "read-only/x", "a\nb"]
OPTION_OF_NOTHING = ["--frobnicate", "--lrr=1", "-Z", "---", "--=", "--no-elastic", "-9"]
VARIABLES = {
    "HOME": ["", "/missing", "empty", "secret-folder", "loop"], "PATH": ["", "/missing"], "TMPDIR": ["/missing", "empty", ""],
    "XDG_CONFIG_HOME": ["empty", "loop", "secret-folder"], "COLUMNS": ["-1", "0", "abc", "99999999999"], "TERM": ["", "x" * 200],
    "LC_ALL": ["xx_YY.UTF-8", ""], "EFS_MOUNT": ["/missing", "empty"], "DEEPLEARNING_WORKERS_COUNT": ["x", "-3"],
    "DEEPLEARNING_WORKERS_PATH": ["missing", "d"], "DEEPLEARNING_WORKER_GPU_COUNT": ["x", "-1"], "AWS_PROFILE": ["missing"],
    "AWS_CONFIG_FILE": ["garbage", "d"], "AWS_ENDPOINT_URL": ["x", "http://", "ftp://" + NOWHERE], "NO_COLOR": ["1"],
    "DTRAIN_KERNELS": ["avx9"], "WORKER_LAUNCH_TEMPLATE_ID": ["x"], "SSH_AUTH_SOCK": ["empty"], "OMP_NUM_THREADS": ["0", "x"],
}
TOML = ["[train]\nlr = \n", "lr = 1", "[train]\nlr = 'x'", "[nothing]\na = 1", "\x00\x01", "[train]\nprepare = 'id'", "a" * 100000,
        "[train]\nlr = [1, 2]", "json = true\njson = true", "[train]\n\"\" = 1", "[train.x]\ny = 1"]
LIMITS = [(resource.RLIMIT_NPROC, [1, 2, 3, 5, 8]), (resource.RLIMIT_NOFILE, [3, 4, 5, 8, 12, 16, 24]),
          (resource.RLIMIT_FSIZE, [0, 1, 1000, 60000]), (resource.RLIMIT_AS, [60 << 20, 80 << 20, 200 << 20, 400 << 20]),
          (resource.RLIMIT_STACK, [256 << 10]), (resource.RLIMIT_MEMLOCK, [0])]
OUTPUTS = {"export": "--out", "plot": "--out", "data show": "--out"}  # commands that make the file that is named


class Tree:
    def __init__(self, document):
        self.commands = {command["path"]: command["options"] for command in document["commands"]}
        self.common = [option for option in document["common_options"] if option["name"] != "--color"]

    def options(self, path):
        return [option for option in self.commands[path] + self.common
                if option["name"].startswith("-") and not option["refused"] and not set(option["spellings"]) & NEVER]


class Case:
    """One invocation: its words, and what is around them. meaningless: values that nothing can mean, with their options."""

    def __init__(self, tree, seed, number):
        self.rng = random.Random(f"{seed}/{number}")
        self.number, self.meaningless = number, []
        self.environment, self.limits, self.stdout, self.closed, self.deleted = {}, [], None, None, False
        self.damages, self.toml = [], None
        self.path = self.rng.choice(sorted(tree.commands))
        if self.path == "train" or self.rng.random() < 0.15:
            self.path = "train"
        self.options = tree.options(self.path)
        self.words = self.path.split() + self.rng.choice(BASES.get(self.path, [f"c {CLUSTER}"])).split()
        for _ in range(self.rng.choice([1, 1, 1, 2, 2, 3])):
            self.mutate()

    def mutate(self):
        kinds = [(self.set_option, 8), (self.spoil_value, 6), (self.drop_word, 2), (self.double_word, 1), (self.swap_words, 1),
                 (self.misspell_word, 2), (self.set_variable, 3), (self.limit, 3), (self.write_toml, 1), (self.fill_stdout, 1),
                 (self.close_stream, 1), (self.delete_folder, 1), (self.damage_file, 4), (self.unknown_option, 1),
                 (self.spoil_path, 4)]
        self.rng.choices([kind for kind, _ in kinds], [weight for _, weight in kinds])[0]()

    def must_fail(self):
        """Whether such a value still stands there and no word behind it takes its place."""
        words = self.words[: self.end()]
        if ASKS & {word.split("=")[0] for word in words} or self.words[: len(self.path.split())] != self.path.split():
            return False
        if set(OPTION_OF_NOTHING) & set(words):
            return True
        for spellings, text in self.meaningless:
            given = [behind if word in spellings else word.split("=", 1)[1] for word, behind in zip(words, words[1:] + [""])
                     if word.split("=")[0] in spellings]
            if given == [text]:
                return True
        return False

    def end(self):
        return self.words.index("--") if "--" in self.words else len(self.words)

    def bad_value(self, option):
        rng, name, value = self.rng, option["name"], option["value"]
        is_number = bool(option["range"]) or re.fullmatch(r"-?[0-9.]+(e-?[0-9]+)?", option["default"] or "")
        if option["choices"]:
            text = rng.choice(option["choices"] + ["", "x", option["choices"][0].upper(), option["choices"][0] + " "])
            if text not in option["choices"] and name not in LENIENT:
                self.meaningless.append((option["spellings"], text))
            return text
        if option["path"] or value == "PATH":
            return rng.choice(BAD_PATHS)
        if is_number:
            text = rng.choice(BAD_NUMBERS + SMALL_NUMBERS + ([] if LONG.search(name) else LARGE_NUMBERS))
            if text in NOT_A_NUMBER and option["range"]:
                self.meaningless.append((option["spellings"], text))
            return text
        if LONG.search(name):
            return rng.choice(BAD_NUMBERS + SMALL_NUMBERS)
        return rng.choice(BAD_TEXTS + BAD_NUMBERS)

    def set_option(self):
        option = self.rng.choice(self.options)
        words = [self.rng.choice(option["spellings"])]
        if option["value"]:
            value = self.bad_value(option)
            long_form = words[0].startswith("--") and self.rng.random() < 0.5
            words = [words[0] + "=" + value] if long_form else words + [value]
        at = self.end()
        self.words[at:at] = words

    def spoil_value(self):
        """Of an option that the line has."""
        known = {spelling: option for option in self.options for spelling in option["spellings"] if option["value"]}
        places = [i for i, word in enumerate(self.words[: self.end() - 1]) if word in known]
        if not places:
            return self.set_option()
        at = self.rng.choice(places)
        self.words[at + 1] = self.bad_value(known[self.words[at]])

    def spoil_path(self):
        places = [i for i, word in enumerate(self.words) if i > 0 and ("/" in word or os.path.exists(FIXTURE / word))]
        if places:
            self.words[self.rng.choice(places)] = self.rng.choice(BAD_PATHS)

    def drop_word(self):
        if len(self.words) > 1:
            del self.words[self.rng.randrange(1, len(self.words))]

    def double_word(self):
        at = self.rng.randrange(len(self.words))
        self.words.insert(at, self.words[at])

    def swap_words(self):
        a, b = self.rng.randrange(len(self.words)), self.rng.randrange(len(self.words))
        self.words[a], self.words[b] = self.words[b], self.words[a]

    def misspell_word(self):
        at = self.rng.randrange(len(self.words))
        word = self.words[at]
        if word:
            cut = self.rng.randrange(len(word))
            self.words[at] = word[:cut] + word[cut + 1:]

    def unknown_option(self):
        self.words.insert(self.end(), self.rng.choice(OPTION_OF_NOTHING))

    def set_variable(self):
        rng = self.rng
        if rng.random() < 0.4:
            option = rng.choice([option for option in self.options if option["variable"]])
            self.environment[option["variable"]] = self.bad_value(option) if option["value"] else rng.choice(["", "x", "1"])
            return
        name = rng.choice(sorted(VARIABLES))
        self.environment[name] = rng.choice(VARIABLES[name] + [None])

    def limit(self):
        kind, values = self.rng.choice(LIMITS)
        self.limits.append((kind, self.rng.choice(values)))

    def write_toml(self):
        self.toml = self.rng.choice(TOML)

    def fill_stdout(self):
        self.stdout = "/dev/full"

    def close_stream(self):
        self.closed = self.rng.choice([0, 1])

    def delete_folder(self):
        self.deleted = True

    def damage_file(self):
        files = sorted(str(file.relative_to(FIXTURE)) for file in FIXTURE.rglob("*") if file.is_file() and file.stat().st_size > 0)
        self.damages.append((self.rng.choice([file for file in files if not file.startswith("huge")]),
                             self.rng.choice(["cut", "flip", "empty", "folder", "loop", "closed", "remove"]), self.rng.random()))

    def shown(self):
        around = [f"{name}={value!r}" for name, value in self.environment.items()]
        around += [f"limit {kind}={value}" for kind, value in self.limits] + [f"{how} {file}" for file, how, _ in self.damages]
        around += [f"toml {self.toml[:30]!r}"] if self.toml else []
        around += ["stdout full"] if self.stdout else []
        around += [f"closed {self.closed}"] if self.closed is not None else []
        around += ["folder deleted"] if self.deleted else []
        words = " ".join(word if re.fullmatch(r"[\w./,:=-]+", word) else repr(word)[:60] for word in self.words)
        return f"dtrain {words}" + (f"   [{'; '.join(around)}]" if around else "")


# Options that take more than the values that their help lists.
LENIENT = {"--elastic-training-enabled", "--nproc-per-node", "--kv-store", "--loss"}
ASKS = {"--help", "-h", "--help-all", "--version"}  # they are answered whatever else stands there
