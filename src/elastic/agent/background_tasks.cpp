#include "background_tasks.hpp"

#include <thread>
#include <utility>

#include <dtrain/base/error.hpp>

namespace dtrain::elastic {
namespace {

// Longer than any deadline of a connect, because connects use the loop itself.
constexpr std::chrono::seconds kLastWait{6};

}  // namespace

BackgroundTasks::~BackgroundTasks() {
  Shared& shared = *shared_;
  const MutexLock lock(shared.mutex);
  shared.ended.wait_for(shared.mutex, kLastWait, [&]() DTRAIN_REQUIRES(shared.mutex) { return shared.running == 0; });
  shared.loop = nullptr;
}

void BackgroundTasks::run(std::function<std::function<void()>()> work) {
  {
    const MutexLock lock(shared_->mutex);
    ++shared_->running;
  }
  std::thread([shared = shared_, work = std::move(work)] {
    std::function<void()> then;
    try {
      then = work();
    } catch (const std::exception&) {  // a task reports failures itself
    }
    const MutexLock lock(shared->mutex);
    if (shared->loop && then) shared->loop->post(std::move(then));
    --shared->running;
    shared->ended.notify_all();
  }).detach();
}

void BackgroundTasks::connect(const std::string& address, std::uint16_t port, const std::string& secret,
                              std::chrono::milliseconds deadline,
                              std::function<void(std::shared_ptr<net::Channel>)> then) {
  net::Loop* loop = nullptr;
  {
    const MutexLock lock(shared_->mutex);
    loop = shared_->loop;
  }
  run([=, then = std::move(then)]() -> std::function<void()> {
    std::shared_ptr<net::Channel> channel;
    try {
      channel = net::connect_channel(*loop, address, port, secret, deadline);
    } catch (const Error&) {
    }
    return [then, channel] { then(channel); };
  });
}

}  // namespace dtrain::elastic
