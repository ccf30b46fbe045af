// Runs a script of generations with real training in every worker, and keeps all that came out of it.
#pragma once

#include <atomic>
#include <map>

#include <dtrain/train/ledger.hpp>
#include <dtrain/train/report_json.hpp>

#include "scripted_world.hpp"
#include "tiny_training.hpp"

namespace dtrain::train {

// What the job's log would hold: news of all workers, in the order in which it came. One thread at a time.
struct JobLog final : Observer {
  void on_first_batch(const data::Batch&) override {}
  void on_step(const StepReport& report) override { steps.push_back(report); }
  void on_epoch(const EpochReport& report) override { epochs.push_back(report); }
  void on_evaluation(const EvaluationReport& report) override { evaluations.push_back(report); }
  void on_checkpoint(const Path& path) override { checkpoints.push_back(path.filename()); }
  void on_shards(const ShardsReport& report) override { shards.push_back(report.shards); }
  void on_note(const std::string&) override {}
  void on_warning(const std::string& text) override { warnings.push_back(text); }
  void on_lost(const std::string&) override {}
  std::vector<StepReport> steps;
  std::vector<EpochReport> epochs;
  std::vector<EvaluationReport> evaluations;
  std::vector<Path> checkpoints;
  std::vector<std::vector<int>> shards;
  std::vector<std::string> warnings;
};

// A worker's way to it, through JSON as between processes.
class WayToLog final : public EventObserver {
 public:
  // `by_servers`: what is reported is on two servers, and other ranks hear of it later.
  WayToLog(OnlyNews& news, std::mutex& mutex, const ScriptedMembership& membership, bool by_servers)
      : news_(news), mutex_(mutex), membership_(membership), by_servers_(by_servers) {}
  void on_event(const ReportEvent& event) override {
    membership_.die_at(Point::telling);
    const auto* step = std::get_if<StepReport>(&event);
    if (step && !by_servers_) {
      EXPECT_TRUE(membership_.all_reached(step->samples_seen)) << "a step is reported that some rank may still lose";
    }
    const Json sent = Json::parse(to_json(event).dump(), "a report");
    const std::lock_guard lock(mutex_);
    replay(sent, news_);
  }

 private:
  OnlyNews& news_;
  std::mutex& mutex_;
  const ScriptedMembership& membership_;
  const bool by_servers_;
};

struct WorkerEnd {
  bool killed = false;
  std::string error;  // what it threw, if not because it was killed
  int losses = 0;     // generations that ended with a lost peer
  std::string probe;  // what it told of its warm-up
  TrainResult result;
  backend::ModelState state;
};

struct JobEnd {
  std::map<int, WorkerEnd> workers;
  JobLog log;
  Ledger ledger;
  // State of any worker that was there at the end.
  const WorkerEnd& survivor() const {
    for (const auto& [worker, end] : workers) {
      if (!end.killed && end.error.empty() && end.result.ended != TrainResult::Ended::removed) return end;
    }
    throw Error("nobody was left");
  }
};

// An executable that does as another one does, as far as nothing is overridden.
class Around : public backend::HostExecutable {
 public:
  explicit Around(std::unique_ptr<backend::Executable> inner) : inner_(std::move(inner)) {}
  void enqueue(const backend::HostBatch& batch, std::span<const backend::ShardRange> shards,
               const backend::StepKey& key, backend::StepSink sink) override {
    inner_->enqueue(batch, shards, key, sink);
  }
  void synchronize() override { inner_->synchronize(); }
  backend::StepMetrics set_sum(backend::StepSum sum) override { return inner_->set_sum(sum); }
  void apply(const backend::Update& update) override { inner_->apply(update); }
  backend::StepMetrics evaluate(const backend::HostBatch& batch, std::span<const nn::ImageView> views,
                                std::span<float> logits) override {
    return inner_->evaluate(batch, views, logits);
  }
  const backend::ModelState& state() const override { return inner_->state(); }
  void write_state(backend::ModelState state) override { inner_->write_state(std::move(state)); }
  void exchange_average() override { inner_->exchange_average(); }
  std::uint64_t planned_bytes() const override { return inner_->planned_bytes(); }
  backend::Profile profile(const backend::HostBatch& batch, int repeats) override {
    return inner_->profile(batch, repeats);
  }

