// A worker whose connections end before or after any send, receive or addition of one step, over real sockets.
#include <atomic>

#include <dtrain/comm/mesh.hpp>

#include "train/elastic_run.hpp"

namespace dtrain::train {
namespace {

constexpr std::uint64_t kBroken = 20;  // samples seen when the step begins that is broken
constexpr int kWorkers = 3;

class CrashPoints : public ElasticTraining {
 protected:
  // Three workers, then without the one that fails at its `fatal`-th point of the step.
  JobEnd run_broken(int worker, int fatal) {
    points_ = 0;
    std::vector<std::unique_ptr<comm::Endpoint>> endpoints;
    for (int each = 0; each < kWorkers; ++each) {
      comm::EndpointOptions options{.secret = "test"};
      if (each == worker) {
        options.on_point = [this, fatal](comm::CommPoint) {
          if (in_step_ && points_++ == fatal) throw Error("killed");
        };
      }
      endpoints.push_back(std::make_unique<comm::Endpoint>(std::move(options)));
    }
    on_point_ = [this, worker](int who, Point point, std::uint64_t samples_seen) {
      if (who == worker) in_step_ = samples_seen == kBroken && point != Point::entering;
    };
    std::vector<int> left;
    for (int each = 0; each < kWorkers; ++each) {
      if (each != worker) left.push_back(each);
    }
    const Script script{{.workers = {0, 1, 2}}, {.workers = left}};
    connect_ = [&](std::size_t generation, int who) {
      comm::MeshPlan plan{.generation = generation + 1, .rank = 0, .ranks = {}};
      for (const int each : script[generation].workers) {
        if (each == who) plan.rank = static_cast<int>(plan.ranks.size());
        plan.ranks.push_back(endpoints[static_cast<std::size_t>(each)]->address());
      }
      return endpoints[static_cast<std::size_t>(who)]->connect(plan, std::chrono::seconds(30));
    };
    return run(script);
  }

  std::atomic<bool> in_step_ = false;
  std::atomic<int> points_ = 0;
};

TEST_F(CrashPoints, OfOneStepAllEndInTheSameBits) {
  const JobEnd alone = undisturbed();
  run_broken(0, INT_MAX);
  const int points = points_;
  EXPECT_GT(points, 10);
  for (int fatal = 0; fatal < points; ++fatal) {
    const int worker = fatal % kWorkers;  // they play alike parts
    SCOPED_TRACE(testing::Message() << "worker " << worker << " at point " << fatal << " of " << points);
    expect_same_run(alone, run_broken(worker, fatal));
  }
}

}  // namespace
}  // namespace dtrain::train
