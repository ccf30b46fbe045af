#include <fmt/format.h>
#include <signal.h>

#include <algorithm>

#include <dtrain/base/cpus.hpp>
#include <dtrain/base/error.hpp>
#include <dtrain/base/files.hpp>
#include <dtrain/base/stats.hpp>
#include <dtrain/base/stop.hpp>
#include <dtrain/base/text.hpp>
#include <dtrain/nn/networks.hpp>

#include "bench/bench_job.hpp"
#include "cli/command.hpp"
#include "config/synthetic_data.hpp"
#include "job/spec/job_client.hpp"

namespace dtrain::cli {
namespace {

constexpr std::size_t kWarmUpSteps = 5;

struct ElasticBenchOptions {
  int workers = 2;
  std::string network = "resnet-v1";
  int layers = 50;
  nn::Shape image{3, 64, 64};
  int global_batch = 8, shards = 4;
  int rounds = 3;
  double seconds = 5;
};

void bind(config::OptionSet& set, ElasticBenchOptions& options) {
  set.group("Options");
  set.add("-n,--num-workers", options.workers, "N", "number of workers at the start", config::at_least(1));
  set.add("--network", options.network, "NAME",
          "network to train; its size is the size of the state that a joining worker receives")
      .offers = config::Offers::networks;
  set.add("--num-layers", options.layers, "N", "number of layers; 0 for the network's usual depth",
          config::at_least(0));
  set.add_shape(
      "--image-shape", options.image,
      "channels, height and width of the images; small images keep steps short compared with the state transfer");
  set.add("--global-batch", options.global_batch, "G", "global batch: samples of one step over all workers",
          config::at_least(1));
  set.add("--logical-shards", options.shards, "V", "number of logical shards of a step, a power of two",
          config::at_least(1));
  set.group("Measurement");
  set.add("--rounds", options.rounds, "N", "number of repetitions; the report shows the median", config::at_least(1));
  set.add("--seconds", options.seconds, "S",
          "seconds of steady training in each round, once with and once without --elastic", config::more_than(0));
}

// Seconds, one for each round.
struct Failures {
  std::vector<double> pause, detect;  // detect: the part of it until the coordinator knew
};
struct Measured {
  std::vector<double> fixed_step, elastic_step;
  std::vector<double> join, leave;  // how long training paused, the first step behind it not counted
  Failures kill, hang;
};

std::vector<std::string> arguments_of(const ElasticBenchOptions& options, bool elastic) {
  std::vector<std::string> words = {"--benchmark", "1", "--launcher", "local", "--num-epochs", "1000000"};
  const auto add = [&](const char* name, const std::string& value) { words.insert(words.end(), {name, value}); };
  add("--network", options.network);
  add("--num-layers", std::to_string(options.layers));
  add("--image-shape", fmt::format("{},{},{}", options.image.c, options.image.h, options.image.w));
  add("--global-batch", std::to_string(options.global_batch));
  add("--logical-shards", std::to_string(options.shards));
  add("--num-workers", std::to_string(options.workers));
  add("--threads", std::to_string(std::max(1, usable_cpus() / options.workers)));
  if (elastic) words.insert(words.end(), {"--elastic", "--elastic-boundary", "step"});
  return words;
}

double steady_step(const bench::BenchJob& job, double seconds) {
  job.wait_steps(kWarmUpSteps);
  const std::size_t before = job.step_seconds().size();
  job.run_for(std::chrono::duration<double>(seconds));
  job.wait_steps(1);
  const std::vector<double> steps = job.step_seconds();
  return median({steps.begin() + static_cast<std::ptrdiff_t>(before), steps.end()});
}

// The event of the generation that `change` leads to, once that trains. `expected`: workers that the change makes fail.
Json generation_after(const bench::BenchJob& job, const std::function<void()>& change, std::size_t expected = 0) {
  const std::size_t before = job.events(EventKind::generation).size(), failures = job.events(EventKind::failed).size();
  const auto has_changed = [&] {
    const std::vector<Json> failed = job.events(EventKind::failed);
    if (failed.size() > failures + expected) {
      throw Error(fmt::format("a worker of the measured job failed: {}", failed.back().at("reason").as_string()));
    }
    return job.events(EventKind::generation).size() > before;
  };
  change();
  job.wait_until(has_changed, "change its workers");
  Json generation = job.events(EventKind::generation).at(before);
  job.wait_steps(kWarmUpSteps);
  return generation;
}

// Without the step that ends it.
double pause_of(const Json& generation, double step) {
  return std::max(0.0, generation.at("pause_seconds").as_number() - step);
}

double pause_of_edit(const bench::BenchJob& job, double step, const job::HostEdit& edit) {
  return pause_of(generation_after(job, [&] { job::edit_hosts(job.files(), edit); }), step);
}

// Sends the signal to the last worker, once all are there.
void measure_failure(const bench::BenchJob& job, const ElasticBenchOptions& options, double step, int signal,
                     Failures& failures) {
  const auto all = static_cast<std::size_t>(options.workers);
  job.wait_until([&] { return job.workers().size() == all; }, "have all of its workers");
  job.wait_steps(kWarmUpSteps);  // then their generation has had its event
  const auto victim = static_cast<pid_t>(job.workers().back().second);
  const Json generation = generation_after(
      job, [&] { ::kill(victim, signal); }, 1);
  failures.pause.push_back(pause_of(generation, step));
  failures.detect.push_back(generation.at("seconds").at("detect").as_number());
}

void measure_changes(const bench::BenchJob& job, const ElasticBenchOptions& options, double step, Measured& measured) {
  const std::string newcomer = "newcomer";
  measured.join.push_back(pause_of_edit(job, step, {.add = {newcomer}}));
  measured.leave.push_back(pause_of_edit(job, step, {.remove = {newcomer}}));
  if (options.workers < 2) return;
  measure_failure(job, options, step, SIGKILL, measured.kill);
  measure_failure(job, options, step, SIGSTOP, measured.hang);
}

Measured measure(const ElasticBenchOptions& options, const Path& folder) {
  Measured measured;
  const auto measure_fixed = [&](int round) {
    const bench::BenchJob job(folder / fmt::format("fixed{}", round), arguments_of(options, false));
    measured.fixed_step.push_back(steady_step(job, options.seconds));
  };
  const auto measure_elastic = [&](int round) {
    const bench::BenchJob job(folder / fmt::format("elastic{}", round), arguments_of(options, true));
    measured.elastic_step.push_back(steady_step(job, options.seconds));
    measure_changes(job, options, measured.elastic_step.back(), measured);
  };
  for (int round = 0; round < options.rounds; ++round) {
    const bool fixed_first = round % 2 == 0;  // whatever comes second may find the machine slower
    if (fixed_first) measure_fixed(round);
    measure_elastic(round);
    if (!fixed_first) measure_fixed(round);
  }
  return measured;
}

// Compares neighbours in time, because the machine's speed drifts more than the two differ.
double median_overhead(const Measured& measured) {
  std::vector<double> overheads;
  for (std::size_t round = 0; round < measured.fixed_step.size(); ++round) {
    overheads.push_back(measured.elastic_step[round] / measured.fixed_step[round] - 1);
  }
  return median(overheads);
}

std::uint64_t state_bytes(const ElasticBenchOptions& options) {
  nn::NetworkOptions network{.name = options.network};
  network.num_layers = options.layers;
  network.image = options.image;
  network.classes = 10;
  const nn::Graph graph = nn::build_network(network);
  return sizeof(float) * static_cast<std::uint64_t>(2 * graph.parameter_count + graph.statistic_count);
}

Json document(const ElasticBenchOptions& options, const Measured& measured) {
  Json json = Json::object({{"schema", "dtrain.bench-elastic/1"},
                            {"network", options.network},
                            {"num_layers", options.layers},
                            {"workers", options.workers},
                            {"rounds", options.rounds},
                            {"state_bytes", state_bytes(options)}});
  json["fixed_step_seconds"] = median(measured.fixed_step);
  json["elastic_step_seconds"] = median(measured.elastic_step);
  json["elastic_overhead"] = median_overhead(measured);
  json["join_pause_seconds"] = median(measured.join);
  json["leave_pause_seconds"] = median(measured.leave);
  const auto add = [&](const std::string& name, const Failures& failures) {
    if (failures.pause.empty()) return;
    json[name + "_pause_seconds"] = median(failures.pause);
    json[name + "_detect_seconds"] = median(failures.detect);
  };
  add("kill", measured.kill);
  add("hang", measured.hang);
  return json;
}

void answer_table(const Json& result, Reporter& reporter) {
  const auto seconds = [&](const char* key) {
    return format_duration(std::chrono::duration<double>(result.at(key).as_number()));
  };
  reporter.answer(fmt::format("state that a newcomer receives: {}",
                              format_bytes(static_cast<std::uint64_t>(result.at("state_bytes").as_integer()))));
  reporter.answer(fmt::format("step: {} fixed, {} elastic: {:+.1f} %", seconds("fixed_step_seconds"),
                              seconds("elastic_step_seconds"), 100 * result.at("elastic_overhead").as_number()));
  reporter.answer(fmt::format("a planned join pauses training for {}", seconds("join_pause_seconds")));
  reporter.answer(fmt::format("a planned leave pauses training for {}", seconds("leave_pause_seconds")));
  if (!result.find("kill_pause_seconds")) return;
  reporter.answer(fmt::format("kill -9 of a worker pauses training for {}, of that {} to detect it",
                              seconds("kill_pause_seconds"), seconds("kill_detect_seconds")));
  reporter.answer(fmt::format("SIGSTOP of a worker pauses training for {}, of that {} to detect it",
                              seconds("hang_pause_seconds"), seconds("hang_detect_seconds")));
}

// The default depth is that of the default network.
ElasticBenchOptions with_depth(ElasticBenchOptions options, const config::OptionSet& set) {
  if (set.chosen("network") && !set.chosen("num-layers")) options.layers = 0;
  return options;
}

ExitCode act(const ElasticBenchOptions& given, const config::OptionSet& set, Reporter& reporter) {
  const ElasticBenchOptions options = with_depth(given, set);
  state_bytes(options);  // refuses a network that there is not, before anything is measured
  watch_stop_signals();
  const ScratchFolder folder("dtrain-bench");
  const Json result = document(options, measure(options, folder.path()));
  if (reporter.json()) {
    reporter.answer_json(result);
  } else {
    answer_table(result, reporter);
  }
  return ExitCode::ok;
}

}  // namespace

std::unique_ptr<Command> make_bench_elastic() {
  auto command = make_command<ElasticBenchOptions>(
      "bench elastic", "measure how long training pauses when workers join, leave or fail, on this machine", act);
  command->examples = {"dtrain bench elastic --num-layers 50 --json", "dtrain bench elastic -n 4 --seconds 10"};
  command->see_also = {"bench train", "train", "events"};
  return command;
}

}  // namespace dtrain::cli
