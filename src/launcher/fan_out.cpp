#include <dtrain/launcher/fan_out.hpp>

#include <algorithm>

#include <dtrain/base/error.hpp>
#include <dtrain/base/mutex.hpp>
#include <dtrain/base/parallel.hpp>

namespace dtrain::launcher {
namespace {

using Kind = HostFailure::Kind;

std::optional<HostFailure> work_on(std::size_t host, const net::SshTarget& target, const FanOutOptions& options,
                                   const HostWork& work) {
  Kind kind = Kind::unreachable;
  try {
    if (options.ssh.stop.stop_requested()) return HostFailure{Kind::stopped, "not begun", ""};
    net::SshSession session = net::SshSession::connect(target, options.ssh);
    kind = Kind::failed;
    work(host, session);
    return std::nullopt;
  } catch (const Stopped& stopped) {
    return HostFailure{Kind::stopped, stopped.what(), stopped.hint()};
  } catch (const Error& error) {
    return HostFailure{kind, error.what(), error.hint()};
  } catch (const std::exception& error) {
    return HostFailure{kind, error.what(), ""};
  }
}

}  // namespace

void fan_out(const std::vector<net::SshTarget>& hosts, const FanOutOptions& options, const HostWork& work,
             const HostEnd& end) {
  Mutex mutex;  // guards threw and calls of end
  bool threw = false;
  try_each_in_parallel(hosts.size(), static_cast<std::size_t>(std::max(1, options.parallel)), [&](std::size_t host) {
    const auto began = std::chrono::steady_clock::now();
    const std::optional<HostFailure> failure = work_on(host, hosts[host], options, work);
    const MutexLock lock(mutex);
    if (threw) return;
    threw = true;  // unless it returns
    end(host, failure, std::chrono::steady_clock::now() - began);
    threw = false;
  });
}

}  // namespace dtrain::launcher
