// One piece of work on many hosts, some at a time. A host that fails stops no other.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <dtrain/net/ssh.hpp>

namespace dtrain::launcher {

struct FanOutOptions {
  net::SshOptions ssh;  // its `stop` ends everything: work under way fails, hosts that wait are not begun
  int parallel = 32;    // hosts at once
};

// Why a host is not done.
struct HostFailure {
  enum class Kind { unreachable, failed, stopped };  // no connection; the work threw; asked to stop
  Kind kind = Kind::failed;
  std::string what, hint;
};

// The work on the host of this index. What it throws is the host's failure.
using HostWork = std::function<void(std::size_t host, net::SshSession& session)>;
// What became of a host, once for each.
using HostEnd = std::function<void(std::size_t host, const std::optional<HostFailure>& failure,
                                   std::chrono::duration<double> took)>;

// Blocks until all hosts are through. `work` is called from several threads at once, `end` from several threads but one
// at a time. Throws nothing but what `end` throws.
void fan_out(const std::vector<net::SshTarget>& hosts, const FanOutOptions& options, const HostWork& work,
             const HostEnd& end);

}  // namespace dtrain::launcher
