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

// One batch. Buffers return to the loader's pool when the batch is destroyed; the loader must outlive it.
struct Batch {
  int n = 0;
  const float* images = nullptr;  // [n, c, h, w], 64-byte aligned
  const std::int32_t* labels = nullptr;
  const std::uint32_t* sample_ids = nullptr;  // positions in the file
  std::shared_ptr<void> storage;
};

struct LoaderOptions {
  nn::Shape shape;
  int classes = 0;
  Augment augment;
  std::uint64_t seed = 0;
  int threads = 1;
  int queue_batches = 4;
  bool shuffle = true;            // false: file order (evaluation)
  std::int64_t num_examples = 0;  // use only the first so many records; 0: all
  std::int64_t max_bad_records =
      0;  // undecodable images: replaced by the next good record's pixels up to this many, then
          // DataError. Never silently: bad_records() counts them and the first is named.
};

// Part of an epoch's order: order[first], ..., order[first + count - 1].
struct Slice {
  std::uint64_t first = 0;
  int count = 0;
};

// One file, one consumer. Errors of the threads (unreadable record, label outside [0, classes)) come out of next().
class Loader {
 public:
  Loader(const Path& rec, LoaderOptions options);
  ~Loader();
  std::uint32_t size() const;  // samples of an epoch
  // Drops what is queued and begins to load `slices`, one batch each, of the epoch.
  void start(std::uint32_t epoch, std::vector<Slice> slices);
  std::optional<Batch> next();  // nullopt after the last slice
  std::int64_t bad_records() const;
  std::string first_bad_record() const;  // file, position, offset, reason; empty if none

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace dtrain::data
