// From records to host batches: decode and augment in threads, a bounded queue, an order that is a pure function.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <dtrain/data/augment.hpp>
#include <dtrain/data/record.hpp>
#include <dtrain/nn/graph.hpp>

namespace dtrain::data {

// Positions 0..count-1 in the order of the epoch: Fisher-Yates over RandomStream(seed, order, epoch, 0).
std::vector<std::uint32_t> epoch_order(std::uint64_t seed, std::uint32_t epoch, std::uint32_t count);

// One batch. Its buffers return to the loader's pool when the last copy is destroyed, which may be after the loader.
struct Batch {
  int n = 0;
  const float* images = nullptr;              // [n, c, h, w], 64-byte aligned
  const std::int32_t* labels = nullptr;       // [n], each in [0, classes)
  const std::uint32_t* sample_ids = nullptr;  // [n], positions in the file
  std::shared_ptr<void> storage;
};

struct LoaderOptions {
  nn::Shape shape;
  int classes = 0;
  Augment augment;
  std::uint64_t seed = 0;
  int threads = 1;
  int queue_batches = 4;          // that are being loaded or wait for next()
  bool shuffle = true;            // false: file order (evaluation)
  std::int64_t num_examples = 0;  // use only the first so many records; 0 or more than there are: all
  // Records that cannot be read or decoded. Up to so many of them (counted once each, however often they come up) are
  // replaced by pixels and label of the next good record, under their own sample id; one more is a DataError. Never
  // silently: bad_records() counts them and the first is named.
  std::int64_t max_bad_records = 0;
};

// Part of an epoch's order: order[first], ..., order[first + count - 1].
struct Slice {
  std::uint64_t first = 0;
  int count = 0;
};

// One file, one consumer: all members are called from one thread. Every byte of every batch is a pure function of file,
// options, epoch and slice; neither the number of threads nor their timing shows.
class Loader {
 public:
  // Throws UsageError (an option out of range), DataError (the file, or its images and `shape` have different
  // channels).
  Loader(const Path& rec, LoaderOptions options);
  ~Loader();
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;
  std::uint32_t size() const;  // samples of an epoch
  // Drops what is queued, also an error, and begins to load `slices`, one batch each, of the epoch.
  void start(std::uint32_t epoch, std::vector<Slice> slices);
  // Blocks. nullopt after the last slice and before the first start(). Throws what went wrong in loading this batch
  // (the first in its order): a record too many that cannot be read, a label outside [0, classes); again at every call
  // until start().
  std::optional<Batch> next();
  std::int64_t bad_records() const;      // distinct ones in the batches that next() has reached
  std::string first_bad_record() const;  // file, position, offset, reason; empty if none

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace dtrain::data
