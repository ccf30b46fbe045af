#include <memory>
#include <optional>
#include <utility>

#include <dtrain/base/error.hpp>
#include <dtrain/base/mutex.hpp>
#include <dtrain/net/channel.hpp>
#include <dtrain/net/loop_thread.hpp>

namespace dtrain::net {
namespace {

// Waits for the first frame on a channel, or for its end. The loop's thread delivers it; wait() runs on the caller's.
class OneAnswer {
 public:
  void listen_to(Channel& channel) {
    channel.listen({.on_frame = [this](std::string frame) { take(std::move(frame)); },
                    .on_close = [this](const std::string&) { take(std::nullopt); }});
  }

  std::optional<std::string> wait(std::chrono::milliseconds deadline) {
    const MutexLock lock(mutex_);
    changed_.wait_for(mutex_, deadline, [this]() DTRAIN_REQUIRES(mutex_) { return over_; });
    return frame_;
  }

 private:
  void take(std::optional<std::string> frame) {
    const MutexLock lock(mutex_);
    if (over_) return;
    frame_ = std::move(frame);
    over_ = true;
    changed_.notify_all();
  }

  Mutex mutex_;
  CondVar changed_;
  std::optional<std::string> frame_ DTRAIN_GUARDED_BY(mutex_);
  bool over_ DTRAIN_GUARDED_BY(mutex_) = false;
};

}  // namespace

std::string ask_channel(const std::string& address, std::uint16_t port, const std::string& secret,
                        const std::string& question, std::chrono::milliseconds deadline,
                        const ConnectOptions& options) {
  OneAnswer answer;  // outlives the loop, which calls it
  LoopThread loop;
  const auto channel = connect_channel(loop.loop(), address, port, secret, deadline, options);
  answer.listen_to(*channel);
  channel->send(question);
  auto frame = answer.wait(deadline);
  loop.stop();
  if (!frame) throw RemoteError("it does not answer");
  return std::move(*frame);
}

}  // namespace dtrain::net
