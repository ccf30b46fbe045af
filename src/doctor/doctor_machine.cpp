#include <cpuid.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/timex.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>

#include <dtrain/base/cpus.hpp>
#include <dtrain/base/environment.hpp>
#include <dtrain/base/error.hpp>
#include <dtrain/base/file_exists.hpp>
#include <dtrain/base/machine.hpp>
#include <dtrain/base/text.hpp>
#include <dtrain/net/ssh.hpp>

#include "doctor_agent.hpp"
#include "doctor_facts.hpp"
#include "job/spec/host_list.hpp"
#include "job/spec/process_facts.hpp"

namespace dtrain::doctor {
namespace {

std::string kernel_name() {
  utsname names{};
  return ::uname(&names) == 0 ? fmt::format("{} {}", names.sysname, names.release) : "unknown";
}

std::string processor_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("model name")) return std::string(trim(line.substr(line.find(':') + 1)));
  }
  return {};
}

std::vector<std::string> processor_features() {
  std::vector<std::string> found;
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) found.emplace_back("AVX2");
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw")) found.emplace_back("AVX512");
  if (__builtin_cpu_supports("avx512bf16")) found.emplace_back("AVX512-BF16");
  constexpr unsigned kAmxBf16 = 1u << 22, kExtended = 7;  // of EDX
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid_count(kExtended, 0, &a, &b, &c, &d) && (d & kAmxBf16)) found.emplace_back("AMX-BF16");
  return found;
}

std::uint64_t most_descriptors() {
  rlimit limit{};
  return ::getrlimit(RLIMIT_NOFILE, &limit) == 0 ? limit.rlim_cur : 0;
}

double load_of_last_minute() {
  double load = 0;
  return ::getloadavg(&load, 1) == 1 ? load : 0;
}

std::optional<bool> clock_is_kept() {
  timex now{};
  const int state = ::adjtimex(&now);
  if (state < 0) return std::nullopt;
  return (now.status & STA_UNSYNC) == 0;
}

DiskFacts read_disk(const std::string& use, const Path& wanted) {
  DiskFacts facts{.use = use, .path = std::filesystem::absolute(wanted).lexically_normal().string()};
  std::error_code error;
  const Path folder = existing_folder(facts.path, error);
  if (error) {
    facts.error = error.message();
    return facts;
  }
  struct statvfs space {};
  if (::statvfs(folder.c_str(), &space) != 0) {
    facts.error = std::strerror(errno);
    return facts;
  }
  facts.free_bytes = std::uint64_t{space.f_bavail} * space.f_frsize;
  // Some file systems have no fixed number of files: they say that they have none at all.
  facts.free_files = space.f_files == 0 ? ~std::uint64_t{0} : std::uint64_t{space.f_favail};
  if (::access(folder.c_str(), W_OK) != 0) facts.error = std::strerror(errno);
  return facts;
}

std::vector<DiskFacts> read_disks(const Path& job_folder) {
  std::vector<DiskFacts> disks = {read_disk("the current folder", ".")};
  if (!job_folder.empty()) disks.push_back(read_disk("the job folder", job_folder));
  if (const auto home = environment("HOME"))
    disks.push_back(read_disk("copies and cache", Path(*home) / ".cache/dtrain"));
  return disks;
}

SshFacts read_ssh() {
  SshFacts facts;
  const std::string socket = environment("SSH_AUTH_SOCK").value_or("");
  facts.agent_named = !socket.empty();
  if (facts.agent_named) facts.agent_keys = keys_of_agent(socket);
  const net::SshOptions own = net::user_ssh_options(environment("HOME").value_or("/"), socket);
  std::error_code unreadable;
  for (const Path& key : own.identities) facts.key_files += std::filesystem::exists(key, unreadable) ? 1 : 0;
  return facts;
}

void read_workers(const Path& file, ClusterVariables& facts) try {
  std::error_code unreadable;
  if (!file_exists(file) || !std::filesystem::is_regular_file(file, unreadable)) return;
  facts.workers_in_file = static_cast<int>(job::read_host_file(file).hosts.size());
  facts.has_workers_file = true;
} catch (const Error& error) {
  facts.workers_error = error.what();
}

void read_mount(const Path& mount, ClusterVariables& facts) {
  std::error_code error;
  const std::filesystem::file_type type = std::filesystem::status(mount, error).type();
  facts.has_mount = type == std::filesystem::file_type::directory;
  if (type == std::filesystem::file_type::none) facts.mount_error = error.message();
}