 protected:
  std::unique_ptr<backend::Executable> inner_;
};

// A processor that makes a mistake: after so many steps one bit of the weights is wrong.
class Flawed final : public Around {
 public:
  Flawed(std::unique_ptr<backend::Executable> inner, int good_steps)
      : Around(std::move(inner)), good_steps_(good_steps) {}
  void apply(const backend::Update& update) override {
    inner_->apply(update);
    if (good_steps_-- > 0) return;
    backend::ModelState state = inner_->read_state();
    state.parameters[5] += 1e-3f;
    inner_->write_state(std::move(state));
  }

 private:
  int good_steps_;
};

// A processor that takes longer for each shard.
class Slow final : public Around {
 public:
  Slow(std::unique_ptr<backend::Executable> inner, std::chrono::microseconds shard)
      : Around(std::move(inner)), shard_(shard) {}
  void enqueue(const backend::HostBatch& batch, std::span<const backend::ShardRange> shards,
               const backend::StepKey& key, backend::StepSink sink) override {
    std::this_thread::sleep_for(shards.size() * shard_);
    inner_->enqueue(batch, shards, key, sink);
  }

 private:
  const std::chrono::microseconds shard_;
};

// Nothing that it computes again is the same, as where sums are made in whatever order.
class Wavering final : public Around {
 public:
  using Around::Around;
  void enqueue(const backend::HostBatch& batch, std::span<const backend::ShardRange> shards,
               const backend::StepKey& key, backend::StepSink sink) override {
    Sink wavering(sink.require_host());
    inner_->enqueue(batch, shards, key, wavering);
    inner_->synchronize();
  }

 private:
  class Sink final : public backend::ContributionSink {
   public:
    explicit Sink(backend::ContributionSink& inner) : inner_(inner) {}
    std::span<float> buffer(const backend::ShardRange& shard) override {
      const std::span<float> memory = inner_.buffer(shard);
      const std::lock_guard lock(mutex_);
      return buffers_[shard.index] = memory;
    }
    void ready(const backend::ShardRange& shard, std::int64_t first, std::int64_t size, bool last) override {
      static std::atomic<int> times = 0;
      if (first == 0) {
        const std::lock_guard lock(mutex_);
        buffers_.at(shard.index)[0] += 1e-4f * static_cast<float>(++times);
      }
      inner_.ready(shard, first, size, last);
    }

   private:
    backend::ContributionSink& inner_;
    std::mutex mutex_;  // guards buffers_
    std::map<int, std::span<float>> buffers_;
  };
};

class ElasticTraining : public TinyTraining {
 protected:
  // `starts`: what some workers could begin with.
  JobEnd run(const Script& script, const std::map<int, const Checkpoint*>& starts = {}) {
    ScriptedWorld world(script, connect_, patience_);
    JobEnd job;
    for (const ScriptedGeneration& generation : script) {
      for (const int worker : generation.workers) job.workers[worker];
    }
    OnlyNews news(job.log);
    std::mutex log_mutex;
    options_.ledger = LedgerOptions{folder_ / ("ledger" + std::to_string(runs_++)), {}};
    std::vector<std::thread> threads;
    for (auto& [worker, end] : job.workers) {
      const auto start = starts.find(worker);
      const Checkpoint* checkpoint = start == starts.end() ? nullptr : start->second;
      threads.emplace_back([&, worker = worker, &end = end, checkpoint] {
        ScriptedMembership membership(world, worker, on_point_);
        WayToLog observer(news, log_mutex, membership, options_.servers.any());
        live(world, worker, membership, checkpoint, observer, end);
      });
    }
    for (std::thread& thread : threads) thread.join();
    job.ledger = read_ledger(options_.ledger->folder);
    return job;
  }

  // One worker from the beginning to the end.
  JobEnd undisturbed() { return run({{.workers = {0}}}); }

  void expect_same_run(const JobEnd& expected, const JobEnd& actual) const {
    expect_same_bits(expected.survivor().state, actual.survivor().state);
    EXPECT_EQ(expected.survivor().result.cursor, actual.survivor().result.cursor);
    for (const auto& [worker, end] : actual.workers) EXPECT_EQ(end.error, "") << "worker " << worker;
    expect_every_sample_once(actual);
    expect_same_log(expected.log, actual.log);
  }

