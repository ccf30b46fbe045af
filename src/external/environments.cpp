#include "environments.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include <dtrain/base/error.hpp>
#include <dtrain/base/json.hpp>
#include <dtrain/base/text.hpp>
#include <dtrain/net/addresses.hpp>

#include "placeholders.hpp"
#include "run_folder.hpp"

namespace dtrain::external {
namespace {

constexpr std::string_view kVisibleGpus = "CUDA_VISIBLE_DEVICES";

const RankInfo& first_rank(const ProcessIdentity& who) { return who.placement.ranks.front(); }

Path run_folder(const ProcessIdentity& who) { return who.here.job_folder / "run"; }

// Ranks with the same local rank, one from each machine that has so many.
std::vector<int> across(const ProcessIdentity& who) {
  std::vector<int> ranks;
  for (const int first : who.placement.machines()) {
    const std::vector<int> local = who.placement.neighbours(first);
    const auto wanted = static_cast<std::size_t>(who.local_rank());
    if (wanted < local.size()) ranks.push_back(local[wanted]);
  }
  return ranks;
}

int position(const std::vector<int>& ranks, int rank) {
  return static_cast<int>(std::ranges::find(ranks, rank) - ranks.begin());
}

Json list_of(const std::string& hosts) {
  Json list = Json::array();
  for (std::string& host : split(hosts, ',')) list.push_back(std::move(host));
  return list;
}

// CUDA sees the GPUs in front of the first entry that is empty or negative.
std::vector<std::string> named_gpus(const std::string& visible) {
  std::vector<std::string> names = split(visible, ',');
  const auto names_none = [](const std::string& name) { return trim(name).empty() || trim(name).front() == '-'; };
  names.erase(std::ranges::find_if(names, names_none), names.end());
  return names;
}

// The numbers of the first `wanted` GPUs, as far as the machine has so many. `known`: 0 where they cannot be counted.
std::vector<std::string> numbered_gpus(int known, int wanted) {
  std::vector<std::string> numbers;
  const int end = known == 0 ? wanted : std::min(known, wanted);
  for (int gpu = 0; gpu < end; ++gpu) numbers.push_back(std::to_string(gpu));
  return numbers;
}

std::string describe_gpus(const std::optional<std::string>& visible, std::size_t count) {
  if (!visible) return fmt::format("only {} {}", count, count == 1 ? "is" : "are");
  if (count == 0) return fmt::format("CUDA_VISIBLE_DEVICES=\"{}\" shows no GPU", *visible);
  return fmt::format("CUDA_VISIBLE_DEVICES={}", *visible);
}

}  // namespace

std::string* Variables::find(std::string_view name) {
  const auto found = std::ranges::find_if(variables_, [&](const std::string& variable) {
    return variable.size() > name.size() && variable[name.size()] == '=' && variable.starts_with(name);
  });
  return found == variables_.end() ? nullptr : &*found;
}

void Variables::set(std::string_view name, std::string_view value) {
  const std::string text = fmt::format("{}={}", name, value);
  if (std::string* old = find(name)) {
    *old = text;
  } else {
    variables_.push_back(text);
  }
}

void Variables::set_default(std::string_view name, std::string_view value) {
  if (find(name) == nullptr) set(name, value);
}

std::optional<std::string> Variables::value(std::string_view name) {
  const std::string* variable = find(name);
  return variable == nullptr ? std::nullopt : std::optional(variable->substr(name.size() + 1));
}

void Variables::remove_all(std::span<const std::string_view> beginnings) {
  std::erase_if(variables_, [&](const std::string& variable) {
    return std::ranges::any_of(beginnings, [&](std::string_view beginning) { return variable.starts_with(beginning); });
  });
}

void Variables::set_all(const std::vector<std::string>& variables) {
  for (const std::string& variable : variables) {
    const std::size_t end = variable.find('=');
    if (end != variable.npos) set(variable.substr(0, end), variable.substr(end + 1));
  }
}

void remove_other_roles(Variables& variables) {
  // With these a library would look for a launcher of its own, or take itself for another rank. Others of the same
  // launchers stay: a program may read the number of its job, its scratch folder, or how much its servers log.
  static constexpr std::array<std::string_view, 40> kRoles = {"DMLC_ROLE=",
                                                              "DMLC_RANK=",
                                                              "DMLC_NUM_",
                                                              "DMLC_PS_ROOT_",
                                                              "DMLC_NODE_",
                                                              "DMLC_TRACKER_",
                                                              "DMLC_TASK_ID=",
                                                              "DMLC_WORKER_ID=",
                                                              "DMLC_SERVER_ID=",
                                                              "DMLC_JOB_",
                                                              "SLURM_JOB_ID=",  // JAX takes it for srun
                                                              "SLURM_PROCID=",
                                                              "SLURM_LOCALID=",
                                                              "SLURM_NODEID=",
                                                              "SLURM_NTASKS",
                                                              "SLURM_NPROCS=",
                                                              "SLURM_STEP",
                                                              "SLURM_TASK",
                                                              "SLURM_GTIDS=",
                                                              "SLURM_LAUNCH_NODE_IPADDR=",
                                                              "SLURM_SRUN_",
                                                              "SLURM_PMI",
                                                              "SLURM_MPI_TYPE=",
                                                              "PMI_",
                                                              "PMIX_",
                                                              "OMPI_",
                                                              "MPI_LOCAL",  // of Hydra and Intel MPI
                                                              "MV2_COMM_WORLD_",
                                                              "TORCHELASTIC_",
                                                              "HOROVOD_RANK=",
                                                              "TF_CONFIG=",
                                                              "ELASTIC_TRAINING_ENABLED=",
                                                              "RANK=",
                                                              "LOCAL_RANK=",
                                                              "LOCAL_WORLD_SIZE=",
                                                              "ROLE_RANK=",
                                                              "ROLE_WORLD_SIZE=",
                                                              "ROLE_NAME=",
                                                              "GROUP_RANK=",
                                                              "GROUP_WORLD_SIZE="};
  variables.remove_all(kRoles);
}

void add_common(const ProcessIdentity& who, Variables& variables) {
  variables.set("DTRAIN_JOB", who.program.job);
  variables.set("DTRAIN_GENERATION", std::to_string(who.placement.generation));
  variables.set("DTRAIN_ROLE", role_name(who.role));
  variables.set("DTRAIN_TASK_INDEX", std::to_string(who.index));
  variables.set("DTRAIN_RANK", std::to_string(who.rank));
  variables.set("DTRAIN_WORLD", std::to_string(who.placement.size()));
  variables.set("DTRAIN_LOCAL_RANK", std::to_string(who.local_rank()));
  variables.set("DTRAIN_HOST", who.here.host);
  variables.set("DTRAIN_RESTART", std::to_string(who.placement.starts));
  variables.set("DTRAIN_JOB_FOLDER", who.here.job_folder.string());
  variables.set("DTRAIN_RUN_DIR", run_folder(who).string());
  variables.set("DTRAIN_PROGRESS_FILE", progress_file(who.here.job_folder).string());
  variables.set("DTRAIN_DEADLINE_FILE", deadline_file(who.here.job_folder, who.rank).string());
  variables.set_default("PYTHONUNBUFFERED", "1");
  variables.set_default("OMP_NUM_THREADS", std::to_string(std::max(1, who.info().processors / who.local_size())));
  const std::string& card = who.info().network_card;
  if (!card.empty()) {
    variables.set_default("NCCL_SOCKET_IFNAME", card);
    variables.set_default("GLOO_SOCKET_IFNAME", card);
  }
  variables.set("DTRAIN_SAVED_FILE", saved_file(who.here.job_folder, who.rank).string());
}

void hide_gpus(Variables& variables) { variables.set(kVisibleGpus, ""); }

void share_gpus(const ProcessIdentity& who, Variables& variables) {
  const int count = who.program.gpus_per_rank;
  if (count == 0) return;
  const int first = who.local_rank() * count, end = first + count;
  const std::optional<std::string> visible = variables.value(kVisibleGpus);
  const std::vector<std::string> all = visible ? named_gpus(*visible) : numbered_gpus(who.here.gpus, end);
  if (std::ssize(all) < end) {
    const std::string needed = count == 1 ? fmt::format("GPU {}", first) : fmt::format("GPUs {} to {}", first, end - 1);
    throw Error(fmt::format("rank {} on {} needs {} of its host, but {} there", who.rank, who.here.host, needed,
                            describe_gpus(visible, all.size())),
                "start fewer ranks on each host, or lower setting 'gpus-per-rank'");
  }
  variables.set(kVisibleGpus, fmt::format("{}", fmt::join(all.begin() + first, all.begin() + end, ",")));
}

void add_torch(const ProcessIdentity& who, Variables& variables) {
  const int machine = who.placement.machine_of(who.rank);
  const auto machines = who.placement.machines().size();
  const auto set = [&](std::string_view name, auto value) { variables.set(name, fmt::format("{}", value)); };
  set("RANK", who.rank);
  set("LOCAL_RANK", who.local_rank());
  set("WORLD_SIZE", who.placement.size());
  set("LOCAL_WORLD_SIZE", who.local_size());
  set("GROUP_RANK", machine);
  set("GROUP_WORLD_SIZE", machines);
  set("NODE_RANK", machine);
  set("ROLE_RANK", who.rank);
  set("ROLE_WORLD_SIZE", who.placement.size());
  set("ROLE_NAME", "default");
  set("MASTER_ADDR", first_rank(who).address);
  // Rank 0 opens PyTorch's store at this port, which takes a while; the others connect to the waiting port.
  set("MASTER_PORT", who.rank == 0 ? first_rank(who).ports[torch_port] : first_rank(who).waiting);
  set("TORCHELASTIC_RESTART_COUNT", who.placement.failures);
  set("TORCHELASTIC_MAX_RESTARTS", who.program.max_restarts);
  set("TORCHELASTIC_RUN_ID", who.program.job);
  // With "True" no rank would open the store, because the agent would serve it.
  set("TORCHELASTIC_USE_AGENT_STORE", "False");
  set("TORCHELASTIC_ERROR_FILE", error_file(who.here.job_folder, who.rank).string());
  variables.set_default("TORCHELASTIC_SIGNALS_TO_HANDLE", "SIGTERM,SIGINT,SIGHUP,SIGQUIT");
  variables.set_default("TORCH_NCCL_ASYNC_ERROR_HANDLING", "1");
}

void add_horovod(const ProcessIdentity& who, Variables& variables) {
  const std::vector<int> cross = across(who);
  const auto set = [&](std::string_view name, auto value) { variables.set(name, fmt::format("{}", value)); };
  set("HOROVOD_HOSTNAME", who.info().address);
  set("HOROVOD_RANK", who.rank);
  set("HOROVOD_SIZE", who.placement.size());
  set("HOROVOD_LOCAL_RANK", who.local_rank());
  set("HOROVOD_LOCAL_SIZE", who.local_size());
  set("HOROVOD_CROSS_RANK", position(cross, who.rank));
  set("HOROVOD_CROSS_SIZE", cross.size());
  if (const int port = first_rank(who).rendezvous; port != 0) {
    set("HOROVOD_GLOO_RENDEZVOUS_ADDR",
        fmt::format("{}:{}/{}", net::in_brackets(first_rank(who).address), port, first_rank(who).rendezvous_secret));
    set("HOROVOD_GLOO_RENDEZVOUS_PORT", port);
  }
  set("HOROVOD_CONTROLLER", "gloo");
  set("HOROVOD_CPU_OPERATIONS", "gloo");
  if (!who.info().network_card.empty()) set("HOROVOD_GLOO_IFACE", who.info().network_card);
}

void add_jax(const ProcessIdentity& who, Variables& variables) {
  variables.set("JAX_COORDINATOR_ADDRESS",
                fmt::format("{}:{}", net::in_brackets(first_rank(who).address), first_rank(who).ports[jax_port]));
  if (!who.program.jax) return;
  // JAX looks for this variable to recognise mpirun, and reads the other three.
  const std::string& first = first_rank(who).address;
  variables.set("OMPI_MCA_orte_hnp_uri",
                fmt::format("0.0;{}://{}:0", net::is_ipv4(first) ? "tcp" : "tcp6", net::in_brackets(first)));
  variables.set("OMPI_COMM_WORLD_SIZE", std::to_string(who.placement.size()));
  variables.set("OMPI_COMM_WORLD_RANK", std::to_string(who.rank));
  // The number of the GPU among those that the process sees.
  variables.set("OMPI_COMM_WORLD_LOCAL_RANK", std::to_string(who.program.gpus_per_rank > 0 ? 0 : who.local_rank()));
}

void add_tensorflow(const ProcessIdentity& who, Variables& variables) {
  if (who.role == Role::scheduler) return;
  Json cluster = Json::object();
  const bool has_chief = who.placement.servers > 0 && !who.program.fills_placeholders;
  if (who.placement.servers > 0) cluster["ps"] = list_of(server_hosts(who.placement));
  const std::vector<std::string> hosts = split(worker_hosts(who.placement), ',');
  if (has_chief) cluster["chief"] = list_of(hosts.front());
  if (!has_chief || hosts.size() > 1) cluster["worker"] = list_of(worker_hosts(who.placement, has_chief ? 1 : 0));
  Json task = Json::object({{"type", role_name(who.role)}, {"index", who.index}});
  if (has_chief && who.role == Role::worker) {
    task = who.rank == 0 ? Json::object({{"type", "chief"}, {"index", 0}})
                         : Json::object({{"type", "worker"}, {"index", who.rank - 1}});
  }
  const Json config = Json::object({{"cluster", cluster}, {"task", task}});
  variables.set("TF_CONFIG", config.dump());
}

void add_mxnet(const ProcessIdentity& who, Variables& variables) {
  // MXNet of Dynamic Training would compare the live host file in every epoch, start and log workers itself, if it
  // found ELASTIC_TRAINING_ENABLED. Here the coordinator does that, and starts all ranks again.
  variables.set("WORKER_HOST_FILE", hosts_copy(who.here.job_folder, who.rank).string());
  variables.set("INSTANCE_POOL", "DEFAULT");
  variables.set("TRAINING_CMD", fmt::format("{}", fmt::join(who.program.command, " ")));
  if (who.placement.servers == 0 || who.program.fills_placeholders) return;
  const auto set = [&](std::string_view name, auto value) { variables.set(name, fmt::format("{}", value)); };
  set("DMLC_ROLE", who.role == Role::server ? "server" : role_name(who.role));
  set("DMLC_PS_ROOT_URI", first_rank(who).address);
  // The scheduler starts once a process calls at the waiting port before its own.
  set("DMLC_PS_ROOT_PORT",
      who.role == Role::scheduler ? first_rank(who).ports[mxnet_port] : first_rank(who).mxnet_waiting);
  set("DMLC_NUM_WORKER", who.placement.size());
  set("DMLC_NUM_SERVER", who.placement.servers);
  set("DMLC_NODE_HOST", who.info().address);
  if (!who.info().network_card.empty()) variables.set_default("DMLC_INTERFACE", who.info().network_card);
  if (who.role == Role::worker) set("DMLC_WORKER_ID", who.index);
  if (who.role == Role::server) set("DMLC_SERVER_ID", who.index);
  set("DMLC_TASK_ID", who.index);
  set("DMLC_JOB_CLUSTER", "ssh");
  set("DMLC_NUM_ATTEMPT", who.placement.failures);
}

}  // namespace dtrain::external
