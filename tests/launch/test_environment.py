"""The environment of every process, whole: what dtrain adds to its own, and nothing else."""

import json
import os
import pathlib

from launches import PYTHON, Crew
from told import told_in
from world import eventually

# What launchers of this project find their own processes by. Its values are nobody's business.
MARKS = {"DTRAIN_PROGRAM", "DTRAIN_TREE"}
PORTS_OF_RANK_0 = ("MASTER_PORT", "JAX_COORDINATOR_ADDRESS", "DMLC_PS_ROOT_PORT")
THREADS = {"OMP_NUM_THREADS": "5", "NCCL_SOCKET_IFNAME": "eth7", "GLOO_SOCKET_IFNAME": "eth8", "PYTHONUNBUFFERED": "",
           "TORCH_NCCL_ASYNC_ERROR_HANDLING": "0"}


def tell(world, options, words=(), name="told") -> dict:
    folder = world.folder / name
    folder.mkdir(exist_ok=True)
    world.launch(PYTHON, world.program("tell.py"), folder, *words, options=options, name=f"{name}.job")
    return told_in(folder)


def added(world, told) -> dict[str, str]:
    """Without what the environment of dtrain was."""
    for name, value in world.environment.items():
        assert told.environment.get(name) == value, f"{name}={value} became {told.environment.get(name)}"
    return {name: value for name, value in told.environment.items() if name not in world.environment and name not in MARKS}


