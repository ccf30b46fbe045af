// What changes of the membership do to the accuracy: ResNet-8 on real images, the same seeds and the same random
// sequence of 1 to 8 workers (threads) for each way of answering a change, beside a membership that stays. Prints a
// table. usage: dtrain_elastic_accuracy TRAIN.rec VAL.rec [SEEDS [EPOCHS [EXAMPLES [WIDTH]]]]
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include <dtrain/base/random.hpp>
#include <dtrain/nn/networks.hpp>
#include <dtrain/train/trainer.hpp>

#include "train/scripted_world.hpp"

namespace {

using namespace dtrain;
using namespace dtrain::train;

constexpr int kBase = 2;          // workers that the learning rate is meant for
constexpr int kWorkerBatch = 32;  // samples of one of them
constexpr int kShards = 8;
constexpr int kMostWorkers = 8;
constexpr int kChanges = 8;  // of the membership in a run

struct Sizes {
  Path training, validation;
  int seeds = 5;
  std::uint32_t epochs = 4;
  std::int64_t examples = 10'000;
  int width = 16;
};

struct Answer {
  const char* name;
  bool changes;
  ElasticBatch batch;
  ElasticRate rate;
};

// The membership stays, or has another size after each eighth of the run. Who leaves never comes back.
Script make_script(const Sizes& sizes, std::uint64_t seed, bool changes) {
  RandomStream random(seed, RandomUse::drawing, 0, 0);
  const std::uint64_t samples = static_cast<std::uint64_t>(sizes.examples) * sizes.epochs;
  std::vector<int> workers{0, 1};
  int next = kBase;
  Script script;
  for (int change = 0; changes && change < kChanges; ++change) {
    script.push_back({.workers = workers, .until = samples * static_cast<std::uint64_t>(change + 1) / (kChanges + 1)});
    const std::size_t wanted = 1 + random.below(kMostWorkers);
    while (workers.size() > wanted) workers.erase(workers.begin());
    while (workers.size() < wanted) workers.push_back(next++);
  }
  script.push_back({.workers = workers});
  return script;
}

data::Loader make_loader(const Path& file, std::uint64_t seed, bool training, std::int64_t examples) {
  data::LoaderOptions options;
  options.shape = {3, 28, 28};
  options.classes = 10;
  options.augment.mean = {123.68f, 116.779f, 103.939f};
  options.augment.std = {58, 57, 57};
  options.augment.random_crop = options.augment.random_mirror = training;
  options.seed = seed;
  options.shuffle = training;
  options.num_examples = examples;
  return data::Loader(file, options);
}

TrainerOptions make_options(const Sizes& sizes, const Answer& answer, std::uint64_t seed) {
  TrainerOptions options;
  options.epochs = sizes.epochs;
  options.global_batch = kBase * kWorkerBatch;
  options.worker_batch = kWorkerBatch;
  options.logical_shards = kShards;
  options.seed = seed;
  options.schedule.base = 0.05;
  options.elastic_batch = answer.batch;
  options.elastic_rate = answer.rate;
  return options;
}

// Validation accuracy at the end, in percent.
double accuracy_of(const Sizes& sizes, const Answer& answer, std::uint64_t seed) {
  const Script script = make_script(sizes, seed, answer.changes);
  ScriptedWorld world(script);
  int workers = 0;
  for (const ScriptedGeneration& generation : script) workers = std::max(workers, generation.workers.back() + 1);
  const nn::Graph graph =
      nn::build_network({.name = "resnet", .num_layers = 8, .image = {3, 28, 28}, .classes = 10, .width = sizes.width});
  const TrainerOptions options = make_options(sizes, answer, seed);
  double accuracy = 0;
  std::mutex mutex;
  std::vector<std::jthread> threads;
  for (int worker = 0; worker < workers; ++worker) {
    threads.emplace_back([&, worker] {
      const auto executable =
          backend::make_cpu_backend()->compile(graph, {.lanes = 1, .max_samples = options.evaluation_block});
      data::Loader training = make_loader(sizes.training, seed, true, sizes.examples);
      data::Loader validation = make_loader(sizes.validation, seed, false, 0);
      ScriptedMembership membership(world, worker);
      IgnoringObserver observer;
      const TrainResult result =
          train::train(graph, *executable, training, &validation, membership, options, nullptr, observer);
      if (result.ended != TrainResult::Ended::done) return;
      world.end();
      const std::lock_guard lock(mutex);
      accuracy = 100 * result.evaluation->accuracy;
    });
  }
  threads.clear();
  return accuracy;
}

void print_row(const Sizes& sizes, const Answer& answer) {
  std::vector<double> all;
  std::string each;
  for (int seed = 1; seed <= sizes.seeds; ++seed) {
    all.push_back(accuracy_of(sizes, answer, static_cast<std::uint64_t>(seed)));
    each += fmt::format(" {:.1f}", all.back());
  }
  double mean = 0, square = 0;
  for (const double value : all) mean += value / static_cast<double>(all.size());
  for (const double value : all) square += (value - mean) * (value - mean);
  const double deviation = all.size() > 1 ? std::sqrt(square / static_cast<double>(all.size() - 1)) : 0;
  fmt::print("| {} | {:.2f} | {:.2f} |{} |\n", answer.name, mean, deviation, each);
  std::fflush(stdout);
}

}  // namespace

int main(int count, char** arguments) {
  if (count < 3) {
    fmt::print(stderr, "usage: {} TRAIN.rec VAL.rec [SEEDS [EPOCHS [EXAMPLES [WIDTH]]]]\n", arguments[0]);
    return 2;
  }
  const auto number = [&](int k, int otherwise) { return k < count ? std::atoi(arguments[k]) : otherwise; };
  const Sizes sizes{arguments[1],      arguments[2], number(3, 5), static_cast<std::uint32_t>(number(4, 4)),
                    number(5, 10'000), number(6, 16)};
  constexpr Answer answers[] = {
      {"2 workers throughout", false, ElasticBatch::fixed_global, ElasticRate::none},
      {"changes, fixed-global", true, ElasticBatch::fixed_global, ElasticRate::none},
      {"changes, per-worker, rate jumps", true, ElasticBatch::per_worker, ElasticRate::linear},
      {"changes, per-worker, rate ramps over 8 steps", true, ElasticBatch::per_worker, ElasticRate::smooth},
      {"changes, per-worker, rate stays", true, ElasticBatch::per_worker, ElasticRate::none},
  };
  fmt::print("| membership | mean % | deviation | each seed |\n|---|---|---|---|\n");
  for (const Answer& answer : answers) print_row(sizes, answer);
}
