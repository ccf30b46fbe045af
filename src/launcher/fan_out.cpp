#include <dtrain/launcher/fan_out.hpp>

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>

#include <dtrain/base/error.hpp>

namespace dtrain::launcher {
namespace {

using Kind = HostFailure::Kind;

class Crowd {
 public:
  Crowd(const std::vector<net::SshTarget>& hosts, const FanOutOptions& options, const HostWork& work,
        const HostEnd& end)
      : hosts_(hosts), options_(options), work_(work), end_(end) {}

  void run() {
    {
      std::vector<std::jthread> threads;
      const std::size_t count = std::min(hosts_.size(), static_cast<std::size_t>(std::max(1, options_.parallel)));
      for (std::size_t i = 0; i < count; ++i) threads.emplace_back([this] { serve(); });
    }
    if (thrown_) std::rethrow_exception(thrown_);
  }

 private:
  void serve() {
    for (std::size_t host = next_++; host < hosts_.size(); host = next_++) {
      const auto began = std::chrono::steady_clock::now();
      const std::optional<HostFailure> failure = serve(host);
      const std::lock_guard lock(mutex_);
      if (thrown_) continue;
      try {
        end_(host, failure, std::chrono::steady_clock::now() - began);
      } catch (...) {
        thrown_ = std::current_exception();
      }
    }
  }

  std::optional<HostFailure> serve(std::size_t host) const {
    Kind kind = Kind::unreachable;
    try {
      if (options_.ssh.stop.stop_requested()) return HostFailure{Kind::stopped, "not begun", ""};
      net::SshSession session = net::SshSession::connect(hosts_[host], options_.ssh);
      kind = Kind::failed;
      work_(host, session);
      return std::nullopt;
    } catch (const Stopped& stopped) {
      return HostFailure{Kind::stopped, stopped.what(), stopped.hint()};
    } catch (const Error& error) {
      return HostFailure{kind, error.what(), error.hint()};
    } catch (const std::exception& error) {
      return HostFailure{kind, error.what(), ""};
    }
  }

  const std::vector<net::SshTarget>& hosts_;
  const FanOutOptions& options_;
  const HostWork& work_;
  const HostEnd& end_;
  std::atomic<std::size_t> next_ = 0;
  std::mutex mutex_;  // guards thrown_ and calls of end_
  std::exception_ptr thrown_;
};

}  // namespace

void fan_out(const std::vector<net::SshTarget>& hosts, const FanOutOptions& options, const HostWork& work,
             const HostEnd& end) {
  Crowd(hosts, options, work, end).run();
}

}  // namespace dtrain::launcher
