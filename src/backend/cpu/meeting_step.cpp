// A step whose shards meet at synchronized batch norms: all of them go to the next such norm before any goes on. Each
// has a lane of its own, for its activations must last. The thread that called enqueue() stands between the stretches,
// for it may wait for other ranks there.
#include <algorithm>

#include <dtrain/base/error.hpp>

#include "lane.hpp"

namespace dtrain::backend::cpu {
namespace {

// The number of segments of the stretch that begins with them: up to the next meeting, or all.
std::size_t length_of_stretch(std::span<const Segment> segments) {
  const auto meets = std::ranges::find_if(segments, [](const Segment& segment) { return segment.meeting != nullptr; });
  const auto before = static_cast<std::size_t>(meets - segments.begin());
  return std::min(before + 1, segments.size());
}

}  // namespace

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
  SumOp* from = nullptr;
  while (true) {
    const std::size_t length = length_of_stretch(left);
    SumOp* const to = length > 0 ? left[length - 1].meeting : nullptr;  // the last stretch may be empty
    std::vector<double> rows(to ? step.shards.size() * to->row_size() : 0);
    const Stretch stretch{left.first(length), from, all_rows, to, rows};
    threads_.run([&](int thread) { walk(step, stretch, thread); });
    if (!to) return;

    all_rows = sink.gather(rows);
    DTRAIN_CHECK(all_rows.size() % to->row_size() == 0, "rows of another norm");
    left = left.subspan(length);
    from = to;
  }
}

// A thread has the same lanes in all stretches. The leader of a lane carries the sums from one stretch to the next,
// while the others wait.
void CpuExecutable::walk(Step& step, const Stretch& stretch, int thread) {
  const int group = thread / options_.threads_per_lane, member = thread % options_.threads_per_lane;
  const auto first_lane = static_cast<std::size_t>(group), lanes = static_cast<std::size_t>(options_.lanes);
  for (std::size_t shard = first_lane; shard < step.shards.size(); shard += lanes) {
    Lane& lane = *lanes_[shard];
    const bool carries_sums = member == 0 && step.shards[shard].count > 0;
    if (!stretch.from) {
      begin_shard(step, lane, member);
    } else if (carries_sums) {
      lane.attempt([&] { stretch.from->take(lane.contexts.front(), stretch.all_rows); });
    }
    lane.meet();
    run_segments(step, lane, member, stretch.segments);
    lane.meet();
    if (!stretch.to) {
      end_shard(step, lane, member);
    } else if (carries_sums) {
      const std::size_t size = stretch.to->row_size();
      lane.attempt([&] { stretch.to->sum_up(lane.contexts, stretch.rows.subspan(shard * size, size)); });
      declare_segment(step, lane, stretch.segments.back());
    }
    lane.meet();  // the next shard takes the threads' workspaces
  }
  if (member > 0) return;
  for (std::size_t shard = first_lane; shard < step.shards.size(); shard += lanes) lanes_[shard]->end();
}

}  // namespace dtrain::backend::cpu
