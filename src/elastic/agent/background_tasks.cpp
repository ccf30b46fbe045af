#include "background_tasks.hpp"

#include <system_error>
#include <thread>
#include <utility>

#include <dtrain/base/error.hpp>

namespace dtrain::elastic {
namespace {

// Longer than any deadline of a connect, because connects use the loop itself.
constexpr std::chrono::seconds kLastWait{6};

// A task that waits for a machine that is gone takes a second, as long as an election waits for all answers.
constexpr int kMostThreads = 2048;

}  // namespace

BackgroundTasks::~BackgroundTasks() {
  Shared& shared = *shared_;
  const MutexLock lock(shared.mutex);
  shared.waiting.clear();
  shared.ended.wait_for(shared.mutex, kLastWait, [&]() DTRAIN_REQUIRES(shared.mutex) { return shared.threads == 0; });
  shared.loop = nullptr;
}

void BackgroundTasks::run(Work work, std::function<void()> refused) {
  const MutexLock lock(shared_->mutex);
  shared_->waiting.push_back(std::move(work));
  if (shared_->threads >= kMostThreads) return;
  try {
    std::thread([shared = shared_] { work_on(*shared); }).detach();
    ++shared_->threads;
  } catch (const std::system_error&) {
    if (shared_->threads > 0) return;
    shared_->waiting.pop_back();
    shared_->loop->post(std::move(refused));
  }
}

void BackgroundTasks::work_on(Shared& shared) {
  MutexLock lock(shared.mutex);
  while (!shared.waiting.empty()) {
    const Work work = std::move(shared.waiting.front());
    shared.waiting.pop_front();
    lock.unlock();
    std::function<void()> then;
    try {
      then = work();
    } catch (const std::exception&) {  // a task reports failures itself
    }
    lock.lock();
    if (shared.loop && then) shared.loop->post(std::move(then));
  }
  --shared.threads;
  shared.ended.notify_all();
}

void BackgroundTasks::connect(const std::string& address, std::uint16_t port, const std::string& secret,
                              std::chrono::milliseconds deadline,
                              std::function<void(std::shared_ptr<net::Channel>)> then) {
  net::Loop* loop = nullptr;
  {
    const MutexLock lock(shared_->mutex);
    loop = shared_->loop;
  }
  run(
      [=]() -> std::function<void()> {
        std::shared_ptr<net::Channel> channel;
        try {
          channel = net::connect_channel(*loop, address, port, secret, deadline);
        } catch (const Error&) {
        }
        return [then, channel] { then(channel); };
      },
      [then] { then(nullptr); });
}

}  // namespace dtrain::elastic
