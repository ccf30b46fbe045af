// Brings the records of an epoch into the cache in the order in which they will be read.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

#include <dtrain/data/record.hpp>

namespace dtrain::data {

// Does nothing where all files are local. The set must outlive it.
class ReadAhead {
 public:
  ReadAhead(const RecordSet& set, std::uint64_t cache_size);
  ~ReadAhead();
  ReadAhead(const ReadAhead&) = delete;
  // Forgets what was to come and begins with these. What cannot be fetched is left to whoever reads it.
  void start(std::vector<std::uint32_t> positions);
  // So many of them were read: it may go on as far as that and a bounded number more.
  void have_read(std::size_t count);

 private:
  void work();
  bool may_go_on() const;  // with the mutex

  const RecordSet& set_;
  const std::size_t farthest_;  // records ahead of the reader
  std::mutex mutex_;
  std::condition_variable there_is_work_;
  std::vector<std::uint32_t> positions_;  // guarded by mutex_
  std::size_t next_ = 0, read_ = 0;       // guarded by mutex_
  std::uint32_t round_ = 0;               // guarded by mutex_
  bool ending_ = false;                   // guarded by mutex_
  std::vector<std::jthread> threads_;
};

}  // namespace dtrain::data
