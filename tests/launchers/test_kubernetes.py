"""--launcher kubernetes: its manifests run without Kubernetes, each pod as a process that is shut in as a container is.
kube.py says what that does not show."""

import json
import shutil
import signal

import yaml

from cluster import Cluster, HostsJob
from kube import Kube, kubectl_of
from pods import VOLUME
from runner import slow
from starters import EPOCHS, expect_nothing_left, person_s_process, stop_by_signal, without_hosts
from world import Job, eventually, send_signal

DATA = ["--data-train", "data/shapes_train.rec", "--data-val", "data/shapes_val.rec"]  # from the pods' volume


class KubeJob(HostsJob):
    """Its hosts are pods, not machines of the lab."""

    def training(self) -> dict[str, int]:
        return Job.training(self)


class KubeWorld:
    """A user on h1 and a cluster of h1 to h4, whose pods are cats-0, cats-1, ... and those of job/cats."""

    def __init__(self, world: Cluster, **faults):
        world.boot("h1", "h2", "h3", "h4")
        shutil.rmtree(VOLUME, ignore_errors=True)
        self.world, self.kube = world, Kube(world.lab.hosts, **faults)
        shutil.copytree(world.data, VOLUME / "data", copy_function=shutil.copyfile)
        for path in VOLUME.rglob("*"):
            path.chmod(0o755)
        world.environment |= kubectl_of(world.folder)

    def __enter__(self):
        return self

    def __exit__(self, *_) -> None:
        self.kube.end()
        shutil.rmtree(VOLUME, ignore_errors=True)

    def job(self, hosts: int = 2, arguments=(), **options) -> HostsJob:
        job = without_hosts(KubeJob(self.world, "cats", hosts=hosts, launcher="kubernetes", data=DATA, **options))
        self.world.jobs.append(job)
        job.prefix, job.folder = VOLUME / "m/cats", VOLUME / "jobs/cats"
        at = job.arguments.index("--job-dir")
        del job.arguments[at:at + 2]
        job.arguments[job.arguments.index("--model-prefix") + 1] = "m/cats"
        job.arguments += ["-n", hosts, "--kube-name", "cats", "--kube-image", "dtrain:test", *arguments]
        job.training_arguments[-4:] = ["--data-train", VOLUME / "data/shapes_train.rec",
                                       "--data-val", VOLUME / "data/shapes_val.rec"]
        return job

    def kubectl(self, *words) -> None:
        self.world.seat.run("env", *(f"{name}={value}" for name, value in kubectl_variables(self.world)), "kubectl", *words)

    def expect_nothing_left(self) -> None:
        eventually(lambda: not self.kube.pods, "no pod is left")
        expect_nothing_left(self.world)
        assert not self.kube.objects.keys() - {("PersistentVolumeClaim", "cats")}, self.kube.objects.keys()


def kubectl_variables(world: Cluster):
    return [(name, world.environment[name]) for name in ("PATH", "KUBECONFIG")]


def expect_shown_once(job: HostsJob) -> None:
    """Every line about an epoch came once, although the log broke off and was late."""
    lines = [line for line in job.said().splitlines() if line.startswith("Epoch[") and "Validation" in line]
    assert len(lines) == len(set(lines)) == EPOCHS, lines


def test_to_its_end(world: Cluster):
    """Two workers train to the end: the command shows the log once, returns 0, and leaves the claim with the bits of one
    process. What it applied is what --kube-print prints."""
    with KubeWorld(world, break_logs=12) as cluster:
        job = cluster.job(epochs=EPOCHS, elastic=False)
        printed = list(yaml.safe_load_all(world.run(*job.arguments, "--kube-print").stdout))
        job.start().finish()
        assert cluster.kube.applied == printed
        expect_shown_once(job)
        cluster.expect_nothing_left()
        assert job.state_hash() == world.alone(job, EPOCHS), "other bits"
        job.expect_exactly_once(EPOCHS)


