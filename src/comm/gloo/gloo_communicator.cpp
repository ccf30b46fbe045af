#include "gloo_communicator.hpp"

#include <fmt/format.h>

#include <cstring>
#include <utility>

#include <dtrain/base/error.hpp>
#include <dtrain/base/mutex.hpp>

#include "gloo_context.hpp"
#include "gloo_wire.hpp"
#include "reduce_operation.hpp"

namespace dtrain::comm {
namespace {

// Memory that survives a reduction.
struct Pools {
  FloatPool leaves, chunks;
};

class GlooReduction final : public Reduction {
 public:
  GlooReduction(Communicator& mesh, GlooWire& wire, const Station& station, Pools& pools, const ReductionShape& shape,
                const Note& note, std::uint64_t sequence, std::chrono::milliseconds deadline)
      : mesh_(mesh),
        wire_(wire),
        station_(station),
        pools_(pools),
        sequence_(sequence),
        deadline_(deadline),
        joiner_(shape, shape.span_of(mesh.rank(), mesh.size()), pools.leaves,
                [this](const Piece& piece) {
                  const MutexLock lock(mutex_);
                  pieces_.push_back(piece);
                }),
        has_leaves_(station.plan().pieces_of(mesh.rank()) > 0),
        sum_(has_leaves_ ? FloatBuffer() : pools.leaves.take(shape.size)),
        operation_(wire, station, joiner_.buckets(), shape, note, sequence, sum().data(), pools.chunks) {}
  ~GlooReduction() override {
    if (!finished_) mesh_.abort();
    pools_.leaves.give(std::move(sum_));
  }

  std::span<float> leaf(int shard) override { return joiner_.leaf(shard); }
  void ready(int shard, std::int64_t first, std::int64_t size) override { joiner_.ready(shard, first, size); }
  void defer(int shard, FloatRange range, std::shared_ptr<const DeferredFloats> floats) override {
    joiner_.defer(shard, range, floats);
  }
  void compute_deferred() override { joiner_.compute_deferred(); }

  Reduced finish() override {
    const auto end = GlooWire::Clock::now() + deadline_;
    agree();
    for (const Piece& piece : take_pieces()) operation_.add(piece);
    for (std::size_t bucket = 0; bucket < joiner_.buckets().size(); ++bucket) receive(bucket, end);
    wire_.wait_until_sent(end);
    // Gloo disturbs ranks that still wait when another leaves.
    mesh_.all_gather({});
    finished_ = true;
    return {std::move(sum()), operation_.notes()};
  }

 private:
  std::vector<Piece> take_pieces() {
    const MutexLock lock(mutex_);
    return std::exchange(pieces_, {});
  }
  FloatBuffer& sum() { return has_leaves_ ? joiner_.first_memory() : sum_; }

  // Before Gloo moves a byte: it ends the process where two ranks disagree about a size.
  void agree() {
    const std::vector<std::string> all = mesh_.all_gather(operation_.begin_bytes());
    for (int peer = 0; peer < mesh_.size(); ++peer) {
      if (peer == mesh_.rank()) continue;
      const std::string& bytes = all[static_cast<std::size_t>(peer)];
      const FrameHeader header{.kind = FrameKind::begin, .sequence = sequence_, .bytes = bytes.size()};
      const auto place = operation_.place(peer, header);
      std::memcpy(place->data(), bytes.data(), bytes.size());
      operation_.arrived(peer, header);
    }
  }

  // No rank waits for a frame that another sends only after it got one that this rank sends later: all go through the
  // frames in this order. Nodes come after those that they are made of, sums by the round in which they come.
  void receive(std::size_t bucket, GlooWire::Clock::time_point end) {
    const int ranks = mesh_.size(), nodes = static_cast<int>(station_.plan().nodes().size());
    for (int node = 0; node < nodes; ++node) {
      for (int owner = 0; owner < ranks; ++owner) {
        const Station::Stop* const stop = station_.find(node, owner);
        const bool comes = stop != nullptr && stop->adder == mesh_.rank() && stop->holder != mesh_.rank();
        if (comes) receive(stop->holder, FrameKind::piece, bucket, node, owner, end);
      }
    }
    for (int round = 1; round < ranks; ++round) {
      for (int owner = 0; owner < ranks; ++owner) {
        if (station_.round_of_sum(owner) != round) continue;
        receive(station_.sender_of_sum(owner), FrameKind::final, bucket, 0, owner, end);
      }
    }
  }