ClusterVariables read_cluster() {
  ClusterVariables facts;
  for (const std::string& name : cluster_variables()) {
    if (const auto value = environment(name)) facts.variables[name] = *value;
  }
  if (const auto file = environment("DEEPLEARNING_WORKERS_PATH")) read_workers(*file, facts);
  if (const auto mount = environment("EFS_MOUNT")) read_mount(*mount, facts);
  return facts;
}

Json text_or_null(const std::string& text) { return text.empty() ? Json() : Json(text); }

Json json_of(const NvidiaFacts& facts) {
  Json gpus = Json::array(), libraries = Json::object({});
  for (const backend::CudaGpu& gpu : facts.found.gpus) gpus.push_back(gpu.name);
  for (const backend::CudaLibrary& library : facts.found.libraries) {
    libraries[library.name] = text_or_null(library.version);
  }
  return Json::object({{"usable", facts.found.problem.empty()},
                       {"gpus", gpus},
                       {"driver", text_or_null(facts.driver)},
                       {"cuda", text_or_null(facts.found.driver)},
                       {"libraries", libraries}});
}

Json json_of(const std::vector<DiskFacts>& disks) {
  Json rows = Json::array();
  for (const DiskFacts& disk : disks) {
    rows.push_back(Json::object({{"use", disk.use},
                                 {"path", disk.path},
                                 {"free_bytes", disk.free_bytes},
                                 {"error", disk.error.empty() ? Json() : Json(disk.error)}}));
  }
  return rows;
}

}  // namespace

const std::vector<std::string>& cluster_variables() {
  static const std::vector<std::string> names = {"ELASTIC_WORKER_TAG",
                                                 "WORKER_LAUNCH_TEMPLATE_ID",
                                                 "DEEPLEARNING_WORKERS_PATH",
                                                 "DEEPLEARNING_WORKERS_COUNT",
                                                 "AWS_REGION",
                                                 "DEEPLEARNING_WORKER_GPU_COUNT",
                                                 "EFS_MOUNT"};
  return names;
}

// An error in one part does not hide the others.
template <typename Look>
static void look_at(const char* about, MachineFacts& facts, const Look& look) {
  try {
    look();
  } catch (const std::exception& error) {
    facts.unread.push_back({about, error.what()});
  }
}

MachineFacts read_machine(const Path& job_folder, bool ask_aws) {
  MachineFacts facts;
  facts.host = job::host_name();
  facts.machine = machine_identity();
  facts.kernel = kernel_name();
  facts.processor = processor_name();
  facts.features = processor_features();
  facts.usable_threads = usable_cpus();
  facts.threads = static_cast<int>(::sysconf(_SC_NPROCESSORS_ONLN));
  facts.load = load_of_last_minute();
  const Memory memory = usable_memory();
  facts.memory_bytes = memory.total;
  facts.free_memory_bytes = memory.available;
  facts.descriptors = most_descriptors();
  facts.clock_is_kept = clock_is_kept();
  look_at("disk", facts, [&] { facts.disks = read_disks(job_folder); });
  look_at("ssh", facts, [&] { facts.ssh = read_ssh(); });
  look_at("gpu", facts, [&] { facts.nvidia = read_nvidia(); });
  look_at("cluster", facts, [&] { facts.cluster = read_cluster(); });
  if (ask_aws) look_at("aws", facts, [&] { facts.aws = read_aws(); });
  return facts;
}

Json to_json(const MachineFacts& facts) {
  Json variables = Json::object({});
  for (const auto& [name, value] : facts.cluster.variables) variables[name] = value;
  return Json::object({{"machine", text_or_null(facts.machine)},
                       {"kernel", facts.kernel},
                       {"processor", facts.processor},
                       {"features", json_texts(facts.features)},
                       {"usable_threads", facts.usable_threads},
                       {"threads", facts.threads},
                       {"load", facts.load},
                       {"memory_bytes", facts.memory_bytes},
                       {"free_memory_bytes", facts.free_memory_bytes},
                       {"descriptors", facts.descriptors},
                       {"disks", json_of(facts.disks)},
                       {"nvidia", json_of(facts.nvidia)},
                       {"variables", variables}});
}

}  // namespace dtrain::doctor
