"""Real schedulers on the machines of a lab: their daemons run there and end with the machines."""

from __future__ import annotations

import secrets

from cluster import Cluster
from lab import SHARED, Host, wait_for

SLURM_PROGRAMS = ("munged", "slurmctld", "slurmd", "srun", "salloc", "scontrol")
SLURM_KEY = "/etc/munge/lab.key"
SLURM_FOLDERS = "/var/lib/slurm-state /var/lib/slurm-spool /run/munge /etc/slurm"
GRID_PROGRAMS = ("sge_qmaster", "sge_execd", "qsub", "qrsh", "qconf")
GRID_ROOT = "/var/lib/gridengine"
GRID_CORES = 4  # slots of each machine


def shell(host: Host, script: str, text: str = "", timeout: float = 60) -> str:
    answer = host.run("bash", "-ec", script, text=text, timeout=timeout, check=False)
    if answer.returncode != 0:
        raise AssertionError(f"on {host.name}: {script}\nexit {answer.returncode}\n{answer.stdout}{answer.stderr}")
    return answer.stdout


def start_slurm(world: Cluster, names: list[str]) -> None:
    """The controller on the first of the machines, a node on each of them, in the partitions main and spare."""
    key = secrets.token_hex(64)
    for name in names:
        shell(world.lab[name], f"""
            mkdir -p {SLURM_FOLDERS}
            echo CgroupPlugin=cgroup/v1 >/etc/slurm/cgroup.conf
            cat >{SLURM_KEY}
            chmod 600 {SLURM_KEY}
            chmod 755 /run/munge
            munged --force --key-file={SLURM_KEY} --pid-file=/run/munge/pid --seed-file=/run/munge/seed""", key)
        shell(world.lab[name], "cat >/etc/slurm/slurm.conf", slurm_configuration(names))
    shell(world.lab[names[0]], "slurmctld -c")
    for name in names:
        shell(world.lab[name], "slurmd")
    seat = world.lab[names[0]]
    wait_for(lambda: set(seat.run("sinfo", "-h", "-o", "%t", check=False).stdout.split()) == {"idle"}, "Slurm's nodes are idle")


def slurm_configuration(names: list[str]) -> str:
    nodes = ",".join(names)
    return f"""
ClusterName=lab
SlurmctldHost={names[0]}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
StateSaveLocation=/var/lib/slurm-state
SlurmdSpoolDir=/var/lib/slurm-spool
SlurmctldPidFile=/run/slurmctld.pid
SlurmdPidFile=/run/slurmd.pid
SlurmctldLogFile=/var/log/slurmctld.log
SlurmdLogFile=/var/log/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
ReturnToService=2
SlurmdParameters=config_overrides
PropagateResourceLimits=NONE
KillWait=3
MailProg=/bin/true
NodeName={nodes} CPUs=4 RealMemory=2000 State=UNKNOWN
PartitionName=main Nodes={nodes} Default=YES MaxTime=INFINITE State=UP
PartitionName=spare Nodes={names[-1]} MaxTime=INFINITE State=UP
"""


def start_grid_engine(world: Cluster, names: list[str]) -> None:
    """The master on the first of the machines, an execution daemon on each; parallel environments pernode and fill."""
    master = world.lab[names[0]]
    for name in names:
        shell(world.lab[name], f"""
            echo {names[0]} >{GRID_ROOT}/default/common/act_qmaster
            mkdir -p /run/gridengine
            chown sgeadmin: /run/gridengine""")
    grid(master, "sge_qmaster")
    wait_for(lambda: "h1" in grid(master, "qconf -sh || true"), "Grid Engine's master answers")
    grid(master, f"""
        for host in {' '.join(names)}; do qconf -ah $host >/dev/null 2>&1 || true; qconf -as $host; done
        change() {{ qconf -s$1 >/tmp/$1; sed -i -e "$2" /tmp/$1; }}
        change conf 's/^min_uid.*/min_uid 0/; s/^min_gid.*/min_gid 0/; s/^shell_start_mode.*/shell_start_mode unix_behavior/'
        mv /tmp/conf /tmp/global; qconf -Mconf /tmp/global
        change sconf 's/^schedule_interval.*/schedule_interval 0:0:1/; s/^flush_submit_sec.*/flush_submit_sec 1/; s/^flush_finish_sec.*/flush_finish_sec 1/'
        qconf -Msconf /tmp/sconf
        printf 'group_name @allhosts\\nhostlist {' '.join(names)}\\n' >/tmp/group; qconf -Ahgrp /tmp/group""")
    for pe, rule in (("pernode", "1"), ("fill", "$fill_up")):
        grid(master, "cat >/tmp/pe; qconf -Ap /tmp/pe", parallel_environment(pe, rule))
    for name in names:
        grid(world.lab[name], "sge_execd")
    grid(master, f"""
        qconf -sq >/tmp/queue
        sed -i -e 's/^qname.*/qname all.q/; s/^hostlist.*/hostlist @allhosts/; s/^slots.*/slots {GRID_CORES}/; s/^pe_list.*/pe_list pernode fill/; s/^shell .*/shell \\/bin\\/bash/; s/^load_thresholds.*/load_thresholds NONE/' /tmp/queue
        qconf -Aq /tmp/queue""")
    wait_for(lambda: grid(master, "qhost").count("lx-amd64") == len(names), "Grid Engine's hosts are up")


def parallel_environment(name: str, rule: str) -> str:
    return f"""pe_name {name}
slots 999
user_lists NONE
xuser_lists NONE
start_proc_args NONE
stop_proc_args NONE
allocation_rule {rule}
control_slaves TRUE
job_is_first_task FALSE
urgency_slots min
accounting_summary FALSE
qsort_args NONE
"""


def grid(host: Host, script: str, text: str = "") -> str:
    return shell(host, f"export SGE_ROOT={GRID_ROOT} SGE_CELL=default\n{script}", text)