def test_scaled_while_it_trains(world: Cluster):
    """`kubectl scale` from 2 to 3 to 1 pods while it trains; Ctrl-C saves, ends with 75 and deletes the pods. The bits are
    those of a run that nothing disturbed, and no object of the API holds the token."""
    with KubeWorld(world) as cluster:
        job = cluster.job().start()
        job.wait_members("cats-0", "cats-1").wait_steps(3)
        token = job.record()["token"]
        assert token not in json.dumps(cluster.kube.applied)
        eventually(lambda: all(cluster.kube.pods[f"cats-{n}"].ready for n in (0, 1)), "members are ready", job=job)
        cluster.kubectl("scale", "statefulset/cats", "--replicas", 3)
        job.wait_members("cats-0", "cats-1", "cats-2").wait_steps(3)
        cluster.kubectl("scale", "statefulset/cats", "--replicas", 1)
        job.wait_members("cats-0").wait_steps(3)
        eventually(lambda: len(cluster.kube.pods) == 2, "two pods are gone", job=job)
        assert not [line for pod in cluster.kube.gone for _, line in pod.log() if "preStop failed" in line]
        assert stop_by_signal(job) == 75, job.said()
        cluster.expect_nothing_left()
        job.expect_exactly_once(job.expect_bits_of_alone(), job.samples)


@slow
def test_disturbed(world: Cluster):
    """A worker is evicted, another one's container is killed, the coordinator's pod is evicted and later killed: the job
    goes on each time, to the bits of one process."""
    epochs = 200
    with KubeWorld(world) as cluster:
        job = cluster.job(epochs=epochs).start()
        job.wait_members("cats-0", "cats-1").wait_steps(3)
        cluster.kube.evict("cats-1")
        job.wait_members("cats-0").wait_members("cats-0", "cats-1").wait_steps(3)
        cluster.kube.pods["cats-0"].container.kill()
        job.wait_members("cats-1").wait_members("cats-0", "cats-1").wait_steps(3)
        assert cluster.kube.pods["cats-0"].restarts == 1
        first = cluster.kube.coordinator()
        first.container.kill()
        job.wait_for_term(2)
        second = eventually(cluster.kube.coordinator, "the Job has another pod", job=job)
        assert second is not first
        eventually(lambda: "the job runs; its log follows" in job.said(), "the other pod follows", job=job)
        job.wait_steps(3)
        cluster.kube.evict(second.name)
        job.finish(300)
        cluster.expect_nothing_left()
        assert job.state_hash() == world.alone(job, epochs), "other bits"


def test_what_is_wrong(world: Cluster):
    """No context and a name that is taken are one sentence each, before anything is made. A wrong option of the
    training ends the Job; a pod that cannot start is explained, and Ctrl-C deletes everything."""
    with KubeWorld(world) as cluster:
        job = cluster.job()
        variables = dict(world.environment)
        world.environment["KUBECONFIG"] = "/missing"
        expect_refusal(job, 2, "kubectl has no current context")
        world.environment |= variables
        expect_refusal(job, 2, "--kube-context prod: kubectl's configuration has no such context", "--kube-context", "prod")
        assert not cluster.kube.objects and not cluster.kube.applied

        expect_refusal(cluster.job(elastic=False, arguments=["--logical-shards", 1]), 2, "2 workers for 1 logical shard")
        cluster.expect_nothing_left()

        cluster.kube.image_trouble = "ErrImagePull"
        job.start()
        eventually(lambda: "pod/cats-0: ErrImagePull: as the test wants it" in job.said(), "it says why", job=job)
        expect_refusal(cluster.job(), 1, "job/cats: a training of this name runs already")
        send_signal(person_s_process(job), signal.SIGINT)
        assert job.wait() in (130, -signal.SIGINT), job.said()
        cluster.expect_nothing_left()


