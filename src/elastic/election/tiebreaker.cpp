#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include <dtrain/base/error.hpp>
#include <dtrain/base/hash.hpp>
#include <dtrain/elastic/job_files.hpp>
#include <dtrain/elastic/voters.hpp>

namespace dtrain::elastic {

// link(2) creates the name or finds it, even when the server's answer is lost; the content decides who holds it.
bool acquire_tiebreaker(const Path& folder, Generation next, const std::string& owner) {
  const Path tiebreakers = folder / job_file::kTiebreakers;
  make_folder(tiebreakers);
  const Path name = tiebreakers / std::to_string(next);
  const Path mine = tiebreakers / fmt::format("{}.{}", next, sha256_hex(bytes_of(owner)).substr(0, 16));
  write_file_atomic(mine, owner + "\n");
  const bool failed = ::link(mine.c_str(), name.c_str()) != 0;
  const int error = errno;
  ::unlink(mine.c_str());
  if (failed && error != EEXIST) {
    throw Error(fmt::format("{}: cannot be made: {}", name.string(), std::strerror(error)));
  }
  return read_file(name) == owner + "\n";
}

}  // namespace dtrain::elastic
