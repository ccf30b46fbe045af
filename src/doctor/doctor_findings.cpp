#include "doctor_findings.hpp"

#include <fmt/format.h>

#include <algorithm>

#include <dtrain/base/error.hpp>
#include <dtrain/base/text.hpp>

#include "job/agent/host_check.hpp"

namespace dtrain::doctor {
namespace {

constexpr std::uint64_t kGiB = 1 << 30;
constexpr std::uint64_t kLittleMemory = 2 * kGiB, kLittleDisk = 2 * kGiB;
constexpr std::uint64_t kLeastFiles = 1000;
// Enough for a coordinator: some descriptors for each host, and those of its files.
constexpr std::uint64_t kFewDescriptors = 1024;

void append(std::vector<Finding>& all, std::vector<Finding> more) {
  for (Finding& finding : more) all.push_back(std::move(finding));
}

Finding judge_processor(const MachineFacts& facts) {
  const std::string what = fmt::format("{}, {}", facts.processor.empty() ? "unknown" : facts.processor,
                                       facts.features.empty() ? "no AVX2" : join(facts.features, " "));
  if (!facts.features.empty()) return {Level::fine, "processor", what, "", ""};
  return {Level::warning, "processor", what, "without AVX2 training on the processor is several times slower",
          "use a machine from 2013 or later; in a virtual machine, pass the host's processor through"};
}

Finding judge_threads(const MachineFacts& facts) {
  const std::string what =
      fmt::format("{} of {} processors usable, load {:.1f}", facts.usable_threads, facts.threads, facts.load);
  if (facts.load > facts.usable_threads + 0.5) {
    return {Level::warning, "threads", what, "other programs compete with the training's threads",
            "top; end unneeded programs, or train with fewer --threads"};
  }
  if (facts.usable_threads < facts.threads) {
    return {Level::note, "threads", what, "an affinity mask or a control group withholds the others from this process",
            "taskset -p $$; cat /sys/fs/cgroup/cpu.max"};
  }
  return {Level::fine, "threads", what, "", ""};
}

Finding judge_memory(const MachineFacts& facts) {
  const std::string what =
      fmt::format("{} of {} free", format_bytes(facts.free_memory_bytes), format_bytes(facts.memory_bytes));
  const char* const fix = "ps aux --sort=-rss | head; end unneeded programs, or use a smaller --batch-size";
  if (facts.free_memory_bytes < job::kLeastMemory)
    return {Level::problem, "memory", what, "a worker needs more memory; the kernel would kill it", fix};
  if (facts.free_memory_bytes < kLittleMemory)
    return {Level::warning, "memory", what, "this is enough for small networks only", fix};
  return {Level::fine, "memory", what, "", ""};
}

Finding judge_descriptors(const MachineFacts& facts) {
  const std::string what = fmt::format("{} open files and connections for one process", facts.descriptors);
  if (facts.descriptors >= kFewDescriptors) return {Level::fine, "descriptors", what, "", ""};
  return {Level::warning, "descriptors", what, "a job needs several for each of its hosts",
          fmt::format("ulimit -n {}", kFewDescriptors)};
}

Finding judge_clock(const MachineFacts& facts) {
  if (facts.clock_is_kept.value_or(true)) return {Level::fine, "clock", "synchronized with network time", "", ""};
  return {Level::note, "clock", "not synchronized with network time",
          "logs of several hosts are merged by time, and AWS refuses requests that are 5 minutes off",
          "timedatectl set-ntp true"};
}

Finding judge_disk(const DiskFacts& disk) {
  const std::string where = fmt::format("{} ({})", disk.path, disk.use);
  if (!disk.error.empty()) {
    return {Level::problem, "disk", fmt::format("{}: {}", where, disk.error), "dtrain writes there",
            fmt::format("ls -ld {0}; make it writable, or choose another folder", disk.path)};
  }
  const std::string what = fmt::format("{}: {} free", where, format_bytes(disk.free_bytes));
  const std::string fix = fmt::format("df -h {}; remove unneeded files, or choose another folder", disk.path);
  if (disk.free_bytes < job::kLeastDisk)
    return {Level::problem, "disk", what, "this is not enough for logs and one checkpoint", fix};
  if (disk.free_files < kLeastFiles) {
    return {Level::problem, "disk", fmt::format("{}, {} files left", what, disk.free_files),
            "no new files can be created", fmt::format("df -i {}; remove unneeded files", disk.path)};
  }
  if (disk.free_bytes < kLittleDisk) return {Level::warning, "disk", what, "checkpoints will soon fill it", fix};
  return {Level::fine, "disk", what, "", ""};
}

Finding judge_library(const backend::CudaLibrary& library) {
  if (library.problem.empty())
    return {Level::fine, "gpu libraries", fmt::format("{} {}", library.name, library.version), "", ""};
  // Without NCCL one GPU trains as well.
  const Level level = library.name == "NCCL" ? Level::note : Level::problem;
  return {level, "gpu libraries", library.problem, "training on a GPU needs this library", library.hint};
}

bool is_count(const std::string& text) { return parse_integer(text).value_or(-1) >= 0; }

std::string value_of(const ClusterVariables& facts, const std::string& name) {
  const auto found = facts.variables.find(name);
  return found == facts.variables.end() ? std::string() : found->second;
}

Finding cluster_problem(std::string what, std::string why, std::string fix) {
  return {Level::problem, "cluster", std::move(what), std::move(why), std::move(fix)};
}

void judge_workers(const ClusterVariables& facts, std::vector<Finding>& found) {
  const std::string path = value_of(facts, "DEEPLEARNING_WORKERS_PATH");
  const std::string count = value_of(facts, "DEEPLEARNING_WORKERS_COUNT");
  if (!facts.workers_error.empty()) {
    found.push_back(cluster_problem("DEEPLEARNING_WORKERS_PATH: " + facts.workers_error, "it is the default for -H",
                                    fmt::format("correct {}, or give -H", path)));
  } else if (!path.empty() && !facts.has_workers_file) {
    found.push_back(cluster_problem(fmt::format("DEEPLEARNING_WORKERS_PATH={}: no such file", path),
                                    "it is the default for -H", "create this file with one host per line, or give -H"));
  }
  if (!count.empty() && !is_count(count)) {
    found.push_back(cluster_problem(fmt::format("DEEPLEARNING_WORKERS_COUNT={}: not a number", count),
                                    "it is the default for -n", "export DEEPLEARNING_WORKERS_COUNT=2"));
  } else if (!count.empty() && facts.has_workers_file && parse_integer(count) > facts.workers_in_file) {
    found.push_back(cluster_problem(
        fmt::format("DEEPLEARNING_WORKERS_COUNT={}, but {} has {} hosts", count, path, facts.workers_in_file),
        "a job cannot start with more hosts than the file lists", fmt::format("add hosts to {}, or give -n", path)));
  }
}

void judge_mount(const ClusterVariables& facts, std::vector<Finding>& found) {
  const std::string mount = value_of(facts, "EFS_MOUNT");
  if (mount.empty() || facts.has_mount) return;
  const std::string why = facts.mount_error.empty() ? "no such folder" : facts.mount_error;
  found.push_back(cluster_problem(fmt::format("EFS_MOUNT={}: {}", mount, why), "it is the default for --job-dir",
                                  fmt::format("mount the file system at {}, or give --job-dir", mount)));
}

void judge_gpu_count(const ClusterVariables& facts, int gpus, std::vector<Finding>& found) {
  const std::string count = value_of(facts, "DEEPLEARNING_WORKER_GPU_COUNT");
  if (count.empty() || parse_integer(count) == gpus) return;
  const std::string why = "it is the default number of GPUs for --gpus";
  const std::string fix = fmt::format("export DEEPLEARNING_WORKER_GPU_COUNT={}", gpus);
  if (!is_count(count)) {
    found.push_back(cluster_problem(fmt::format("DEEPLEARNING_WORKER_GPU_COUNT={}: not a number", count), why, fix));
    return;
  }
  found.push_back({Level::warning, "cluster",
                   fmt::format("DEEPLEARNING_WORKER_GPU_COUNT={}, but this machine has {}", count, gpus), why, fix});
}

}  // namespace

Json to_json(const Finding& finding) {
  return Json::object({{"level", enum_name(kLevelNames, finding.level)},
                       {"about", finding.about},
                       {"what", finding.what},
                       {"why", finding.why},
                       {"fix", finding.fix}});
}

Finding finding_from_json(const Json& json) {
  const auto level = enum_value(kLevelNames, json.at("level").as_string());
  if (!level) throw DataError(fmt::format("a finding of level '{}'", json.at("level").as_string()));
  const Json* const fix = json.find("fix");  // hosts with an older dtrain call it "mend"
  return {*level, json.at("about").as_string(), json.at("what").as_string(), json.at("why").as_string(),
          fix ? fix->as_string() : json.at("mend").as_string()};
}

std::vector<Finding> judge_compute(const MachineFacts& facts) {
  return {judge_processor(facts), judge_threads(facts), judge_memory(facts), judge_descriptors(facts),
          judge_clock(facts)};
}

std::vector<Finding> judge_disks(const MachineFacts& facts) {
  std::vector<Finding> found;
  for (const DiskFacts& disk : facts.disks) found.push_back(judge_disk(disk));
  return found;
}

std::vector<Finding> judge_ssh(const MachineFacts& facts) {
  const SshFacts& ssh = facts.ssh;
  const std::string files = fmt::format("{} key files in ~/.ssh", ssh.key_files);
  if (ssh.agent_named && !ssh.agent_keys) {
    return {{Level::warning, "ssh", "SSH_AUTH_SOCK is set, but no agent answers; " + files,
             "its keys cannot be used to log in to hosts", "eval $(ssh-agent) && ssh-add"}};
  }
  if (ssh.agent_keys.value_or(0) > 0) {
    return {{Level::fine, "ssh", fmt::format("an agent with {} keys; {}", *ssh.agent_keys, files), "", ""}};
  }
  if (ssh.key_files > 0) return {{Level::fine, "ssh", files, "", ""}};
  return {{Level::note, "ssh", "neither an agent with keys nor key files in ~/.ssh",
           "training on several hosts needs to log in to them",
           "ssh-keygen -t ed25519, or log in to this machine with ssh -A"}};
}

std::vector<Finding> judge_gpus(const NvidiaFacts& facts) {
  const backend::CudaReport& report = facts.found;
  if (!facts.has_device && facts.driver.empty() && report.gpus.empty())
    return {{Level::fine, "gpu", "none; training runs on the processor", "", ""}};
  if (report.gpus.empty()) {
    return {{Level::problem, "gpu", fmt::format("a GPU is present, but {}", report.problem),
             "training runs on the processor", report.hint}};
  }
  std::vector<Finding> found = {
      {Level::fine, "gpu",
       fmt::format("{} x {}, driver {}, CUDA up to {}", report.gpus.size(), report.gpus[0].name,
                   facts.driver.empty() ? "unknown" : facts.driver, report.driver),
       "", ""}};
  const bool some_train = std::ranges::any_of(report.gpus, &std::string::empty, &backend::CudaGpu::problem);
  for (const backend::CudaGpu& gpu : report.gpus) {
    if (gpu.problem.empty()) continue;
    found.push_back({some_train ? Level::warning : Level::problem, "gpu", gpu.problem,
                     some_train ? "training uses the other GPUs" : "training runs on the processor",
                     backend::hint_for_old_gpus()});
  }
  for (const backend::CudaLibrary& library : report.libraries) found.push_back(judge_library(library));
  return found;
}

std::vector<Finding> judge_cluster_variables(const ClusterVariables& facts, int gpus) {
  // The tools of AWS read the region on any machine.
  if (std::ranges::all_of(facts.variables, [](const auto& one) { return one.first == "AWS_REGION"; }))
    return {
        {Level::fine, "cluster", "no variables of a cluster are set; with -H and --job-dir none are needed", "", ""}};
  std::vector<Finding> found;
  std::vector<std::string> missing;
  for (const std::string& name : cluster_variables()) {
    if (!facts.variables.contains(name)) missing.push_back(name);
  }
  if (!missing.empty()) {
    found.push_back({Level::warning, "cluster", "not set: " + join(missing, ", "),
                     "the set-up of this machine did not finish, or the shell has not read its variables",
                     "tail /var/log/cloud-init-output.log; source /etc/profile"});
  }
  judge_workers(facts, found);
  judge_mount(facts, found);
  judge_gpu_count(facts, gpus, found);
  if (found.empty())
    found.push_back({Level::fine, "cluster", "all variables of the cluster are set and consistent", "", ""});
  return found;
}

std::vector<Finding> judge_aws(const AwsFacts& facts, Level without_credentials) {
  if (!facts.asked) return {};
  if (facts.source.empty()) {
    return {{without_credentials, "aws", "no credentials", "only s3:// and clusters on AWS need credentials",
             facts.hint.empty() ? "dtrain help remote-files" : facts.hint}};
  }
  std::vector<Finding> found;
  if (facts.identity_error.empty()) {
    found.push_back({Level::fine, "aws",
                     fmt::format("{} of account {}, from {}", facts.name, facts.account, facts.source), "", ""});
  } else {
    found.push_back({Level::problem, "aws", fmt::format("credentials from {}: {}", facts.source, facts.identity_error),
                     "AWS rejects these credentials", facts.hint});
  }
  if (facts.region.empty()) {
    found.push_back(
        {Level::warning, "aws", "no region", "clusters and buckets belong to a region", "export AWS_REGION=us-east-1"});
  } else {
    found.push_back({Level::fine, "aws", fmt::format("region {}", facts.region), "", ""});
  }
  return found;
}

// A note, as s3:// needs no bundle; `cluster plan` and `cluster up` warn.
std::vector<Finding> judge_bundle(const AwsFacts& facts) {
  if (!facts.asked) return {};
  if (facts.is_bundle)
    return {{Level::fine, "bundle", "this dtrain is a bundle, which cluster nodes can start", "", ""}};
  return {{Level::note, "bundle", "this dtrain is no bundle",
           "`dtrain cluster up` copies it to the nodes, which cannot start it where they lack its libraries, or the "
           "processor for which it was built",
           "packaging/bundle.sh makes a bundle; unpack it, and run the dtrain in it"}};
}

static Finding judge_unread(const MachineFacts::Unread& part) {
  return {Level::warning, part.about, "cannot be looked at: " + part.error,
          "what dtrain needs there may fail in the same way", "run dtrain doctor as the user who trains"};
}

std::vector<Finding> judge_identity(const MachineFacts& facts) {
  std::vector<Finding> found = judge_aws(facts.aws, Level::problem);
  append(found, judge_bundle(facts.aws));
  for (const MachineFacts::Unread& part : facts.unread) {
    if (part.about == "aws") found.push_back(judge_unread(part));
  }
  return found;
}

std::vector<Finding> judge(const MachineFacts& facts) {
  std::vector<Finding> found = judge_compute(facts);
  append(found, judge_disks(facts));
  append(found, judge_ssh(facts));
  append(found, judge_gpus(facts.nvidia));
  append(found, judge_cluster_variables(facts.cluster, static_cast<int>(facts.nvidia.found.gpus.size())));
  append(found, judge_aws(facts.aws));
  append(found, judge_bundle(facts.aws));
  for (const MachineFacts::Unread& part : facts.unread) found.push_back(judge_unread(part));
  return found;
}

}  // namespace dtrain::doctor
