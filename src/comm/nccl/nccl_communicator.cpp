#include "nccl_communicator.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include <dtrain/base/error.hpp>
#include <dtrain/base/mutex.hpp>

#include "device_sums.hpp"
#include "float_pool.hpp"
#include "link.hpp"
#include "reduction_begin.hpp"

namespace dtrain::comm {
namespace nccl {
namespace {

// Threads: the trainer's thread makes all calls of NCCL and of the accelerator, which queues work on one stream.
// abort() comes from any thread and sets a flag only; the waits of Link look at it, and the trainer's thread then
// aborts NCCL.
// Locks: none, except for the memory of host leaves, which other threads ask for.
// Waiting: a step has one gathering over the mesh, in exchange(), while the GPU still computes. It carries the notes by
// which the ranks prove that they hold the same bits, and shows that all ranks have ended the reduction before.
// finish() waits for this rank's own stream alone: when that is idle, NCCL has no more use for memory of sums_.
// Patience: the ranks meet in exchange() when all of them have queued their work, and the waits behind that cover the
// computation of all shards of the rank that has most of them. So each shard has its own operation_deadline.
// Lifetime: NCCL itself may still hold what a peer has not received. So the ranks gather once more after their last
// reduction, before they let go of the communicator (Communicator::all_gather). The executable may read the sum until
// the next reduction begins. The trainer's thread destroys the communicator, after a freeze when it enters
// the next generation.
// Failure: PeerLost from a deadline, an error that NCCL reports, or an abort leaves the communicator dead. die() ends
// the NCCL communicator before anything waits for the stream, which may hold a transfer to a lost rank.
class NcclCommunicator final : public Communicator {
 public:
  NcclCommunicator(std::unique_ptr<Communicator> mesh, const NcclSite& site, std::chrono::milliseconds connect_deadline,
                   std::chrono::milliseconds operation_deadline)
      : mesh_(std::move(mesh)),
        device_(site.device),
        any_order_(site.any_order),
        api_(load(site.library)),
        connect_deadline_(connect_deadline),
        operation_deadline_(operation_deadline) {}

  int rank() const override { return mesh_->rank(); }
  int size() const override { return mesh_->size(); }
  std::unique_ptr<Reduction> begin_reduction(const ReductionShape& shape, const Note& note) override;
  std::unique_ptr<DeviceReduction> begin_device_reduction(const ReductionShape& shape,
                                                          const std::vector<FloatRange>& parts,
                                                          const Note& note) override;
  void recycle(FloatBuffer sum) override { leaves_.give(std::move(sum)); }
  std::vector<std::string> all_gather(ByteView mine) override { return mesh_->all_gather(mine); }
  void send(int to, ByteView bytes) override { mesh_->send(to, bytes); }
  void receive(int from, std::span<std::byte> bytes) override { mesh_->receive(from, bytes); }
  // NCCL calls of one communicator must come from one thread, so the waiting thread ends NCCL itself.
  void abort() noexcept override {
    aborted_ = true;
    mesh_->abort();
  }

  // On the communicator's thread.
  void die() noexcept {
    abort();
    link_.reset();
  }
  // The notes of all ranks, before NCCL moves a byte: it does not know what the other side takes for the size.
  std::vector<Note> agree(const ReductionShape& shape, const Note& note);
  Accelerator& device() { return *device_; }
  DeviceSums& sums(const ReductionShape& shape, const std::vector<FloatRange>& parts);
  Link& link();
  FloatPool& leaves() { return leaves_; }
  // For what takes as long as so many shards need to be computed, here or on another rank.
  std::chrono::milliseconds patience(int shards) const { return operation_deadline_ * std::max(1, shards); }

