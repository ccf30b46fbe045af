// Runs one operation on many hosts, some of them in parallel. A host that fails does not affect the others.
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
  net::SshOptions ssh;  // its `stop` ends everything: running operations fail, waiting hosts are not begun
  int parallel = 32;    // hosts in parallel
};

// The reason why the operation did not succeed on a host.
struct HostFailure {
  enum class Kind { unreachable, failed, stopped };  // no connection; the operation threw; stop was requested
  Kind kind = Kind::failed;
  std::string what, hint;
};

// The operation on the host with this index. An exception is the host's failure.
using HostWork = std::function<void(std::size_t host, net::SshSession& session)>;
// The result of a host; called once for each.
using HostEnd = std::function<void(std::size_t host, const std::optional<HostFailure>& failure,
                                   std::chrono::duration<double> took)>;

// Blocks until all hosts are done. `work` is called from several threads at once, `end` from several threads but never
// concurrently. Throws only what `end` throws.
void fan_out(const std::vector<net::SshTarget>& hosts, const FanOutOptions& options, const HostWork& work,
             const HostEnd& end);

}  // namespace dtrain::launcher
