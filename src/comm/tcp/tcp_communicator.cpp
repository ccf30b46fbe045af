#include "tcp_communicator.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <ranges>
#include <set>
#include <string>

#include <dtrain/base/error.hpp>

#include "exchange.hpp"
#include "reduce_operation.hpp"
#include "small_operations.hpp"
#include "sockets.hpp"

namespace dtrain::comm::tcp {
namespace {

// Memory that survives a reduction.
struct Pools {
  // With `memory`, peers of this machine read what is in them.
  explicit Pools(const std::shared_ptr<SharedMemory>& memory) : leaves(make(memory)), chunks(make(memory)) {}
  FloatPool leaves;  // of whole contributions
  FloatPool chunks;  // of what arrives

 private:
  static std::function<FloatBuffer(std::int64_t)> make(const std::shared_ptr<SharedMemory>& memory) {
    if (!memory) return {};
    return [memory](std::int64_t size) { return memory->take(size); };
  }
};

// Threads that compute leaves call leaf() and ready(); the joiner adds complete neighbours on these threads and posts
// pieces to the exchange's thread, which alone touches operation_. The destructor waits, by abandon(), until that
// thread has let go of the operation, before joiner and operation are destroyed. A reduction without finish() kills the
// communicator, because its peers wait for the pieces.
class TcpReduction final : public Reduction {
 public:
  TcpReduction(Exchange& exchange, const Station& station, Pools& pools, const ReductionShape& shape, const Note& note,
               std::uint64_t sequence)
      : exchange_(exchange),
        pools_(pools),
        span_(shape.span_of(exchange.rank(), exchange.ranks())),
        joiner_(shape, span_, pools.leaves, [this](const Piece& piece) { hand_over(piece); }),
        sum_(has_leaves() ? FloatBuffer() : pools.leaves.take(shape.size)),
        operation_(exchange, station, joiner_.buckets(), shape, note, sequence, sum().data(), pools.chunks) {
    exchange_.begin(operation_);
  }
  ~TcpReduction() override {
    if (!ended_) exchange_.abandon();
    pools_.leaves.give(std::move(sum_));
  }

  std::span<float> leaf(int shard) override { return joiner_.leaf(shard); }
  void ready(int shard, std::int64_t first, std::int64_t size) override { joiner_.ready(shard, first, size); }
  void defer(int shard, FloatRange range, std::shared_ptr<const DeferredFloats> floats) override {
    joiner_.defer(shard, range, floats);
  }
  void compute_deferred() override { joiner_.compute_deferred(); }
  Reduced finish() override {
    exchange_.end();
    ended_ = true;
    return {std::move(sum()), operation_.notes()};
  }

 private:
  bool has_leaves() const { return span_.first < span_.last; }
  FloatBuffer& sum() { return has_leaves() ? joiner_.first_memory() : sum_; }
  void hand_over(const Piece& piece) {
    exchange_.post([this, piece] { operation_.add(piece); });
  }

  Exchange& exchange_;
  Pools& pools_;
  const ShardSpan span_;
  LeafJoiner joiner_;
  FloatBuffer sum_;  // of a rank without leaves
  ReduceOperation operation_;
  bool ended_ = false;
};

std::vector<std::vector<Link>> make_links(const MeshPlan& plan, std::vector<std::vector<net::Stream>> streams,
                                          const std::shared_ptr<TrafficCount>& traffic,
                                          const std::shared_ptr<SharedMemory>& memory) {
  std::vector<std::vector<Link>> links(streams.size());
  for (std::size_t peer = 0; peer < streams.size(); ++peer) {
    const PeerAddress& address = plan.ranks[peer];
    const std::string name = fmt::format("rank {} at {} port {}", peer, address.address, address.port);
    for (net::Stream& stream : streams[peer]) {
      const bool is_first = links[peer].empty();
      links[peer].emplace_back(std::move(stream), static_cast<int>(peer), name, is_first, traffic, memory);
    }
  }
  return links;
}

// Whether a link between hosts serves several ranks.
bool some_share_a_host(const MeshPlan& plan) {
  std::set<std::string> addresses;
  for (const PeerAddress& rank : plan.ranks) addresses.insert(rank.address);
  return addresses.size() > 1 && addresses.size() < plan.ranks.size();
}

class TcpCommunicator final : public HostCommunicator {
 public:
  TcpCommunicator(const MeshPlan& plan, std::vector<std::vector<net::Stream>> streams,
                  std::chrono::milliseconds deadline, std::function<void(CommPoint)> on_point,
                  const std::shared_ptr<TrafficCount>& traffic, const std::shared_ptr<SharedMemory>& memory)
      : pools_(memory),
        ranks_share_hosts_(some_share_a_host(plan)),
        route_(plan.rank),
        exchange_(plan.rank, make_links(plan, std::move(streams), traffic, memory), deadline, std::move(on_point)) {}

  int rank() const override { return exchange_.rank(); }
  int size() const override { return exchange_.ranks(); }

  std::unique_ptr<Reduction> begin_reduction(const ReductionShape& shape, const Note& note) override {
    const Station& station = route_.station(shape.spans_of(size()), way_of(shape, ranks_share_hosts_));
    return std::make_unique<TcpReduction>(exchange_, station, pools_, shape, note, ++sequence_);
  }
  void recycle(FloatBuffer sum) override { pools_.leaves.give(std::move(sum)); }

  std::vector<std::string> all_gather(ByteView mine) override {
    GatherOperation operation(exchange_, ++sequence_, mine);
    exchange_.run(operation);
    return operation.take();
  }
  void send(int to, ByteView bytes) override {
    SendOperation operation(exchange_, to, bytes);
    exchange_.run(operation);
  }
  void receive(int from, std::span<std::byte> bytes) override {
    ReceiveOperation operation(exchange_, from, bytes);
    exchange_.run(operation);
  }
  void abort() noexcept override { exchange_.abort(); }

 private:
  Pools pools_;
  const bool ranks_share_hosts_;
  LastRoute route_;
  std::uint64_t sequence_ = 0;  // of the last collective
  Exchange exchange_;
};

}  // namespace

std::unique_ptr<Communicator> make_communicator(const MeshPlan& plan, std::vector<std::vector<net::Stream>> streams,
                                                std::chrono::milliseconds operation_deadline,
                                                std::function<void(CommPoint)> on_point,
                                                std::shared_ptr<TrafficCount> traffic, bool by_shared_memory) {
  const bool has_near = std::ranges::any_of(streams | std::views::join,
                                            [](const net::Stream& stream) { return is_near(stream.socket()); });
  const std::shared_ptr<SharedMemory> memory = by_shared_memory && has_near ? SharedMemory::create() : nullptr;
  return std::make_unique<TcpCommunicator>(plan, std::move(streams), operation_deadline, std::move(on_point),
                                           std::move(traffic), memory);
}

}  // namespace dtrain::comm::tcp