 private:
  const std::unique_ptr<Communicator> mesh_;
  const std::shared_ptr<Accelerator> device_;
  const bool any_order_;
  const Api api_;
  const std::chrono::milliseconds connect_deadline_, operation_deadline_;
  FloatPool leaves_;
  std::atomic<bool> aborted_{false};
  std::optional<DeviceSums> sums_;
  std::optional<Link> link_;  // after what its transfers use: it ends first
};

class NcclDeviceReduction final : public DeviceReduction {
 public:
  NcclDeviceReduction(NcclCommunicator& owner, const ReductionShape& shape, const std::vector<FloatRange>& parts,
                      const Note& note)
      : owner_(owner), device_(owner.device()), sums_(owner.sums(shape, parts)), shape_(shape), note_(note) {
    for (const ShardSpan& span : shape.spans_of(owner.size())) most_shards_ = std::max(most_shards_, span.size());
  }
  ~NcclDeviceReduction() override {
    if (!finished_) owner_.die();
  }

  void begin(DeviceMark mark) override { device_.wait_for(mark); }

  // The parts of the last leaf wait for exchange(): on the device's queue, the transfer of a part comes before the next
  // part is taken.
  void take(int shard, int part, const float* values, DeviceMark ready) override {
    if (sums_.is_last(shard)) {
      last_leaf_.push_back({shard, part, values, ready});
    } else {
      add_up({shard, part, values, ready});
    }
  }

  DeviceMark taken() override { return device_.mark(); }

  void exchange() override {
    notes_ = owner_.agree(shape_, note_);
    for (const TakenPart& taken : last_leaf_) {
      add_up(taken);
      sums_.exchange(taken.part, owner_.link(), end_of_shards());
    }
    if (sums_.has_leaves()) return;
    for (int part = 0; part < sums_.parts(); ++part) sums_.exchange(part, owner_.link(), end_of_shards());
  }

  // The marks of the last leaf are the only ones that are still there: the first of them stands behind the computation
  // of all other shards, each later one behind a part of one shard.
  void wait_for_leaves() override {
    int shards = shape_.span_of(owner_.rank(), owner_.size()).size();
    for (const TakenPart& taken : last_leaf_) {
      owner_.link().wait_for_computation(taken.ready, owner_.patience(std::exchange(shards, 1)));
    }
  }

  DeviceSum finish() override {
    if (notes_.empty()) exchange();
    owner_.link().wait_for_device(end_of_shards());
    finished_ = true;
    return {sums_.sum(), std::move(notes_)};
  }

 private:
  struct TakenPart {
    int shard = 0, part = 0;
    const float* values = nullptr;
    DeviceMark ready;
  };

  Clock::time_point end_of_shards() const { return Clock::now() + owner_.patience(most_shards_); }
  void add_up(const TakenPart& taken) {
    device_.wait_for(taken.ready);
    sums_.take(taken.shard, taken.part, taken.values);
  }

  NcclCommunicator& owner_;
  Accelerator& device_;
  DeviceSums& sums_;
  const ReductionShape shape_;
  const Note note_;
  int most_shards_ = 0;  // of a rank
  std::vector<TakenPart> last_leaf_;
  std::vector<Note> notes_;  // of all, once they have agreed
  bool finished_ = false;
};

// A reduction of leaves on the host: they are copied to the GPU when all of them are ready, and the sum back.
class NcclReduction final : public Reduction {
 public:
  NcclReduction(NcclCommunicator& owner, const ReductionShape& shape, const Note& note)
      : owner_(owner),
        shape_(shape),
        parts_(halves(shape)),
        span_(shape.span_of(owner.rank(), owner.size())),
        on_device_(owner, shape, parts_, note),
        leaves_(static_cast<std::size_t>(span_.last - span_.first)) {}

  std::span<float> leaf(int shard) override {
    const MutexLock lock(mutex_);
    return leaf_of(shard) = owner_.leaves().take(shape_.size);
  }
  void ready(int, std::int64_t, std::int64_t) override {}
  void defer(int shard, FloatRange range, std::shared_ptr<const DeferredFloats> floats) override {
    const DeferredFloats* const alone[] = {floats.get()};
    floats->add_up(alone, range.first, {values_of(shard) + range.first, static_cast<std::size_t>(range.size)});
  }
  void compute_deferred() override {}

