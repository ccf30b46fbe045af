#include <algorithm>
#include <atomic>
#include <exception>
#include <functional>
#include <thread>
#include <utility>

#include <dtrain/backend/checks.hpp>
#include <dtrain/base/error.hpp>
#include <dtrain/base/mutex.hpp>
#include <dtrain/base/parallel.hpp>
#include <dtrain/train/local_steps.hpp>

namespace dtrain::train {
namespace {

using backend::Executable;
using backend::HostBatch;
using backend::ShardRange;

std::size_t metrics_size(const nn::Graph& graph) {
  return static_cast<std::size_t>(backend::ContributionLayout(graph).metrics);
}

// The contribution of one inner step, which goes nowhere but into the replica's own update.
class OwnContribution final : public backend::ContributionSink {
 public:
  explicit OwnContribution(const nn::Graph& graph)
      : values_(static_cast<std::size_t>(backend::ContributionLayout(graph).size())) {}
  std::span<float> buffer(const ShardRange&) override { return values_; }
  void ready(const ShardRange&, std::int64_t, std::int64_t, bool) override {}
  std::span<const float> values() const { return values_; }

 private:
  std::vector<float> values_;
};

// What the threads of a round know of each other.
class Team {
 public:
  // A thread that is not the caller's, from its beginning to its end.
  class Other {
   public:
    explicit Other(Team& team) : team_(team) { ++team_.others_; }
    ~Other() {
      --team_.others_;
      team_.beat();
    }
    Other(const Other&) = delete;
    Other& operator=(const Other&) = delete;

   private:
    Team& team_;
  };

  void beat() {
    ++beats_;
    beats_.notify_all();
  }

  // Calls between() at each beat of the others, until they have ended.
  void wait_for_others(const std::function<void()>& between) {
    // The beats are read before the question whether another one will come.
    for (auto seen = beats_.load(); others_ > 0; seen = beats_.load()) {
      beats_.wait(seen);
      require_no_failure();
      between();
    }
  }

  void require_no_failure() const {
    if (given_up_) throw Error("another replica failed");
  }
  void give_up() {  // inside a handler: the first exception is kept
    const MutexLock lock(mutex_);
    if (!thrown_) thrown_ = std::current_exception();
    given_up_ = true;
  }
  void rethrow() {
    const MutexLock lock(mutex_);
    if (thrown_) std::rethrow_exception(thrown_);
  }

 private:
  std::atomic<std::size_t> others_{0};
  std::atomic<std::uint64_t> beats_{0};  // inner steps and ends of the others
  std::atomic<bool> given_up_{false};
  Mutex mutex_;
  std::exception_ptr thrown_ DTRAIN_GUARDED_BY(mutex_);
};

// One inner step; gives what was counted.
backend::StepMetrics inner_step(Executable& executable, const HostBatch& samples, const backend::StepKey& key,
                                const backend::Update& update, OwnContribution& own) {
  const ShardRange all{.index = 0, .first = 0, .count = samples.n};
  const bool on_host = executable.device_parts().empty();
  executable.enqueue(samples, {&all, 1}, key, on_host ? backend::StepSink(own) : backend::StepSink(backend::OwnSum{}));
  executable.synchronize();
  const backend::StepMetrics metrics =
      executable.set_sum(on_host ? backend::StepSum(own.values()) : backend::StepSum(backend::OwnSum{}));
  executable.apply(update);
  return metrics;
}

// Writes values one behind the other.
class Writer {
 public:
  explicit Writer(std::span<float> room) : at_(room.begin()) {}
  void scaled(std::span<const float> values, float factor) {
    at_ = std::ranges::transform(values, at_, [&](float value) { return value * factor; }).out;
  }
  void movement(std::span<const float> before, std::span<const float> after, float factor) {
    at_ = std::ranges::transform(before, after, at_, [&](float b, float a) { return (b - a) * factor; }).out;
  }
  void metrics(const backend::StepMetrics& m, std::size_t parts) {
    for (const double value : {m.loss_sum, m.correct, m.top_k_correct, m.count}) *at_++ = static_cast<float>(value);
    for (const double value : std::span(m.parts).first(parts)) *at_++ = static_cast<float>(value);
  }

