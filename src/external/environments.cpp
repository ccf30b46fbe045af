#include "environments.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include <dtrain/base/json.hpp>
#include <dtrain/base/text.hpp>

#include "placeholders.hpp"
#include "run_folder.hpp"

namespace dtrain::external {
namespace {

const Seat& first_seat(const Character& who) { return who.cast.seats.front(); }

Path run_folder(const Character& who) { return who.here.job_folder / "run"; }

// Ranks with the same local rank, one on each machine that has so many.
std::vector<int> across(const Character& who) {
  std::vector<int> ranks;
  for (const int first : who.cast.machines()) {
    const std::vector<int> local = who.cast.neighbours(first);
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

int Character::local_rank() const { return position(cast.neighbours(rank), rank); }

void remove_other_roles(Variables& variables) {
  // Libraries that find these would ask a launcher that is not theirs.
  static constexpr std::array<std::string_view, 16> kRoles = {"DMLC_",
                                                              "SLURM_",
                                                              "PMI_",
                                                              "PMIX_",
                                                              "OMPI_",
                                                              "TORCHELASTIC_",
                                                              "HOROVOD_RANK=",
                                                              "TF_CONFIG=",
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

void add_common(const Character& who, Variables& variables) {
  variables.set("DTRAIN_JOB", who.program.job);
  variables.set("DTRAIN_GENERATION", std::to_string(who.cast.generation));
  variables.set("DTRAIN_ROLE", role_name(who.role));
  variables.set("DTRAIN_TASK_INDEX", std::to_string(who.index));
  variables.set("DTRAIN_RANK", std::to_string(who.rank));
  variables.set("DTRAIN_WORLD", std::to_string(who.cast.size()));
  variables.set("DTRAIN_LOCAL_RANK", std::to_string(who.local_rank()));
  variables.set("DTRAIN_HOST", who.here.host);
  variables.set("DTRAIN_RESTART", std::to_string(who.cast.starts));
  variables.set("DTRAIN_JOB_FOLDER", who.here.job_folder.string());
  variables.set("DTRAIN_RUN_DIR", run_folder(who).string());
  variables.set("DTRAIN_PROGRESS_FILE", progress_file(who.here.job_folder).string());
  variables.set("DTRAIN_DEADLINE_FILE", deadline_file(who.here.job_folder, who.rank).string());
  variables.set_default("PYTHONUNBUFFERED", "1");
  variables.set_default("OMP_NUM_THREADS", std::to_string(std::max(1, who.seat().processors / who.local_size())));
  const std::string& card = who.seat().network_card;
  if (!card.empty()) {
    variables.set_default("NCCL_SOCKET_IFNAME", card);
    variables.set_default("GLOO_SOCKET_IFNAME", card);
  }
  // A server of parameters that took the GPUs would keep its workers from them.
  if (who.role != Role::worker) variables.set("CUDA_VISIBLE_DEVICES", "");
}

void add_torch(const Character& who, Variables& variables) {
  const int machine = who.cast.machine_of(who.rank);
  const auto machines = who.cast.machines().size();
  const auto set = [&](std::string_view name, auto value) { variables.set(name, fmt::format("{}", value)); };
  set("RANK", who.rank);
  set("LOCAL_RANK", who.local_rank());
  set("WORLD_SIZE", who.cast.size());
  set("LOCAL_WORLD_SIZE", who.local_size());
  set("GROUP_RANK", machine);
  set("GROUP_WORLD_SIZE", machines);
  set("NODE_RANK", machine);
  set("ROLE_RANK", who.rank);
  set("ROLE_WORLD_SIZE", who.cast.size());
  set("ROLE_NAME", "default");
  set("MASTER_ADDR", first_seat(who).address);
  // Rank 0 opens PyTorch's store there, which takes it a while; the others may call before.
  set("MASTER_PORT", who.rank == 0 ? first_seat(who).ports[torch_port] : first_seat(who).waiting);
  set("TORCHELASTIC_RESTART_COUNT", who.cast.failures);
  set("TORCHELASTIC_MAX_RESTARTS", who.program.max_restarts);
  set("TORCHELASTIC_RUN_ID", who.program.job);
  // True would mean that the agent serves the store: then no rank opens it.
  set("TORCHELASTIC_USE_AGENT_STORE", "False");
  set("TORCHELASTIC_ERROR_FILE", (rank_folder(who.here.job_folder, who.rank) / "error.json").string());
  variables.set_default("TORCH_NCCL_ASYNC_ERROR_HANDLING", "1");
}

void add_horovod(const Character& who, Variables& variables) {
  const std::vector<int> cross = across(who);
  const auto set = [&](std::string_view name, auto value) { variables.set(name, fmt::format("{}", value)); };
  set("HOROVOD_HOSTNAME", who.seat().address);
  set("HOROVOD_RANK", who.rank);
  set("HOROVOD_SIZE", who.cast.size());
  set("HOROVOD_LOCAL_RANK", who.local_rank());
  set("HOROVOD_LOCAL_SIZE", who.local_size());
  set("HOROVOD_CROSS_RANK", position(cross, who.rank));
  set("HOROVOD_CROSS_SIZE", cross.size());
  set("HOROVOD_GLOO_RENDEZVOUS_ADDR", first_seat(who).address);
  set("HOROVOD_GLOO_RENDEZVOUS_PORT", first_seat(who).rendezvous);
  set("HOROVOD_CONTROLLER", "gloo");
  set("HOROVOD_CPU_OPERATIONS", "gloo");
  if (!who.seat().network_card.empty()) set("HOROVOD_GLOO_IFACE", who.seat().network_card);
}

void add_jax(const Character& who, Variables& variables) {
  variables.set("JAX_COORDINATOR_ADDRESS",
                fmt::format("{}:{}", first_seat(who).address, first_seat(who).ports[jax_port]));
}

void add_tensorflow(const Character& who, Variables& variables) {
  if (who.role == Role::scheduler) return;
  Json cluster = Json::object();
  if (who.cast.servers > 0) cluster["ps"] = list_of(server_hosts(who.cast));
  cluster["worker"] = list_of(worker_hosts(who.cast));
  const Json config = Json::object(
      {{"cluster", cluster}, {"task", Json::object({{"type", role_name(who.role)}, {"index", who.index}})}});
  variables.set("TF_CONFIG", config.dump());
}

void add_mxnet(const Character& who, Variables& variables) {
  variables.set("WORKER_HOST_FILE", (who.here.job_folder / "host_worker").string());
  variables.set("INSTANCE_POOL", "DEFAULT");
  variables.set("TRAINING_CMD", fmt::format("{}", fmt::join(who.program.command, " ")));
  if (who.program.elastic) variables.set("ELASTIC_TRAINING_ENABLED", "1");
  if (who.cast.servers == 0 || who.program.fills_placeholders) return;
  const auto set = [&](std::string_view name, auto value) { variables.set(name, fmt::format("{}", value)); };
  set("DMLC_ROLE", who.role == Role::server ? "server" : role_name(who.role));
  set("DMLC_PS_ROOT_URI", first_seat(who).address);
  set("DMLC_PS_ROOT_PORT", first_seat(who).ports[mxnet_port]);
  set("DMLC_NUM_WORKER", who.cast.size());
  set("DMLC_NUM_SERVER", who.cast.servers);
  set("DMLC_NODE_HOST", who.seat().address);
  if (!who.seat().network_card.empty()) set("DMLC_INTERFACE", who.seat().network_card);
  if (who.role == Role::worker) set("DMLC_WORKER_ID", who.index);
  if (who.role == Role::server) set("DMLC_SERVER_ID", who.index);
  set("DMLC_TASK_ID", who.index);
  set("DMLC_JOB_CLUSTER", "ssh");
  set("DMLC_NUM_ATTEMPT", who.cast.failures);
}

}  // namespace dtrain::external
