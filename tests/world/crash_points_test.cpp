// One of three workers dies at every point of one step, one after the other.
#include <gtest/gtest.h>

#include <atomic>
#include <string>

#include "checked_real_training.hpp"
#include "checked_toy_training.hpp"

namespace dtrain::world {
namespace {

constexpr int kStep = 2;  // the step whose points are tried

// Counts the points that a host's first worker passes in the step, and ends it at one of them.
class Tripwire {
 public:
  Tripwire(std::string host, int deadly) : host_(std::move(host)), deadly_(deadly) {}
  Fault operator()(const WorkerFacts& worker, Place place) {
    if (worker.host != host_ || (worker_ != 0 && worker.worker != worker_)) return Fault::none;
    worker_ = worker.worker;
    if (place == Place::vote) ++votes_;
    if (votes_ != kStep + 1 || tripped_) return Fault::none;
    if (points_++ != deadly_) return Fault::none;
    tripped_ = true;
    return Fault::die;
  }
  int points() const { return points_; }
  bool tripped() const { return tripped_; }

 private:
  const std::string host_;
  const int deadly_;
  std::atomic<elastic::WorkerId> worker_ = 0;
  std::atomic<int> votes_ = 0, points_ = 0;
  std::atomic<bool> tripped_ = false;
};

// Number of points. deadly < 0: no worker dies.
int run_with(CheckedTraining& training, const std::string& victim, int deadly) {
  Tripwire wire(victim, deadly);
  SimOptions options;
  options.fault_at = [&](const WorkerFacts& worker, Place place, comm::CommPoint, int) { return wire(worker, place); };
  CheckedJob job(training, {"a", "b", "c"}, quick_policy(), options);
  EXPECT_EQ(job.run(), "") << "worker on " << victim << " died at point " << deadly;
  // How often a step writes to its sockets depends on time, so it may have had fewer points.
  EXPECT_EQ(wire.tripped(), deadly >= 0 && deadly < wire.points()) << "point " << deadly;
  return wire.points();
}

template <typename MakeTraining>
void try_points(const std::string& victim, int stride, MakeTraining make_training) {
  const auto run_at = [&](int deadly) { return run_with(*make_training(), victim, deadly); };
  const int points = run_at(-1);
  EXPECT_GT(points, 10);
  for (int point = 0; point < points; point += stride) run_at(point);
}

class CrashPoints : public testing::TestWithParam<const char*> {};

TEST_P(CrashPoints, EveryOneOfAStepEndsWithTheSameBits) {
  try_points(GetParam(), 1,
             [] { return std::make_unique<CheckedToyTraining>(ToyTask{.epochs = 1, .shard_time = {}}); });
}

TEST_P(CrashPoints, SomeOrAllOfARealStepEndWithTheSameBits) {
  try_points(GetParam(), is_thorough() ? 1 : 7, [] { return std::make_unique<CheckedRealTraining>(1); });
}

INSTANTIATE_TEST_SUITE_P(OfRank, CrashPoints, testing::Values("a", "b", "c"));

}  // namespace
}  // namespace dtrain::world
