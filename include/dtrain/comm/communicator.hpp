// What the ranks of one generation do together. Every call that needs a peer has a deadline. A communicator that threw
// PeerLost, or was aborted, is dead: all its later calls throw PeerLost too; make a new one.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <dtrain/base/accelerator.hpp>
#include <dtrain/base/deferred_floats.hpp>
#include <dtrain/base/files.hpp>
#include <dtrain/comm/float_buffer.hpp>
#include <dtrain/comm/tree.hpp>

namespace dtrain::comm {

// What every rank sends to every other with each reduction; the words mean something to the caller only.
struct Note {
  std::array<std::uint64_t, 4> words{};
  friend bool operator==(const Note&, const Note&) = default;
};

// What the first floats of each leaf are like, so that they travel in fewer bytes and nothing is lost.
enum class Packing {
  none,
  counts,  // -1, 0 or 1: a node at level L holds whole numbers up to 2^L and travels in L + 2 bits for each float
  sparse,  // 0 but for a few, never -0: a mask travels, and behind it the floats that are not 0
};

struct ReductionShape {
  int shards = 1;         // V leaves
  std::int64_t size = 0;  // floats of a leaf
  // The first so many floats are rounded to bfloat16 in every leaf and after every addition, local or remote, and
  // travel as bfloat16. 0: all is float32.
  std::int64_t rounded = 0;
  // The first so many floats are packed where they travel. Not with `rounded`, and only where the communicator packs.
  std::int64_t packed = 0;
  Packing packing = Packing::none;
  ShardSpans spans = {};  // the leaves of each rank; empty: even_spans()

  ShardSpans spans_of(int ranks) const { return spans.empty() ? even_spans(ranks, shards) : spans; }
  ShardSpan span_of(int rank, int ranks) const {
    return spans.empty() ? shards_of_rank(rank, ranks, shards) : spans[static_cast<std::size_t>(rank)];
  }
  friend bool operator==(const ReductionShape&, const ReductionShape&) = default;
};

struct Reduced {
  FloatBuffer sum;          // the root of the tree, the same bytes on every rank
  std::vector<Note> notes;  // [rank], the same on every rank
};

// One step's reduction, in flight while the leaves are still being computed. What is complete is added up and sent at
// once. When it is destroyed before finish() returned, the communicator is dead.
class Reduction {
 public:
  virtual ~Reduction() = default;
  // Memory for a leaf of this rank, any content, valid until its last float is ready. Any thread; once a shard.
  virtual std::span<float> leaf(int shard) = 0;
  // [first, first + size) of the leaf is final. Any thread, any order, each float exactly once.
  virtual void ready(int shard, std::int64_t first, std::int64_t size) = 0;
  // In place of ready(): the reduction computes this range when it adds leaves up.
  virtual void defer(int shard, FloatRange range, std::shared_ptr<const DeferredFloats> floats) = 0;
  // Computes what was deferred and is due. Comes after each defer(), on as many threads as have nothing else to do:
  // they share the work. Any thread.
  virtual void compute_deferred() = 0;
  // Call when all leaves of this rank are ready and computed. Blocks until the root is here.
  virtual Reduced finish() = 0;
};

struct DeviceSum {
  float* values = nullptr;  // on the GPU, valid until the next reduction; the receiver may overwrite it
  std::vector<Note> notes;  // [rank], the same on every rank
};

// One step's reduction whose leaves lie on this rank's GPU and whose sum stays there. take() queues work and waits for
// no other rank; exchange() waits until the other ranks are there too, and queues the sending of each part, so that a
// part travels while the GPU still computes the next ones. One thread. When it is destroyed before finish() returned,
// the communicator is dead, and no work of it is left on the GPU that waits for another rank.
class DeviceReduction {
 public:
  virtual ~DeviceReduction() = default;
  // Comes first. The sum of the step before may be overwritten when `mark` is reached.
  virtual void begin(DeviceMark mark) = 0;
  // Part `part` of the leaf of `shard` lies at `values` when `ready` is reached. Shards and parts in their order. Part
  // and mark of the rank's last leaf must stay as they are until exchange() and, if it is called, wait_for_leaves()
  // return.
  virtual void take(int shard, int part, const float* values, DeviceMark ready) = 0;
  // When it is reached, the leaves before the rank's last one may be overwritten.
  virtual DeviceMark taken() = 0;
  // Call when all leaves of this rank were taken. Blocks until all ranks have called it.
  virtual void exchange() = 0;
  // After exchange(): blocks until the leaves of this rank are computed. Throws PeerLost as finish() does, because a
  // transfer that waits for a lost rank may occupy the GPU and hold up the computation.
  virtual void wait_for_leaves() = 0;
  // Blocks until the root is here. Calls exchange() if the caller did not.
  virtual DeviceSum finish() = 0;
};

// One thread calls at a time, except abort() and what Reduction allows. Throws PeerLost, with the ranks it names.
class Communicator {
 public:
  virtual ~Communicator() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;

  // All ranks call it with the same shape; at most one Reduction lives at a time, and nothing else is called while it
  // does. The bytes of the sum depend neither on the number of ranks nor on time. Must not outlive the communicator.
  [[nodiscard]] virtual std::unique_ptr<Reduction> begin_reduction(const ReductionShape& shape, const Note& note) = 0;
  // The same for leaves on a GPU, which become final in these parts, in their order: they cover a leaf, and none is
  // partly rounded. nullptr: this communicator adds up on the host (HostCommunicator).
  [[nodiscard]] virtual std::unique_ptr<DeviceReduction> begin_device_reduction(const ReductionShape& shape,
                                                                                const std::vector<FloatRange>& parts,
                                                                                const Note& note) = 0;
  // Returns the memory of a sum after its last use. Not needed, but it makes the next reduction faster.
  virtual void recycle(FloatBuffer sum) = 0;

  // The bytes of all ranks, by rank. For small things (kilobytes). Also a barrier. A rank that goes on without this
  // communicator calls it after its last reduction: peers may need that rank until they have the sum too.
  virtual std::vector<std::string> all_gather(ByteView mine) = 0;

  // Point to point, in order for each pair and with the collectives; the receiver knows the size. send() returns once
  // `bytes` are copied or sent, and may wait until the receiver asks for them.
  virtual void send(int to, ByteView bytes) = 0;
  virtual void receive(int from, std::span<std::byte> bytes) = 0;

  // From any thread, at any time, more than once: calls in progress end soon with PeerLost, so do all later ones, and
  // peers learn that this rank is gone.
  virtual void abort() noexcept = 0;
};

// A transport that adds up on the host only.
class HostCommunicator : public Communicator {
 public:
  std::unique_ptr<DeviceReduction> begin_device_reduction(const ReductionShape&, const std::vector<FloatRange>&,
                                                          const Note&) final {
    return nullptr;
  }
};

// One rank alone.
std::unique_ptr<Communicator> make_single();

// N ranks as threads of this process: element r belongs to the thread of rank r. They share a world that lives as
// long as the last of them; a rank destroyed or aborted before its peers are done makes them throw PeerLost.
std::vector<std::unique_ptr<Communicator>> make_local_world(
    int ranks, std::chrono::milliseconds deadline = std::chrono::seconds(30));

}  // namespace dtrain::comm
