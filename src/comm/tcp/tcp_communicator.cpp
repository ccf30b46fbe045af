#include "tcp_communicator.hpp"

#include <fmt/format.h>

#include <dtrain/base/error.hpp>

#include "exchange.hpp"
#include "reduce_operation.hpp"
#include "small_operations.hpp"

namespace dtrain::comm::tcp {
namespace {

// Memory that survives a reduction.
struct Pools {
  FloatPool leaves;  // of whole contributions
  FloatPool chunks;  // of what arrives
};

// Threads that compute leaves call leaf() and ready(); the joiner adds complete neighbours on these threads and posts
// pieces to the exchange's thread, which alone touches operation_. The destructor waits, by abandon(), until that
// thread has let go of the operation, before joiner and operation are destroyed. A reduction without finish() kills the
// communicator, because its peers wait for the pieces.
class TcpReduction final : public Reduction {
 public:
  TcpReduction(Exchange& exchange, const MergePlan& plan, Pools& pools, const ReductionShape& shape, const Note& note,
               std::uint64_t sequence)
      : exchange_(exchange),
        pools_(pools),
        span_(shape.span_of(exchange.rank(), exchange.ranks())),
        joiner_(shape, span_, pools.leaves, [this](const Piece& piece) { hand_over(piece); }),
        sum_(has_leaves() ? std::vector<float>() : pools.leaves.take(shape.size)),
        operation_(exchange, plan, joiner_.buckets(), shape, note, sequence, sum().data(), pools.chunks) {
    exchange_.begin(operation_);
  }
  ~TcpReduction() override {
    if (!ended_) exchange_.abandon();
    pools_.leaves.give(std::move(sum_));
  }

  std::span<float> leaf(int shard) override { return joiner_.leaf(shard); }
  void ready(int shard, std::int64_t first, std::int64_t size) override { joiner_.ready(shard, first, size); }
  Reduced finish() override {
    exchange_.end();
    ended_ = true;
    return {std::move(sum()), operation_.notes()};
  }

 private:
  bool has_leaves() const { return span_.first < span_.last; }
  std::vector<float>& sum() { return has_leaves() ? joiner_.first_memory() : sum_; }
  void hand_over(const Piece& piece) {
    exchange_.post([this, piece] { operation_.add(piece); });
  }

  Exchange& exchange_;
  Pools& pools_;
  const ShardSpan span_;
  LeafJoiner joiner_;
  std::vector<float> sum_;  // of a rank without leaves
  ReduceOperation operation_;
  bool ended_ = false;
};

std::vector<Link> make_links(const MeshPlan& plan, std::vector<net::Stream> streams,
                             const std::shared_ptr<TrafficCount>& traffic) {
  std::vector<Link> links(streams.size());
  for (std::size_t peer = 0; peer < streams.size(); ++peer) {
    if (!streams[peer]) continue;
    const PeerAddress& address = plan.ranks[peer];
    links[peer] = Link(std::move(streams[peer]), static_cast<int>(peer),
                       fmt::format("rank {} at {} port {}", peer, address.address, address.port), traffic);
  }
  return links;
}

class TcpCommunicator final : public HostCommunicator {
 public:
  TcpCommunicator(const MeshPlan& plan, std::vector<net::Stream> streams, std::chrono::milliseconds deadline,
                  std::function<void(CommPoint)> on_point, const std::shared_ptr<TrafficCount>& traffic)
      : exchange_(plan.rank, make_links(plan, std::move(streams), traffic), deadline, std::move(on_point)) {}

  int rank() const override { return exchange_.rank(); }
  int size() const override { return exchange_.ranks(); }

  std::unique_ptr<Reduction> begin_reduction(const ReductionShape& shape, const Note& note) override {
    ShardSpans spans = shape.spans_of(size());
    if (!plan_ || spans_ != spans) plan_ = std::make_unique<MergePlan>(spans);
    spans_ = std::move(spans);
    return std::make_unique<TcpReduction>(exchange_, *plan_, pools_, shape, note, ++sequence_);
  }
  void recycle(std::vector<float> sum) override { pools_.leaves.give(std::move(sum)); }

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
  std::unique_ptr<MergePlan> plan_;  // for spans_
  ShardSpans spans_;
  std::uint64_t sequence_ = 0;  // of the last collective
  Exchange exchange_;
};

}  // namespace

std::unique_ptr<Communicator> make_communicator(const MeshPlan& plan, std::vector<net::Stream> streams,
                                                std::chrono::milliseconds operation_deadline,
                                                std::function<void(CommPoint)> on_point,
                                                std::shared_ptr<TrafficCount> traffic) {
  return std::make_unique<TcpCommunicator>(plan, std::move(streams), operation_deadline, std::move(on_point),
                                           std::move(traffic));
}

}  // namespace dtrain::comm::tcp