  // Worker 1 dies at each point, inside an epoch, in its last step and at its end, and another takes its place.
  void expect_no_trace_of_a_death() {
    const JobEnd alone = undisturbed();
    for (const Point point : kAllPoints) {
      for (const std::uint64_t until : {20, 40, 45}) {
        SCOPED_TRACE(testing::Message() << "point " << int(point) << " after " << until);
        expect_same_run(
            alone, run({{.workers = {0, 1, 2}, .until = until, .killed = 1, .point = point}, {.workers = {0, 2, 3}}}));
      }
    }
  }

  void expect_every_sample_once(const JobEnd& job) const {
    std::vector<std::uint32_t> all(kTinySamples);
    for (std::uint32_t id = 0; id < kTinySamples; ++id) all[id] = id;
    for (std::uint32_t epoch = 0; epoch < options_.epochs; ++epoch) EXPECT_EQ(job.ledger.epoch(epoch), all);
  }

  static void expect_same_log(const JobLog& expected, const JobLog& actual) {
    ASSERT_EQ(actual.steps.size(), expected.steps.size());
    for (std::size_t i = 0; i < expected.steps.size(); ++i) {
      EXPECT_EQ(actual.steps[i].samples_seen, expected.steps[i].samples_seen);
      EXPECT_EQ(actual.steps[i].loss, expected.steps[i].loss);
    }
    ASSERT_EQ(actual.epochs.size(), expected.epochs.size());
    for (std::size_t i = 0; i < expected.epochs.size(); ++i) {
      EXPECT_EQ(actual.epochs[i].accuracy, expected.epochs[i].accuracy);
      EXPECT_EQ(actual.epochs[i].loss, expected.epochs[i].loss);
    }
    ASSERT_EQ(actual.evaluations.size(), expected.evaluations.size());
    for (std::size_t i = 0; i < expected.evaluations.size(); ++i) {
      EXPECT_EQ(actual.evaluations[i].loss, expected.evaluations[i].loss);
    }
    EXPECT_EQ(actual.warnings, expected.warnings);
  }

  bool validates_ = true;
  std::map<int, Path> prefixes_;                   // worker, for checkpoints that no other one sees
  std::map<int, int> flawed_;                      // worker, good steps
  std::map<int, std::chrono::microseconds> slow_;  // worker, for a shard
  bool wavers_ = false;                            // what the workers compute
  Connect connect_;
  std::optional<std::chrono::milliseconds> patience_;  // as in ScriptedWorld
  std::function<void(int worker, Point point, std::uint64_t samples_seen)> on_point_;

 private:
  void live(ScriptedWorld& world, int worker, ScriptedMembership& membership, const Checkpoint* start,
            Observer& observer, WorkerEnd& end) {
    const nn::Graph graph = network();
    const std::unique_ptr<backend::Backend> backend = make_backend();
    std::unique_ptr<backend::Executable> executable = compile(*backend);
    const auto flawed = flawed_.find(worker);
    if (flawed != flawed_.end()) executable = std::make_unique<Flawed>(std::move(executable), flawed->second);
    if (slow_.contains(worker)) executable = std::make_unique<Slow>(std::move(executable), slow_.at(worker));
    if (wavers_) executable = std::make_unique<Wavering>(std::move(executable));
    data::Loader training = loader(), validation = loader(false);
    TrainerOptions options = options_;
    options.servers.backend = backend.get();
    options.ledger->worker = "w" + std::to_string(worker);
    if (prefixes_.contains(worker)) options.checkpoint_prefix = prefixes_.at(worker);
    try {
      end.result =
          train(graph, *executable, training, validates_ ? &validation : nullptr, membership, options, start, observer);
      if (end.result.ended != TrainResult::Ended::removed) world.end();
    } catch (const Killed&) {
      end.killed = true;
    } catch (const std::exception& error) {
      end.error = error.what();
    }
    end.losses = membership.losses;
    end.probe = membership.probe;
    end.state = executable->read_state();
  }

  int runs_ = 0;
};

}  // namespace dtrain::train