def test_half_of_a_training_is_removed(world: Cluster):
    """The user may make no Job, and later another user deletes it: the other objects, whose pods run, go too."""
    with KubeWorld(world) as cluster:
        cluster.kube.refused_kind = "Job"
        expect_refusal(cluster.job(), 4, 'you cannot create Job "cats"')
        cluster.expect_nothing_left()

        cluster.kube.refused_kind = ""
        job = cluster.job().start()
        job.wait_members("cats-0", "cats-1").wait_steps(1)
        cluster.kubectl("delete", "job", "cats")
        assert job.wait() == 1 and "job/cats was deleted" in job.said(), job.said()
        cluster.expect_nothing_left()


def test_values_of_variables_are_in_a_secret(world: Cluster):
    """Workers get the value of --env, the manifests have it in the Secret only, and what is printed has no Secret."""
    with KubeWorld(world) as cluster:
        job = cluster.job(arguments=["--env", "CATS_TOKEN=5ecret"])
        printed = world.run(*job.arguments, "--kube-print")
        assert "5ecret" not in printed.stdout + printed.stderr
        assert "kubectl create secret generic cats-env --from-env-file" in printed.stderr
        job.start().wait_members("cats-0", "cats-1").wait_steps(1)
        holders = [document["kind"] for document in cluster.kube.applied if "5ecret" in json.dumps(document)]
        assert holders == ["Secret"]
        environments = cluster.kube.pods["cats-0"].container.run(["sh", "-c", "cat /proc/[0-9]*/environ"]).stdout
        assert "CATS_TOKEN=5ecret" in environments
        assert stop_by_signal(job) == 75, job.said()
        cluster.expect_nothing_left()


def test_stop_meets_the_next_pod(world: Cluster):
    """Ctrl-C ends the training although the Job has its next pod before the end of the asked one was seen."""
    with KubeWorld(world, eager=True, pending=0) as cluster:
        job = cluster.job().start()
        job.wait_members("cats-0", "cats-1").wait_steps(1)
        assert stop_by_signal(job) == 75, job.said()
        assert cluster.kube.attempts > 1 and "did not end the pod" not in job.said(), job.said()
        cluster.expect_nothing_left()


def test_stop_from_inside(world: Cluster):
    """`dtrain stop` in a worker's pod saves and ends a training for good: no next pod goes on with it, and the command that
    follows it ends with 75."""
    with KubeWorld(world) as cluster:
        job = cluster.job().start()
        job.wait_members("cats-0", "cats-1").wait_steps(1)
        worker = cluster.kube.pods["cats-0"]
        command = worker.spec["containers"][0]["command"]
        said = worker.container.run(["dtrain", "stop", "--job-dir", command[command.index("--job-dir") + 1]])
        assert said.returncode == 0 and "the job has stopped" in said.stdout, said
        assert job.wait() == 75, job.said()
        assert cluster.kube.attempts == 1, job.said()
        cluster.expect_nothing_left()


def test_stop_while_it_waits_for_hosts(world: Cluster):
    """Ctrl-C ends a training whose pods find no node, also where the job folder has the record of an earlier one. What the
    control plane does not hear is said again."""
    with KubeWorld(world) as cluster:
        cluster.job(epochs=1).start().finish()
        cluster.expect_nothing_left()
        cluster.kube.held_kind = "StatefulSet"
        job = cluster.job(epochs=EPOCHS).start()
        eventually(lambda: job.said().count("0 of 2 hosts wait") >= 2, "it waits", job=job)
        cluster.kube.lost_deletes = 2
        assert stop_by_signal(job) in (75, 130), job.said()
        assert cluster.kube.lost_deletes == 0
        cluster.expect_nothing_left()


def expect_refusal(job: HostsJob, code: int, words: str, *more) -> None:
    answer = job.world.run(*job.arguments, *more, check=False)
    assert answer.returncode == code and words in answer.stderr, (answer.returncode, answer.stderr)
