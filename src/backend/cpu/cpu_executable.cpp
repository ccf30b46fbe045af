#include "cpu_executable.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <functional>

#include <dtrain/backend/checks.hpp>
#include <dtrain/base/error.hpp>

#include "model.hpp"
#include "thread_clock.hpp"

namespace dtrain::backend::cpu {
namespace {

int part_begin(int n, int part, int parts) { return static_cast<int>(std::int64_t{n} * part / parts); }

std::size_t float_bytes(std::int64_t count) { return static_cast<std::size_t>(count) * sizeof(float); }

}  // namespace

// One enqueue's arguments and progress.
struct CpuExecutable::Step {
  HostBatch batch;
  std::vector<ShardRange> shards;
  StepKey key;
  ContributionSink* sink = nullptr;
  std::atomic<int> next{0};
};

// What the threads of one shard share. The leader is the first of them; alone, it never waits.
struct CpuExecutable::Lane {
  Lane(int first, int count) : first_thread(first), contexts(static_cast<std::size_t>(count)), meeting(count) {}
  int first_thread;
  Buffer arena, coefficients;
  std::vector<Context> contexts;  // one per thread
  std::barrier<> meeting;
  int shard = 0;
  std::span<float> contribution;  // the sink's
  std::atomic<bool> failed{false};
  std::exception_ptr failure;  // of the thread that set `failed` first

