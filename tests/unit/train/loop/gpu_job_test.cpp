// Two workers with real sessions and NCCL's stand-in, on GPUs that are this CPU: where their gradients are added up,
// and what happens to a reduction that is under way when its generation ends.
#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <deque>
#include <thread>

#include <dtrain/comm/mesh.hpp>
#include <dtrain/elastic/session.hpp>

#include "common/replay_accelerator.hpp"
#include "common/replay_device.hpp"
#include "elastic/inbox.hpp"
#include "train/tiny_training.hpp"

namespace dtrain::train {
namespace {

using namespace std::chrono_literals;
using elastic::Boundary;
using elastic::Generation;

class GpuJob : public TinyTraining {
 protected:
  // A worker: the test is its coordinator.
  struct Worker {
    Worker(elastic::WorkerId number, backend::cuda::AcceleratorWatch watch)
        : id(number),
          endpoint(comm::EndpointOptions{
              .secret = "the token of this job",
              .transport = comm::Transport::nccl,
              .nccl = {DTRAIN_NCCL_STANDIN, backend::cuda::make_replay_accelerator(std::move(watch)), false}}),
          session(inbox, endpoint,
                  {.worker = number, .fingerprint = "f", .heartbeat = 10ms, .mesh_deadline = elastic::kPatience}) {}

    const elastic::WorkerId id;
    elastic::Inbox inbox;
    comm::Endpoint endpoint;
    elastic::WorkerSession session;
    std::string error;
    backend::ModelState state;
    std::thread thread;
  };

  void add_worker(backend::cuda::AcceleratorWatch watch = {}) {
    if (!watch.on_host_copy) watch.on_host_copy = [this] { ++host_copies_; };
    workers_.emplace_back(workers_.size() + 1, std::move(watch));
  }
  void start() {
    for (Worker& worker : workers_) worker.thread = std::thread([this, &worker] { live(worker); });
  }
  void join() {
    for (Worker& worker : workers_) worker.thread.join();
  }

  void begin_generation(Generation generation, const std::vector<Worker*>& members) {
    elastic::Prepare prepare{generation, {}};
    for (const Worker* member : members) prepare.members.push_back({member->id, "w", 0, member->endpoint.address()});
    for (Worker* member : members) member->session.on_message(prepare);
    for (Worker* member : members) EXPECT_EQ(member->inbox.next<elastic::Meshed>().failure, "");
    for (Worker* member : members) member->session.on_message(elastic::Commit{generation, Boundary::now});
  }

  // The run of one GPU alone.
  backend::ModelState undisturbed() {
    const auto membership = elastic::make_fixed_membership(comm::make_single());
    return train_as(*membership);
  }

  std::deque<Worker> workers_;
  std::atomic<int> host_copies_{0};

 private:
  void live(Worker& worker) {
    try {
      worker.state = train_as(worker.session);
    } catch (const std::exception& error) {
      worker.error = error.what();
    }
  }

  backend::ModelState train_as(elastic::Membership& membership) {
    const nn::Graph graph = tiny_network();
    const auto executable = compile(*backend::cuda::make_large_replay_backend());
    data::Loader training = loader();
    IgnoringObserver observer;
    train(graph, *executable, training, nullptr, membership, options_, nullptr, observer);
    return executable->read_state();
  }
};

TEST_F(GpuJob, KeepsGradientsOnTheGpus) {
  for (const backend::DType gradients : {backend::DType::float32, backend::DType::bfloat16}) {
    options_.gradient_dtype = gradients;
    add_worker();
    add_worker();
    start();
    begin_generation(1, {&workers_[0], &workers_[1]});
    join();
    for (const Worker& worker : workers_) {
      EXPECT_EQ(worker.error, "");
      expect_same_bits(worker.state, undisturbed());
    }
    EXPECT_EQ(host_copies_, 0) << "gradients pass through the host";
    workers_.clear();
  }
}

// Reaches a point of a reduction in the middle of the run, once, and stays there until it is let go.
class Halt {
 public:
  explicit Halt(int uses) : left_(uses) {}
  void pass() {
    std::unique_lock lock(mutex_);
    if (--left_ != 0) return;
    reached_ = true;
    changed_.notify_all();
    changed_.wait_for(lock, elastic::kPatience, [&] { return released_; });
  }
  void wait_until_reached() {
    std::unique_lock lock(mutex_);
    EXPECT_TRUE(changed_.wait_for(lock, elastic::kPatience, [&] { return reached_; }));
  }
  void release() {
    const std::lock_guard lock(mutex_);
    released_ = true;
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int left_;
  bool reached_ = false, released_ = false;
};

TEST_F(GpuJob, AFreezeEndsTheReductionThatIsUnderWay) {
  for (const int uses : {1, 20, 33}) {  // between leaves of a rank, and where its chunk is added up
    SCOPED_TRACE(uses);
    Halt halt(uses);
    add_worker({.on_add = [&] { halt.pass(); }});
    add_worker();
    start();
    begin_generation(1, {&workers_[0], &workers_[1]});
    halt.wait_until_reached();
    for (Worker& worker : workers_) worker.session.on_message(elastic::Freeze{1});
    halt.release();
    for (Worker& worker : workers_) EXPECT_EQ(worker.inbox.next<elastic::Frozen>().generation, 1u);
    begin_generation(2, {&workers_[1], &workers_[0]});
    join();
    for (Worker& worker : workers_) {
      EXPECT_EQ(worker.error, "");
      expect_same_bits(worker.state, undisturbed());
    }
    EXPECT_EQ(host_copies_, 0);
    workers_.clear();
  }
}

TEST_F(GpuJob, GoesOnWithoutARankThatFailsInAReduction) {
  int left = 20;
  add_worker({.on_add = [&] {
    if (--left == 0) throw Error("the GPU has fallen off the bus");
  }});
  add_worker();
  start();
  begin_generation(1, {&workers_[0], &workers_[1]});
  workers_[0].thread.join();
  EXPECT_EQ(workers_[0].error, "the GPU has fallen off the bus");
  workers_[1].session.on_message(elastic::Freeze{1});
  EXPECT_EQ(workers_[1].inbox.next<elastic::Frozen>().generation, 1u);
  begin_generation(2, {&workers_[1]});
  workers_[1].thread.join();
  EXPECT_EQ(workers_[1].error, "");
  expect_same_bits(workers_[1].state, undisturbed());
}

}  // namespace
}  // namespace dtrain::train
