#include "host_check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <fstream>

#include <dtrain/base/machine.hpp>
#include <dtrain/base/process.hpp>
#include <dtrain/base/text.hpp>
#include <dtrain/base/with_hint.hpp>
#include <dtrain/elastic/agent.hpp>
#include <dtrain/external/run_program.hpp>

#include "config/gpu/gpu_choice.hpp"
#include "job/spec/data_facts.hpp"
#include "job/spec/job_client.hpp"
#include "job/spec/shared_folders.hpp"
#include "job/spec/train_run.hpp"

namespace dtrain::job {
namespace {

// Below this, the exchange of a step takes minutes.
constexpr double kLeastBandwidth = 128 << 10;  // bytes a second
// Enough to distinguish a bad network from a good one; repeated, because a busy machine may spoil one measurement.
constexpr std::size_t kProbeBytes = 256 << 10;
constexpr int kTries = 3;

double bandwidth_with(const CoordinatorFile& coordinator, std::size_t bytes) {
  const std::string request = Json::object({{"ask", "bandwidth"}, {"padding", std::string(bytes, ' ')}}).dump();
  const auto start = std::chrono::steady_clock::now();
  converse(coordinator, request);
  return static_cast<double>(bytes) / std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// The bandwidth to the coordinator's machine, which usually has a worker too. The time to connect counts, so the result
// is never too high.
double bandwidth_to(const CoordinatorFile& coordinator) {
  double best = 0;
  for (int i = 0; i < kTries && best < 16 * kLeastBandwidth; ++i) {
    best = std::max(best, bandwidth_with(coordinator, kProbeBytes));
  }
  return best;
}

// A coordinator that cannot be reached is no fault of this host: another one may have taken over.
void measure_bandwidth(const Json& job, Json& facts) {
  const Json& where = job.at("coordinator");
  CoordinatorFile coordinator;
  coordinator.addresses = {where.at("address").as_string()};
  coordinator.port = static_cast<std::uint16_t>(where.at("port").as_integer());
  coordinator.token = job.at("token").as_string();
  if (!answers(coordinator)) return;
  const double bandwidth = bandwidth_to(coordinator);
  facts["bandwidth_bytes_per_second"] = static_cast<std::int64_t>(bandwidth);
  if (bandwidth >= kLeastBandwidth) return;
  throw Error(fmt::format("the network to {} carries only {} a second, it needs {}", where.at("address").as_string(),
                          format_bytes(static_cast<std::uint64_t>(bandwidth)),
                          format_bytes(static_cast<std::uint64_t>(kLeastBandwidth))));
}

std::uint64_t free_disk(const Path& folder) {
  std::error_code error;
  const auto space = std::filesystem::space(folder, error);
  if (error) throw Error(fmt::format("{}: cannot be reached: {}", folder.string(), error.message()));
  return space.available;
}

void expect(std::uint64_t have, std::uint64_t need, const std::string& what, const std::string& hint = {}) {
  if (have >= need) return;
  throw Error(fmt::format("only {} of {} are free, it needs {}", format_bytes(have), what, format_bytes(need)), hint);
}

void expect_memory(std::uint64_t available, const TrainRun& run) {
  const NeededMemory needed = memory_of_host(run.options, run.graph.parameter_count);
  std::string hint;
  if (needed.decoded > 0)
    hint = fmt::format("setting 'cache-decoded' takes {} of them: lower it", format_bytes(needed.decoded));
  expect(available, needed.training + needed.decoded, "memory", hint);
}

void measure(const elastic::WorkerJob& job, Json& facts) {
  facts["disk_free_bytes"] = free_disk(job.job_folder);
  expect(free_disk(job.job_folder), kLeastDisk, "the disk of the job folder");
  const config::RunSpec spec = config::run_spec_from_json(job.document);
  if (const auto* other = std::get_if<config::ProgramSpec>(&spec.work)) {
    return external::check_program(other->program, own_environment());
  }
  enter_folder(spec);
  const auto& training = std::get<config::TrainSpec>(spec.work);
  require_shared_prefix(training);
  facts["data"] = check_data_facts(training.data);
  const TrainRun run = run_of(training);
  const Memory memory = usable_memory();
  facts["memory_free_bytes"] = memory.available;
  if (memory.total > 0) expect_memory(memory.available, run);
}

}  // namespace

NeededMemory memory_of_host(const config::TrainOptions& options, std::int64_t parameters) {
  const std::uint64_t decoded = config::training_loader(options.data, options.compute.seed).decoded_cache;
  return {.training = kLeastMemory + 6 * sizeof(float) * static_cast<std::uint64_t>(parameters),
          .decoded = decoded * static_cast<std::uint64_t>(config::workers_of_host(options.compute))};
}

ExitCode check_host(const Json& job, Reporter& reporter) {
  Json facts = Json::object({{"failure", ""}});
  try {
    measure(elastic::worker_job_from_json(job), facts);
    measure_bandwidth(job, facts);
  } catch (const Error& error) {
    facts["failure"] = with_hint(error);
  }
  reporter.answer_json(facts);
  return ExitCode::ok;
}

}  // namespace dtrain::job