def of_all(world, told, role: str, index: int, rank: int, ranks: int, name: str = "told") -> dict[str, str]:
    """What every process gets: DTRAIN_* and what all frameworks read."""
    job = world.folder / f"{name}.job"
    return {"DTRAIN_JOB": told.environment["DTRAIN_JOB"], "DTRAIN_GENERATION": "1", "DTRAIN_ROLE": role,
            "DTRAIN_TASK_INDEX": str(index), "DTRAIN_RANK": str(rank), "DTRAIN_WORLD": str(ranks),
            "DTRAIN_LOCAL_RANK": str(rank), "DTRAIN_HOST": told.environment["DTRAIN_HOST"], "DTRAIN_RESTART": "0",
            "DTRAIN_JOB_FOLDER": str(job), "DTRAIN_RUN_DIR": str(job / "run"), "DTRAIN_PROGRESS_FILE": str(job / "run" / "progress"),
            "DTRAIN_DEADLINE_FILE": str(job / "run" / str(rank) / "deadline.json"),
            "DTRAIN_SAVED_FILE": str(job / "run" / str(rank) / "saved"),
            "PYTHONUNBUFFERED": "1", "NCCL_SOCKET_IFNAME": "lo", "GLOO_SOCKET_IFNAME": "lo",
            "OMP_NUM_THREADS": str(max(1, len(os.sched_getaffinity(0)) // ranks)),
            "WORKER_HOST_FILE": str(job / "run" / str(rank) / "host_worker"), "INSTANCE_POOL": "DEFAULT",
            "TRAINING_CMD": told.environment["TRAINING_CMD"]}


def of_a_worker(world, told, rank: int, ranks: int, name: str = "told") -> dict[str, str]:
    """On one machine, so that local and global numbers are the same."""
    run_id = told.environment["DTRAIN_JOB"]
    torch = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": ranks, "LOCAL_WORLD_SIZE": ranks, "GROUP_RANK": 0,
             "GROUP_WORLD_SIZE": 1, "NODE_RANK": 0, "ROLE_RANK": rank, "ROLE_WORLD_SIZE": ranks, "ROLE_NAME": "default",
             "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": told.environment["MASTER_PORT"], "TORCHELASTIC_RESTART_COUNT": 0,
             "TORCHELASTIC_MAX_RESTARTS": 0, "TORCHELASTIC_RUN_ID": run_id, "TORCHELASTIC_USE_AGENT_STORE": "False",
             "TORCHELASTIC_ERROR_FILE": world.folder / f"{name}.job" / "run" / str(rank) / "error.json",
             "TORCHELASTIC_SIGNALS_TO_HANDLE": "SIGTERM,SIGINT,SIGHUP,SIGQUIT", "TORCH_NCCL_ASYNC_ERROR_HANDLING": 1}
    horovod = {"HOROVOD_HOSTNAME": "127.0.0.1", "HOROVOD_RANK": rank, "HOROVOD_SIZE": ranks, "HOROVOD_LOCAL_RANK": rank,
               "HOROVOD_LOCAL_SIZE": ranks, "HOROVOD_CROSS_RANK": 0, "HOROVOD_CROSS_SIZE": 1,
               "HOROVOD_CONTROLLER": "gloo", "HOROVOD_CPU_OPERATIONS": "gloo", "HOROVOD_GLOO_IFACE": "lo"}
    jax = {"JAX_COORDINATOR_ADDRESS": told.environment["JAX_COORDINATOR_ADDRESS"]}
    return {name: str(value) for name, value in (torch | horovod | jax).items()}


def expect_equal(name: str, have: dict[str, str], want: dict[str, str]) -> None:
    wrong = {key: (have.get(key), want.get(key)) for key in have.keys() | want.keys() if have.get(key) != want.get(key)}
    assert not wrong, f"{name}: (is, should be) {wrong}"


def port_of(address: str) -> int:
    host, _, port = address.rpartition(":")
    assert host in ("", "127.0.0.1") and 1024 <= int(port) <= 65535, address
    return int(port)


def cluster_of(told) -> dict[str, list[str]]:
    return json.loads(told.environment["TF_CONFIG"])["cluster"]


def test_workers(world):
    """Two and three workers: exactly torchrun's, Horovod's, JAX's, TensorFlow's and dtrain's variables, no DMLC_*."""
    for ranks in (1, 3):
        everybody = tell(world, ["-n", ranks], name=f"told{ranks}")
        assert sorted(everybody) == [f"worker-{rank}" for rank in range(ranks)]
        for rank in range(ranks):
            told = everybody[f"worker-{rank}"]
            config = {"cluster": cluster_of(told), "task": {"type": "worker", "index": rank}}
            want = of_all(world, told, "worker", rank, rank, ranks, f"told{ranks}") | of_a_worker(world, told, rank, ranks, f"told{ranks}")
            have = added(world, told)
            assert json.loads(have.pop("TF_CONFIG")) == config and len(cluster_of(told)["worker"]) == ranks
            expect_equal(f"worker {rank} of {ranks}", have, want)
        expect_one_view(everybody, PORTS_OF_RANK_0[:2])


def expect_one_view(everybody: dict, names) -> None:
    """All processes name the same ports, no port has two uses, and hosts are others for each rank. Rank 0 has a MASTER_PORT of its
    own: it opens PyTorch's store there, and the others call at a port before it."""
    ports = [port_of(everybody["worker-0"].environment["MASTER_PORT"])]
    for name in names:
        values = {told.environment[name] for told in everybody.values() if name in told.environment}
        if name == "MASTER_PORT":
            values.remove(str(ports[0]))
        assert len(values) == 1 or len(everybody) == 1, f"{name}: {values}"
        ports += [port_of(value) for value in values]
    clusters = [cluster_of(told) for name, told in everybody.items() if not name.startswith("scheduler")]
    assert all(cluster == clusters[0] for cluster in clusters), clusters
    ports += [port_of(address) for addresses in clusters[0].values() for address in addresses]
    assert len(set(ports)) == len(ports), ports
    for name in ("DTRAIN_JOB", "TORCHELASTIC_RUN_ID"):
        assert len({told.environment[name] for told in everybody.values() if name in told.environment}) == 1
    hosts = [told.environment["DTRAIN_HOST"] for name, told in everybody.items() if name.startswith("worker")]
    assert len(set(hosts)) == len(hosts), hosts


def test_horovod(world):
    """A script that imports Horovod finds the rendezvous as Horovod builds its address, with a secret; others find none."""
    script = world.folder / "hvd.py"
    script.write_text("""import os, urllib.request
if False: import horovod
scope = f"http://{os.environ['HOROVOD_GLOO_RENDEZVOUS_ADDR']}:{os.environ['HOROVOD_GLOO_RENDEZVOUS_PORT']}/global_/"
key = scope + os.environ["HOROVOD_RANK"]
urllib.request.urlopen(urllib.request.Request(key, b"value", method="PUT"))
print("stored", urllib.request.urlopen(key).read())
try: urllib.request.urlopen(f"http://{scope.split('/')[2]}/global_/0")
except OSError: print("closed")
""")
    answer = world.launch(PYTHON, script, options=["-n", 2], name="with")
    assert answer.stdout.count("stored b'value'") == 2 and answer.stdout.count("closed") == 2, answer.stdout
    answer = world.launch("env", options=["-n", 1, "--framework", "horovod"], name="chosen")
    assert "HOROVOD_GLOO_RENDEZVOUS_PORT=" in answer.stdout, answer.stdout
    answer = world.launch(PYTHON, script, options=["-n", 1, "--framework", "none"], name="without", check=False)
    assert answer.returncode == 1 and "KeyError: 'HOROVOD_GLOO_RENDEZVOUS_ADDR'" in answer.stderr, answer.stderr


def test_jax(world):
    """The variables from which jax.distributed.initialize() takes its arguments come to scripts that call it."""
    script = world.folder / "train.py"
    script.write_text("""import os
# jax.distributed.initialize()
print(*(os.environ.get(name) for name in ("JAX_COORDINATOR_ADDRESS", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK")))
""")
    lines = world.launch(PYTHON, script, options=["-n", 2]).stdout.splitlines()
    assert sorted(line.split()[2:] for line in lines) == [["2", "0"], ["2", "1"]], lines


def test_gpus_of_a_rank(world):
    """--gpus-per-rank: every rank sees its share of the GPUs, and {local_rank} numbers it."""
    world.environment["CUDA_VISIBLE_DEVICES"] = "4,5,6,7"
    script = 'echo "rank $RANK of $CUDA_VISIBLE_DEVICES is $0"'
    answer = world.launch("sh", "-c", script, "{local_rank}",
                          options=["-n", 1, "--nproc-per-node", 2, "--gpus-per-rank", 2, "--template"])
    assert sorted(line.partition(" ")[2] for line in answer.stdout.splitlines()) == ["rank 0 of 4,5 is 0", "rank 1 of 6,7 is 1"]
    answer = world.launch("true", options=["-n", 5, "--gpus-per-rank", 1], name="few", check=False)
    assert answer.returncode != 0 and "needs GPU 4" in answer.stderr, answer.stderr
    answer = world.launch("sh", "-c", "echo rank $RANK of $CUDA_VISIBLE_DEVICES", name="chosen",
                          options=["-n", 2, "--gpus-per-rank", 1, "--env", "CUDA_VISIBLE_DEVICES=2,3"])
    assert sorted(line.partition(" ")[2] for line in answer.stdout.splitlines()) == ["rank 0 of 2", "rank 1 of 3"], answer.stdout
    world.environment["CUDA_VISIBLE_DEVICES"] = ""
    answer = world.launch("true", options=["-n", 1, "--gpus-per-rank", 1], name="none", check=False)
    assert answer.returncode != 0 and "shows no GPU" in answer.stderr, answer.stderr


def test_servers_of_tensorflow(world):
    """-s without MXNet: no scheduler is started, and rank 0 is the chief."""
    everybody = tell(world, ["-n", 3, "-s", 1])
    assert sorted(everybody) == ["ps-0", "worker-0", "worker-1", "worker-2"]
    tasks = {name: json.loads(told.environment["TF_CONFIG"])["task"] for name, told in everybody.items()}
    assert tasks == {"ps-0": {"type": "ps", "index": 0}, "worker-0": {"type": "chief", "index": 0},
                     "worker-1": {"type": "worker", "index": 0}, "worker-2": {"type": "worker", "index": 1}}, tasks
    assert {key: len(value) for key, value in cluster_of(everybody["ps-0"]).items()} == {"ps": 1, "chief": 1, "worker": 2}


def test_parameter_servers(world):
    """-s: DMLC_* and TF_CONFIG of workers, servers and the scheduler that MXNet calls; servers see no GPU and no rank of torch's."""
    world.environment["CUDA_VISIBLE_DEVICES"] = "0,1"
    (world.folder / "told").mkdir()
    (world.folder / "told" / "mxnet").touch()
    everybody = tell(world, ["-n", 2, "-s", 3])
    assert sorted(everybody) == ["ps-0", "ps-1", "ps-2", "scheduler-0", "worker-0", "worker-1"]
    beside = {"worker-0": 0, "worker-1": 1, "ps-0": 0, "ps-1": 1, "ps-2": 0, "scheduler-0": 0}
    for name, told in everybody.items():
        role, index = name.split("-")[0], int(name.split("-")[1])
        rank = beside[name]
        want = of_all(world, told, role, index, rank, 2)
        want |= {"DMLC_ROLE": "server" if role == "ps" else role, "DMLC_PS_ROOT_URI": "127.0.0.1", "DMLC_NUM_WORKER": "2",
                 "DMLC_NUM_SERVER": "3", "DMLC_PS_ROOT_PORT": told.environment["DMLC_PS_ROOT_PORT"],
                 "DMLC_NODE_HOST": "127.0.0.1", "DMLC_INTERFACE": "lo", "DMLC_TASK_ID": str(index), "DMLC_NUM_ATTEMPT": "0",
                 "DMLC_JOB_CLUSTER": told.environment["DMLC_JOB_CLUSTER"]}
        if role == "worker":
            want |= of_a_worker(world, told, rank, 2) | {"DMLC_WORKER_ID": str(index)}
        if role == "ps":
            want |= {"DMLC_SERVER_ID": str(index)}
        assert told.environment["CUDA_VISIBLE_DEVICES"] == ("0,1" if role == "worker" else ""), name
        told.environment["CUDA_VISIBLE_DEVICES"] = "0,1"
        have = added(world, told)
        config = have.pop("TF_CONFIG", None)
        if role == "scheduler":
            assert config is None, "TensorFlow knows no scheduler"
        else:
            task = {"worker-0": ("chief", 0), "worker-1": ("worker", 0)}.get(name, (role, index))
            assert json.loads(config)["task"] == {"type": task[0], "index": task[1]}
            assert {key: len(value) for key, value in cluster_of(told).items()} == {"ps": 3, "chief": 1, "worker": 1}
        expect_equal(name, have, want)
    everybody.pop("scheduler-0")  # its own port is behind the one that waits for calls
    expect_one_view(everybody, PORTS_OF_RANK_0)


def test_placeholders(world):
    """--template: words say who the process is; there is no scheduler and no DMLC_*, and other braces stay."""
    words = ["{rank}", "--job_name={role}", "{task_index}", "ps={ps_hosts}", "w={worker_hosts}", "{other} {}", "{rank}{role}"]
    everybody = tell(world, ["-n", 2, "-s", 1, "--template"], words)
    assert sorted(everybody) == ["ps-0", "worker-0", "worker-1"]
    for name, told in everybody.items():
        role, index = name.split("-")
        hosts = {key: ",".join(value) for key, value in cluster_of(told).items()}
        assert [word.decode() for word in told.words] == [
            index, f"--job_name={role}", index, f"ps={hosts['ps']}", f"w={hosts['worker']}", "{other} {}", f"{index}{role}"], told.words
        assert not [key for key in told.environment if key.startswith("DMLC_")]
    expect_one_view(everybody, PORTS_OF_RANK_0[:2])


def test_chosen_variables(world):
    """--env is for all, --env-worker and --env-server for those; NAME:VALUE and NAME=VALUE mean the same, the first sign counts."""
    options = ["--env", "A:x=y", "--env", "B=x:y", "--env-worker", "C:1", "--env-worker", "D=", "--env-server", "C:2",
               "--env", "E=all", "--env-worker", "E=worker", "--env", "RANK:7"]
    everybody = tell(world, ["-n", 2, "-s", 1, *options])
    for name, told in everybody.items():
        have = told.environment
        assert (have["A"], have["B"]) == ("x=y", "x:y"), name
        worker = name.startswith("worker")
        assert (have["C"], have.get("D"), have["E"]) == (("1", "", "worker") if worker else ("2", None, "all")), name
        assert have["RANK"] == "7", "--env does not win"


def test_variables_without_a_name(world):
    """They are refused, with the option."""
    for option, word in (("--env", "=x"), ("--env", ""), ("--env", "A B=x"), ("--env-worker", ":x"), ("--env-server", "A B")):
        answer = world.launch("true", options=[option, word], check=False)
        assert answer.returncode == 2 and f"{option}: '{word}'" in answer.stderr, answer


def test_what_the_user_chose_is_kept(world):
    """Variables that are only defaults of dtrain stay as the user set them."""
    world.environment |= THREADS
    for name, told in tell(world, ["-n", 2]).items():
        for key, value in THREADS.items():
            assert told.environment[key] == value, f"{name}: {key}={told.environment[key]}"


def test_a_launch_inside_of_a_launch(world):
    """A launch that inherits the variables of another one's rank gives its ranks their own."""
    world.environment |= {"RANK": "7", "WORLD_SIZE": "8", "TF_CONFIG": "{}", "HOROVOD_RANK": "7"}
    for name, told in tell(world, ["-n", 2]).items():
        rank = name.split("-")[1]
        have = told.environment
        assert (have["RANK"], have["WORLD_SIZE"], have["HOROVOD_RANK"]) == (rank, "2", rank), name
        assert json.loads(have["TF_CONFIG"])["task"]["index"] == int(rank)


def test_inherited_roles(world):
    """The role that another launch gave is nobody's here."""
    world.environment |= {"DMLC_ROLE": "server"}
    for name, told in tell(world, ["-n", 2]).items():
        assert "DMLC_ROLE" not in told.environment, name


def test_rendezvous_of_horovod(world):
    """What a rank stores at Horovod's rendezvous every rank gets, and what nobody stored is not found."""
    script = """
import os, time, urllib.error, urllib.request as http
base = "http://%s:%s/" % (os.environ["HOROVOD_GLOO_RENDEZVOUS_ADDR"], os.environ["HOROVOD_GLOO_RENDEZVOUS_PORT"])
rank, size = int(os.environ["HOROVOD_RANK"]), int(os.environ["HOROVOD_SIZE"])
http.urlopen(http.Request(base + f"global/{rank}", data=b"at %d" % rank, method="PUT")).read()
def get(key):
    for _ in range(600):
        try:
            return http.urlopen(base + key).read()
        except urllib.error.HTTPError as error:
            assert error.code == 404, error
            time.sleep(0.1)
assert [get(f"global/{other}") for other in range(size)] == [b"at %d" % other for other in range(size)]
"""
    world.launch(PYTHON, "-c", script, options=["-n", 3, "--framework", "horovod"])


def test_scripts_of_dynamic_training(world):
    """Scripts of Dynamic Training with MXNet find the hosts in a file of their own, and nothing that lets MXNet start workers."""
    for name, told in tell(world, ["-n", 1, "-s", 1, "--elastic"]).items():
        assert "ELASTIC_TRAINING_ENABLED" not in told.environment, name
        assert told.environment["TRAINING_CMD"].startswith(str(PYTHON)), name
        assert pathlib.Path(told.environment["WORKER_HOST_FILE"]).read_text(encoding="utf-8") == "worker1\n", name
        assert told.environment["WORKER_HOST_FILE"] != str(world.folder / "told.job" / "host_worker"), name


def test_the_host_file_of_dynamic_training_changes_with_the_start(world):
    """MXNet of that project compares WORKER_HOST_FILE with the hosts it knows, fails at one more and logs one less beside the
    file: with one host added and one removed neither a process fails nor dtrain's log gets a line of another program."""
    crew = Crew(world, options=["-n", 2, "-s", 1, "--elastic"], program=world.program("dynamic.py")).start()
    crew.wait_crew(2)
    crew.hosts_command("add", "w9")
    three = crew.wait_crew(3)
    crew.hosts_command("remove", "worker2")
    two = crew.wait_crew(2, after=three[0]["generation"])
    assert [member["hosts"] for member in three + two] == [["w9", "worker1", "worker2"]] * 3 + [["w9", "worker1"]] * 2, two
    crew.let_end().finish()
    eventually(lambda: crew.member_log()[-2:] == [("ADDED", "w9"), ("REMOVED", "worker2")], "the log has both changes", job=crew)
    failures = [event for event in crew.events() if event["event"] in ("rank_failed", "exited")]
    assert not failures and {member["failures"] for member in two} == {0}, failures
