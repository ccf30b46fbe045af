// The options of a run on several workers: which hosts, how they are started, and how they may come and go.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <dtrain/backend/dtype.hpp>
#include <dtrain/base/enum_names.hpp>
#include <dtrain/base/files.hpp>
#include <dtrain/comm/mesh.hpp>
#include <dtrain/elastic/admission_check.hpp>
#include <dtrain/elastic/policy.hpp>
#include <dtrain/train/elastic_rate.hpp>
#include <dtrain/train/gradient_compression.hpp>

#include "kubernetes_options.hpp"
#include "option_set.hpp"
#include "option_values.hpp"

namespace dtrain::config {

// How the agents of a job are started. automatic: over ssh with a host file, else local.
enum class Launcher { automatic, local, ssh, agents, mpi, slurm, sge, yarn, folder, kubernetes };
constexpr EnumName<Launcher> kLauncherNames[] = {{Launcher::automatic, "auto"}, {Launcher::local, "local"},
                                                 {Launcher::ssh, "ssh"},        {Launcher::agents, "agents"},
                                                 {Launcher::mpi, "mpi"},        {Launcher::slurm, "slurm"},
                                                 {Launcher::sge, "sge"},        {Launcher::yarn, "yarn"},
                                                 {Launcher::folder, "folder"},  {Launcher::kubernetes, "kubernetes"}};

// MXNet's names for where gradients are added.
enum class KvStore { local, device, dist_sync, dist_device_sync, dist_async };
constexpr EnumName<KvStore> kKvStoreNames[] = {{KvStore::local, "local"},
                                               {KvStore::device, "device"},
                                               {KvStore::dist_sync, "dist_sync"},
                                               {KvStore::dist_device_sync, "dist_device_sync"},
                                               {KvStore::dist_async, "dist_async"}};
// MXNet's other names for some of them.
constexpr EnumName<KvStore> kKvStoreAliases[] = {{KvStore::device, "nccl"},
                                                 {KvStore::dist_device_sync, "dist_sync_device"}};

constexpr EnumName<comm::Transport> kTransportNames[] = {
    {comm::Transport::tcp, "tcp"}, {comm::Transport::gloo, "gloo"}, {comm::Transport::nccl, "nccl"}};
constexpr EnumName<backend::DType> kGradientDTypeNames[] = {{backend::DType::float32, "float32"},
                                                            {backend::DType::bfloat16, "bfloat16"}};
constexpr EnumName<elastic::Boundary> kBoundaryNames[] = {{elastic::Boundary::epoch, "epoch"},
                                                          {elastic::Boundary::step, "step"}};
constexpr EnumName<bool> kMixedHardwareNames[] = {{false, "refuse"}, {true, "allow"}};

// EC2 limits a flow to 5 Gbit/s outside of a placement group, and many instances have a link of up to 25.
constexpr int kConnectionsOnEc2 = 4;

struct JobOptions {
  int hosts = 1;
  int slots = 0;  // workers on each host whose line does not say; 0: one
  std::optional<Path> hostfile;
  Launcher launcher = Launcher::automatic;
  std::string queue;         // of a scheduler; empty: its default
  std::string sge_pe;        // Grid Engine's parallel environment
  std::string yarn_manager;  // URL
  int yarn_memory = 4096;    // MiB, of an agent's container
  int yarn_cores = 1;
  KubernetesOptions kubernetes;
  bool sync_binary = true;
  std::optional<Path> ssh_config;  // none: the user's
  std::string announce;
  std::string sync_to;                   // absolute, on the hosts; empty: nothing is copied
  std::vector<std::string> environment;  // NAME=value, of workers on other machines
  std::optional<int> servers;
  std::optional<int> max_staleness;  // of parameter servers; none: no limit
  KvStore kv_store = KvStore::device;
  comm::Transport transport = comm::Transport::tcp;
  bool plain_data = false;  // of transport tcp between machines
  int connections = 0;      // of transport tcp to a worker on another machine; 0: kConnectionsOnEc2 there, else 1
  backend::DType gradient_dtype = backend::DType::float32;
  train::GradientCompression compression{};
  bool move_shards = true;
  Path folder = ".";
  bool detach = false, reset_hosts = false, sample_ledger = false, log_per_worker = false, prometheus = false;
  std::optional<Path> job_queue;  // with detach: the queue that runs the job; none: this process does
  int priority = 0;               // among the jobs of the queue
  int retries = 4;                // of a job that fails without a newer checkpoint
  bool down_when_done = false;
  bool managed = false;  // a queue runs this process, as an attempt of a job

