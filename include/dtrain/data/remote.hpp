// Files behind s3:// and http(s):// URLs: read in blocks through a cache on disk.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include <dtrain/base/files.hpp>
#include <dtrain/net/objects.hpp>

namespace dtrain::data {

bool is_remote(const Path& path);

struct RemoteOptions {
  // Blocks of objects that were read, for the next time and for other processes; made if missing. Empty:
  // $XDG_CACHE_HOME/dtrain, else ~/.cache/dtrain.
  Path cache_dir;
  // What all blocks together may take; those that were not read for longest go first. An object that would fill more
  // than half of it is read without the cache, unless its records are read `in_runs` of neighbours.
  std::uint64_t cache_size = std::uint64_t{32} << 30;
  bool in_runs = false;
  // Called once, from any thread, when the cache cannot be written to (its disk is full) or is too small; reading goes
  // on without it.
  std::function<void(const std::string&)> tell = {};
  // Made when first needed; files that share one share its connections.
  std::shared_ptr<net::ObjectStore> store = {};
};

}  // namespace dtrain::data