  int threads() const { return static_cast<int>(contexts.size()); }
  void meet() {
    if (threads() > 1) meeting.arrive_and_wait();
  }
  // A thread that fails must still come to the meetings.
  template <typename Work>
  void attempt(Work work) {
    if (failed.load()) return;
    try {
      work();
    } catch (...) {
      if (!failed.exchange(true)) failure = std::current_exception();
    }
  }
};

CpuExecutable::CpuExecutable(const nn::Graph& graph, const CompileOptions& options)
    : graph_(graph),
      options_(options),
      kernels_(select_kernels()),
      layout_(graph_),
      layers_(graph_, options.dtype),
      muon_(graph_, kernels_, options.lanes * options.threads_per_lane),
      threads_(options.lanes * options.threads_per_lane) {
  if (options.training) {
    training_ = lower_training(graph_, layers_, kernels_, options_);
    training_.program.plan(options.max_samples);
    other_parts_ = training_.program.other_parts(layout_.size());
  }
  evaluation_ = lower_evaluation(graph_, layers_, kernels_, options_);
  evaluation_.program.plan(evaluation_block());

  for (int thread = 0; thread < threads_.size(); ++thread) {
    Worker worker;
    worker.id = thread;
    worker.stream = dnnl::stream(cpu_engine());
    worker.local.grow(std::max(training_.program.local_bytes(), evaluation_.program.local_bytes()));
    if (options.training && thread % options.threads_per_lane != 0)
      worker.contribution.grow(float_bytes(layout_.size()));
    workers_.push_back(std::move(worker));
  }
  for (int lane = 0; options.training && lane < options.lanes; ++lane) {
    lanes_.push_back(std::make_unique<Lane>(lane * options.threads_per_lane, options.threads_per_lane));
    lanes_.back()->arena.grow(training_.program.arena_bytes());
    lanes_.back()->coefficients.grow(layers_.coefficient_bytes);
  }
  running_coefficients_.grow(layers_.coefficient_bytes);
  state_.parameters.assign(static_cast<std::size_t>(graph_.parameter_count), 0.0f);
  state_.statistics.assign(static_cast<std::size_t>(graph_.statistic_count), 0.0f);
}

CpuExecutable::~CpuExecutable() = default;

void CpuExecutable::prepare(Program& program, int n) {
  const SingleThreaded alone;
  program.prepare(n, threads_.size());
  for (Worker& worker : workers_) {
    worker.scratchpad.grow(program.scratchpad_bytes());
    worker.workspace.grow(program.workspace_bytes());
  }
}

// The largest first, so that those of a network with one large layer still divide well among threads.
std::vector<CpuExecutable::Packing> CpuExecutable::stale_weights() const {
  std::vector<Packing> stale;
  for (const auto& layer : layers_.products) {
    for (const Direction direction : {Direction::forward, Direction::backward}) {
      if (layer && layer->stale(direction) && layer->packing_bytes(direction) > 0)
        stale.push_back({layer.get(), direction});
    }
  }
  std::ranges::stable_sort(stale, std::greater{},
                           [](const Packing& packing) { return packing.layer->packing_bytes(packing.direction); });
  return stale;
}

void CpuExecutable::pack(std::span<const Packing> stale, int thread) {
  for (std::size_t k = static_cast<std::size_t>(thread); k < stale.size(); k += workers_.size()) {
    stale[k].layer->pack(stale[k].direction, state_.parameters.data(),
                         workers_[static_cast<std::size_t>(thread)].stream);
  }
}

void CpuExecutable::pack_weights() {
  const std::vector<Packing> stale = stale_weights();
  if (!stale.empty()) threads_.run([&](int thread) { pack(stale, thread); });
}

// The norms that do not learn, in each lane.
void CpuExecutable::prepare_fixed_norms() {
  for (const auto& norm : layers_.norms) {
    if (!norm || norm->learns) continue;
    for (const auto& lane : lanes_) {
      use_running_statistics(*norm, state_.parameters.data(), state_.statistics.data(), lane->coefficients.data());
    }
  }
}

void CpuExecutable::weights_changed() {
  for (const auto& layer : layers_.products) {
    if (layer) layer->mark_stale();
  }
  running_stale_ = true;
}

// ---- training

void CpuExecutable::enqueue(const HostBatch& batch, std::span<const ShardRange> shards, const StepKey& key,
                            StepSink sink) {
  DTRAIN_CHECK(options_.training, "compiled for evaluation only");
  threads_.wait();
  const auto step = std::make_shared<Step>();
  step->batch = batch;
  step->shards.assign(shards.begin(), shards.end());
  step->key = key;
  step->sink = &sink.require_host();
  for (const ShardRange& shard : shards) {
    DTRAIN_CHECK(shard.count <= options_.max_samples, "a larger shard than this was compiled for");
    check_labels(samples_of(batch, graph_, shard), graph_.classes());
    for (int member = 0; member < options_.threads_per_lane; ++member) {
      const int begin = part_begin(shard.count, member, options_.threads_per_lane);
      prepare(training_.program, part_begin(shard.count, member + 1, options_.threads_per_lane) - begin);
    }
  }
  pack_weights();
  prepare_fixed_norms();
  threads_.start([this, step](int thread) { serve(*step, thread); });
}

// The threads of a lane take the next shard together.
void CpuExecutable::serve(Step& step, int thread) {
  Lane& lane = *lanes_[static_cast<std::size_t>(thread / options_.threads_per_lane)];
  const int member = thread - lane.first_thread;
  bool more = true;
  while (more) {
    if (member == 0) lane.shard = step.next.fetch_add(1);
    lane.meet();
    if (lane.shard >= static_cast<int>(step.shards.size())) return;
    more = compute_shard(step, lane, member);
    lane.meet();  // all threads are done with this shard
  }
  if (member != 0) return;
  lane.failed = false;
  std::rethrow_exception(std::exchange(lane.failure, nullptr));
}

// False when the lane has failed.
bool CpuExecutable::compute_shard(Step& step, Lane& lane, int member) {
  const ShardRange& shard = step.shards[static_cast<std::size_t>(lane.shard)];
  Worker& worker = workers_[static_cast<std::size_t>(lane.first_thread) + static_cast<std::size_t>(member)];
  Context& context = lane.contexts[static_cast<std::size_t>(member)];
  lane.attempt([&] {
    context = {};
    context.tensors = training_.program.tensors();
    context.arena = lane.arena.data();
    context.coefficients = lane.coefficients.data();
    context.worker = &worker;
    context.shard = samples_of(step.batch, graph_, shard);
    context.key = step.key;
    context.parameters = state_.parameters.data();
    if (member == 0) {
      lane.contribution = step.sink->buffer(shard);
      context.contribution = lane.contribution.data();
      for (const auto& [first, size] : training_.unwritten)
        std::memset(context.contribution + first, 0, float_bytes(size));
      if (shard.count == 0) std::ranges::fill(lane.contribution, 0.0f);
    } else {
      context.contribution = worker.contribution.as<float>();
      std::memset(context.contribution, 0, float_bytes(layout_.size()));
    }
  });
  const int begin = part_begin(shard.count, member, lane.threads());
  const int end = part_begin(shard.count, member + 1, lane.threads());
  // Several threads add up their gradients at the end.
  const bool by_segment = lane.threads() == 1 && shard.count > 0;
  for (const Segment& segment : training_.program.segments()) {
    if (shard.count == 0) break;
    lane.attempt([&] { run_segment(training_.program, segment, context, begin, end - begin); });
    if (segment.meets) {
      lane.meet();
      if (member == 0) lane.attempt([&] { training_.program.op(segment.end_op - 1).meet(lane.contexts); });
      lane.meet();
    }
    if (by_segment) lane.attempt([&] { declare_ready(step, shard, segment.gradients, false); });
  }
  if (lane.threads() > 1) {
    lane.meet();
    lane.attempt([&] { gather_followers(lane, member); });
    lane.meet();
  }
  const Part whole[] = {{0, layout_.size()}};
  if (member == 0) {
    lane.attempt([&] { declare_ready(step, shard, by_segment ? std::span<const Part>(other_parts_) : whole, true); });
  }
  lane.meet();
  return !lane.failed.load();
}

void CpuExecutable::declare_ready(Step& step, const ShardRange& shard, std::span<const Part> parts, bool last) {
  for (const Part& part : parts) step.sink->ready(shard, part.first, part.size, last && &part == &parts.back());
}

void CpuExecutable::run_segment(const Program& program, const Segment& segment, Context& context, int first, int n) {
  OpTimes* const times = times_.empty() ? nullptr : &times_[static_cast<std::size_t>(context.worker->id)];
  // Calls work(operation) for the segment's operations, noting the time when profiling.
  const auto each_op = [&](int calls, auto work) {
    for (int op = segment.first_op; op < segment.end_op; ++op) {
      const double start = times ? thread_seconds() : 0;
      work(program.op(op));
      if (times) times->add(op, context.count, calls, thread_seconds() - start);
    }
  };
  each_op(0, [&](Op& op) { op.begin(context); });
  const Chunks chunks{n, segment.max_chunk};
  for (int chunk = 0; chunk < chunks.number(); ++chunk) {
    context.first = first + chunks.first(chunk);
    context.count = chunks.size(chunk);
    each_op(1, [&](Op& op) { op.run(context); });
  }
  each_op(0, [&](Op& op) { op.finish(context); });
}

// Every thread adds a part of the gradients of all others to the leader's, in the order of the threads.
void CpuExecutable::gather_followers(Lane& lane, int member) {
  const std::int64_t begin = layout_.gradients * member / lane.threads();
  const std::int64_t end = layout_.gradients * (member + 1) / lane.threads();
  for (std::size_t other = 1; other < lane.contexts.size(); ++other) {
    kernels_.accumulate(lane.contexts[other].contribution + begin, lane.contexts[0].contribution + begin, end - begin);
  }
}

StepMetrics CpuExecutable::set_sum(StepSum sum) {
  sum_ = std::get<std::span<const float>>(sum);
  DTRAIN_CHECK(static_cast<std::int64_t>(sum_.size()) == layout_.size(), "not this graph's contribution");
  return metrics_of(layout_, sum_);
}

void CpuExecutable::apply(const Update& update) {
  const std::span<const float> sum = std::exchange(sum_, {});
  DTRAIN_CHECK(!sum.empty(), "there is no sum to apply");
  threads_.wait();
  const InParts in_parts = [&](const std::function<void(int, int)>& work) {
    threads_.run([&](int thread) { work(thread, threads_.size()); });
  };
  apply_update(graph_, kernels_, sum, update, in_parts, muon_, layer_wise_, state_);
  weights_changed();
}

void CpuExecutable::write_state(ModelState state) {
  DTRAIN_CHECK(state.parameters.size() == state_.parameters.size(), "another graph's parameters");
  DTRAIN_CHECK(state.statistics.size() == state_.statistics.size(), "another graph's statistics");
  DTRAIN_CHECK(state.parameters.empty() || state.optimizer.size() % state.parameters.size() == 0,
               "the optimizer state is not whole slots");
  check_average(state);
  threads_.wait();
  state_ = std::move(state);
  weights_changed();
}

void CpuExecutable::exchange_average() {
  threads_.wait();
  backend::exchange_average(state_);
  weights_changed();
}

std::uint64_t CpuExecutable::planned_bytes() const {
  std::uint64_t bytes = running_coefficients_.size() + muon_.bytes() + layer_wise_.bytes();
  for (const Worker& w : workers_) {
    bytes += w.local.size() + w.workspace.size() + w.scratchpad.size() + w.contribution.size();
  }
  for (const auto& lane : lanes_) bytes += lane->arena.size() + lane->coefficients.size();
  for (const auto& layer : layers_.products) bytes += layer ? layer->packed_bytes() : 0;
  return bytes + float_bytes(state_size());
}

}  // namespace dtrain::backend::cpu
