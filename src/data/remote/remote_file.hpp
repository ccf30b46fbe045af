// One object as a file that is read at random, through the cache where it fits.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <dtrain/data/remote.hpp>

#include "block_cache.hpp"

namespace dtrain::data {

// Safe for concurrent use, with two arrays of atomics in place of a lock. Pinned to the version of the object that was
// there when it was opened: a replaced object is a DataError that names both ETags, and cached blocks of the old one
// are never mixed with the new.
class RemoteFile {
 public:
  RemoteFile(std::string url, const RemoteOptions& options);
  std::uint64_t size() const { return state_.size; }
  // Throws what net::ObjectStore::read throws.
  void read(std::uint64_t offset, std::span<std::byte> into);
  // Brings these bytes into the cache, if there is one; a block that was asked for in this round already is left to
  // the thread that fetches it, unless that failed. Rounds are not 0.
  void fetch_ahead(std::uint64_t offset, std::uint64_t size, std::uint32_t round);

 private:
  BlockName name_of(std::uint64_t block) const { return {object_, block}; }
  void read_block(std::uint64_t block, std::uint64_t begin, std::span<std::byte> into);
  std::string fetch(std::uint64_t block);

  std::string url_;
  std::shared_ptr<net::ObjectStore> store_;
  net::ObjectState state_;
  std::string object_;
  std::function<void(const std::string&)> tell_;
  std::shared_ptr<BlockCache> cache_;  // null: read without one
  // An element for each block, where there is a cache.
  std::vector<std::atomic<bool>> checked_;         // the block was there and whole, or came from the server
  std::vector<std::atomic<std::uint32_t>> asked_;  // the last round in which it was fetched ahead
};

}  // namespace dtrain::data
