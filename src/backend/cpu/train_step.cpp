// CpuExecutable::enqueue: forward and backward of the shards of a step, each in a lane of threads.
#include <algorithm>
#include <cstring>
#include <utility>

#include <dtrain/backend/checks.hpp>
#include <dtrain/base/error.hpp>

#include "lane.hpp"
#include "products/dense_factors.hpp"
#include "thread_clock.hpp"

namespace dtrain::backend::cpu {
namespace {

int part_begin(int n, int part, int parts) { return static_cast<int>(std::int64_t{n} * part / parts); }

}  // namespace

void CpuExecutable::enqueue(const HostBatch& batch, std::span<const ShardRange> shards, const StepKey& key,
                            StepSink sink) {
  DTRAIN_CHECK(options_.training, "compiled for evaluation only");
  threads_.wait();
  MeetingSink* const meeting = sink.meeting();
  const auto step = std::make_shared<Step>();
  step->batch = batch;
  step->shards.assign(shards.begin(), shards.end());
  step->key = key;
  step->sink = meeting ? meeting : &sink.require_host();
  step->deferring = sink.deferring();
  step->meets = meeting != nullptr;
  for (const ShardRange& shard : shards) prepare_shard(batch, shard);
  if (meeting) grow_lanes(shards.size());
  pack_weights();
  prepare_fixed_norms();
  if (meeting) return compute_meeting(*step, *meeting);
  threads_.start([this, step](int thread) { serve(*step, thread); });
}

// Checks the shard's labels and prepares the program for the part of each of its threads.
void CpuExecutable::prepare_shard(const HostBatch& batch, const ShardRange& shard) {
  DTRAIN_CHECK(shard.count <= options_.max_samples, "a larger shard than this was compiled for");
  check_labels(samples_of(batch, graph_, shard), graph_.classes());
  for (int member = 0; member < options_.threads_per_lane; ++member) {
    const int begin = part_begin(shard.count, member, options_.threads_per_lane);
    const int end = part_begin(shard.count, member + 1, options_.threads_per_lane);
    prepare(training_.program, end - begin);
  }
}

// The threads of a lane take the next shard together.
void CpuExecutable::serve(Step& step, int thread) {
  Lane& lane = *lanes_[static_cast<std::size_t>(thread / options_.threads_per_lane)];
  const int member = thread - lane.first_thread;
  bool more = true;
  while (more) {
    if (member == 0) lane.shard = step.next.fetch_add(1);
    lane.meet();
    if (lane.shard >= static_cast<int>(step.shards.size())) break;
    more = compute_shard(step, lane, member);
    lane.meet();  // all threads are done with this shard
  }
  compute_deferred(step, lane);
  lane.meet();
  if (member == 0) lane.end();
}

// False when the lane has failed.
bool CpuExecutable::compute_shard(Step& step, Lane& lane, int member) {
  begin_shard(step, lane, member);
  run_segments(step, lane, member, training_.program.segments());
  end_shard(step, lane, member);
  return !lane.failed.load();
}

void CpuExecutable::begin_shard(Step& step, Lane& lane, int member) {
  const ShardRange& shard = step.shards[static_cast<std::size_t>(lane.shard)];
  Context& context = lane.contexts[static_cast<std::size_t>(member)];
  lane.attempt([&] {
    context = {};
    context.tensors = training_.program.tensors();
    context.arena = lane.arena.data();
    context.coefficients = lane.coefficients.data();
    context.worker = &workers_[static_cast<std::size_t>(lane.first_thread) + static_cast<std::size_t>(member)];
    context.shard = samples_of(step.batch, graph_, shard);
    context.key = step.key;
    context.defers = step.deferring != nullptr && shard.count > 0;
    context.parameters = state_.parameters.data();
    context.statistics = state_.statistics.data();
    if (member == 0) lane.contribution = step.sink->buffer(shard);
    context.contribution =
        member == 0 ? lane.contribution.data() : lane.helpers[static_cast<std::size_t>(member - 1)].as<float>();
    // Operations write all other gradients, also on a thread without samples.
    const auto clear = [&](const Part& part) {
      std::memset(context.contribution + part.first, 0, float_bytes(part.size));
    };
    std::ranges::for_each(training_.unwritten, clear);
    if (member > 0) std::ranges::for_each(leaders_parts_, clear);
    if (shard.count == 0) clear({0, layout_.size()});
  });
}

void CpuExecutable::run_segments(Step& step, Lane& lane, int member, std::span<const Segment> segments) {
  const ShardRange& shard = step.shards[static_cast<std::size_t>(lane.shard)];
  if (shard.count == 0) return;
  Context& context = lane.contexts[static_cast<std::size_t>(member)];
  const int begin = part_begin(shard.count, member, lane.threads());
  const int end = part_begin(shard.count, member + 1, lane.threads());
  for (const Segment& segment : segments) {
    lane.attempt([&] { run_segment(training_.program, segment, context, begin, end - begin); });
    if (step.meets && segment.meeting) continue;  // walk() goes on
    if (segment.meets) {
      lane.meet();
      if (member == 0) lane.attempt([&] { training_.program.op(segment.end_op - 1).meet(lane.contexts); });
      lane.meet();
    }
    declare_segment(step, lane, segment);
  }
}

// Several threads add up their gradients at the end.
void CpuExecutable::declare_segment(Step& step, Lane& lane, const Segment& segment) {
  if (lane.threads() > 1) return;
  const ShardRange& shard = step.shards[static_cast<std::size_t>(lane.shard)];
  lane.attempt([&] {
    declare_ready(step, shard, segment.gradients, false);
    if (!step.deferring) return declare_ready(step, shard, segment.deferrable, false);
    declare_deferred(step, shard, std::exchange(lane.contexts.front().deferred, {}));
    // Also what the other lanes have deferred, or the last of them would compute it alone.
    step.deferring->compute_deferred();
  });
}

void CpuExecutable::end_shard(Step& step, Lane& lane, int member) {
  if (lane.threads() > 1) {
    lane.meet();
    lane.attempt([&] { gather_followers(lane, member); });
    lane.meet();
  }
  if (member == 0) lane.attempt([&] { declare_rest(step, lane); });
  lane.meet();
  if (lane.threads() > 1) compute_deferred(step, lane);
}

// Declares what declare_segment() has not: with one thread and samples, the parts outside all segments; else
// everything.
void CpuExecutable::declare_rest(Step& step, Lane& lane) {
  const ShardRange& shard = step.shards[static_cast<std::size_t>(lane.shard)];
  if (lane.threads() == 1 && shard.count > 0) return declare_ready(step, shard, other_parts_, true);
  if (lane.contexts.front().defers) {
    declare_deferred(step, shard, factors_of_all(lane));
    return declare_ready(step, shard, written_parts_, true);
  }
  const Part whole[] = {{0, layout_.size()}};
  declare_ready(step, shard, whole, true);
}

// Joins the factors that the threads of the lane have appended.
std::vector<std::shared_ptr<DenseFactors>> CpuExecutable::factors_of_all(Lane& lane) {
  std::vector<std::shared_ptr<DenseFactors>> all = std::exchange(lane.contexts.front().deferred, {});
  for (Context& follower : std::span(lane.contexts).subspan(1)) {
    for (std::size_t op = 0; op < all.size(); ++op) all[op]->append(std::move(*follower.deferred[op]));
    follower.deferred.clear();
  }
  return all;
}

void CpuExecutable::declare_ready(Step& step, const ShardRange& shard, std::span<const Part> parts, bool last) {
  for (const Part& part : parts) step.sink->ready(shard, part.first, part.size, last && &part == &parts.back());
}

void CpuExecutable::declare_deferred(Step& step, const ShardRange& shard,
                                     std::vector<std::shared_ptr<DenseFactors>> deferred) {
  for (std::shared_ptr<DenseFactors>& factors : deferred) {
    const Part part = factors->part();
    step.deferring->defer(shard, part, std::move(factors));
  }
}

void CpuExecutable::compute_deferred(Step& step, Lane& lane) {
  if (step.deferring) lane.attempt([&] { step.deferring->compute_deferred(); });
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
  const Chunks chunks{n, segment.max_chunk};
  context.chunks = chunks.number();
  each_op(0, [&](Op& op) { op.begin(context); });
  for (int chunk = 0; chunk < chunks.number(); ++chunk) {
    context.chunk = chunk;
    context.first = first + chunks.first(chunk);
    context.count = chunks.size(chunk);
    each_op(1, [&](Op& op) { op.run(context); });
  }
  each_op(0, [&](Op& op) { op.finish(context); });
}

// Every thread adds a part of the gradients of all others to the leader's, in the order of the threads.
void CpuExecutable::gather_followers(Lane& lane, int member) {
  const Part whole[] = {{0, layout_.size()}};
  const bool defers = lane.contexts.front().defers;
  for (const Part& part : defers ? std::span<const Part>(written_parts_) : std::span<const Part>(whole)) {
    const std::int64_t size = std::clamp<std::int64_t>(layout_.gradients - part.first, 0, part.size);
    const std::int64_t begin = part.first + size * member / lane.threads();
    const std::int64_t end = part.first + size * (member + 1) / lane.threads();
    for (std::size_t other = 1; other < lane.contexts.size(); ++other) {
      kernels_.accumulate(lane.contexts[other].contribution + begin, lane.contexts[0].contribution + begin,
                          end - begin);
    }
  }
}

}  // namespace dtrain::backend::cpu