 private:
  std::span<float>::iterator at_;
};

void add(backend::StepMetrics& sum, const backend::StepMetrics& step) {
  sum.loss_sum += step.loss_sum;
  sum.correct += step.correct;
  sum.top_k_correct += step.top_k_correct;
  sum.count += step.count;
  for (std::size_t part = 0; part < sum.parts.size(); ++part) sum.parts[part] += step.parts[part];
}

backend::StepMetrics metrics_in(const nn::Graph& graph, std::span<const float> contribution) {
  const std::span<const float> m = contribution.last(metrics_size(graph));
  backend::StepMetrics metrics{.loss_sum = m[0], .correct = m[1], .top_k_correct = m[2], .count = m[3]};
  std::ranges::copy(m.subspan(backend::ContributionLayout::counts), metrics.parts.begin());
  return metrics;
}

}  // namespace

LocalExecutable::LocalExecutable(const nn::Graph& graph, const LocalSteps& local, nn::OptimizerKind inner,
                                 std::vector<std::unique_ptr<Executable>> replicas, std::unique_ptr<Executable> judge)
    : graph_(graph),
      local_(local),
      inner_slots_(static_cast<std::size_t>(nn::optimizer_slots(inner))),
      replicas_(std::move(replicas)),
      judge_(std::move(judge)) {
  DTRAIN_CHECK(!replicas_.empty() && judge_, "replicas need something that computes them");
  state_.parameters.resize(static_cast<std::size_t>(graph.parameter_count));
  state_.statistics.resize(static_cast<std::size_t>(graph.statistic_count));
  state_.optimizer.resize(static_cast<std::size_t>(optimizer_slots(inner, local)) * state_.parameters.size());
}

std::int64_t LocalExecutable::contribution_size() const {
  return static_cast<std::int64_t>((1 + inner_slots_) * state_.parameters.size() + state_.statistics.size() +
                                   metrics_size(graph_));
}

void LocalExecutable::begin_round(Round round) {
  DTRAIN_CHECK(!round.updates.empty(), "a round has an inner step");
  round_ = std::move(round);
}

// Threads take replicas as they come; each computes on an executable of its own. The caller's thread alone reports,
// between its own inner steps and, once no replica is left for it, between those of the others.
void LocalExecutable::enqueue(const HostBatch& batch, std::span<const ShardRange> shards, const backend::StepKey& key,
                              backend::StepSink sink) {
  DTRAIN_CHECK(!round_.updates.empty(), "begin_round() comes before each round");
  backend::ContributionSink& to = sink.require_host();
  const std::thread::id caller = std::this_thread::get_id();
  std::atomic<std::size_t> next_thread{0}, next_shard{0};
  Team team;
  const auto compute = [&](const std::function<void()>& between) {
    Executable& mine = *replicas_[next_thread++];
    for (std::size_t i = next_shard++; i < shards.size(); i = next_shard++) {
      train_replica(mine, batch, shards[i], key, to, [&] {
        team.require_no_failure();
        between();
      });
    }
  };
  const auto report = [&] {
    if (round_.between) round_.between();
  };
  run_on_threads(std::min(replicas_.size(), std::max<std::size_t>(1, shards.size())), [&] {
    try {
      if (std::this_thread::get_id() == caller) {
        compute(report);
        team.wait_for_others(report);
      } else {
        const Team::Other here(team);
        compute([&] { team.beat(); });
      }
    } catch (...) {
      team.give_up();
    }
  });
  team.rethrow();
}

backend::ModelState LocalExecutable::inner_state() const {
  const auto slots = static_cast<std::ptrdiff_t>(inner_slots_ * state_.parameters.size());
  return {.parameters = state_.parameters,
          .statistics = state_.statistics,
          .optimizer = {state_.optimizer.begin(), state_.optimizer.begin() + slots},
          .updates = state_.updates};
}

void LocalExecutable::train_replica(Executable& replica, const HostBatch& batch, const ShardRange& shard,
                                    const backend::StepKey& key, backend::ContributionSink& sink,
                                    const std::function<void()>& between) {
  replica.write_state(inner_state());
  OwnContribution own(graph_);
  backend::StepMetrics metrics;
  const std::vector<ShardRange> parts = inner_parts(shard, static_cast<int>(round_.updates.size()));
  for (std::size_t step = 0; step < parts.size(); ++step) {
    if (parts[step].count == 0) continue;
    add(metrics, inner_step(replica, backend::samples_of(batch, graph_, parts[step]), key, round_.updates[step], own));
    between();
  }

  const std::span<float> room = sink.buffer(shard).first(static_cast<std::size_t>(contribution_size()));
  if (shard.count == 0) {
    std::ranges::fill(room, 0.0f);
  } else {
    const backend::ModelState& learned = replica.state();
    const auto weight = static_cast<float>(shard.count);
    Writer writer(room);
    writer.movement(state_.parameters, learned.parameters, weight);
    writer.scaled(learned.optimizer, weight);
    writer.scaled(learned.statistics, weight);
    writer.metrics(metrics, nn::loss_parts(graph_).size());
  }
  sink.ready(shard, 0, contribution_size(), true);
}

backend::StepMetrics LocalExecutable::set_sum(backend::StepSum sum) {
  sum_ = std::get<std::span<const float>>(sum);
  DTRAIN_CHECK(static_cast<std::int64_t>(sum_.size()) == contribution_size(), "not the sum of a round");
  return metrics_in(graph_, sum_);
}

void LocalExecutable::apply(const backend::Update&) {
  const std::span<const float> sum = std::exchange(sum_, {});
  DTRAIN_CHECK(!sum.empty(), "there is no sum to apply");
  const auto count = static_cast<float>(metrics_in(graph_, sum).count);
  const auto mean = [&](float value) { return value / count; };
  const std::size_t weights = state_.parameters.size(), slots = inner_slots_ * weights;
  std::ranges::transform(sum.subspan(weights, slots), state_.optimizer.begin(), mean);
  std::ranges::transform(sum.subspan(weights + slots, state_.statistics.size()), state_.statistics.begin(), mean);
  outer_step(sum.first(weights), count);
  state_.updates += std::exchange(round_, {}).updates.size();
  judge_is_current_ = false;
}

void LocalExecutable::outer_step(std::span<const float> movement, float count) {
  std::span<float> w = state_.parameters;
  float* const momentum = state_.optimizer.data() + inner_slots_ * w.size();
  for (std::size_t i = 0; i < w.size(); ++i) {
    const float d = movement[i] / count;
    switch (local_.outer) {
      case OuterOptimizer::average:
        w[i] -= d;
        break;
      case OuterOptimizer::sgd:
        w[i] -= local_.rate * d;
        break;
      case OuterOptimizer::nesterov:
        momentum[i] = local_.momentum * momentum[i] + d;
        w[i] -= local_.rate * (d + local_.momentum * momentum[i]);
        break;
    }
  }
}

// The outer optimizer's state lies behind the inner one's, which is as a pass needs it.
backend::StepMetrics LocalExecutable::evaluate(const HostBatch& batch, std::span<const nn::ImageView> views,
                                               std::span<float> logits) {
  if (!std::exchange(judge_is_current_, true)) {
    judge_->write_state({.parameters = state_.parameters, .statistics = state_.statistics, .optimizer = {}});
  }
  return judge_->evaluate(batch, views, logits);
}

void LocalExecutable::write_state(backend::ModelState state) {
  DTRAIN_CHECK(state.parameters.size() == state_.parameters.size(), "another graph's parameters");
  DTRAIN_CHECK(state.statistics.size() == state_.statistics.size(), "another graph's statistics");
  DTRAIN_CHECK(state.optimizer.size() == state_.optimizer.size(), "the optimizer state is another rule's");
  DTRAIN_CHECK(state.average.empty(), "replicas keep no average of weights");
  state_ = std::move(state);
  judge_is_current_ = false;
}

std::uint64_t LocalExecutable::planned_bytes() const {
  std::uint64_t bytes = judge_->planned_bytes() + static_cast<std::uint64_t>(state_size()) * sizeof(float);
  for (const auto& replica : replicas_) bytes += replica->planned_bytes();
  return bytes;
}

backend::Profile LocalExecutable::profile(const HostBatch& batch, int repeats) {
  return replicas_.front()->profile(batch, repeats);
}

std::vector<std::string> LocalExecutable::take_warnings() {
  std::vector<std::string> news;
  const auto take = [&](Executable& part) {
    for (std::string& warning : part.take_warnings()) {
      if (warned_.insert(warning).second) news.push_back(std::move(warning));
    }
  };
  for (const auto& replica : replicas_) take(*replica);
  take(*judge_);
  return news;
}

std::unique_ptr<LocalExecutable> compile_local(const backend::Backend& backend, const nn::Graph& graph,
                                               const backend::CompileOptions& options, const LocalSteps& local,
                                               nn::OptimizerKind inner) {
  backend::CompileOptions one = options;
  one.lanes = 1;
  one.optimizer = inner;
  one.average = false;
  std::vector<std::unique_ptr<Executable>> replicas;
  replicas.push_back(backend.compile(graph, one));
  // The executables of a GPU share its queue and its workspace, which one thread at a time may use.
  const int lanes = replicas.front()->device_parts().empty() ? options.lanes : 1;
  while (std::ssize(replicas) < lanes) replicas.push_back(backend.compile(graph, one));
  backend::CompileOptions judging = options;
  judging.training = false;
  judging.optimizer = {};
  judging.average = false;
  return std::make_unique<LocalExecutable>(graph, local, inner, std::move(replicas), backend.compile(graph, judging));
}

}  // namespace dtrain::train