  bool elastic = false;
  elastic::Boundary boundary = elastic::Boundary::epoch;
  train::ElasticBatch batch = train::ElasticBatch::fixed_global;
  train::ElasticRate rate = train::ElasticRate::smooth;
  int ramp = 8;  // steps
  int min_workers = 1;
  int max_workers = 0;  // 0: twice the hosts of the start, at least 8
  bool allow_mass_remove = false;

  std::string prepare;  // empty: none
  bool prepare_all = false;
  std::string notice_url = "auto";
  bool mixed_hardware = false;

  Seconds heartbeat_timeout = elastic::Policy{}.heartbeat_timeout;
  Seconds prepare_timeout = elastic::AdmissionCheckOptions{}.prepare_timeout;
  Seconds comm_timeout = comm::EndpointOptions{}.operation_deadline;
  Seconds hold_timeout = elastic::Policy{}.hold_timeout;  // 0: no limit

  bool is_over_ssh() const { return launcher == Launcher::ssh || (launcher == Launcher::automatic && hostfile); }
  // A cluster's own starter brings the agents to their hosts, which it may choose too.
  bool is_by_starter() const {
    return launcher == Launcher::mpi || launcher == Launcher::slurm || launcher == Launcher::sge ||
           launcher == Launcher::yarn;
  }
  // YARN names the hosts of its containers only once they run.
  bool has_granted_hosts() const { return is_by_starter() && launcher != Launcher::yarn; }
  // Processes that wait on the nodes of the cluster that this machine is in start the agents.
  bool is_by_agents() const { return launcher == Launcher::agents; }
  // Processes that wait in the job folder start the agents.
  bool is_by_folder() const { return launcher == Launcher::folder; }
  bool is_on_kubernetes() const { return launcher == Launcher::kubernetes; }
  bool is_on_other_machines() const {
    return is_over_ssh() || is_by_starter() || is_by_agents() || is_by_folder() || is_on_kubernetes();
  }
  // The launcher that `automatic` stands for.
  Launcher used_launcher() const {
    return is_over_ssh() ? Launcher::ssh : launcher == Launcher::automatic ? Launcher::local : launcher;
  }
  // Agents may choose another coordinator when theirs is lost. A scheduler takes its hosts back once the job's first
  // process has ended, so no agent may go on there.
  bool outlives_coordinator() const { return elastic && (!is_by_starter() || (launcher == Launcher::mpi && hostfile)); }
  bool is_per_worker() const { return batch == train::ElasticBatch::per_worker; }
  // Parameters live on servers.
  bool is_by_servers() const { return kv_store == KvStore::dist_async; }
  // Workers update them without waiting for each other, each with batches of its own.
  bool is_asynchronous() const { return is_by_servers() && max_staleness != 0; }
  // Each worker has one shard of its own.
  bool has_own_batches() const { return is_per_worker() || is_asynchronous(); }
  // One process trains alone unless the person asks for more.
  bool is_job() const {
    return hosts > 1 || slots > 1 || hostfile || elastic || is_by_starter() || is_by_agents() || is_by_folder() ||
           is_on_kubernetes() || managed;  // slots: by GPU
  }
  // The command gives the job to a queue, and does not run it.
  bool is_for_queue() const { return detach && job_queue && !managed; }
};

inline constexpr const char* kHostGroup = "Hosts";
inline constexpr const char* kElasticGroup = "Elastic jobs";

// For any job on several hosts, and what training adds to them.
void bind_hosts(OptionSet& set, JobOptions& options);
void bind_training_hosts(OptionSet& set, JobOptions& options);
void bind_elastic(OptionSet& set, JobOptions& options);
void bind_training_elastic(OptionSet& set, JobOptions& options);
void bind_hostfile(OptionSet& set, std::optional<Path>& file);    // -H, for every command about hosts
void bind_ssh_config(OptionSet& set, std::optional<Path>& file);  // --ssh-config, for every command that logs in
// --cluster NAME: the command runs on the head of that cluster.
void bind_cluster_choice(OptionSet& set);
void bind_job_folder(OptionSet& set, Path& folder);  // --job-dir, for every command about a job
// --job-queue, for every command about a queue of jobs
void bind_job_queue(OptionSet& set, std::optional<Path>& folder, const char* help);

// NAME=value of every NAME[=VALUE] or NAME:VALUE; those without a value, also several with commas between them, have
// the one of this process, or none. Throws UsageError for a name that is empty or holds a blank.
std::vector<std::string> variables_from(const std::string& text);

// Throws UsageError for options that need --elastic or another launcher.
void check_hosts(const JobOptions& options, const OptionSet& set);

}  // namespace dtrain::config