  Reduced finish() override {
    bring_leaves();
    DeviceSum sum = on_device_.finish();
    Reduced reduced{owner_.leaves().take(shape_.size), std::move(sum.notes)};
    owner_.device().download(reduced.sum.data(), sum.values, reduced.sum.size() * sizeof(float));
    for (FloatBuffer& leaf : leaves_) owner_.leaves().give(std::move(leaf));
    return reduced;
  }

 private:
  // What is rounded, and what is not.
  static std::vector<FloatRange> halves(const ReductionShape& shape) {
    std::vector<FloatRange> parts;
    if (shape.rounded > 0) parts.push_back({0, shape.rounded});
    if (shape.rounded < shape.size) parts.push_back({shape.rounded, shape.size - shape.rounded});
    return parts;
  }
  float* values_of(int shard) {
    const MutexLock lock(mutex_);
    return leaf_of(shard).data();
  }
  FloatBuffer& leaf_of(int shard) { return leaves_[static_cast<std::size_t>(shard - span_.first)]; }

  void bring_leaves() {
    const std::size_t bytes = static_cast<std::size_t>(shape_.size) * sizeof(float);
    memory_.emplace(owner_.device(), bytes);
    auto* const values = reinterpret_cast<float*>(memory_->data());
    for (int shard = span_.first; shard < span_.last; ++shard) {
      owner_.device().upload(values, leaf_of(shard).data(), bytes);
      for (std::size_t part = 0; part < parts_.size(); ++part) {
        on_device_.take(shard, static_cast<int>(part), values + parts_[part].first, {});
      }
    }
  }

  NcclCommunicator& owner_;
  const ReductionShape shape_;
  const std::vector<FloatRange> parts_;
  const ShardSpan span_;
  std::optional<DeviceMemory> memory_;  // before on_device_: nothing waits for a GPU that waits for a lost rank
  NcclDeviceReduction on_device_;
  Mutex mutex_;  // guards leaves_ until all are ready
  std::vector<FloatBuffer> leaves_;
};

std::unique_ptr<Reduction> NcclCommunicator::begin_reduction(const ReductionShape& shape, const Note& note) {
  if (aborted_) throw PeerLost("the communicator was aborted");
  return std::make_unique<NcclReduction>(*this, shape, note);
}

std::unique_ptr<DeviceReduction> NcclCommunicator::begin_device_reduction(const ReductionShape& shape,
                                                                          const std::vector<FloatRange>& parts,
                                                                          const Note& note) {
  if (aborted_) throw PeerLost("the communicator was aborted");
  return std::make_unique<NcclDeviceReduction>(*this, shape, parts, note);
}

std::vector<Note> NcclCommunicator::agree(const ReductionShape& shape, const Note& note) {
  DTRAIN_CHECK(shape.packed == 0, "NCCL sends floats as they are");
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
  if (!link_) link_.emplace(api_, *mesh_, *device_, aborted_, meeting_time(connect_deadline_, operation_deadline_));
  return *link_;
}

DeviceSums& NcclCommunicator::sums(const ReductionShape& shape, const std::vector<FloatRange>& parts) {
  if (!sums_ || !sums_->is_for(shape, parts)) {
    sums_.reset();
    sums_.emplace(*device_, shape, parts, rank(), size(), any_order_);
  }
  return *sums_;
}

}  // namespace

std::chrono::milliseconds meeting_time(std::chrono::milliseconds connect_deadline,
                                       std::chrono::milliseconds operation_deadline) {
  constexpr std::chrono::milliseconds kShortest = std::chrono::seconds(60);
  return std::max({kShortest, connect_deadline, operation_deadline});
}

}  // namespace nccl

std::unique_ptr<Communicator> make_nccl_communicator(std::unique_ptr<Communicator> mesh, const NcclSite& site,
                                                     std::chrono::milliseconds connect_deadline,
                                                     std::chrono::milliseconds operation_deadline) {
  return std::make_unique<nccl::NcclCommunicator>(std::move(mesh), site, connect_deadline, operation_deadline);
}

}  // namespace dtrain::comm
