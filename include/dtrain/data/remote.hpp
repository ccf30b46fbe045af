// Files behind s3:// and http(s):// URLs: read in blocks through a cache on disk.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include <dtrain/base/files.hpp>
#include <dtrain/net/objects.hpp>

namespace dtrain::data {

bool is_remote(const Path& path);
// The path as messages show it: that of a URL without its user, password and query (net::shown_url).
Path shown_path(const Path& path);
// The same of record files as a user names them: several have commas between them.
std::string shown_files(const Path& files);

struct RemoteOptions {
  // Blocks of objects that were read, for the next time and for other processes; made if missing. Empty:
  // $XDG_CACHE_HOME/dtrain, else ~/.cache/dtrain.
  Path cache_dir;
  // What all blocks together may take, those of other processes included; blocks that were not read for longest go
  // first. A set of objects that would fill more than half of it is read without the cache, unless its records are read
  // `in_runs` of neighbours.
  std::uint64_t cache_size = std::uint64_t{32} << 30;
  bool in_runs = false;
  // Called from any thread with what a user should know and what stops nothing, each once: the cache cannot be written
  // to (its disk is full, its folder is another user's) or is too small, so that reading goes on without it.
  std::function<void(const std::string&)> tell = {};
  // Made when first needed; files that share one share its connections.
  std::shared_ptr<net::ObjectStore> store = {};
  // Every read goes to the server.
  bool without_cache = false;
  // What the store says of the object, where it was asked before.
  std::optional<net::ObjectState> state = {};
};

// Whether these objects, `bytes` together, fill so much of the cache that each block would be gone before it is read
// again. Says so by options.tell.
bool is_too_much_to_cache(const RemoteOptions& options, const std::string& name, std::uint64_t bytes);

}  // namespace dtrain::data
