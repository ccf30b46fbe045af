// The batches under way: which samples a thread takes next, and which batch the consumer gets next. Guarded by the
// loader's mutex, except where a member says otherwise.
#pragma once

#include <algorithm>
#include <atomic>
#include <deque>
#include <exception>
#include <memory>
#include <vector>

#include "batch_pool.hpp"
#include "sample_reader.hpp"

namespace dtrain::data {

// What loading some samples of a batch found, in the order of the samples.
struct Findings {
  struct Bad {
    int index;  // in the batch
    BadRecord record;
  };
  struct Failure {
    int index;
    std::exception_ptr error;  // null: no good record to put in its place
  };
  std::vector<Bad> bad;
  std::vector<Failure> failures;
};

struct PendingBatch {
  std::uint32_t epoch = 0;
  Slice slice;
  nn::Shape shape;                          // of the images
  std::shared_ptr<const EpochOrder> order;  // null: positions are as in the file
  std::shared_ptr<BatchBuffer> buffer;      // threads write the samples they claimed, without the mutex
  std::atomic<bool> dropped = false;        // read without the mutex: the rest is not needed
  int claimed = 0, finished = 0;
  Findings findings;

  bool complete() const { return finished == slice.count; }
  // Of sample `index`: the position of its record, and which copy it is.
  Turn turn(int index) const {
    const std::uint64_t at = slice.first + static_cast<std::uint64_t>(index);
    if (!order) return {static_cast<std::uint32_t>(at), 0};
    return {order->records[at], order->copies.empty() ? 0 : order->copies[at]};
  }
};

// Samples index .. index + count - 1 of a batch, for one thread.
struct Claim {
  std::shared_ptr<PendingBatch> batch;  // null: nothing to do now
  int index = 0, count = 0;
};

class BatchQueue {
 public:
  bool empty() const { return pending_.empty(); }
  std::size_t size() const { return pending_.size(); }
  bool front_complete() const { return pending_.front()->complete(); }
  // It has no findings, so that next() returns it as it is.
  bool front_is_good() const {
    const Findings& found = pending_.front()->findings;
    return found.bad.empty() && found.failures.empty();
  }
  void push(std::shared_ptr<PendingBatch> batch) { pending_.push_back(std::move(batch)); }
  std::shared_ptr<PendingBatch> pop();
  void drop_all();
  // The oldest batch first; a few samples at a time, so that one mutex serves many threads and a batch is shared by
  // all.
  Claim claim();

 private:
  std::deque<std::shared_ptr<PendingBatch>> pending_;
};

}  // namespace dtrain::data
