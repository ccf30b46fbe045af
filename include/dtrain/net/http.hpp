// HTTP downloads: resumable, retried, checked.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include <dtrain/base/files.hpp>

namespace dtrain::net {

// The URL as messages and logs show it: user, password, query and fragment may hold secrets, such as the signature of a
// URL that was given out for a while. The names of objects (s3://) and files have none of these.
std::string shown_url(std::string_view url);
// The URL as files on disk may hold it, without secrets: as shown_url() gives it. Where that leaves out a query or a
// fragment, a SHA-256 of the URL without user and password follows, which tells it from other URLs. User and password
// are not hashed: a short password could be guessed from its hash.
std::string stored_url(std::string_view url);

struct Download {
  std::string url;  // http, https or file
  Path to;
  std::uint64_t size = 0;                      // expected; 0: unknown
  std::string sha256;                          // expected, lower-case hex; empty: unchecked
  int attempts = 4;                            // tries in all, with growing pauses and jitter between them
  std::chrono::milliseconds first_pause{500};  // doubled before each further try, unless the server names a time
  std::chrono::seconds connect_timeout{15};
  std::chrono::seconds stall_timeout{30};  // a try ends when almost nothing came for so long
  std::function<void(std::uint64_t done, std::uint64_t total)> progress;  // bytes; total is 0 while unknown
};

// Leaves TO complete and checked, or not there: the partial file TO.part stays for the next try to resume unless its
// content was wrong. A file already there with the right hash (or size, where no hash is known) is kept. Blocks; one
// process at a time downloads to one name. Throws RemoteError (unreachable, status, ended early, an HTML page in place
// of data), DataError (size, hash), Stopped after SIGINT or SIGTERM, or Error (disk).
void download(const Download& request);

}  // namespace dtrain::net
