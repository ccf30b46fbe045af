#include "nccl/nccl_communicator.hpp"

#include <fmt/format.h>

#include <mutex>
#include <optional>
#include <utility>

#include <dtrain/base/error.hpp>

#include "leaf_joiner.hpp"
#include "nccl/device_sums.hpp"
#include "nccl/link.hpp"
#include "reduction_begin.hpp"

namespace dtrain::comm {
namespace nccl {
namespace {

// What serves all reductions of one shape.
struct Room {
  Room(Accelerator& device, const ReductionShape& s, int rank, int ranks)
      : shape(s), merge(ranks, s.shards), plan(plan_exchange(merge, s, rank, ranks)), sums(device, merge, plan, rank) {}
  const ReductionShape shape;
  const MergePlan merge;
  const ExchangePlan plan;
  DeviceSums sums;
};

class NcclCommunicator final : public Communicator {
 public:
  NcclCommunicator(std::unique_ptr<Communicator> mesh, const NcclSite& site, std::chrono::milliseconds connect_deadline,
                   std::chrono::milliseconds operation_deadline)
      : mesh_(std::move(mesh)),
        device_(site.device),
        api_(load(site.library)),
        connect_deadline_(connect_deadline),
        operation_deadline_(operation_deadline) {}

  int rank() const override { return mesh_->rank(); }
  int size() const override { return mesh_->size(); }
  std::unique_ptr<Reduction> begin_reduction(const ReductionShape& shape, const Note& note) override;
  void recycle(std::vector<float> sum) override { leaves_.give(std::move(sum)); }
  std::vector<std::string> all_gather(ByteView mine) override { return mesh_->all_gather(mine); }
  void send(int to, ByteView bytes) override { mesh_->send(to, bytes); }
  void receive(int from, std::span<std::byte> bytes) override { mesh_->receive(from, bytes); }
  // The thread that waits for NCCL ends that itself: nothing of it may be called from two threads.
  void abort() noexcept override {
    aborted_ = true;
    mesh_->abort();
  }

  // On the communicator's thread.
  void die() noexcept {
    abort();
    link_.reset();
  }
  // The sum over all ranks' pieces, into `sum`; the notes of all.
  std::vector<Note> reduce(const ReductionShape& shape, const Note& note, const std::vector<Bucket>& buckets,
                           const std::vector<Piece>& pieces, float* sum);
  FloatPool& leaves() { return leaves_; }

 private:
  std::vector<Note> agree(const ReductionShape& shape, const Note& note);
  Link& link();
  Room& room(const ReductionShape& shape);

  const std::unique_ptr<Communicator> mesh_;
  const std::shared_ptr<Accelerator> device_;
  const Api api_;
  const std::chrono::milliseconds connect_deadline_, operation_deadline_;
  FloatPool leaves_;
  std::atomic<bool> aborted_{false};
  std::optional<Room> room_;
  std::optional<Link> link_;  // after what its transfers use: it ends first
};

class NcclReduction final : public Reduction {
 public:
  NcclReduction(NcclCommunicator& owner, const ReductionShape& shape, const Note& note)
      : owner_(owner),
        shape_(shape),
        note_(note),
        span_(shards_of_rank(owner.rank(), owner.size(), shape.shards)),
        joiner_(shape, span_, owner.leaves(), [this](const Piece& piece) {
          const std::lock_guard lock(mutex_);
          pieces_.push_back(piece);
        }) {}
  ~NcclReduction() override {
    if (!finished_) owner_.die();
  }

  std::span<float> leaf(int shard) override { return joiner_.leaf(shard); }
  void ready(int shard, std::int64_t first, std::int64_t size) override { joiner_.ready(shard, first, size); }

  Reduced finish() override {
    const bool has_leaves = span_.first < span_.last;
    std::vector<float> sum = has_leaves ? std::move(joiner_.first_memory()) : owner_.leaves().take(shape_.size);
    std::vector<Note> notes = owner_.reduce(shape_, note_, joiner_.buckets(), pieces_, sum.data());
    finished_ = true;
    return {std::move(sum), std::move(notes)};
  }

 private:
  NcclCommunicator& owner_;
  const ReductionShape shape_;
  const Note note_;
  const ShardSpan span_;
  std::mutex mutex_;  // guards pieces_ until all leaves are ready
  std::vector<Piece> pieces_;
  LeafJoiner joiner_;
  bool finished_ = false;
};

std::unique_ptr<Reduction> NcclCommunicator::begin_reduction(const ReductionShape& shape, const Note& note) {
  if (aborted_) throw PeerLost("the communicator was aborted");
  return std::make_unique<NcclReduction>(*this, shape, note);
}

std::vector<Note> NcclCommunicator::reduce(const ReductionShape& shape, const Note& note,
                                           const std::vector<Bucket>& buckets, const std::vector<Piece>& pieces,
                                           float* sum) {
  std::vector<Note> notes = agree(shape, note);
  DeviceSums& sums = room(shape).sums;
  Link& link = this->link();
  const Clock::time_point deadline = Clock::now() + operation_deadline_;
  for (const Piece& piece : pieces) {
    const Bucket& bucket = buckets[static_cast<std::size_t>(piece.bucket)];
    sums.upload(room_->merge.number_of_piece(piece.node), bucket.first, piece.values, bucket.size);
  }
  sums.exchange_pieces(link, deadline);
  sums.add_up();
  sums.exchange_sums(link, deadline);
  link.wait_for_device(deadline);
  sums.download(sum);
  // Whoever leaves takes memory away that its peers may still read.
  mesh_->all_gather({});
  return notes;
}

// Before NCCL moves a byte: it does not know what the other side takes for the size.
std::vector<Note> NcclCommunicator::agree(const ReductionShape& shape, const Note& note) {
  const ReductionBegin mine = begin_of(shape, note);
  const std::vector<std::string> all = mesh_->all_gather(std::as_bytes(std::span(&mine, 1)));
  std::vector<Note> notes;
  for (std::size_t peer = 0; peer < all.size(); ++peer) {
    const ReductionBegin theirs = begin_from(all[peer], fmt::format("rank {}", peer));
    check_same_shape(mine, theirs, fmt::format("rank {}", peer));
    notes.push_back(note_of(theirs));
  }
  return notes;
}

Link& NcclCommunicator::link() {
  if (!link_) link_.emplace(api_, *mesh_, *device_, aborted_, Clock::now() + connect_deadline_);
  return *link_;
}

Room& NcclCommunicator::room(const ReductionShape& shape) {
  const bool fits = room_ && room_->shape.shards == shape.shards && room_->shape.size == shape.size &&
                    room_->shape.rounded == shape.rounded;
  if (!fits) room_.emplace(*device_, shape, rank(), size());
  return *room_;
}

}  // namespace
}  // namespace nccl

std::unique_ptr<Communicator> make_nccl_communicator(std::unique_ptr<Communicator> mesh, const NcclSite& site,
                                                     std::chrono::milliseconds connect_deadline,
                                                     std::chrono::milliseconds operation_deadline) {
  return std::make_unique<nccl::NcclCommunicator>(std::move(mesh), site, connect_deadline, operation_deadline);
}

}  // namespace dtrain::comm
