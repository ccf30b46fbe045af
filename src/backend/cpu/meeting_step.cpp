// A step whose shards meet at synchronized batch norms: all of them go to the next such norm before any goes on. Each
// has a lane of its own, for its activations must last. The thread that called enqueue() stands between the stretches,
// for it may wait for other ranks there.
#include <algorithm>

#include <dtrain/base/error.hpp>

#include "lane.hpp"

namespace dtrain::backend::cpu {

// The way from one meeting to the next.
struct CpuExecutable::Stretch {
  std::span<const Segment> segments;
  SumOp* from = nullptr;             // the norm where it begins, with the rows of all shards; null: at the images
  std::span<const double> all_rows;  // [shards of the step][from->row_size()]
  SumOp* to = nullptr;               // the norm where it ends; null: at the end of the step
  std::span<double> rows;            // [shards of this enqueue()][to->row_size()]
};

void CpuExecutable::compute_meeting(Step& step, MeetingSink& sink) {
  for (std::size_t shard = 0; shard < step.shards.size(); ++shard) {
    lanes_[shard]->shard = static_cast<int>(shard);
    lanes_[shard]->failed = false;
  }
  std::span<const Segment> left = training_.program.segments();
  std::vector<double> all_rows;
  SumOp *from = nullptr, *to = nullptr;
  do {
    const auto meets = std::ranges::find_if(left, [](const Segment& segment) { return segment.meeting != nullptr; });
    to = meets == left.end() ? nullptr : meets->meeting;
    const std::size_t length = to ? static_cast<std::size_t>(meets - left.begin()) + 1 : left.size();
    std::vector<double> rows(to ? step.shards.size() * to->row_size() : 0);
    const Stretch stretch{left.first(length), from, all_rows, to, rows};
    threads_.run([&](int thread) { walk(step, stretch, thread); });
    if (to) all_rows = sink.gather(rows);
    DTRAIN_CHECK(!to || all_rows.size() % to->row_size() == 0, "rows of another norm");
    left = left.subspan(length);
    from = to;
  } while (to);  // the last stretch may be empty
}

// A thread has the same lanes in all stretches.
void CpuExecutable::walk(Step& step, const Stretch& stretch, int thread) {
  const int group = thread / options_.threads_per_lane, member = thread % options_.threads_per_lane;
  const auto first = static_cast<std::size_t>(group), next = static_cast<std::size_t>(options_.lanes);
  const bool begins = !stretch.from, ends = !stretch.to;
  for (std::size_t k = first; k < step.shards.size(); k += next) {
    Lane& lane = *lanes_[k];
    const bool has_samples = step.shards[k].count > 0;
    if (begins) begin_shard(step, lane, member);
    if (!begins && has_samples && member == 0) {
      lane.attempt([&] { stretch.from->take(lane.contexts.front(), stretch.all_rows); });
    }
    lane.meet();
    run_segments(step, lane, member, stretch.segments);
    lane.meet();
    if (ends) end_shard(step, lane, member);
    if (!ends && has_samples && member == 0) {
      const std::size_t size = stretch.to->row_size();
      lane.attempt([&] { stretch.to->sum_up(lane.contexts, stretch.rows.subspan(k * size, size)); });
      declare_segment(step, lane, stretch.segments.back());
    }
    lane.meet();  // the next shard takes the threads' workspaces
  }
  for (std::size_t k = first; k < step.shards.size() && member == 0; k += next) lanes_[k]->end();
}

}  // namespace dtrain::backend::cpu
