// Where weights lie: in a file, behind a URL, or in the newest checkpoint of a prefix.
#pragma once

#include <chrono>
#include <functional>
#include <string>

#include <dtrain/train/checkpoint.hpp>

namespace dtrain::train {

// How to wait for another process that downloads the same weights.
struct DownloadWait {
  std::function<void(const std::string&)> tell = {};           // gets one line, where there is something to wait for
  std::chrono::milliseconds quiet = std::chrono::minutes(10);  // without a change of its files
};

// A file of this machine with the weights: `place` itself, the newest checkpoint of this prefix, or for a URL that ends
// in #sha256=HEX the copy of that content in the user's cache, which is downloaded where it is not there. One thread of
// one process downloads it, and the others wait for the copy. Throws UsageError for a URL without a hash, DataError for
// other content, Error for a wait without progress. `store`: null for one made from the environment.
Path weights_on_this_machine(const Path& place, const SharedStore& store = {}, const DownloadWait& wait = {});

}  // namespace dtrain::train
