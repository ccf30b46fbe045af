// Brings the records of an epoch into the cache in the order in which they will be read.
#pragma once

#include <cstdint>
#include <thread>
#include <vector>

#include <dtrain/base/mutex.hpp>
#include <dtrain/data/record.hpp>

namespace dtrain::data {

// 64 threads fetch blocks, because they wait for the network. One mutex guards the list of positions and both cursors;
// no thread holds it while it fetches. start() replaces the list: a fetch in flight finishes, and the round number
// keeps it from being counted for the new list. A fetch that fails is tried again after growing pauses, by its own
// thread, until the reader has passed its position: an error that stays is the reader's to report. The destructor waits
// for fetches in flight. It does nothing if all files are local. The set must outlive it.
class ReadAhead {
 public:
  ReadAhead(const RecordSet& set, std::uint64_t cache_size);
  ~ReadAhead();
  ReadAhead(const ReadAhead&) = delete;
  // Replaces the positions to fetch. A block that cannot be fetched is left to the reader.
  void start(std::vector<std::uint32_t> positions);
  // Appends to them.
  void add(const std::vector<std::uint32_t>& positions);
  // The reader has read this many of them: fetching may run a bounded number of records ahead of it.
  void have_read(std::size_t count);

 private:
  void work();
  bool fetch(std::uint32_t position, std::uint32_t round) const;
  bool may_go_on() const DTRAIN_REQUIRES(mutex_);

  const RecordSet& set_;
  const std::size_t farthest_;  // records ahead of the reader
  Mutex mutex_;
  CondVar there_is_work_;
  std::vector<std::uint32_t> positions_ DTRAIN_GUARDED_BY(mutex_);
  std::size_t next_ DTRAIN_GUARDED_BY(mutex_) = 0;
  std::size_t read_ DTRAIN_GUARDED_BY(mutex_) = 0;
  std::uint32_t round_ DTRAIN_GUARDED_BY(mutex_) = 0;
  bool ending_ DTRAIN_GUARDED_BY(mutex_) = false;
  std::vector<std::jthread> threads_;
};

}  // namespace dtrain::data
