// HTTP downloads: resumable, retried, checked.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include <dtrain/base/files.hpp>

namespace dtrain::net {

struct Download {
  std::string url;  // http, https or file
  Path to;
  std::uint64_t size = 0;  // expected; 0: unknown
  std::string sha256;      // expected, lower-case hex; empty: unchecked
  int attempts = 4;        // tries in all, with growing pauses and jitter between them
  std::function<void(std::uint64_t done, std::uint64_t total)> progress;
};

// Leaves TO complete and checked, or not there: the partial file TO.part stays for the next try to resume unless its
// content was wrong. A file already there with the right hash is kept. Throws RemoteError (unreachable, status, ended
// early, an HTML page in place of data) or DataError (size, hash).
void download(const Download& request);

}  // namespace dtrain::net
