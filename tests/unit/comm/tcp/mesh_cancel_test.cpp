// A mesh that is given up while its calls begin.
#include <gtest/gtest.h>

#include <chrono>
#include <stop_token>
#include <thread>

#include <dtrain/comm/mesh.hpp>

#include "tcp/reception.hpp"
#include "tcp/sockets.hpp"

namespace dtrain::comm {
namespace {

using namespace std::chrono_literals;
using tcp::Clock;

// Moments around the one when the peer's kernel has taken the connection and the wait for the peer's proof begins.
TEST(MeshCancel, EndsACallToASilentPeerAtWhateverMomentItComes) {
  Endpoint endpoint({.secret = "s"});
  const FileDescriptor silent = tcp::listen_on("127.0.0.1");
  const std::vector<PeerAddress> ranks{endpoint.address(), tcp::address_of(silent.get())};
  for (int i = 0; i < 200; ++i) {
    std::stop_source stop;
    const std::jthread canceller([&] {
      std::this_thread::sleep_for(std::chrono::microseconds(5 * i));
      stop.request_stop();
    });
    const auto begun = Clock::now();
    EXPECT_THROW(endpoint.connect({static_cast<std::uint64_t>(i + 1), 0, ranks}, 60s, stop.get_token()), PeerLost);
    ASSERT_LT(Clock::now() - begun, tcp::kProofDeadline) << "cancelled after " << 5 * i << " us";
  }
}

}  // namespace
}  // namespace dtrain::comm
