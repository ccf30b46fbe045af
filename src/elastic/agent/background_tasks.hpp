// Slow work (connects, reads of shared folders) on detached threads, for the owner of a loop that must not block.
//
// Threads share `Shared`, which outlives this object: a task that ends after the destruction finds `loop` empty and
// drops its result. The mutex guards all of Shared. A task that throws counts as ended without a result. A thread takes
// one task after the other and ends where none waits; their number is bounded. Where the system refuses a thread, those
// that run do the work; where none runs, the task is refused.
#pragma once

#include <deque>
#include <functional>
#include <memory>

#include <dtrain/base/mutex.hpp>
#include <dtrain/net/channel.hpp>

namespace dtrain::elastic {

class BackgroundTasks {
 public:
  explicit BackgroundTasks(net::Loop& loop) : shared_(std::make_shared<Shared>(loop)) {}
  // Waits a few seconds for running tasks, then leaves them: they cannot reach the loop any more.
  ~BackgroundTasks();
  BackgroundTasks(const BackgroundTasks&) = delete;

  // Runs `work` on a thread. The function that it returns, or `refused` where there is no thread for it, is called on
  // the loop's thread, unless this is destroyed by then.
  void run(std::function<std::function<void()>()> work, std::function<void()> refused);
  // Connects to another agent or a coordinator; nullptr: no answer.
  void connect(const std::string& address, std::uint16_t port, const std::string& secret,
               std::chrono::milliseconds deadline, std::function<void(std::shared_ptr<net::Channel>)> then);

 private:
  using Work = std::function<std::function<void()>()>;
  struct Shared {
    explicit Shared(net::Loop& where) : loop(&where) {}
    Mutex mutex;
    CondVar ended;
    net::Loop* loop DTRAIN_GUARDED_BY(mutex);  // nullptr: destroyed
    std::deque<Work> waiting DTRAIN_GUARDED_BY(mutex);
    int threads DTRAIN_GUARDED_BY(mutex) = 0;
  };
  static void work_on(Shared& shared);
  std::shared_ptr<Shared> shared_;
};

}  // namespace dtrain::elastic
