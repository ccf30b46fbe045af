#include <dtrain/comm/mesh.hpp>

#include <algorithm>
#include <ranges>

#include <dtrain/base/error.hpp>

#include "gloo/gloo_communicator.hpp"
#include "nccl/nccl_communicator.hpp"
#include "tcp/mesh.hpp"
#include "tcp/reception.hpp"
#include "tcp/tcp_communicator.hpp"

namespace dtrain::comm {

int connections_to_rank(int wanted, int ranks) {
  return std::clamp(kMostConnectionsOfRank / std::max(1, ranks - 1), 1, wanted);
}

struct Endpoint::State {
  explicit State(EndpointOptions o)
      : options(std::move(o)),
        reception(options.bind_address, options.secret, options.by_unix_sockets, options.plain_data) {}
  const EndpointOptions options;
  const std::shared_ptr<tcp::TrafficCount> traffic = std::make_shared<tcp::TrafficCount>();
  tcp::Reception reception;
};

Endpoint::Endpoint(EndpointOptions options) : state_(std::make_unique<State>(std::move(options))) {}
Endpoint::~Endpoint() = default;

PeerAddress Endpoint::address() const { return state_->reception.address(); }

std::optional<Traffic> Endpoint::traffic() const {
  if (state_->options.transport != Transport::tcp) return std::nullopt;
  return Traffic{state_->traffic->sent, state_->traffic->received};
}

std::unique_ptr<Communicator> Endpoint::connect(const MeshPlan& plan, std::chrono::milliseconds deadline,
                                                std::stop_token cancel) {
  const EndpointOptions& options = state_->options;
  DTRAIN_CHECK(plan.rank >= 0 && plan.rank < static_cast<int>(plan.ranks.size()), "a rank that the plan does not have");
  // Other transports move their gradients themselves.
  const int connections = options.transport == Transport::tcp
                              ? connections_to_rank(options.connections, static_cast<int>(plan.ranks.size()))
                              : 1;
  auto streams = tcp::form_mesh(state_->reception, plan, connections, deadline, cancel);
  for (const net::Stream& stream : streams | std::views::join) {
    tcp::prepare_for_data(stream.socket(), options.operation_deadline);
  }
  auto mesh = tcp::make_communicator(plan, std::move(streams), options.operation_deadline, options.on_point,
                                     state_->traffic, options.by_shared_memory);
  if (options.transport == Transport::tcp || mesh->size() == 1) return mesh;
  if (options.transport == Transport::nccl) {
    return make_nccl_communicator(std::move(mesh), options.nccl, deadline, options.operation_deadline);
  }
  return make_gloo_communicator(std::move(mesh), options.bind_address, deadline, options.operation_deadline, cancel);
}

}  // namespace dtrain::comm