  void receive(int peer, FrameKind kind, std::size_t bucket, int node, int owner, GlooWire::Clock::time_point end) {
    const FrameHeader header = operation_.header_of(kind, bucket, node, owner);
    if (header.bytes == 0) return;
    const auto place = operation_.place(peer, header);
    wire_.receive(peer, header, *place, end);
    operation_.arrived(peer, header);
  }

  Communicator& mesh_;
  GlooWire& wire_;
  const Station& station_;
  Pools& pools_;
  const std::uint64_t sequence_;
  const std::chrono::milliseconds deadline_;
  Mutex mutex_;
  std::vector<Piece> pieces_ DTRAIN_GUARDED_BY(mutex_);
  LeafJoiner joiner_;
  const bool has_leaves_;
  FloatBuffer sum_;  // of a rank without leaves
  ReduceOperation operation_;
  bool finished_ = false;
};

std::vector<std::string> names_of(int ranks) {
  std::vector<std::string> names;
  for (int rank = 0; rank < ranks; ++rank) names.push_back(fmt::format("rank {}", rank));
  return names;
}

std::shared_ptr<::gloo::Context> connect(Communicator& mesh, const std::string& address,
                                         std::chrono::milliseconds deadline, const std::stop_token& cancel) {
  const std::stop_callback on_cancel(cancel, [&mesh] { mesh.abort(); });
  return connect_gloo(mesh, address, deadline);
}

class GlooCommunicator final : public HostCommunicator {
 public:
  GlooCommunicator(std::unique_ptr<Communicator> mesh, const std::string& address,
                   std::chrono::milliseconds connect_deadline, std::chrono::milliseconds operation_deadline,
                   const std::stop_token& cancel)
      : mesh_(std::move(mesh)),
        deadline_(operation_deadline),
        route_(mesh_->rank()),
        wire_(connect(*mesh_, address, connect_deadline, cancel), names_of(mesh_->size())) {}

  int rank() const override { return mesh_->rank(); }
  int size() const override { return mesh_->size(); }
  std::unique_ptr<Reduction> begin_reduction(const ReductionShape& shape, const Note& note) override {
    DTRAIN_CHECK(shape.packed == 0, "Gloo must know the sizes of frames, those of packed ones are not known");
    const Station& station = route_.station(shape.spans_of(size()), way_of(shape, false));
    return std::make_unique<GlooReduction>(*mesh_, wire_, station, pools_, shape, note, ++sequence_, deadline_);
  }
  void recycle(FloatBuffer sum) override { pools_.leaves.give(std::move(sum)); }
  std::vector<std::string> all_gather(ByteView mine) override { return mesh_->all_gather(mine); }
  void send(int to, ByteView bytes) override { mesh_->send(to, bytes); }
  void receive(int from, std::span<std::byte> bytes) override { mesh_->receive(from, bytes); }
  void abort() noexcept override {
    mesh_->abort();
    wire_.abort();
  }

 private:
  const std::unique_ptr<Communicator> mesh_;
  const std::chrono::milliseconds deadline_;
  Pools pools_;
  LastRoute route_;
  std::uint64_t sequence_ = 0;
  GlooWire wire_;
};

}  // namespace

std::unique_ptr<Communicator> make_gloo_communicator(std::unique_ptr<Communicator> mesh, const std::string& address,
                                                     std::chrono::milliseconds connect_deadline,
                                                     std::chrono::milliseconds operation_deadline,
                                                     std::stop_token cancel) {
  return std::make_unique<GlooCommunicator>(std::move(mesh), address, connect_deadline, operation_deadline, cancel);
}

}  // namespace dtrain::comm
